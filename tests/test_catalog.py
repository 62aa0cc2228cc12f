"""The catalog's tables: published totals, arithmetic of the data sheets, look-up."""

import csv
import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commwall import catalog
from commwall.hardware import Link
from commwall.units import GB_PER_S, GIB, MIB, MICROSECOND, TFLOP_PER_S

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "lib" / "commwall" / "data"
KEYS = set(
    re.findall(r"^@\w+\{([^,]+)", (ROOT / "book/references.bib").read_text(), re.M)
)


def table(name):
    with (DATA / f"{name}.csv").open(encoding="ascii", newline="") as lines:
        return list(csv.DictReader(lines))


GPUS, LINKS, MODELS = table("gpus"), table("links"), table("models")
BUSBW, LEFT_OUT = table("busbw"), table("left_out")
KINDS = {"gpu": GPUS, "link": LINKS, "model": MODELS}
LOOK_UP = {"gpu": catalog.gpu, "link": catalog.link, "model": catalog.model}


def by_name(rows):
    return [pytest.param(row, id=row["name"]) for row in rows]


def number(cell):
    return float(cell) if cell else None


# ---- sources -------------------------------------------------------------------------


@pytest.mark.parametrize("row", [*GPUS, *LINKS, *MODELS, *BUSBW])
def test_each_row_has_a_source_and_a_certainty(row):
    assert row["certainty"] in {"A", "B", "D"}
    for source in row["source"].split("; "):
        assert source in KEYS or re.fullmatch(r"https://\S+", source), source


def test_each_derived_row_shows_its_derivation():
    derived = [row for row in [*GPUS, *LINKS] if row["certainty"] == "D"]
    assert all(row["note"] for row in derived)
    assert all(row["note"] for row in BUSBW if row["certainty"] == "D")


def test_each_cell_of_a_gpu_has_where_its_multiprocessors_come_from():
    assert all(row["sms_source"] for row in GPUS)
    assert all(row["latency_from"] and row["achieved_as"] for row in LINKS)
    assert all(row["seq_source"] for row in MODELS)


# ---- arithmetic ----------------------------------------------------------------------


@pytest.mark.parametrize("row", by_name(MODELS))
def test_parameters_are_those_that_were_published(row):
    params = catalog.model(row["name"]).params
    published = int(row["published_params"])
    if row["published_as"] == "exact":
        assert params == published
    else:  # 1.7 is 1.652 rounded up: see the next test
        within = 0.03 if row["name"] == "Megatron GPT 1.7B" else 0.012
        assert params == pytest.approx(published, rel=within)


@pytest.mark.parametrize(
    "row", by_name(row for row in MODELS if row["name"].startswith("Megatron"))
)
def test_megatron_labels_are_our_counts_to_one_decimal_of_a_billion(row):
    """So 1.7B, three per cent above its 1.652 billion, is no other shape."""
    params = catalog.model(row["name"]).params
    assert round(params / 1e9, 1) == int(row["published_params"]) / 1e9


def test_only_models_before_rotary_positions_have_biases_and_dropout():
    for row in MODELS:
        old = row["name"].startswith(("GPT", "Megatron"))
        kept = catalog.model(row["name"])
        assert (kept.biases, kept.learned_positions, kept.dropout) == (old,) * 3
        assert kept.qkv_bias == row["name"].startswith("Qwen")


def datasheet(row):
    """GB/s of one direction from lanes and their rate."""
    raw = float(row["lanes"]) * float(row["lane_rate"])
    codes = {
        "GT/s 128b/130b": 128 / 130 / 8,
        "GT/s FLIT 242/256": 242 / 256 / 8,
        "Gbit/s": 1 / 8,
        "GB/s": 1,
    }
    return raw * codes[row["lane_unit"]]


@pytest.mark.parametrize("row", by_name(LINKS))
def test_data_sheet_of_a_link_is_lanes_times_their_rate(row):
    assert float(row["datasheet_gb_per_s"]) == pytest.approx(datasheet(row), rel=2e-4)


