"""Where an axis has its ticks, and where a value lies on it."""

from collections.abc import Iterable
from math import ceil, floor, isfinite, log, log10

from commwall.whatif.pictures import Axis

__all__ = ["limits", "place", "ticks"]


def limits(axis: Axis, values: Iterable[float]) -> tuple[float, float]:
    """The ends of an axis: its own, else those of the values, else 0 to 1."""
    shown = [v for v in values if isfinite(v) and (v > 0 or not axis.log)]
    low = axis.low if axis.low is not None else min(shown, default=1 if axis.log else 0)
    high = axis.high if axis.high is not None else max(shown, default=low)
    if high <= low:
        high = low * 10 if axis.log else low + 1
    return low, high


def place(axis: Axis, ends: tuple[float, float], value: float) -> float:
    """Where a value lies, as a fraction of the way from end to end."""
    low, high = ends
    if axis.log:
        return log(max(value, low * 1e-6) / low) / log(high / low)
    return (value - low) / (high - low)


def ticks(axis: Axis, ends: tuple[float, float], most: int) -> list[float]:
    """At most so many round values between the ends."""
    low, high = ends
    if axis.log:
        return _powers(float(axis.log), low, high, most)
    one = 0.01 if axis.unit == "%" else axis.one
    step = _nice((high - low) / one / most) * one
    first, last = ceil(low / step - 1e-9), floor(high / step + 1e-9)
    return [n * step for n in range(first, last + 1)]


def _nice(step: float) -> float:
    """The next of 1, 2, 5 times a power of ten."""
    power = 10.0 ** floor(log10(step))
    return next(n * power for n in (1, 2, 5, 10) if n * power >= step * (1 - 1e-9))


def _powers(base: float, low: float, high: float, most: int) -> list[float]:
    first = ceil(log(low, base) - 1e-9)
    last = floor(log(high, base) + 1e-9)
    if base == 10 and last - first < 2:
        return _within_decades(low, high)
    every = max(1, ceil((last - first + 1) / most))
    return [base**n for n in range(first, last + 1, every)]


def _within_decades(low: float, high: float) -> list[float]:
    decades = range(floor(log10(low)), ceil(log10(high)) + 1)
    fine = [n * 10.0**d for d in decades for n in (1, 2, 5)]
    return [n for n in fine if low * (1 - 1e-9) <= n <= high * (1 + 1e-9)]
