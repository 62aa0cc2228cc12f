"""Pictures as plain data, whoever draws them.

Pictures hold numbers in SI and say what they are; `svg` and `drawing` draw them. Each
knows its own table, so that nobody needs eyes for the numbers.
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

from commwall.palette import COLOURS, LABELS, LINES
from commwall.units import format_si

__all__ = [
    "Axis", "Bar", "Bars", "Key", "Line", "Lines", "Mark", "Node", "Part", "Picture",
    "Span", "Spans", "Table", "Tree", "Wire", "part",
]  # fmt: skip

Cell = str | float


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under a head; a number is a float in the unit that the head names."""

    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True, slots=True)
class Key:
    """One entry of a legend."""

    label: str
    colour: str
    dashes: tuple[float, ...] | None = None  # of a line; None: an area
    pale: bool = False
    dots: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Axis:
    """A quantity and how it is written; `log` is the base, or 0 for even steps."""

    label: str
    unit: str = ""
    one: float = 1.0  # SI of one unit that takes no prefix, such as GiB
    log: int = 0
    low: float | None = None
    high: float | None = None

    def text(self, value: float) -> str:
        """A value with its unit."""
        if self.unit == "%":
            return f"{100 * value:.3g} %"
        if self.unit and self.one == 1:
            return format_si(value, self.unit)
        shown = value / self.one
        digits = f"{shown:,.0f}" if abs(shown) >= 100 else f"{shown:.3g}"
        return f"{digits} {self.unit}".rstrip()

    @property
    def head(self) -> str:
        """Label of a column of values in SI."""
        unit = "" if self.unit == "%" or not self.unit else self.unit
        unit = "B" if unit == "GiB" else unit
        return f"{self.label} ({unit})" if unit else self.label


@dataclass(frozen=True, slots=True)
class Line:
    """Points joined, or left apart as `dots`."""

    label: str
    xs: Sequence[float]
    ys: Sequence[float]
    _: KW_ONLY
    dots: bool = False


@dataclass(frozen=True, slots=True)
class Mark:
    """A ring around one point, and a word beside it."""

    label: str
    x: float
    y: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Lines:
    """Lines over two axes; `rules` are upright lines with a word."""

    x: Axis
    y: Axis
    lines: tuple[Line, ...]
    marks: tuple[Mark, ...] = ()
    rules: tuple[tuple[str, float], ...] = ()

    def legend(self) -> tuple[Key, ...]:
        """What each line is."""
        styles = zip(self.lines, LINES, strict=False)
        return tuple(
            Key(line.label, colour, dash, dots=line.dots)
            for line, (colour, dash) in styles
        )

    def table(self) -> Table:
        """One row a point."""
        points = (
            (line.label, float(x), float(y))
            for line in self.lines
            for x, y in zip(line.xs, line.ys, strict=True)
        )
        return Table(("line", self.x.head, self.y.head), tuple(points))


@dataclass(frozen=True, slots=True)
class Part:
    """One piece of a bar; pale where it is hidden and costs nothing."""

    label: str
    size: float
    colour: str
    pale: bool = False


def part(name: str, size: float) -> Part:
    """A piece with the colour and the words that `name` has everywhere.

    >>> part("hidden dp", 1.0).label
    'hidden data-parallel traffic'
    """
    bare = name.removeprefix("hidden ")
    label = name.replace(bare, LABELS.get(bare, bare))
    return Part(label, size, COLOURS.get(bare, "#e69f00"), bare != name)


@dataclass(frozen=True, slots=True)
class Bar:
    """Pieces end to end, and a word about their sum."""

    label: str
    parts: tuple[Part, ...]
    note: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Bars:
    """Bars over one axis, and a line that they should not cross."""

    axis: Axis
    bars: tuple[Bar, ...]
    limit: tuple[str, float] | None = None

    def legend(self) -> tuple[Key, ...]:
        """What each colour is, once, in the order of the bars; no empty pieces."""
        pieces = [p for bar in self.bars for p in bar.parts]
        sizes = {p.label for p in pieces if p.size > 0}
        found = {p.label: Key(p.label, p.colour, pale=p.pale)
                 for p in pieces if p.label in sizes}  # fmt: skip
        return tuple(found.values())

    def table(self) -> Table:
        """One row a piece."""
        rows = (
            (bar.label, p.label, float(p.size)) for bar in self.bars for p in bar.parts
        )
        return Table(("bar", "part", self.axis.head), tuple(rows))


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of time in one row; `faded` tells its kind from another's."""

    row: int
    start: float
    end: float
    kind: str  # in the palette
    text: str = ""
    faded: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Spans:
    """Rows of stretches over one clock; what stays empty is `idle`."""

    axis: Axis
    rows: tuple[str, ...]
    spans: tuple[Span, ...]
    idle: str = ""

    def legend(self) -> tuple[Key, ...]:
        """What each colour is."""
        kinds = dict.fromkeys(span.kind for span in self.spans)
        keys = [Key(LABELS.get(kind, kind), COLOURS[kind]) for kind in kinds]
        return (
            (*keys, Key(self.idle, "#999999", pale=True)) if self.idle else tuple(keys)
        )

    def table(self) -> Table:
        """One row a stretch."""
        unit = f" ({self.axis.unit})" if self.axis.unit else ""
        head = ("row", "kind", "number", f"start{unit}", f"end{unit}")
        rows = (
            (self.rows[s.row], s.kind, s.text, float(s.start), float(s.end))
            for s in self.spans
        )
        return Table(
            head if unit else tuple(h.split(" (")[0] for h in head), tuple(rows)
        )


@dataclass(frozen=True, slots=True)
class Node:
    """A box in a drawing, its place from 0 to 1 across and down."""

    label: str
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class Wire:
    """A line between two places, `busy` from 0 to 1; 1 is the slowest of all."""

    label: str
    ends: tuple[tuple[float, float], tuple[float, float]]
    busy: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Tree:
    """A box of GPUs with its wires."""

    nodes: tuple[Node, ...]
    wires: tuple[Wire, ...]

    def legend(self) -> tuple[Key, ...]:
        """What the colours of wires are."""
        return (Key("busy part of the time", "#0072b2", ()),
                Key("busy all the time: the slowest", "#d55e00", ()))  # fmt: skip

    def table(self) -> Table:
        """One row a wire."""
        rows = tuple((wire.label, float(wire.busy)) for wire in self.wires)
        return Table(("wire", "share of the time it is busy"), rows)


Picture = Lines | Bars | Spans | Tree