def test_sixty_four_and_six_hundred_and_nine_hundred_count_both_directions():
    both = {
        name: 2 * catalog.link(name).datasheet / GB_PER_S
        for name in catalog.link_names()
    }
    assert both["PCIe 4.0 x16"] == pytest.approx(64, rel=0.02)
    assert both["NVLink 3"] == 600
    assert both["NVLink 4"] == 900
    assert both["NVLink 5"] == 1800
    assert both["NVLink 3 bridge GA102"] == 112.5


@pytest.mark.parametrize("row", by_name(row for row in GPUS if row["clock_mhz"]))
def test_peak_is_multiprocessors_times_their_rate(row):
    rate = 2 * float(row["fma_per_sm_clock"]) * float(row["clock_mhz"]) * 1e6
    halved = 2 if row["half_rate"] == "1" else 1
    peak = float(row["sms"]) * rate / halved / TFLOP_PER_S
    assert float(row["bf16_tflop_per_s"]) == pytest.approx(peak, rel=0.005)


@pytest.mark.parametrize(
    "row", by_name(row for row in GPUS if row["fp16_acc_tflop_per_s"])
)
def test_only_half_rate_cards_gain_from_accumulating_in_fp16(row):
    gain = float(row["fp16_acc_tflop_per_s"]) / float(row["bf16_tflop_per_s"])
    assert gain == pytest.approx(2 if row["half_rate"] == "1" else 1, rel=0.002)


@pytest.mark.parametrize(
    "row", by_name(row for row in GPUS if row["matmul_tflop_per_s"])
)
def test_no_matmul_beats_the_peak_but_on_a_card_that_clocks_past_its_data_sheet(row):
    reached = float(row["matmul_tflop_per_s"]) / float(row["bf16_tflop_per_s"])
    assert 0.5 < reached < (1.2 if row["name"].startswith("RTX") else 1)


@pytest.mark.parametrize("row", by_name(row for row in GPUS if row["driver_mib"]))
def test_memory_is_what_the_driver_prints_to_the_nearest_gib(row):
    printed = int(row["driver_mib"]) * MIB
    assert catalog.gpu(row["name"]).memory == round(printed / GIB) * GIB


@pytest.mark.parametrize("row", by_name(LINKS))
def test_no_link_achieves_more_than_its_data_sheet(row):
    kept = catalog.link(row["name"])
    assert 0 < kept.bandwidth <= kept.datasheet
    assert (number(row["copy_gb_per_s"]) or 0) <= kept.datasheet / GB_PER_S
    if kept.in_network:  # the switch sums: each byte crosses the wire once, not twice
        assert kept.bandwidth / 2 < kept.in_network <= kept.datasheet


def test_peer_to_peer_beats_the_way_through_the_host():
    for generation in ("3.0", "4.0", "5.0"):
        direct = catalog.link(f"PCIe {generation} x16")
        bounced = catalog.link(f"PCIe {generation} x16 host bounce")
        assert bounced.through_host
        assert not direct.through_host
        assert bounced.bandwidth < direct.bandwidth


def test_latency_of_a_hop_is_that_of_nccl():
    assert catalog.NVLINK4.latency == 3.4 * MICROSECOND
    assert catalog.PCIE4.latency == catalog.PCIE4_HOST.latency == 5.7 * MICROSECOND
    assert catalog.NDR400.latency == 14 * MICROSECOND


# ---- measurements --------------------------------------------------------------------


FACTOR = {"all_reduce": lambda n: 2 * (n - 1) / n, "send": lambda n: 1}
for _op in ("all_gather", "reduce_scatter", "all_to_all"):
    FACTOR[_op] = lambda n: (n - 1) / n


def test_bus_bandwidth_is_algorithm_bandwidth_times_the_operations_factor():
    both = [row for row in catalog.measured(odd=None) if row.algorithm and row.bus]
    assert len(both) > 40
    for row in both:
        bus = row.algorithm * FACTOR[row.op](row.gpus)
        assert row.bus == pytest.approx(bus, rel=0.02, abs=5e6), (
            row
        )  # 0.01 GB/s printed


