"""What-ifs on walls and on upgrades: first answers by other ways, and all settings.

Cells of `tensor_wall`, `pipeline_wall`, `data_wall` and `new_hardware` in `notebooks/`
print the same numbers.
"""

import re
from contextlib import suppress
from dataclasses import replace
from math import isfinite
from statistics import fmean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commwall import catalog, published
from commwall.layers import layer_time
from commwall.plan import Plan
from commwall.steptime import step_time
from commwall.whatif import WHAT_IFS
from commwall.whatif.answers import Answer
from commwall.whatif.cases.data_wall import HALF, TINY
from commwall.whatif.controls import Choice, Range
from commwall.whatif.svg import WIDTHS, picture_svg

NAMES = ("tensor_scaling", "pipeline_timeline", "gradient_sync")


def facts(name, **texts):
    return dict(WHAT_IFS[name].ask(**texts).facts)


def stops(control):
    if isinstance(control, Range):
        return [control.text(stop) for stop in control.stops]
    return control.options if isinstance(control, Choice) else ("on", "off")


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_any_setting_answers_or_says_which_rule_it_breaks(name, data):
    with suppress(ValueError):
        check(drawn_answer(WHAT_IFS[name], data))


@settings(max_examples=15)  # each searches two machines
@given(data=st.data())
def test_any_upgrade_answers_or_says_that_nothing_fits(data):
    with suppress(ValueError):
        check(drawn_answer(WHAT_IFS["new_hardware"], data))


def drawn_answer(what_if, data):
    """The answer to some setting of every control."""
    texts = {c.name: data.draw(st.sampled_from(stops(c))) for c in what_if.controls}
    return what_if.ask(**texts)


def check(answer):
    """Finite numbers in words, table and drawing."""
    assert isinstance(answer, Answer)
    assert 2 <= len(answer.facts) <= 6
    cells = [cell for row in answer.numbers.rows for cell in row]
    assert all(isfinite(cell) for cell in cells if isinstance(cell, float))
    words = " ".join([answer.finding, *(shown for _, shown in answer.facts)])
    assert not re.search(r"\b(nan|inf)\b", words)
    drawn = "".join(picture_svg(answer.picture, width, "") for width in WIDTHS)
    assert not re.search(r"\b(nan|inf)\b", drawn)


# ---- a layer over more GPUs ----------------------------------------------------------


def test_tensor_scaling_starts_with_the_layer_of_the_page():
    """Two boxes of RTX 4090s over 100 GbE: as the page's first cell finds them."""
    wide = replace(catalog.LLAMA2_70B, kv_heads=32)
    rig = catalog.cluster("RTX 4090", 32, network="100 GbE RoCEv2")
    times = [layer_time(wide, Plan(tp=tp), rig).total * 1e3 for tp in (8, 16)]
    first = facts("tensor_scaling")

    assert times == pytest.approx([51.8, 57.2], abs=0.05)
    assert first["Over 8 GPUs"].startswith("51.8 ms")
    assert first["Over 16 GPUs"].startswith("57.2 ms")
    assert "over 8 GPUs" in WHAT_IFS["tensor_scaling"].ask().finding


def test_tensor_scaling_leaves_out_degrees_that_the_heads_do_not_allow():
    """LLaMA-2 70B has eight key-value heads, LLaMA-2 13B has forty."""
    answer = WHAT_IFS["tensor_scaling"].ask(wide="off")

    assert [row[0] for row in answer.numbers.rows] == ["1", "2", "4", "8"]
    assert dict(answer.facts)["Left out"].startswith("16 and 32")
    assert "16 and 32" in facts("tensor_scaling", model="LLaMA-2 13B")["Left out"]


def test_tensor_scaling_parts_add_up():
    for _, products, memory_bound, sums, host, layer in (
        WHAT_IFS["tensor_scaling"].ask().numbers.rows
    ):
        assert products + memory_bound + sums + host == pytest.approx(layer)


def test_a_rack_of_nvlink_has_no_edge_of_a_node():
    """72 GPUs in one domain: the ring of 32 meets no network."""
    answer = WHAT_IFS["tensor_scaling"].ask(gpu="GB200 (per GPU)")

    assert answer.picture.rules == ()


# ---- a pipeline's clock --------------------------------------------------------------


@pytest.mark.parametrize(
    ("stages", "share"),
    [("8", 7 / 23), ("16", 15 / 31)],
)
def test_pipeline_timeline_waits_as_counted_by_hand(stages, share):
    answer = WHAT_IFS["pipeline_timeline"].ask(stages=stages)

    assert fmean(row[2] for row in answer.numbers.rows) == pytest.approx(share)
    assert f"{100 * share:.1f} %" in answer.finding


