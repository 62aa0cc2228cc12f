"""What a reader may type: accepted as meant, or refused by name, value and rule."""

from fractions import Fraction
from time import perf_counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commwall.rules import (
    choice,
    divides,
    divisors,
    flag,
    instance,
    multiple,
    nearest_names,
    nonnegative,
    positive,
    whole,
)
from samples import NOT_COUNTS, NOT_SIZES

counts = st.integers(1, 10**6)


@pytest.mark.parametrize("value", NOT_SIZES, ids=repr)
@pytest.mark.parametrize("rule", [nonnegative, positive])
def test_what_is_not_a_size_is_refused_by_name_and_value(rule, value):
    with pytest.raises(ValueError, match=r"^size=") as error:
        rule("size", value)
    assert f"size={value!r}" in str(error.value)


@pytest.mark.parametrize("value", NOT_COUNTS, ids=repr)
def test_what_is_not_a_count_is_refused_with_the_nearest_that_is(value):
    with pytest.raises(ValueError, match=r"^tp=.*nearest legal value: \d+"):
        whole("tp", value)


@pytest.mark.parametrize(
    ("value", "nearest"),
    [(0, 1), (-7, 1), (2.4, 2), ("8", 8), (None, 1), (float("inf"), 2**53), (True, 1)],
)
def test_the_nearest_count_is_what_was_probably_meant(value, nearest):
    with pytest.raises(ValueError, match=f"nearest legal value: {nearest}$"):
        whole("tp", value)


@pytest.mark.parametrize("value", [1, 2**53, np.int32(8), np.uint8(8), np.int64(8)])
def test_a_count_comes_back_as_an_int(value):
    assert type(whole("tp", value)) is int
    assert whole("tp", value) == value


def test_zero_is_a_size_and_a_count_only_where_it_may_be():
    assert nonnegative("latency", 0) == 0
    assert whole("zero_stage", 0, minimum=0) == 0
    with pytest.raises(ValueError, match="bandwidth=0 must be a number above 0"):
        positive("bandwidth", 0)


def test_infinity_is_a_size_only_where_it_is_a_useful_limit():
    assert positive("bandwidth", float("inf"), infinite=True) == float("inf")
    with pytest.raises(ValueError, match="bandwidth=inf must be finite"):
        positive("bandwidth", float("inf"))
    with pytest.raises(ValueError, match=r"at most 1e\+30"):
        positive("bandwidth", 1e31, infinite=True)


@pytest.mark.parametrize("value", [np.float32(2), np.int8(2), Fraction(1, 2), 2, 0.5])
def test_any_real_number_is_a_size(value):
    assert nonnegative("size", value) is value
    assert positive("size", value) is value


def test_an_array_is_checked_element_by_element():
    sizes = np.array([0.0, 1.0, 2.0])

    assert nonnegative("sizes", sizes) is sizes
    with pytest.raises(ValueError, match="above 0"):
        positive("sizes", sizes)


@given(value=counts, total=counts)
def test_divides_accepts_divisors_and_names_two_that_are_nearest(value, total):
    legal = [d for d in range(max(1, value - 2000), value + 2000) if total % d == 0]

    if total % value == 0:
        assert divides("pp", value, "layers", total) == value
        return
    with pytest.raises(
        ValueError, match=f"^pp={value} must divide layers={total};"
    ) as e:
        divides("pp", value, "layers", total)
    offered = [int(d) for d in str(e.value).split(": ")[1].split(", ")]
    assert all(total % d == 0 for d in offered)
    assert not [d for d in legal if min(offered) < d < max(offered)]


@pytest.mark.parametrize("total", [10**15 + 37, 2**53, 2**106, 3 * 10**400])
def test_a_huge_total_is_answered_at_once(total):
    start = perf_counter()
    with pytest.raises(ValueError, match="pp=7 must divide"):
        divides("pp", 7, "layers", total + (total % 7 == 0))
    assert perf_counter() - start < 2


@given(number=st.integers(1, 5000))
def test_divisors_are_all_there_and_in_order(number):
    assert divisors(number) == [d for d in range(1, number + 1) if number % d == 0]


@given(value=counts, unit=counts)
def test_multiple_accepts_multiples_and_names_the_ones_around(value, unit):
    if value % unit == 0:
        assert multiple("global_batch", value, "dp", unit) == value
        return
    with pytest.raises(
        ValueError, match=f"^global_batch={value} is not a mult"
    ) as error:
        multiple("global_batch", value, "dp", unit)
    offered = [int(each) for each in str(error.value).split(": ")[1].split(", ")]
    assert all(each and each % unit == 0 for each in offered)
    assert min(abs(each - value) for each in offered) == min(
        abs(each - value)
        for each in (value // unit * unit, value + -value % unit)
        if each
    )


@pytest.mark.parametrize("value", ["Ring", "rnig", "", None, 3, ["ring"], b"ring"])
def test_an_unknown_choice_is_refused_with_all_that_are_known(value):
    with pytest.raises(ValueError, match=r"^context=.* must be one of ring, ulysses"):
        choice("context", value, ("ring", "ulysses"))


def test_a_misspelt_choice_is_told_the_nearest():
    with pytest.raises(ValueError, match="did you mean 'selective'"):
        choice("recompute", "selectiv", ("none", "selective", "full"))
    assert choice("recompute", "full", ("none", "full")) == "full"


def test_nearest_names_ignore_case_and_come_best_first():
    known = ["A100-80 SXM", "H100 SXM5", "RTX 4090"]

    assert nearest_names("h100 sxm", known)[0] == "H100 SXM5"
    assert nearest_names("zzz", known) == []


@pytest.mark.parametrize("value", ["no", "yes", "", 0, 1, None, 1.0, [], [True]])
def test_a_word_is_not_a_flag(value):
    """`if "no":` is true: a word let through would do the opposite of what it says."""
    with pytest.raises(
        ValueError, match=r"^sequence_parallel=.* must be True or False"
    ):
        flag("sequence_parallel", value)


def test_a_name_is_not_the_thing_it_names():
    assert instance("count", 3, int) == 3
    with pytest.raises(ValueError, match="count='3' must be a int"):
        instance("count", "3", int)
