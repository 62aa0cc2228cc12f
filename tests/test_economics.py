"""Money and energy of tokens: hand sums, limits, and the break-even that solves."""

from dataclasses import replace
from math import inf, isinf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commwall import catalog
from commwall.economics import (
    MILLION,
    Owned,
    break_even_time,
    break_even_utilization,
    cost_of_tokens,
    energy_of_tokens,
)
from commwall.units import HOUR, KWH, YEAR

RIG = Owned(
    price=20_000,
    lifetime=4 * YEAR,
    power=4_000,
    electricity=0.15 / KWH,
    utilization=0.5,
)

amounts = st.floats(0, 1e6)
shares = st.floats(0.01, 1)
machines = st.builds(
    Owned,
    price=st.floats(1, 1e6),
    lifetime=st.floats(0.5 * YEAR, 10 * YEAR),
    power=st.floats(0, 1e5),
    electricity=st.floats(0, 1 / KWH),
    utilization=shares,
    pue=st.floats(1, 2),
    idle_power=st.floats(0, 1e3),
    yearly=amounts,
)


def test_a_machine_by_hand():
    """20,000 over 35,040 hours, half of them used, and 4 kW at 0.15."""
    assert RIG.cost_rate * HOUR == pytest.approx(20_000 / 35_040 / 0.5 + 4 * 0.15)


def test_cooling_and_idle_power_are_paid_too():
    """1 kW idle for every hour at work; PUE 1.5 on both."""
    rig = replace(RIG, price=0, pue=1.5, idle_power=1_000)

    assert rig.cost_rate * HOUR == pytest.approx(1.5 * 0.15 * (4 + 1))


def test_resale_and_yearly_costs_enter_the_standing_rate():
    rig = replace(RIG, resale=8_000, yearly=1_000)

    assert rig.standing_rate * YEAR == pytest.approx(12_000 / 4 + 1_000)


@given(rig=machines, better=shares)
def test_use_makes_an_hour_cheaper(rig, better):
    low, high = sorted((rig.utilization, better))
    costs = [replace(rig, utilization=u).cost_rate for u in (low, high)]

    assert costs[1] <= costs[0] * (1 + 1e-12)


@given(rig=machines, rent=st.floats(0, 1), speed=st.floats(0.1, 10))
def test_at_the_break_even_a_token_costs_the_same(rig, rent, speed):
    found = break_even_utilization(rig, rent, speed)

    if found <= 1 and found > 0:
        even = replace(rig, utilization=found)
        owned = cost_of_tokens(MILLION, even.cost_rate, speed * 1e4)
        rented = cost_of_tokens(MILLION, rent, 1e4)
        assert owned == pytest.approx(rented, rel=1e-6)
    else:  # renting is cheaper even for a machine that never rests
        always = replace(rig, utilization=1.0)
        assert always.cost_rate >= rent * speed * (1 - 1e-9)


@given(rig=machines, rent=st.floats(0, 1))
def test_break_even_does_not_depend_on_how_much_the_owner_uses_it(rig, rent):
    other = replace(rig, utilization=rig.utilization / 2)

    assert break_even_utilization(rig, rent) == break_even_utilization(other, rent)


def test_limits_of_the_break_even():
    assert isinf(break_even_utilization(RIG, rent=RIG.running_rate / 2))
    assert break_even_utilization(RIG, rent=1e6) == pytest.approx(0, abs=1e-9)
    assert break_even_utilization(replace(RIG, price=0), rent=1) == 0
    assert break_even_time(RIG, rent=0) == inf


def test_hours_until_buying_has_paid():
    """20,000 over (2 - 0.6) an hour: 14,286 hours, 41 % of four years."""
    hours = break_even_time(RIG, rent=2 / HOUR) / HOUR

    assert hours == pytest.approx(20_000 / 1.4)
    assert break_even_utilization(RIG, 2 / HOUR) == pytest.approx(0.4077, abs=1e-4)


