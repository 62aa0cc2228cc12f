"""What a reader may set: a number on a scale, a name from a list, a switch.

A control turns the text that was typed into the value that a function of the library
takes, in SI, or says what is wrong with it. Controls know nothing of how they look.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, log10

from commwall.rules import choice

__all__ = ["Choice", "Control", "Range", "Toggle", "doublings", "scale"]

THOUSANDS = re.compile(r"[0-9]{1,3}(,[0-9]{3})+(\.[0-9]*)?")


@dataclass(frozen=True, kw_only=True, slots=True)
class Range:
    """A number between the first and the last of `stops`, where a slider rests."""

    name: str
    label: str
    stops: tuple[float, ...]  # rising, in `unit`
    start: float  # in `unit`
    unit: str = ""
    one: float = 1.0  # SI of one unit
    whole: bool = False

    def __post_init__(self):
        if list(self.stops) != sorted(set(self.stops)) or len(self.stops) < 2:
            raise ValueError(f"stops={self.stops} of {self.name} must rise")
        self.value(self.text(self.start))

    def text(self, number: float) -> str:
        """A number in `unit`, as the field shows it."""
        return f"{number:.4g}" if abs(number) < 1e4 else f"{number:.0f}"

    @property
    def initial(self) -> str:
        """What the field holds at first."""
        return self.text(self.start)

    def value(self, text: str) -> float:
        """The number typed, in SI."""
        number = _number(text)
        low, high = self.stops[0], self.stops[-1]
        legal = number is not None and low <= number <= high
        if not legal or (self.whole and number != int(number)):
            kind = "a whole number" if self.whole else "a number"
            raise ValueError(
                f"{self.label}={text.strip()[:20]!r} must be {kind} from "
                f"{self.text(low)} to {self.text(high)} {self.unit}".rstrip()
            )
        return int(number) if self.whole else number * self.one


def _number(text: str) -> float | None:
    bare = text.strip()
    if THOUSANDS.fullmatch(bare):  # 12,500 but not 12,5, which may mean 12.5
        bare = bare.replace(",", "")
    try:
        number = float(bare)
    except ValueError:
        return None
    return number if isfinite(number) else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    """One of several names, each with the words shown for it."""

    name: str
    label: str
    options: tuple[str, ...]
    start: str
    unit: str = ""

    def __post_init__(self):
        self.value(self.start)

    @property
    def initial(self) -> str:
        """What is chosen at first."""
        return self.start

    def value(self, text: str) -> str:
        """The name chosen."""
        return choice(self.label, text, self.options)


@dataclass(frozen=True, kw_only=True, slots=True)
class Toggle:
    """A switch, on or off."""

    name: str
    label: str
    start: bool = False
    unit: str = ""

    @property
    def initial(self) -> str:
        """What is set at first."""
        return "on" if self.start else "off"

    def value(self, text: str) -> bool:
        """True for "on"."""
        return choice(self.label, text, ("on", "off")) == "on"


Control = Range | Choice | Toggle


def doublings(first: float, last: float) -> tuple[float, ...]:
    """Powers of two from the first to the last, both included.

    >>> doublings(1, 8)
    (1, 2, 4, 8)
    """
    stops = [first]
    while stops[-1] * 2 <= last:
        stops.append(stops[-1] * 2)
    return tuple(stops)


def scale(
    first: float, last: float, steps: Sequence[float] = (1, 1.5, 2, 3, 5, 7)
) -> tuple[float, ...]:
    """Numbers spread evenly by factors: `steps` of each power of ten, and both ends.

    >>> scale(0.5, 20, steps=(1, 2, 5))
    (0.5, 1.0, 2.0, 5.0, 10.0, 20)
    """
    powers = range(int(log10(first)) - 1, int(log10(last)) + 2)
    between = (float(f"{step * 10.0**power:.6g}") for power in powers for step in steps)
    return tuple(sorted({first, last, *(n for n in between if first < n < last)}))
