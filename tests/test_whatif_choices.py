"""What-ifs on the reader's machine: first answers by other ways, and all settings.

Cells of `book/index.ipynb` and `notebooks/plan_search.ipynb` print the same numbers.
"""

import re
from contextlib import suppress
from math import isfinite

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commwall import catalog
from commwall.memory import RESERVE, memory
from commwall.sweep import plans, search
from commwall.units import GIB, HOUR
from commwall.whatif import WHAT_IFS
from commwall.whatif.answers import Answer
from commwall.whatif.cases.choices import PREFERENCES, WAYS
from commwall.whatif.controls import Choice, Range
from commwall.whatif.svg import WIDTHS, picture_svg

NAMES = ("your_rig", "plan_search")
RIG = catalog.cluster("RTX 4090", 8)
FOUND = search(catalog.LLAMA2_7B, RIG, 64)


def ask(name, **texts):
    return WHAT_IFS[name].ask(**texts)


def typed(control):
    """What a reader may put there: a stop, any name, any whole number."""
    if isinstance(control, Choice):
        return st.sampled_from(control.options)
    assert isinstance(control, Range)
    stops = st.sampled_from([control.text(stop) for stop in control.stops])
    if not control.whole:
        return stops
    return stops | st.integers(control.stops[0], control.stops[-1]).map(str)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=15)  # each searches a machine
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
    assert not re.search(r"\b(nan|inf)\b|-0\.0%", words + drawn)


# ---- your rig ------------------------------------------------------------------------


def test_your_rig_starts_as_the_front_page_prints():
    """14,400 tokens/s of 7B on eight 4090s, and the three bars of the first machine."""
    first = ask("your_rig")
    steps = [sum(p.size for p in bar.parts if not p.pale) for bar in first.picture.bars]
    tokens = 64 * 4096

    assert dict(first.facts)["tokens a second"] == "14,400"
    assert dict(first.facts)["MFU"] == "46.7 %"
    assert dict(first.facts)["plans that fit"] == "158"
    assert [tokens / step for step in steps] == pytest.approx(
        [14_400, 6_472, 13_514, 10_799], abs=1
    )


def test_mfu_is_useful_work_over_the_peak_by_hand():
    """6 FLOP a parameter and token, and attention's products, at 165.2 TFLOP/s."""
    model = catalog.LLAMA2_7B
    attention = 6 * model.layers * model.hidden * model.seq
    scored = (
        model.params - model.vocab * model.hidden
    )  # an embedding multiplies nothing
    useful = 14_400 * (6 * scored + attention)

    assert useful / (8 * 165.2e12) == pytest.approx(0.467, abs=2e-3)


@pytest.mark.parametrize(("axis", "way"), WAYS.items())
def test_each_pure_way_is_the_fastest_of_its_kind(axis, way):
    (bar,) = [bar for bar in ask("your_rig").picture.bars if bar.label == way]
    pure = [c.step.total for c in FOUND if c.plan.ranks(axis) == 8]

    shown = sum(piece.size for piece in bar.parts if not piece.pale)
    assert shown == pytest.approx(min(pure))


def test_one_gpu_has_no_ways_to_compare():
    answer = ask("your_rig", gpus="1", model="GPT-2 124M")

    assert [bar.label for bar in answer.picture.bars] == ["the fastest of all"]


def test_a_second_box_counts_its_network():
    slow, fast = (
        ask("your_rig", gpus="16", network=name).picture.bars[0].note
        for name in ("10 GbE (TCP)", "InfiniBand NDR 400")
    )

    assert float(slow.split()[0]) > float(fast.split()[0])


def test_where_nothing_fits_it_says_by_how_much():
    """13B holds 208 GB of state; a 4090 has 24 GiB, less 2 that are kept back."""
    model = catalog.LLAMA2_13B
    least = min(memory(model, plan).total for plan in plans(model, RIG, 64))
    answer = ask("your_rig", model="LLaMA-2 13B")

    lacks = (least - (24 * GIB - RESERVE)) / GIB
    assert lacks > 0
    assert answer.finding.startswith(f"No plan fits, by {lacks:.1f} GiB")
    assert dict(answer.facts)["usable of RTX 4090"] == "22.0 GiB"


def test_a_batch_that_no_plan_can_share_is_named_with_a_legal_one():
    with pytest.raises(ValueError, match=r"^sequences=1 must .* legal value: 64$"):
        ask("your_rig", model="GPT-2 124M", gpus="64", sequences="1")

    ask("your_rig", model="GPT-2 124M", gpus="64", sequences="64")


# ---- the search ----------------------------------------------------------------------


def test_plan_search_starts_with_the_winner_of_its_page():
    answer = ask("plan_search")
    tp, pp, chunks, dp, zero, micro, recompute, *_ = answer.numbers.rows[0]

    assert (tp, pp, chunks, dp, zero, micro, recompute) == (
        "1", "4", "8", "2", "1", "1", "full"
    )  # fmt: skip
    assert answer.numbers.rows[0][-4:] == pytest.approx(
        (18.2, 14_400, 0.467, 19.5), rel=3e-3
    )


def test_labels_of_bars_leave_room_for_the_seconds_on_a_phone():
    """340 pixels are some 55 characters; two plans never share a label."""
    bars = ask("plan_search", show="12").picture.bars

    assert bars[0].label == "tp1 pp4x8 dp2 z1 mb1 full"
    assert max(len(f"{bar.label}: {bar.note}") for bar in bars) < 50
    assert len({bar.label for bar in bars}) == 12


def test_plan_search_bills_as_the_page_does():
    """8 * 0.34 an hour and 8 * 450 W over 14,400 tokens/s: 0.052, and 0.25 MJ."""
    facts = dict(ask("plan_search").facts)
    seconds = 1e6 / 14_400

    money, energy = list(facts.values())[:2]
    assert float(money) == pytest.approx(seconds * 8 * 0.34 / HOUR, rel=5e-3)
    assert float(energy.removesuffix(" Wh")) == pytest.approx(
        seconds * 8 * 450 / HOUR, rel=5e-3
    )


@pytest.mark.parametrize("prefer", PREFERENCES)
def test_plans_are_ranked_as_asked(prefer):
    rows = ask("plan_search", prefer=prefer, show="12").numbers.rows
    best = min(FOUND, key=PREFERENCES[prefer])

    assert len(rows) == 12
    assert rows[0][7] == best.step.total
    if prefer == "little memory":
        assert [row[-1] for row in rows] == sorted(row[-1] for row in rows)
    if prefer == "speed":
        assert [row[7] for row in rows] == sorted(row[7] for row in rows)


def test_plan_search_is_capped_and_your_rig_is_not():
    """A search takes longer the more GPUs there are."""
    with pytest.raises(
        ValueError, match="GPUs='32' must be a whole number from 1 to 16"
    ):
        ask("plan_search", gpus="32")

    assert WHAT_IFS["your_rig"].settings({**WHAT_IFS["your_rig"].initial,
                                          "gpus": "64"})[1] == {}  # fmt: skip
