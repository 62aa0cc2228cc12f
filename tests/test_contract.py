"""The names, meanings, defaults, units and worked numbers that others rely on.

One test for each sentence of the contract that can be tested; how the library is built
behind them is not fixed here. The tests beside this one say why the numbers are right.
"""

import inspect
import subprocess
import sys
from dataclasses import FrozenInstanceError, fields, is_dataclass, replace

import numpy as np
import pytest

from commwall import catalog, collectives
from commwall.balance import data_parallel_tokens
from commwall.hardware import GPU, Cluster, Link, Tier
from commwall.memory import RESERVE, memory
from commwall.model import Model
from commwall.pipeline import bubble_fraction, bubble_overhead
from commwall.plan import Overlap, Plan, Precision
from commwall.steptime import step_time
from commwall.sweep import plans, search
from commwall.units import GIB
from commwall.volumes import traffic, volumes

LLAMA = catalog.model("LLaMA-2 70B")
PARAMS = 68_976_648_192
LINK = Link(name="example", bandwidth=450e9, latency=2e-6, source="example")
COLLECTIVES = ["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast",
               "send"]  # fmt: skip


def defaults(kind):
    """Names of a dataclass's fields, with their defaults."""
    return {field.name: field.default for field in fields(kind)}


# Inputs


@pytest.mark.parametrize("kind", [Plan, Precision, Overlap, Link, GPU, Cluster])
def test_inputs_are_frozen_dataclasses_whose_fields_are_named(kind):
    assert is_dataclass(kind)
    assert kind.__dataclass_params__.frozen
    assert all(field.kw_only for field in fields(kind))
    with pytest.raises(TypeError):
        kind(1)


def test_a_model_takes_seven_sizes_in_order_and_the_rest_by_name():
    """Model(layers, hidden, heads, kv_heads, ffn, vocab, seq, *, gated_mlp, ...)."""
    taken = list(inspect.signature(Model).parameters.values())
    by_place = [p.name for p in taken if p.kind is p.POSITIONAL_OR_KEYWORD]

    assert by_place == ["layers", "hidden", "heads", "kv_heads", "ffn", "vocab", "seq"]
    by_name = {p.name: p.default for p in taken if p.kind is p.KEYWORD_ONLY}
    assert by_name["gated_mlp"] is by_name["tied_embeddings"] is inspect.Parameter.empty
    assert by_name.items() >= {
        "head_dim": None, "experts": 1, "shared_experts": 0, "top_k": 1,
        "moe_ffn": None, "dense_layers": None, "biases": False,
        "learned_positions": False,
    }.items()  # fmt: skip
    with pytest.raises(FrozenInstanceError):
        LLAMA.layers = 1


def test_the_size_of_a_head_is_hidden_over_heads_unless_said():
    assert LLAMA.head_dim == 8192 // 64
    assert replace(LLAMA, head_dim=64).head_dim == 64


def test_flop_per_token_is_six_a_weight_and_causal_attention():
    """6 x matmul parameters, the look-up left out, and 6 x layers x seq x a x d."""
    attention = 80 * 4096 * 64 * 128
    norms = (2 * 80 + 1) * 8192
    matmul = PARAMS - norms - 32000 * 8192

    assert LLAMA.flop_per_token == 6 * matmul + 6 * attention
    assert LLAMA.flop_per_token_full_attention == 6 * matmul + 12 * attention


def test_a_tied_projection_counts_as_a_product_all_the_same():
    tied = replace(LLAMA, tied_embeddings=True)

    assert tied.params == LLAMA.params - 32000 * 8192
    assert tied.flop_per_token == LLAMA.flop_per_token