def test_no_bus_bandwidth_inside_a_box_beats_the_wire_but_where_the_switch_sums():
    for row in catalog.measured(odd=None, nodes=1):
        if row.link and row.bus:
            wire = catalog.link(row.link)
            limit = wire.in_network * 2 if "NVLS" in row.note else wire.datasheet
            assert row.bus <= limit, row


@pytest.mark.parametrize(
    "row",
    by_name(row for row in LINKS if row["achieved_as"].startswith("all-reduce bus")),
)
def test_a_link_achieves_what_was_measured_on_it(row):
    achieved = float(row["achieved_gb_per_s"]) * GB_PER_S
    runs = catalog.measured(link=row["name"], op="all_reduce", odd=None)
    rings = [run for run in runs if run.bus and "NVLS" not in run.note]
    if "over 4 NICs" in row["achieved_as"]:
        achieved *= 4
    assert any(run.bus == pytest.approx(achieved, rel=0.004) for run in rings)


@pytest.mark.parametrize(
    "row", by_name(row for row in LINKS if row["in_network_gb_per_s"])
)
def test_a_switch_sums_as_fast_as_was_measured(row):
    runs = catalog.measured(link=row["name"], op="all_reduce")
    rates = [
        run.algorithm or run.bus / FACTOR["all_reduce"](run.gpus)
        for run in runs
        if "NVLS" in run.note
    ]
    assert catalog.link(row["name"]).in_network == pytest.approx(max(rates), rel=0.001)


def test_every_gpu_and_link_of_a_measurement_is_in_the_catalog():
    for row in BUSBW:
        assert not row["gpu"] or catalog.gpu(row["gpu"]).name == row["gpu"]
        assert not row["link"] or catalog.link(row["link"]).name == row["link"]


def test_measurements_are_filtered_by_all_that_is_given():
    runs = catalog.measured("4090", op="all_reduce", p2p=False)
    assert [run.bus for run in runs if run.bus] == [18 * GB_PER_S]
    assert {run.gpu for run in runs} == {"RTX 4090"}
    assert len(catalog.measured("4090", odd=None)) > len(catalog.measured("4090"))
    assert all(run.odd for run in catalog.measured(odd=True))
    with pytest.raises(ValueError, match="op='allreduce' must be one of all_reduce"):
        catalog.measured(op="allreduce")


def test_copies_are_told_in_one_direction():
    both = catalog.measured("RTX 4090", op="copy_both_ways", gpus=2)
    assert 25.6 * GB_PER_S in [run.bus for run in both]  # printed as 51.2


# ---- look-up -------------------------------------------------------------------------


SPELLINGS = {
    "gpu": {
        "H100-80GB-SXM": "H100 SXM5",
        "NVIDIA H100 80GB HBM3": "H100 SXM5",
        "H100_80GB_PCIe": "H100 PCIe",
        "A100-80GB-SXM": "A100-80 SXM",
        "NVIDIA A100-SXM4-80GB": "A100-80 SXM",
        "a100 40gb sxm": "A100-40 SXM",
        "4090": "RTX 4090",
        "RTX4090": "RTX 4090",
        "GeForce RTX 4090": "RTX 4090",
        "NVIDIA GeForce RTX 4090": "RTX 4090",
        "A6000": "RTX A6000",
        "gb200": "GB200 (per GPU)",
        "a10g": "A10G (AWS G5)",
    },
    "link": {
        "pcie4": "PCIe 4.0 x16",
        "NVLink 4 (H100/H200 SXM, 18 links)": "NVLink 4",
        "ndr400": "InfiniBand NDR 400",
        "10GbE": "10 GbE (TCP)",
        "NVL72": "NVLink 5 NVL72",
    },
    "model": {
        "llama2-70b": "LLaMA-2 70B",
        "Llama-2-70B": "LLaMA-2 70B",
        "meta-llama/Llama-2-70b-hf": "LLaMA-2 70B",
        "GPT-3": "GPT-3 175B",
        "qwen2.5_7b": "Qwen2.5 7B",
        "Qwen/Qwen2.5-72B": "Qwen2.5 72B",
        "llama 3.1 8b": "LLaMA-3 8B",
    },
}


