"""What-ifs on money and on encoding: first answers by hand, and all settings.

Cells of `bridge_pair` and `sending_less` in `notebooks/` print the same numbers.
"""

import re
from dataclasses import replace
from math import isfinite

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commwall import catalog, compression
from commwall.compression import SCHEMES
from commwall.sweep import search
from commwall.units import HOUR
from commwall.whatif import WHAT_IFS
from commwall.whatif.cases import names
from commwall.whatif.cases.costs import BANDWIDTHS, ENCODED
from commwall.whatif.controls import Choice
from commwall.whatif.svg import WIDTHS, picture_svg

NAMES = ("cost_of_tokens", "break_even")


def facts(name, **texts):
    return dict(WHAT_IFS[name].ask(**texts).facts)


def typed(control):
    if isinstance(control, Choice):
        return st.sampled_from(control.options)
    return st.sampled_from([control.text(stop) for stop in control.stops])


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_any_setting_has_an_answer_of_finite_numbers(name, data):
    texts = {c.name: data.draw(typed(c)) for c in WHAT_IFS[name].controls}
    answer = WHAT_IFS[name].ask(**texts)

    assert 3 <= len(answer.facts) <= 6
    cells = [cell for row in answer.numbers.rows for cell in row]
    assert all(isfinite(cell) for cell in cells if isinstance(cell, float))
    words = " ".join([answer.finding, *(shown for _, shown in answer.facts)])
    drawn = "".join(picture_svg(answer.picture, width, "") for width in WIDTHS)
    assert not re.search(r"\b(nan|inf)\b", words + drawn)


# ---- a token, bought or rented -------------------------------------------------------


def test_a_token_costs_what_arithmetic_says():
    """24,000 over 3 years half used, and 4.1 kW at 0.20: 2.65 an hour; rented 3.76."""
    hour = 24_000 / (3 * 365 * 24 / 2) + 4.1 * 0.20
    rented = 8 * 0.47
    million = 1e6 / 14_400 / HOUR  # hours
    found = facts("cost_of_tokens")

    assert hour == pytest.approx(2.65, abs=0.01)
    assert found["an hour at work, bought"] == f"{hour:.2f}"
    assert found["an hour rented"] == f"{rented:.2f}"
    finding = WHAT_IFS["cost_of_tokens"].ask().finding
    assert f"cost {million * hour:.4f} if bought" in finding
    assert f"{million * rented:.4f} rented" in finding
    assert found["energy of a million tokens"] == f"{million * 4100:.1f} Wh"


def test_buying_pays_where_the_lines_cross():
    """Standing cost over what an hour's rent leaves after electricity: 0.913 / 2.94."""
    picture = WHAT_IFS["cost_of_tokens"].ask().picture
    (mark,) = picture.marks

    assert mark.x == pytest.approx(24_000 / (3 * 365 * 24) / (3.76 - 0.82), rel=1e-3)
    bought = dict(zip(picture.lines[0].xs, picture.lines[0].ys, strict=True))
    assert bought[0.3] > mark.y > bought[0.32]


def test_prices_start_as_the_catalog_quotes_them_and_speed_as_the_search_finds_it():
    start = {name: float(text) for name, text in
             WHAT_IFS["cost_of_tokens"].initial.items()}  # fmt: skip
    (piece,) = catalog.prices("RTX 4090", unit="piece")
    rent = catalog.prices("RTX 4090", unit="GPU-second")[0]
    best = search(catalog.LLAMA2_7B, catalog.cluster("RTX 4090", 8), 64)[0]

    assert start["card"] == (piece.low + piece.high) / 2
    assert start["rent"] == pytest.approx((rent.low + rent.high) / 2 * HOUR)
    assert start["watts"] == 8 * 450 + 500
    assert start["useful"] == pytest.approx(best.tokens_per_second, rel=1e-3)


def test_a_rent_below_the_electricity_is_never_beaten():
    answer = WHAT_IFS["cost_of_tokens"].ask(rent="0")

    assert answer.finding.endswith("buying never pays.")
    assert answer.picture.marks == ()


@pytest.mark.parametrize(
    ("amount", "shown"),
    [(0, "0.00"), (1e-4, "0.000100"), (0.05115, "0.0512"), (3.76, "3.76"),
     (99.9, "99.90"), (100, "100"), (12_500, "12,500")],
)  # fmt: skip
def test_money_is_never_rounded_to_nothing(amount, shown):
    assert names.money(amount) == shown


# ---- encoding against the wire -------------------------------------------------------


@pytest.mark.parametrize(
    ("scheme", "card", "host"),
    [("int8", 96, 194), ("1 bit, feedback", 107, 215),
     ("top 1 %, feedback", 60, 122), ("rank 4", 124, 252)],
)  # fmt: skip
def test_break_even_is_where_the_page_prints_it(scheme, card, host):
    """The page adds each link's latency, which these messages do not feel."""
    for gpu, limit in (("RTX 4090", card), ("A100-80 SXM", host)):
        (mark,) = WHAT_IFS["break_even"].ask(scheme=scheme, gpu=gpu).picture.marks
        assert mark.x / 1e9 == pytest.approx(limit, abs=0.6)


def test_bf16_and_one_bit_by_hand():
    """2 * 7/8 * 2 bytes of 6.74e9 parameters over 18 GB/s; a sixteenth of the bytes."""
    sent = 2 * 7 / 8 * 2 * 6_738_415_616
    found = facts("break_even")

    assert found["sent by a rank, bf16"] == f"{sent / 1e9:.1f} GB"
    assert found["sent, 1 bit, feedback"] == f"{sent / 16e9:.2f} GB"
    assert f"{sent / 18e9:.2f} s with bf16" in WHAT_IFS["break_even"].ask().finding


@pytest.mark.parametrize("scheme", ENCODED)
def test_lines_are_the_library_s_steps_without_latency(scheme):
    by_name = {each.name: each for each in SCHEMES}
    shapes = compression.gradient_shapes(catalog.LLAMA2_7B)
    lines = WHAT_IFS["break_even"].ask(scheme=scheme, slowdown="2").picture.lines
    for line, name in zip(lines, ("bf16", scheme), strict=True):
        for at in (0, 18, -1):
            link = replace(catalog.PCIE4, bandwidth=BANDWIDTHS[at], latency=0.0)
            step = compression.step_cost(
                by_name[name], 0.0, shapes, 8, link, catalog.RTX_4090, slowdown=2.0
            )
            assert line.ys[at] == pytest.approx(step.total)


def test_what_encodes_nothing_pays_on_every_link_and_what_sends_more_on_none():
    assert facts("break_even", scheme="local 32")["pays"] == "on every link"
    assert facts("break_even", scheme="fp32")["pays"] == "on no link"
    many = facts("break_even", scheme="top 1 %, feedback", ranks="256")
    assert many["pays"] == "on no link"