def test_what_recomputation_adds_belongs_to_the_plan():
    steps = [
        step_time(LLAMA, Plan(tp=8, recompute=how), catalog.cluster("A100-80 SXM", 8))
        for how in ("none", "full")
    ]

    assert steps[0].mfu * steps[0].total == pytest.approx(steps[1].mfu * steps[1].total)
    assert steps[0].hfu * steps[0].total < steps[1].hfu * steps[1].total


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("GPT-2 124M", 124_439_808),
        ("LLaMA-2 7B", 6_738_415_616),
        ("LLaMA-2 13B", 13_015_864_320),
        ("LLaMA-2 70B", PARAMS),
        ("LLaMA-3 8B", 8_030_261_248),
        ("LLaMA-3 70B", 70_553_706_496),
        ("Mixtral 8x7B", 46_702_792_704),
        ("Qwen2.5 7B", 7_615_616_512),
        ("Qwen2.5 72B", 72_706_203_648),
    ],
)
def test_exact_totals_match_exactly(name, params):
    assert catalog.model(name).params == params


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("GPT-3 175B", 175e9),
        ("LLaMA-3.1 405B", 405.85e9),
        ("Megatron GPT 3.6B", 3.6e9),
        ("Megatron GPT 7.5B", 7.5e9),
        ("Megatron GPT 18B", 18.4e9),
        ("Megatron GPT 39B", 39.1e9),
        ("Megatron GPT 76B", 76.1e9),
        ("Megatron GPT 145B", 145.6e9),
        ("Megatron GPT 310B", 310.1e9),
        ("Megatron GPT 530B", 529.6e9),
        ("Megatron GPT 1T", 1008e9),
    ],
)
def test_rounded_totals_are_within_one_point_two_percent(name, params):
    assert catalog.model(name).params == pytest.approx(params, rel=0.012)


def test_megatron_1_7_billion_is_2_8_percent_off_its_name():
    assert catalog.model("Megatron GPT 1.7B").params / 1.7e9 - 1 == pytest.approx(
        -0.028, abs=5e-4
    )
    active = catalog.model("Mixtral 8x7B").active_params
    assert active == pytest.approx(12.88e9, rel=1e-3)


def test_the_defaults_of_a_plan():
    expected = {
        "tp": 1, "pp": 1, "vpp": 1, "dp": 1, "cp": 1, "ep": 1, "zero_stage": 0,
        "micro_batch": 1, "global_batch": 1, "sequence_parallel": False,
        "recompute": "none", "schedule": "1f1b", "context": "ring",
    }  # fmt: skip

    assert defaults(Plan).items() >= expected.items()
    assert {"precision", "overlap"} <= set(defaults(Plan))


def test_micro_batches_are_derived_and_gpus_are_the_product_of_four_axes():
    plan = Plan(tp=2, cp=2, dp=4, pp=3, ep=8, micro_batch=2, global_batch=48)

    assert plan.micro_batches == 48 / (4 * 2)
    assert plan.gpus == 2 * 2 * 4 * 3
    with pytest.raises(TypeError):
        Plan(micro_batches=8)


def test_ep_divides_dp_times_cp_and_multiplies_nothing():
    with pytest.raises(ValueError, match=r"ep=3 must divide dp \* cp=4"):
        Plan(dp=2, cp=2, ep=3, global_batch=2)
    assert Plan(dp=2, cp=2, ep=4, global_batch=2).gpus == 4


def test_axes_stand_in_the_order_tp_cp_dp_pp_from_the_closest_outward():
    plan = Plan(tp=2, cp=2, dp=2, pp=2, global_batch=2)

    assert [plan.span(axis) for axis in ("tp", "cp", "dp", "pp")] == [2, 4, 8, 16]


def test_the_default_precision_is_two_and_two_and_twelve():
    precision = Plan().precision

    assert (precision.weights, precision.gradients) == (2, 2)
    assert precision.master + precision.moments == 12
    assert precision.bytes_per_param == 16


def test_the_default_overlap_hides_gradients_and_gathers_but_not_tensor_parallel():
    overlap = Plan().overlap

    assert overlap.dp
    assert overlap.zero3
    assert not overlap.tp


def test_a_what_if_is_a_replacement():
    assert replace(Plan(tp=8), tp=4).tp == 4


def test_a_link_has_what_it_achieves_and_what_is_sold():
    assert list(defaults(Link))[:4] == ["name", "bandwidth", "latency", "source"]
    link = catalog.link("NVLink 4")
    assert link.bandwidth == pytest.approx(367.6e9)
    assert link.datasheet == 450e9  # one direction of the advertised 900


def test_a_gpu_has_memory_as_bytes_of_gib_and_a_dense_bf16_peak():
    card = catalog.gpu("RTX 4090")

    assert card.memory == 24 * 2**30
    assert card.compute == pytest.approx(165.2e12)
    assert catalog.gpu("H100 SXM5").compute == pytest.approx(989.4e12)
    assert catalog.gpu("A100-80 SXM").memory_bandwidth == pytest.approx(2039e9)
    assert card.source