@given(tokens=st.floats(0, 1e15), useful=st.floats(1, 1e8), rate=st.floats(0, 1))
def test_money_follows_tokens_and_falls_with_speed(tokens, useful, rate):
    cost = cost_of_tokens(tokens, rate, useful)

    assert cost_of_tokens(2 * tokens, rate, useful) == pytest.approx(2 * cost)
    assert cost_of_tokens(tokens, rate, 2 * useful) == pytest.approx(cost / 2)
    assert cost_of_tokens(tokens, rate * 3, useful) == pytest.approx(3 * cost)


@given(scale=st.floats(1e-3, 1e3), rig=machines, rent=st.floats(1e-6, 1))
def test_the_currency_does_not_matter(scale, rig, rent):
    """Every price in another money: costs follow, the break-even stays."""
    money = ("price", "electricity", "yearly")
    other = replace(rig, **{field: getattr(rig, field) * scale for field in money})

    assert other.cost_rate == pytest.approx(rig.cost_rate * scale)
    assert break_even_utilization(other, rent * scale) == pytest.approx(
        break_even_utilization(rig, rent), rel=1e-6
    )


def test_the_energy_of_the_anecdote():
    """Four A100 at 1.4 times the tokens of eight 4090: 3.15 times as many a joule."""
    cards = [catalog.RTX_4090, catalog.A100]
    power = [count * card.tdp for count, card in zip((8, 4), cards, strict=True)]
    energy = [
        energy_of_tokens(1, watts, speed)
        for watts, speed in zip(power, (1.0, 1.4), strict=True)
    ]

    assert power == [3600, 1600]
    assert energy[0] / energy[1] == pytest.approx(3.15)


@pytest.mark.parametrize(
    ("field", "value", "rule"),
    [
        ("utilization", 0, "must be a number above 0"),
        ("utilization", 1.1, "must be at most 1"),
        ("pue", 0.9, "must be at least 1"),
        ("lifetime", 0, "must be a number above 0"),
        ("price", -1, "must be a finite number of at least 0"),
        ("resale", 30_000, "must be at most price=20000"),
        ("electricity", "cheap", "is not a number"),
    ],
)
def test_a_slip_is_named(field, value, rule):
    with pytest.raises(ValueError, match=f"^{field}=.*{rule}"):
        replace(RIG, **{field: value})
    with pytest.raises(ValueError, match=r"^useful=0"):
        cost_of_tokens(1, 1, 0)


# ---- quoted prices -------------------------------------------------------------------


def test_a_quotation_is_a_range_with_a_date_and_a_source():
    for price in catalog.prices():
        assert 0 < price.low <= price.middle <= price.high
        assert price.date[:4].isdigit()
        assert price.source.startswith("https://")
        assert price.certainty in {"A", "B"}
        assert price.currency in {"USD", "EUR"}


def test_prices_are_found_by_a_gpus_usual_names():
    rents = catalog.prices("GeForce RTX 4090", unit="GPU-second")

    assert [round(rent.low * HOUR, 3) for rent in rents] == [0.34, 0.682]
    assert {price.unit for price in catalog.prices("4090")} == {"GPU-second", "piece"}
    [electricity] = catalog.prices("electricity, EU homes")
    assert electricity.high * KWH == pytest.approx(0.3943)


def test_an_unknown_item_or_unit_is_named():
    with pytest.raises(ValueError, match="did you mean 'electricity, US homes'"):
        catalog.prices("electricity, US home")
    with pytest.raises(ValueError, match="unit='hour' must be one of"):
        catalog.prices(unit="hour")
    assert catalog.prices("V100-32 SXM2") == ()


def test_a_faster_card_costs_more_to_rent():
    """Not a law, but a slip in the table would show."""
    names = ["RTX 3090", "RTX 4090", "A100-80 SXM", "H100 SXM5", "H200 SXM", "B200 SXM"]
    first = [catalog.prices(name, unit="GPU-second")[0].low for name in names]

    assert first == sorted(first)