@pytest.mark.parametrize(
    ("kind", "spelling", "name"),
    [(kind, *pair) for kind, pairs in SPELLINGS.items() for pair in pairs.items()],
)
def test_usual_spellings_lead_to_one_object(kind, spelling, name):
    find = LOOK_UP[kind]
    assert find(spelling) is find(name)
    assert find(name).name == name


@pytest.mark.parametrize("kind", KINDS)
def test_every_name_finds_its_row_and_so_does_every_alias_of_one_row(kind):
    names = [(row["name"], row["aliases"].split("; ")) for row in KINDS[kind]]
    bearers = Counter(alias for _, aliases in names for alias in aliases)
    for name, aliases in names:
        assert LOOK_UP[kind](name).name == name
        for alias in aliases:
            if bearers[alias] == 1:
                assert LOOK_UP[kind](alias).name == name
            else:
                with pytest.raises(ValueError, match=re.escape(name)):
                    LOOK_UP[kind](alias)


SEPARATORS = st.sampled_from(["", " ", "-", "_", "  ", " - "])


@given(data=st.data())
def test_look_up_minds_neither_case_nor_spaces_nor_hyphens(data):
    kind = data.draw(st.sampled_from(sorted(KINDS)))
    name = data.draw(st.sampled_from([row["name"] for row in KINDS[kind]]))
    words = re.split(r"[\s_-]+", name)
    spelt = words[0]
    for word in words[1:]:
        spelt += data.draw(SEPARATORS) + word
    spelt = "".join(data.draw(st.sampled_from([c.lower(), c.upper()])) for c in spelt)
    assert LOOK_UP[kind](f" {spelt} ") is LOOK_UP[kind](name)


@pytest.mark.parametrize(
    ("kind", "name", "candidates"),
    [
        ("gpu", "H100", ["H100 PCIe", "H100 SXM5"]),
        ("gpu", "h100 80gb", ["H100 PCIe", "H100 SXM5"]),
        ("gpu", "A100", ["A100-40 PCIe", "A100-40 SXM", "A100-80 PCIe", "A100-80 SXM"]),
        ("gpu", "A100-80GB", ["A100-80 PCIe", "A100-80 SXM"]),
        ("gpu", "RTX 6000", ["RTX 6000 Ada", "RTX PRO 6000 Blackwell"]),
        ("model", "llama-70b", ["LLaMA-2 70B", "LLaMA-3 70B"]),
    ],
)
def test_a_name_of_several_things_is_an_error_that_names_them(kind, name, candidates):
    expected = re.escape(f"{kind}={name!r} may be {' or '.join(candidates)}: say which")
    with pytest.raises(ValueError, match=expected):
        LOOK_UP[kind](name)


def test_an_unknown_name_is_an_error_with_the_nearest_names():
    with pytest.raises(ValueError, match=r"gpu='RTX 4080' is not in .*RTX 4090"):
        catalog.gpu("RTX 4080")
    with pytest.raises(ValueError, match=r"link='NVLink' is not in .*NVLink 4"):
        catalog.link("NVLink")
    with pytest.raises(ValueError, match=r"model='GPT-4' is not in .*GPT-3 175B"):
        catalog.model("GPT-4")
    with pytest.raises(ValueError, match=r"gpu=None must be a name"):
        catalog.gpu(None)


@pytest.mark.parametrize("row", by_name(LEFT_OUT))
def test_what_is_left_out_says_why(row):
    for name in [row["name"], *row["aliases"].split("; ")]:
        with pytest.raises(ValueError, match=re.escape(row["reason"])):
            LOOK_UP[row["kind"]](name)