def test_a_cluster_has_tiers_from_inside_out_and_meets_the_right_one():
    cluster = catalog.cluster("H100 SXM5", 64)

    assert [tier.gpus for tier in cluster.tiers] == [8, 64]
    assert cluster.link_across(8) == catalog.link("NVLink 4")
    assert cluster.link_across(64, 8).bandwidth == catalog.link("NDR 400").bandwidth
    assert (cluster.gpus, cluster.gpus_per_node, cluster.nics_per_node) == (64, 8, 8)


def test_a_cluster_has_eight_gpus_and_one_nic_a_node_unless_said():
    cluster = defaults(Cluster)

    assert (cluster["gpus_per_node"], cluster["nics_per_node"]) == (8, 1)
    assert cluster["gpus_per_uplink"] == 1


def test_peer_to_peer_is_off_for_geforce_unless_told_otherwise():
    stock, patched = (catalog.cluster("RTX 4090", 8, p2p=on) for on in (None, True))

    assert defaults(Cluster)["p2p"] is None
    assert not stock.peer_to_peer
    assert patched.peer_to_peer
    assert stock.link_across(8).bandwidth < patched.link_across(8).bandwidth
    assert catalog.cluster("H100 SXM5", 8).peer_to_peer


# Catalog


@pytest.mark.parametrize(
    ("ask", "name"),
    [
        (catalog.gpu, "h100 sxm5"),
        (catalog.gpu, "H100-80GB-SXM"),
        (catalog.gpu, "H100 SXM"),
        (catalog.gpu, "NVIDIA H100 SXM5"),
        (catalog.link, "nvlink4"),
        (catalog.link, "NVLink-4"),
        (catalog.model, "llama 2 70b"),
        (catalog.model, "LLAMA2-70B"),
    ],
)
def test_names_are_forgiven_their_case_spaces_hyphens_and_aliases(ask, name):
    expected = {catalog.gpu: "H100 SXM5", catalog.link: "NVLink 4"}

    assert ask(name).name == expected.get(ask, "LLaMA-2 70B")


def test_the_parameters_of_cluster_and_their_defaults():
    taken = inspect.signature(catalog.cluster).parameters

    names = ["gpu_name", "gpus", "gpus_per_node", "network", "p2p"]
    assert list(taken)[:5] == names
    assert [taken[name].default for name in names[2:]] == [8, None, None]


@pytest.mark.parametrize(
    ("name", "nics", "gigabits"),
    [("A100-80 SXM", 8, 200), ("H100 SXM5", 8, 400), ("RTX 4090", 1, 10)],
)
def test_without_a_network_the_usual_one_is_taken_and_said(name, nics, gigabits):
    cluster = catalog.cluster(name, 16)
    nic = cluster.tiers[-1].link

    assert cluster.nics_per_node == nics
    assert nic.datasheet == pytest.approx(gigabits / 8 * 1e9)
    assert f"{nics} x {nic.name}" in cluster.note


def test_a_network_that_is_given_is_taken():
    cluster = catalog.cluster("RTX 4090", 16, network="100 GbE RoCEv2")

    assert cluster.tiers[-1].link.name == "100 GbE RoCEv2"


@pytest.mark.parametrize(
    ("ask", "name", "near"),
    [
        (catalog.gpu, "RTX 4900", "RTX 4090"),
        (catalog.link, "NVLink 44", "NVLink 4"),
        (catalog.model, "LLaMA-2 71B", "LLaMA-2 70B"),
        (lambda name: catalog.cluster(name, 8), "A100-81 SXM", "A100-80 SXM"),
    ],
)
def test_an_unknown_name_is_an_error_with_the_nearest_names(ask, name, near):
    with pytest.raises(ValueError, match=near) as error:
        ask(name)
    assert repr(name) in str(error.value)


# Questions


@pytest.mark.parametrize("op", COLLECTIVES)
def test_every_collective_takes_payload_ranks_link_and_is_a_ring_by_default(op):
    time = getattr(collectives, f"{op}_time")
    taken = inspect.signature(time).parameters

    assert list(taken)[:4] == ["payload", "ranks", "link", "algorithm"]
    assert taken["algorithm"].default == "ring"
    assert time(1e9, 1, LINK) == 0
    assert time(1e9, 2, LINK) > 0


def test_payload_is_the_whole_buffer_so_that_an_all_reduce_is_two_of_the_others():
    parts = [
        getattr(collectives, f"{op}_time")(1e9, 8, LINK)
        for op in ("reduce_scatter", "all_gather")
    ]

    assert collectives.all_reduce_time(1e9, 8, LINK) == pytest.approx(sum(parts))