def test_pipeline_timeline_holds_what_the_page_says():
    """Eight stages, 16 micro-batches: 1F1B 8, GPipe 16, two chunks 11.5, zero bubble 8.

    Zero bubble then waits 7 of 55 forward passes, a third of 1F1B's 21 of 69.
    """
    held = [
        facts("pipeline_timeline", **texts)["Held on stage 0"]
        for texts in ({}, {"order": "GPipe"}, {"chunks": "2"}, {"order": "zero bubble"})
    ]

    assert held == [f"{count} micro-batches" for count in (8, 16, 11.5, 8)]
    assert facts("pipeline_timeline", order="zero bubble")["Step"].startswith("55 ")


def test_pipeline_timeline_and_the_formula_part_where_sends_take_time():
    found = facts("pipeline_timeline", send="0.5")

    assert found["Waits, by the formula"] == "30.4 %"
    assert found["Waits, in this schedule"] > "40"


def test_a_schedule_of_too_many_tasks_is_not_drawn():
    with pytest.raises(ValueError, match="tasks=4,096 must be at most 1,280"):
        WHAT_IFS["pipeline_timeline"].ask(stages="16", micro_batches="64", chunks="2")


# ---- the sum of gradients ------------------------------------------------------------


def test_tiny_llama_is_the_model_that_others_timed():
    model = published.runs("RTX 4090", software="hugging")[0].model

    assert replace(model, source=TINY.source) == TINY
    assert HALF.layers == TINY.layers / 2


@pytest.mark.parametrize(
    ("texts", "share"),
    [
        ({}, 0.48),
        ({"model": HALF.name}, 0.49),
        ({"p2p": "on"}, 0.41),
        ({"p2p": "on", "network": "400 GbE RoCEv2"}, 0.20),
        ({"gpus": "8", "sync": "ZeRO-1"}, 0.41),
    ],
)
def test_gradient_sync_takes_what_the_page_prints(texts, share):
    (mark,) = WHAT_IFS["gradient_sync"].ask(**texts).picture.marks

    assert mark.y == pytest.approx(share, abs=5e-3)


def test_gradient_sync_puts_half_where_arithmetic_does():
    """255/256 * 2 bytes * 0.8 * 173.31 TFLOP/s / (3 * 12 GB/s)."""
    half = 255 / 256 * 2 * 0.80 * 173.31e12 / (3 * 12e9)
    answer = WHAT_IFS["gradient_sync"].ask()

    assert answer.picture.rules == (("T*", pytest.approx(half)),)
    assert f"{half:,.0f} tokens" in dict(answer.facts).values()


def test_gradient_sync_draws_the_step_of_the_library():
    answer = WHAT_IFS["gradient_sync"].ask(micro_batches="8")
    rig = catalog.cluster("RTX 4090", 256, network="100 GbE RoCEv2")
    step = step_time(TINY, Plan(dp=256, global_batch=8 * 256), rig)
    (mark,) = answer.picture.marks

    assert (mark.x, mark.y) == (8 * 2048, step.exposed["dp"] / step.total)
    assert mark.y in answer.picture.lines[0].ys


def test_with_zero_3_more_micro_batches_do_not_help():
    few, many = (
        WHAT_IFS["gradient_sync"]
        .ask(sync="ZeRO-3 (FSDP)", micro_batches=count)
        .picture.marks[0]
        .y
        for count in ("4", "64")
    )

    assert many == pytest.approx(few, abs=0.01)


# ---- which part to replace -----------------------------------------------------------


@pytest.mark.parametrize(
    ("texts", "gain"),
    [
        ({}, 1.24),
        ({"bandwidth": "1", "memory_bandwidth": "4"}, 1.12),
        ({"bandwidth": "1", "memory_size": "2"}, 1.31),
        ({"bandwidth": "1", "compute": "2"}, 1.73),
        ({"memory_size": "2"}, 1.38),
        ({"bandwidth": "1"}, 1),
    ],
)
def test_new_hardware_gains_what_its_page_prints(texts, gain):
    answer = WHAT_IFS["new_hardware"].ask(**texts)
    first, *_, last = (
        sum(piece.size for piece in bar.parts) for bar in answer.picture.bars
    )

    assert first / last == pytest.approx(gain, abs=5e-3)
    assert f"{gain:.2f} times as fast" in answer.finding


def test_new_hardware_says_that_nothing_fits():
    with pytest.raises(ValueError, match="memory=6 GiB a GPU must be larger"):
        WHAT_IFS["new_hardware"].ask(memory_size="0.25")


def test_with_a_quarter_of_an_a100_the_old_plan_does_not_fit():
    """20 GiB: the best plan of 80 has to go."""
    answer = WHAT_IFS["new_hardware"].ask(gpu="A100-80 SXM", memory_size="0.25")

    assert [bar.label for bar in answer.picture.bars] == [
        "as it is",
        "changed, its best plan",
    ]
