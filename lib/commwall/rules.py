"""What a reader may type, checked at once: each error names field, value and rule.

Numbers may be numpy arrays, which are checked element by element.
"""

from collections.abc import Iterable
from difflib import get_close_matches
from math import inf, isqrt
from numbers import Integral, Real

SMALLEST, LARGEST = 1e-30, 1e30
"""No bandwidth, time or size in any SI unit lies outside; what does is a slip, and
would end as an overflow far from where it was typed."""

LARGEST_COUNT = 2**53
"""A float holds every whole number up to here exactly."""


_PLAIN = (int, float)


def _any(condition) -> bool:
    return bool(condition.any()) if hasattr(condition, "any") else bool(condition)


def _require_number(field: str, value) -> None:
    numeric_array = hasattr(value, "dtype") and value.dtype.kind in "iuf"
    if isinstance(value, bool) or not (numeric_array or isinstance(value, Real)):
        raise ValueError(f"{field}={value!r} is not a number")


def nonnegative(field: str, value):
    """`value`, if it is a finite number of at least 0.

    >>> nonnegative("payload", -1.0)
    Traceback (most recent call last):
    ValueError: payload=-1.0 must be a finite number of at least 0 (and at most 1e+30)
    """
    if type(value) in _PLAIN and 0 <= value <= LARGEST:
        return value
    _require_number(field, value)
    if _any((value < 0) | (value != value) | (value > LARGEST)):
        raise ValueError(
            f"{field}={value!r} must be a finite number of at least 0 "
            f"(and at most {LARGEST:g})"
        )
    return value


def positive(field: str, value, *, infinite: bool = False):
    """`value`, if it is a number above 0; infinite only where a limit is useful."""
    if type(value) in _PLAIN and SMALLEST <= value <= LARGEST:
        return value
    _require_number(field, value)
    if _any((value < SMALLEST) | (value != value)):
        raise ValueError(
            f"{field}={value!r} must be a number above 0 (at least {SMALLEST:g})"
        )
    if _any((value > LARGEST) & ((value != inf) | (not infinite))):
        raise ValueError(f"{field}={value!r} must be finite (at most {LARGEST:g})")
    return value


def whole(field: str, value, minimum: int = 1) -> int:
    """`value` as an int, if it is a whole number of at least `minimum`."""
    if type(value) is int and minimum <= value <= LARGEST_COUNT:
        return value
    return _whole_or_error(field, value, minimum)


def _whole_or_error(field: str, value, minimum: int) -> int:
    integral = isinstance(value, Integral) and not isinstance(value, bool)
    if integral and minimum <= value <= LARGEST_COUNT:
        return int(value)
    too_large = integral and value > LARGEST_COUNT
    rule = "of at most 2**53" if too_large else f"of at least {minimum}"
    raise ValueError(
        f"{field}={value!r} must be a whole number {rule}; "
        f"nearest legal value: {_nearest_whole(value, minimum)}"
    )


def _nearest_whole(value, minimum: int) -> int:
    try:
        return round(min(max(minimum, float(value)), LARGEST_COUNT))
    except OverflowError:  # an int too large for a float
        return LARGEST_COUNT
    except (TypeError, ValueError):  # not a number
        return minimum


def flag(field: str, value) -> bool:
    """`value`, if it is True or False; "no" is neither, and would pass for True."""
    if isinstance(value, bool):
        return value
    raise ValueError(f"{field}={value!r} must be True or False")


def instance(field: str, value, kind: type):
    """`value`, if it is a `kind`: the name of a thing is not the thing."""
    if isinstance(value, kind):
        return value
    raise ValueError(f"{field}={value!r} must be a {kind.__name__}")


def choice(field: str, value, options: Iterable[str]) -> str:
    """`value`, if it is one of `options`; else an error with the nearest of them."""
    options = tuple(options)
    if isinstance(value, str) and value in options:
        return value
    near = nearest_names(str(value), options)
    raise ValueError(
        f"{field}={value!r} must be one of {', '.join(options)}"
        + (f"; did you mean {near[0]!r}?" if near else "")
    )


def nearest_names(name: str, options: Iterable[str], count: int = 3) -> list[str]:
    """The `options` that look most like `name`, best first."""
    by_folded = {option.casefold(): option for option in options}
    close = get_close_matches(name.casefold(), by_folded, n=count, cutoff=0.3)
    return [by_folded[folded] for folded in close]


def divides(field: str, value: int, of: str, total: int) -> int:
    """`value`, if it divides `total`; else an error with the nearest divisors.

    >>> divides("pp", 7, "layers", 96)
    Traceback (most recent call last):
    ValueError: pp=7 must divide layers=96; nearest legal values: 6, 8
    """
    if total % value == 0:
        return value
    candidates = divisors(total)
    below = max(d for d in candidates if d < value)
    above = next((d for d in candidates if d > value), None)
    legal = f"{below}, {above}" if above else f"{below}"
    raise ValueError(
        f"{field}={value} must divide {of}={total}; nearest legal values: {legal}"
    )


def divisors(number: int) -> list[int]:
    """Divisors in order: all of them up to 10^12, beyond that the ends of the list.

    >>> divisors(12)
    [1, 2, 3, 4, 6, 12]
    """
    small = [d for d in range(1, min(isqrt(number), 10**6) + 1) if number % d == 0]
    return sorted({*small, *(number // d for d in small)})


def multiple(field: str, value: int, of: str, unit: int) -> int:
    """`value`, if it is a multiple of `unit`; else an error with the nearest.

    >>> multiple("global_batch", 100, "dp * micro_batch = 8 * 2", 16)
    Traceback (most recent call last):
    ValueError: global_batch=100 is not a multiple of dp * micro_batch = 8 * 2; \
nearest legal values: 96, 112
    """
    if value % unit == 0:
        return value
    below, above = value // unit * unit, (value // unit + 1) * unit
    legal = f"{below}, {above}" if below else f"{above}"
    raise ValueError(
        f"{field}={value} is not a multiple of {of}; nearest legal values: {legal}"
    )
