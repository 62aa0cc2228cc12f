"""Pictures on matplotlib axes, with the colours and words of the SVG."""

from collections import defaultdict

from matplotlib.axes import Axes

from commwall.charts.style import INK, legend_above
from commwall.palette import COLOURS, LINES
from commwall.whatif.pictures import Axis, Bars, Lines, Picture, Spans, Tree
from commwall.whatif.ticks import limits, ticks

__all__ = ["draw"]


def draw(picture: Picture, ax: Axes) -> Axes:
    """The picture on these axes."""
    drawings = {Lines: _lines, Bars: _bars, Spans: _spans, Tree: _tree}
    drawings[type(picture)](picture, ax)
    return ax


def _legend(picture: Picture, ax: Axes) -> None:
    if picture.legend():
        legend_above(ax, fontsize=8)


def _scale(axis, quantity: Axis, values) -> None:
    """Ends, ticks and name of one axis, as in the SVG."""
    ends = limits(quantity, values)
    if quantity.log:
        getattr(axis.axes, f"set_{axis.axis_name}scale")("log", base=quantity.log)
    getattr(axis.axes, f"set_{axis.axis_name}lim")(*ends)
    places = ticks(quantity, ends, 6)
    axis.set_ticks(places, [quantity.text(place) for place in places])
    axis.set_ticks([], minor=True)
    axis.set_label_text(quantity.label)


def _lines(picture: Lines, ax: Axes) -> None:
    for line, (colour, dashes) in zip(picture.lines, LINES, strict=False):
        style = {"marker": "o", "linestyle": "none"} if line.dots else {
            "linestyle": (0, dashes) if dashes else "-"}  # fmt: skip
        ax.plot(line.xs, line.ys, color=colour, label=line.label, **style)
    _scale(ax.xaxis, picture.x, [x for line in picture.lines for x in line.xs])
    ys = [y for line in picture.lines for y in line.ys]
    _scale(ax.yaxis, picture.y, ys if picture.y.log else [0.0, *ys])
    for mark in picture.marks:
        ax.plot([mark.x], [mark.y], "o", fillstyle="none", color=INK)
        ax.annotate(mark.label, (mark.x, mark.y), xytext=(6, 6),
                    textcoords="offset points")  # fmt: skip
    for words, value in picture.rules:
        ax.axvline(value, color=INK, linestyle=":", linewidth=1)
        ax.annotate(words, (value, 0.95), xycoords=ax.get_xaxis_transform())
    _legend(picture, ax)


def _bars(picture: Bars, ax: Axes) -> None:
    places, left = range(len(picture.bars)), [0.0] * len(picture.bars)
    for key in picture.legend():
        sizes = [
            sum(p.size for p in bar.parts if p.label == key.label)
            for bar in picture.bars
        ]
        look = {"facecolor": key.colour, "edgecolor": "white"}
        if key.pale:
            look = {"facecolor": "white", "edgecolor": key.colour, "hatch": "////"}
        ax.barh(places, sizes, left=left, label=key.label, height=0.45, **look)
        left = [edge + size for edge, size in zip(left, sizes, strict=True)]
    for place, bar in zip(places, picture.bars, strict=True):
        words = f"{bar.label}: {bar.note}" if bar.note else bar.label
        ax.text(0, place - 0.28, words, fontsize=8)
    _finish_bars(picture, ax, left)


def _finish_bars(picture: Bars, ax: Axes, sums: list[float]) -> None:
    limit = [picture.limit[1] * 1.05] if picture.limit else []
    _scale(ax.xaxis, picture.axis, [0.0, *sums, *limit])
    if picture.limit:
        words, value = picture.limit
        ax.axvline(value, color=INK, linestyle="--", label=words)
    ax.set_yticks([])
    ax.set_ylim(len(sums) - 0.6, -0.7)
    _legend(picture, ax)


def _spans(picture: Spans, ax: Axes) -> None:
    end = max(span.end for span in picture.spans)
    if picture.idle:
        ax.barh(range(len(picture.rows)), end, color="#eeeeee", label=picture.idle)
    alike = defaultdict(list)
    for span in picture.spans:
        stretch = span.start, span.end - span.start
        alike[span.row, span.kind, span.faded].append(stretch)
    for (row, kind, faded), stretches in alike.items():
        ax.broken_barh(stretches, (row - 0.4, 0.8), facecolor=COLOURS[kind],
                       alpha=0.55 if faded else 1, edgecolor="white",
                       linewidth=0.5)  # fmt: skip
    for key in picture.legend():
        if not key.pale:
            ax.barh([0], [0], color=key.colour, label=key.label)
    ax.set_yticks(range(len(picture.rows)), picture.rows)
    _scale(ax.xaxis, picture.axis, [0.0, end])
    ax.invert_yaxis()
    _legend(picture, ax)


def _tree(picture: Tree, ax: Axes) -> None:
    for wire in picture.wires:
        (x0, y0), (x1, y1) = wire.ends
        colour = "#d55e00" if wire.busy > 0.999 else "#0072b2"
        ax.plot([x0, x1], [y0, y1], color=colour, linewidth=1 + 5 * wire.busy, zorder=0)
        ax.text(0.55 * x0 + 0.45 * x1, 0.55 * y0 + 0.45 * y1, f"{wire.busy:.0%}",
                fontsize=8, ha="center")  # fmt: skip
    for node in picture.nodes:
        ax.text(node.x, node.y, node.label, ha="center", va="center",
                bbox={"facecolor": "white", "edgecolor": INK})  # fmt: skip
    ax.invert_yaxis()
    ax.axis("off")