def test_data_sheet_gives_the_cells_that_no_object_holds():
    assert catalog.data_sheet("gpu", "h100-sxm")["driver_mib"] == "81559"
    assert catalog.data_sheet("link", "nvlink 3")["copy_gb_per_s"] == "282.1"
    with pytest.raises(ValueError, match="kind='cluster' must be one of"):
        catalog.data_sheet("cluster", "x")


# ---- clusters ------------------------------------------------------------------------


def ladder(cluster):
    return [(tier.gpus, tier.link.name) for tier in cluster.tiers]


@pytest.mark.parametrize("row", by_name(GPUS))
def test_every_gpu_makes_a_node_and_every_usual_network_exists(row):
    node = catalog.cluster(row["name"], 8)
    assert node.link_across(8).bandwidth > 0
    assert row["bridge"] in {"", *catalog.link_names()}
    for column in ("pcie", "pcie_host", "network"):
        assert row[column] in {"", *catalog.link_names()}
    if row["network"]:
        assert catalog.cluster(row["name"], 144).link_across(144).bandwidth > 0


def test_a_geforce_box_bounces_through_its_host_unless_the_driver_is_patched():
    stock = catalog.cluster("RTX 4090", 8)
    assert ladder(stock) == [(8, "PCIe 4.0 x16 host bounce")]
    assert not stock.peer_to_peer
    assert "off: the stock driver refuses it" in stock.note
    patched = catalog.cluster("RTX 4090", 8, p2p=True)
    assert ladder(patched) == [(8, "PCIe 4.0 x16")]
    assert patched.peer_to_peer
    assert "needs a patched driver" in patched.note
    assert ladder(catalog.cluster("RTX 4090", 8, p2p=False)) == ladder(stock)


def test_a_data_centre_card_talks_to_its_peers_unless_told_not_to():
    assert ladder(catalog.cluster("A100-80 PCIe", 8)) == [(8, "PCIe 4.0 x16")]
    off = catalog.cluster("A100-80 PCIe", 8, p2p=False)
    assert ladder(off) == [(8, "PCIe 4.0 x16 host bounce")]
    assert "off, as asked" in off.note
    with pytest.raises(ValueError, match="p2p='yes' must be True, False, or None"):
        catalog.cluster("A100-80 PCIe", 8, p2p="yes")


def test_a_bridge_joins_two_cards_and_pcie_the_pairs():
    pairs = catalog.cluster("RTX 3090", 8, inside="NVLink 3 bridge GA102")
    assert ladder(pairs) == [
        (2, "NVLink 3 bridge GA102"),
        (8, "PCIe 4.0 x16 host bounce"),
    ]
    assert pairs.link_across(2).bandwidth > pairs.link_across(4).bandwidth
    two = catalog.cluster("RTX 3090", 2, 2, inside="NVLink 3 bridge GA102")
    assert ladder(two) == [(2, "NVLink 3 bridge GA102")]
    hopper = catalog.cluster("H100 PCIe", 4, inside="H100 PCIe bridge")
    assert ladder(hopper)[1] == (8, "PCIe 5.0 x16")


@pytest.mark.parametrize(
    ("gpu", "inside", "words"),
    [
        ("RTX 4090", "NVLink 3 bridge GA102", "no bridge of RTX 4090; it has none"),
        ("RTX 3090", "NVLink 3", "its bridge is 'NVLink 3 bridge GA102'"),
        ("A100-80 SXM", "A100 PCIe bridge", "no bridge of A100-80 SXM"),
    ],
)
def test_a_bridge_that_a_card_does_not_have_is_an_error(gpu, inside, words):
    with pytest.raises(ValueError, match=words):
        catalog.cluster(gpu, 8, inside=inside)


def test_a_lone_card_has_nothing_to_bridge():
    with pytest.raises(ValueError, match="gpus_per_node=1 leaves nothing to bridge"):
        catalog.cluster("RTX 3090", 1, 1, inside="GA102 bridge")


