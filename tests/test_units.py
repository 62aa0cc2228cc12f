"""Constants by hand, and a formatter that keeps three digits of anything."""

from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commwall import units
from commwall.units import GB, GBIT_PER_S, GIB, TFLOP_PER_S, format_si

PREFIXES = {"p": -12, "n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9,
            "T": 12, "P": 15, "E": 18}  # fmt: skip


def read_back(text):
    """The number that a reader reads."""
    digits, unit = text.split(" ")
    return float(digits) * 10.0 ** PREFIXES[unit.removesuffix("B")]


def test_constants_by_hand():
    """400 Gbit/s is 50 GB/s; a 24 GiB card holds 25.77 GB."""
    assert 400 * GBIT_PER_S == 50 * GB
    assert 24 * GIB == 25_769_803_776
    assert 989.4 * TFLOP_PER_S == 989.4e12
    assert units.GB_PER_S == units.GB == 1e9
    assert (units.KIB, units.MIB, units.TIB) == (1024, 1024**2, 1024**4)
    assert (units.KB, units.MB, units.TB, units.TFLOP) == (1e3, 1e6, 1e12, 1e12)
    assert (units.MILLISECOND, units.MICROSECOND) == (1e-3, 1e-6)
    assert (units.HOUR, units.DAY) == (60 * 60, 24 * 60 * 60)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (37_580_963_840, "B", "37.6 GB"),
        (0.030012, "s", "30 ms"),
        (2e-6, "s", "2 us"),
        (312e12, "FLOP/s", "312 TFLOP/s"),
        (1.104e12, "B", "1.1 TB"),
        (-0.0305, "s", "-30.5 ms"),
        (999.5, "B", "1 kB"),
        (0.9994, "s", "999 ms"),
        (1, "B", "1 B"),
        (inf, "B/s", "inf B/s"),
    ],
)
def test_sizes_as_the_book_prints_them(value, unit, text):
    assert format_si(value, unit) == text


@given(value=st.floats(1e-11, 1e20))
def test_what_is_printed_reads_back_to_three_digits(value):
    text = format_si(value, "B")

    assert read_back(text) == pytest.approx(value, rel=5.1e-3)
    assert "e" not in text
    assert 1 <= float(text.split(" ")[0]) < 1000


@given(value=st.floats(1e-11, 1e20))
def test_a_sign_changes_only_the_sign(value):
    assert format_si(-value, "B") == "-" + format_si(value, "B")


@given(value=st.floats(-1e300, 1e300) | st.sampled_from([inf, -inf, nan]))
def test_any_float_can_be_printed(value):
    assert format_si(value, "B").endswith("B")