def test_all_reduce_bytes_are_what_one_gpu_sends():
    assert collectives.all_reduce_bytes(8e9, 8) == 14e9
    assert collectives.all_reduce_bytes(8e9, 1) == 0


def test_volumes_are_bytes_sent_in_a_step_by_axis():
    plan = Plan(tp=8, pp=2, dp=2, global_batch=4)
    sent = volumes(LLAMA, plan)

    assert set(sent) == {"tp", "cp", "ep", "dp", "pp"}
    assert sent["cp"] == sent["ep"] == 0
    for axis, bytes_ in sent.items():
        records = [record for record in traffic(LLAMA, plan) if record.axis == axis]
        assert sum(record.bytes for record in records) == bytes_


def test_dp_counts_every_parameter_that_the_gpu_holds():
    """All of the model with one stage; embedding and logits are on no interior one."""
    layers = PARAMS - 2 * 32000 * 8192 - 8192
    alone, staged = Plan(dp=8, global_batch=8), Plan(dp=8, pp=8, global_batch=8)

    assert volumes(LLAMA, alone)["dp"] == pytest.approx(2 * 7 / 8 * 2 * PARAMS)
    assert volumes(LLAMA, staged)["dp"] == pytest.approx(2 * 7 / 8 * 2 * layers / 8)


def test_sequence_parallelism_does_not_change_the_tp_entry():
    plan = Plan(tp=8, global_batch=4)

    with_ = volumes(LLAMA, replace(plan, sequence_parallel=True))
    assert with_["tp"] == volumes(LLAMA, plan)["tp"]


def test_zero_3_gathers_are_counted_per_micro_batch():
    plan = Plan(dp=8, zero_stage=3, global_batch=8)
    longer = replace(plan, global_batch=32)

    assert volumes(LLAMA, longer)["dp"] == pytest.approx(4 * volumes(LLAMA, plan)["dp"])


def test_memory_has_parts_in_bytes_that_sum_and_a_stated_reserve():
    kept = memory(LLAMA, Plan(tp=8, pp=4))
    parts = ("weights", "gradients", "optimizer", "activations", "logits", "buffers")

    assert sum(getattr(kept, part) for part in parts) == pytest.approx(kept.total)
    card = replace(catalog.gpu("A100-80 SXM"), memory=kept.total + RESERVE)
    assert kept.fits(card)
    assert not kept.fits(replace(card, memory=card.memory - 10))
    assert 0 < RESERVE < 8 * GIB


def test_a_step_has_parts_in_seconds_that_sum_to_its_total():
    plan = Plan(tp=8, pp=2, dp=4, zero_stage=1, global_batch=32)
    step = step_time(LLAMA, plan, catalog.cluster("A100-80 SXM", 64))

    exposed = sum(step.exposed.values())
    parts = step.compute + step.bubble + exposed + step.optimizer
    assert parts == pytest.approx(step.total)
    assert set(step.exposed) == {"tp", "cp", "ep", "dp", "pp"}
    assert step.tokens_per_second == pytest.approx(32 * 4096 / step.total)
    assert 0 < step.mfu <= step.hfu < 1


def test_both_bubbles_by_name():
    taken = inspect.signature(bubble_overhead).parameters

    assert list(taken) == ["pp", "micro_batches", "vpp"]
    assert taken["vpp"].default == 1
    for pp, m, v in ((8, 16, 1), (4, 8, 2), (1, 3, 1)):
        assert bubble_overhead(pp, m, v) == (pp - 1) / (v * m)
        assert bubble_fraction(pp, m, v) == (pp - 1) / (v * m + pp - 1)


def test_a_search_ranks_legal_plans_that_fit():
    cluster = catalog.cluster("A100-80 SXM", 64)
    found = search(LLAMA, cluster, 64)

    seconds = [candidate.step.total for candidate in found]
    assert seconds == sorted(seconds)
    assert all(candidate.memory.fits(cluster.gpu) for candidate in found)
    assert list(inspect.signature(search).parameters)[:3] == [
        "model", "cluster", "global_batch",
    ]  # fmt: skip


