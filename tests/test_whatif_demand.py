"""What-ifs on traffic, memory and boxes: first answers by hand, and all settings.

Cells of `bytes_per_axis`, `memory_wall` and `pcie_box` in `notebooks/` print some of
the same numbers.
"""

import re
from contextlib import suppress
from math import isfinite

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commwall.units import GIB
from commwall.whatif import WHAT_IFS
from commwall.whatif.answers import Answer
from commwall.whatif.controls import Choice, Range
from commwall.whatif.svg import WIDTHS, picture_svg

NAMES = ("bytes_by_axis", "will_it_fit", "topology_flow")


def ask(name, **texts):
    return WHAT_IFS[name].ask(**texts)


def facts(name, **texts):
    return dict(ask(name, **texts).facts)


def typed(control):
    """What a reader may put there: a stop, any name, any whole number."""
    if isinstance(control, Choice):
        return st.sampled_from(control.options)
    if not isinstance(control, Range):
        return st.sampled_from(["on", "off"])
    stops = st.sampled_from([control.text(stop) for stop in control.stops])
    if not control.whole:
        return stops
    return stops | st.integers(control.stops[0], control.stops[-1]).map(str)


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_any_setting_answers_or_says_which_rule_it_breaks(name, data):
    texts = {c.name: data.draw(typed(c)) for c in WHAT_IFS[name].controls}
    with suppress(ValueError):
        check(ask(name, **texts))


def check(answer):
    """Finite numbers in words, table and drawing."""
    assert isinstance(answer, Answer)
    assert 3 <= len(answer.facts) <= 6
    cells = [cell for row in answer.numbers.rows for cell in row]
    assert all(isfinite(cell) for cell in cells if isinstance(cell, float))
    words = " ".join([answer.finding, *(shown for _, shown in answer.facts)])
    drawn = "".join(picture_svg(answer.picture, width, "") for width in WIDTHS)
    assert not re.search(r"\b(nan|inf)\b", words + drawn)


@pytest.mark.parametrize("name", ["bytes_by_axis", "will_it_fit"])
def test_what_cannot_be_cut_is_refused_by_name_value_and_rule(name):
    with pytest.raises(ValueError, match=r"^tp=3 must divide (heads|kv_heads)="):
        ask(name, model="LLaMA-2 7B", tp="3")


# ---- bytes by axis -------------------------------------------------------------------


def sent(**texts):
    """Bytes by axis: every bar has one piece."""
    bars = ask("bytes_by_axis", **texts).picture.bars
    return {re.search(r"\((..)\)", bar.label)[1]: bar.parts[0].size for bar in bars}


def test_bytes_by_axis_starts_with_the_70b_model_cut_both_ways():
    """80 layers x 4 all-reduces of 2*4096*8192 bytes over 8; gradients over 8."""
    tensor = 80 * 4 * 2 * 7 / 8 * 2 * 4096 * 8192
    eighth = 68_976_648_192 / 8  # every parameter, and of norms what tp does not cut
    norms = (2 * 80 + 1) * 8192 * 7 / 8
    data = 2 * 7 / 8 * 2 * (eighth + norms)

    first = sent()

    assert first["tp"] == tensor
    assert first["dp"] == pytest.approx(data, rel=1e-12)
    assert first["cp"] == first["ep"] == first["pp"] == 0
    assert facts("bytes_by_axis")["tokens a step"] == f"{8 * 4096:,}"
    assert ask("bytes_by_axis").finding == (
        "Each of 64 GPUs sends 67.8 GB a step, 55.5 % of it tensor parallel."
    )


def test_bytes_by_axis_answers_the_question_of_its_page():
    """Twice the micro-batches: twice tp's and pp's bytes, and dp's as they were."""
    once, twice = (sent(pp="2", micro_batches=m) for m in ("4", "8"))
    wider = sent(pp="2", micro_batches="4", dp="16")

    assert {axis: twice[axis] / once[axis] for axis in ("tp", "pp", "dp")} == {
        "tp": 2, "pp": 2, "dp": 1}  # fmt: skip
    assert wider["tp"] == once["tp"]
    assert wider["dp"] / once["dp"] == pytest.approx((15 / 16) / (7 / 8))


@pytest.mark.parametrize(("stage", "times"), [("0", 1), ("1", 1), ("2", 2.5), ("3", 6)])
def test_bytes_by_axis_sends_more_often_under_zero_2_and_3(stage, times):
    """Four micro-batches; halves of an all-reduce: 1+1, 1+1, 4+1, 4+8."""
    texts = {"tp": "1", "micro_batches": "4"}

    assert sent(**texts, zero_stage=stage)["dp"] == pytest.approx(
        times * sent(**texts)["dp"]
    )


def test_bytes_by_axis_of_full_recomputation_is_half_more_for_tensor_parallel():
    assert sent(recompute="full")["tp"] == 1.5 * sent()["tp"]


def test_one_gpu_alone_sends_nothing():
    alone = ask("bytes_by_axis", tp="1", dp="1")

    assert alone.finding == "One GPU alone sends nothing."
    assert dict(alone.facts)["through the host, nothing hidden"] == "0 s"