@pytest.mark.parametrize(
    ("gpu", "nics", "network"),
    [
        ("A100-80 SXM", 8, "InfiniBand HDR 200"),
        ("H100 SXM5", 8, "InfiniBand NDR 400"),
        ("H200 SXM", 8, "InfiniBand NDR 400"),
        ("B200 SXM", 8, "InfiniBand NDR 400"),
        ("V100-32 SXM2", 4, "InfiniBand EDR 100"),
        ("RTX 4090", 1, "10 GbE (TCP)"),
        ("A100-80 PCIe", 1, "10 GbE (TCP)"),
    ],
)
def test_the_usual_network_is_assumed_and_the_note_says_so(gpu, nics, network):
    two = catalog.cluster(gpu, 16)
    assert two.tiers[-1].link is catalog.link(network)
    assert two.nics_per_node == nics
    assert f"assumed network: {nics} x {network} a node" in two.note
    assert "network" not in catalog.cluster(gpu, 8).note


def test_a_network_may_be_named_or_made():
    named = catalog.cluster("RTX 4090", 16, network="25GbE", nics_per_node=2)
    assert named.tiers[-1].link is catalog.link("25 GbE RoCEv2")
    assert named.nics_per_node == 2
    assert "assumed" not in named.note
    own = Link(name="own", bandwidth=1e9, latency=1e-6, source="a test")
    made = catalog.cluster("H100 SXM5", 16, network=own)
    assert made.tiers[-1].link is own
    assert "assumed NICs: 8 x own a node" in made.note


def test_a_gpu_without_a_usual_network_asks_for_one():
    with pytest.raises(ValueError, match="TPU v5e has no usual network"):
        catalog.cluster("TPU v5e", 512)


def test_nodes_may_be_smaller_than_usual_or_half_empty():
    assert catalog.cluster("RTX 4090", 4).nodes == 1
    quads = catalog.cluster("A100-80 SXM", 16, 4)
    assert ladder(quads) == [(4, "NVLink 3"), (16, "InfiniBand HDR 200")]
    assert quads.nics_per_node == 4
    singles = catalog.cluster("RTX 3090", 4, 1)
    assert singles.link_across(4).name == "10 GbE (TCP)"


def test_a_node_wider_than_a_board_is_noted():
    wide = catalog.cluster("H100 SXM5", 16, 16)
    assert ladder(wide) == [(16, "NVLink 4")]
    assert "assumed: NVLink 4 over 16 GPUs, of which 8 are sold joined" in wide.note


def test_a_rack_is_one_domain_of_nvlink_wider_than_its_nodes():
    rack = catalog.cluster("GB200", 72, 4)
    assert ladder(rack) == [(72, "NVLink 5 NVL72")]
    assert rack.link_across(72) is catalog.link("NVL72")
    assert rack.nics_per_node == 4
    two = catalog.cluster("GB200", 144, 72)
    assert ladder(two) == [(72, "NVLink 5 NVL72"), (144, "InfiniBand NDR 400")]


def test_a_mesh_without_a_switch_is_as_wide_as_the_group():
    mesh = catalog.cluster("MI300X", 8)
    widths = [mesh.link_across(n).datasheet / GB_PER_S for n in (2, 4, 8)]
    assert widths == [64, 192, 448]
    assert ladder(catalog.cluster("MI300X", 4, 4)) == ladder(mesh)[:2]


def test_cards_that_share_an_uplink_share_its_bandwidth():
    shared = catalog.cluster("RTX 4090", 8, gpus_per_uplink=2)
    assert shared.uplink is catalog.PCIE4
    assert shared.link_across(8).bandwidth == catalog.PCIE4.bandwidth / 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("RTX 4090", 12), "gpus=12 is not a multiple of gpus_per_node=8"),
        (("RTX 4090", 0), "gpus=0 must be a whole number"),
        (("RTX 4090", 8, 0), "gpus_per_node=0 must be a whole number"),
        (("RTX 4090", 16, 8, "5 GbE"), "link='5 GbE' is not in the catalog"),
    ],
)
def test_impossible_clusters_are_errors(arguments, words):
    with pytest.raises(ValueError, match=words):
        catalog.cluster(*arguments)