def test_the_default_space_of_a_search():
    space = list(plans(LLAMA, catalog.cluster("A100-80 SXM", 64), 512))

    assert {plan.tp for plan in space} == {1, 2, 4, 8}
    assert {plan.pp for plan in space} == {1, 2, 4, 8, 16}  # of 80 layers, on 64 GPUs
    assert {plan.micro_batch for plan in space} == {1, 2, 4, 8}
    assert {plan.zero_stage for plan in space} == {0, 1, 2, 3}
    assert {plan.recompute for plan in space} == {"none", "selective", "full"}
    assert {(plan.cp, plan.ep) for plan in space} == {(1, 1)}
    assert all(plan.sequence_parallel == (plan.tp > 1) for plan in space)


MODULES = ["volumes", "memory", "steptime", "pipeline", "sweep", "topology",
           "economics", "compression"]  # fmt: skip


@pytest.mark.parametrize("name", MODULES)
def test_what_the_browser_runs_needs_no_third_party_package(name):
    """Imported where numpy, matplotlib and ipywidgets cannot be."""
    blocked = "numpy", "matplotlib", "ipywidgets", "torch"
    script = f"import sys; sys.modules.update(dict.fromkeys({blocked})); "
    script += f"import commwall.{name}"
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_arrays_pass_through_collectives_and_the_bubble():
    sizes, counts = np.array([1e6, 1e9]), np.array([8, 16])

    assert collectives.all_reduce_time(sizes, 8, LINK).shape == (2,)
    assert bubble_fraction(8, counts).tolist() == [7 / 15, 7 / 23]


# Worked numbers


@pytest.mark.parametrize(
    ("global_batch", "recompute", "gigabytes"),
    [(1, "none", 37.58), (8, "none", 300.6), (1, "full", 56.37), (8, "full", 451)],
)
def test_worked_tensor_parallel_llama_70b(global_batch, recompute, gigabytes):
    """4 x 2 x 7/8 x 8192 x 2 B x 80 = 9.175 MB a token; 6, not 4, if recomputed."""
    plan = Plan(tp=8, global_batch=global_batch, recompute=recompute)
    per_token = (6 if recompute == "full" else 4) * 2 * 7 / 8 * 8192 * 2 * 80

    sent = volumes(LLAMA, plan)["tp"]
    assert sent == global_batch * 4096 * per_token
    assert sent / 1e9 == pytest.approx(gigabytes, rel=2e-4)


def test_worked_tensor_parallel_bytes_of_a_token():
    assert volumes(LLAMA, Plan(tp=8))["tp"] / 4096 == 9_175_040


def test_worked_data_parallel_llama_70b():
    """2 x 7/8 x 2 B x P = 241.4 GB; ZeRO-3 with one micro-batch 1.5 times that."""
    plan = Plan(dp=8, global_batch=8)
    sent = volumes(LLAMA, plan)["dp"]

    assert LLAMA.params == PARAMS
    assert sent == pytest.approx(2 * 7 / 8 * 2 * PARAMS, rel=1e-12)
    assert sent / 1e9 == pytest.approx(241.4, abs=0.05)
    full_shard = volumes(LLAMA, replace(plan, zero_stage=3))["dp"]
    assert full_shard == pytest.approx(1.5 * sent, rel=1e-12)


def test_worked_all_reduce():
    """9 GB, 4 ranks, 450 GB/s, 2 us a hop: 2 x 3 x (2e-6 + 9e9 / (4 x 450e9))."""
    seconds = collectives.all_reduce_time(9e9, 4, LINK)

    assert seconds == pytest.approx(30.012e-3, rel=1e-12)


def test_worked_bubbles():
    assert bubble_overhead(8, 16) == pytest.approx(0.4375, abs=1e-12)
    assert bubble_fraction(8, 16) == pytest.approx(0.3043, abs=5e-5)
    assert bubble_fraction(8, 8) == pytest.approx(0.4667, abs=5e-5)
    assert bubble_fraction(8, 8, vpp=2) == pytest.approx(0.3043, abs=5e-5)


def test_worked_tokens_at_which_half_the_time_is_sync():
    """(255/256) x 2 x 82.6e12 / (3 x 24.5e9) = 2,239 tokens a GPU and step."""
    tokens = data_parallel_tokens(256, 24.5e9, 82.6e12, gradient_bytes=2)

    assert tokens == pytest.approx(255 / 256 * 2 * 82.6e12 / (3 * 24.5e9))
    assert round(tokens) == 2239


def test_tiers_name_their_reach_and_their_link():
    assert Tier(8, link=LINK).gpus == 8
    assert Tier(8, link=LINK).link is LINK