# ---- will it fit? --------------------------------------------------------------------


def kept(**texts):
    """GiB by part."""
    (bar,) = ask("will_it_fit", **texts).picture.bars
    return {piece.label: piece.size / GIB for piece in bar.parts}


def test_will_it_fit_starts_with_16_bytes_of_7b_over_eight():
    """6,738,415,616 parameters; weights and gradients 2 bytes each, Adam 12."""
    shard = 6_738_415_616 / 8 / GIB

    first = kept()

    assert first["weights"] == first["gradients"] == pytest.approx(2 * shard)
    assert first["optimizer"] == pytest.approx(12 * shard)
    assert facts("will_it_fit")["weights, gradients, optimizer"] == "12.6 GiB"
    assert ask("will_it_fit").finding == (
        f"The fullest of 8 GPUs needs {sum(first.values()):.1f} GiB: "
        f"it fits, with {22 - sum(first.values()):.1f} GiB to spare."
    )


@pytest.mark.parametrize(
    ("model", "printed"),
    [("LLaMA-2 7B", 15.9), ("LLaMA-2 13B", 28.9), ("LLaMA-2 70B", 140.0)],
)
def test_will_it_fit_holds_what_the_page_on_memory_prints(model, printed):
    assert sum(kept(model=model, fused="on").values()) == pytest.approx(
        printed, abs=0.05
    )


def test_will_it_fit_draws_the_limit_short_of_the_card_by_the_reserve():
    words, limit = ask("will_it_fit").picture.limit

    assert words == "usable of RTX 4090"
    assert limit == (24 - 2) * GIB


def test_will_it_fit_says_by_how_much_not():
    """One card: 16 bytes of each of 6.74e9 parameters alone are 100.4 GiB."""
    alone = kept(dp="1")

    assert alone["weights"] + alone["gradients"] + alone["optimizer"] == pytest.approx(
        100.41, abs=0.01
    )
    assert ask("will_it_fit", dp="1").finding == (
        f"One GPU needs {sum(alone.values()):,.1f} GiB: "
        f"it does not fit: {sum(alone.values()) - 22:,.1f} GiB too much."
    )


# ---- a box ---------------------------------------------------------------------------

SWITCHES = {"switch": "4"}
NEAR, ALL, NONE = "within a switch", "everywhere", "off: through the host"


@pytest.mark.parametrize(
    ("texts", "rate", "slowest"),
    [
        # each of four flows of a socket is written and read: 8 * 25.6 * 0.83 / 8
        ({}, "21.2 GB/s", "memory of socket0"),
        ({"peers": ALL}, "16 GB/s", "socket0 -> socket1"),
        # four cards on one uplink that achieves 24 GB/s, and once each with peers
        (SWITCHES, "6 GB/s", "socket0 -> switch0"),
        (SWITCHES | {"peers": NEAR}, "24 GB/s", "socket0 -> switch0"),
        # four lanes are a quarter of sixteen
        ({"lanes": "x4"}, "6 GB/s", "socket0 -> gpu0"),
        # four cards send 4/7 of a byte each to the other side
        (SWITCHES | {"peers": NEAR, "traffic": "all-to-all"}, "10.5 GB/s",
         "socket0 -> switch0"),
    ],
)  # fmt: skip
def test_topology_flow_finds_what_the_page_on_the_box_prints(texts, rate, slowest):
    answer = ask("topology_flow", **texts)

    assert answer.finding == f"{rate} a GPU: the slowest is {slowest}."
    assert dict(answer.facts)["bus bandwidth"] == rate


@pytest.mark.parametrize(
    ("texts", "label", "carries", "load", "rate"),
    [
        ({}, "which carries, reads and writes together", 170, 8, 21.2),
        ({"peers": ALL}, "which carries, one way", 16, 1, 16),
        (SWITCHES, "which carries, one way", 24, 4, 6),
    ],
)
def test_topology_flow_divides_what_the_slowest_carries_by_its_load(
    texts, label, carries, load, rate
):
    shown = facts("topology_flow", **texts)

    assert shown[label] == f"{carries} GB/s"
    assert shown["bytes on it, for one from each sender"] == str(load)
    assert carries / load == pytest.approx(rate, abs=0.1)


def test_topology_flow_draws_each_wire_once_and_the_slowest_full():
    """Eight slots, a link, two memories; with switches also two uplinks."""
    for texts, wires in (({}, 11), (SWITCHES, 13), ({"sockets": "1"}, 9)):
        drawn = ask("topology_flow", **texts).picture.wires
        assert len(drawn) == wires
        assert max(wire.busy for wire in drawn) == 1
        assert len({wire.ends for wire in drawn}) == wires


def test_a_shuffled_ring_crosses_both_uplinks_at_every_hop():
    """Eight hops to the other socket: each uplink carries four each way, not one."""
    texts = SWITCHES | {"peers": NEAR, "socket_link": "genoa"}
    tree, shuffled = (
        facts("topology_flow", **texts, traffic=traffic)
        for traffic in ("ring all-reduce", "ring, order shuffled")
    )

    assert tree["bytes on it, for one from each sender"] == "1"
    assert shuffled["bytes on it, for one from each sender"] == "4"
