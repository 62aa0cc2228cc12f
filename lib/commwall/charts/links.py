"""Time and bandwidth of a collective against size and ranks; a ring, step by step."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from matplotlib.ticker import FixedLocator, NullFormatter, NullLocator

from commwall.charts.style import INK, axes, legend_above, si_axis
from commwall.units import GIB, KIB, MIB, format_si

__all__ = ["lines_by_ranks", "lines_by_size", "ring_states"]

_STYLES = (  # colour, dashes, marker: told apart without colour too
    ("#d55e00", "-", "o"),
    ("#0072b2", "--", "s"),
    ("#009e73", "-.", "^"),
    ("#cc79a7", ":", "D"),
)
_SIZES = (KIB, 32 * KIB, MIB, 32 * MIB, GIB, 16 * GIB)
Points = tuple[Sequence[float], Sequence[float]]


def lines_by_size(
    curves: Mapping[str, Points],
    unit: str,
    measured: Mapping[str, Points] | None = None,
    marks: Mapping[str, tuple[float, float]] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """One line a name against payload, both axes logarithmic; `measured` as dots.

    A mark is a ring on the line of its name, labelled with its payload.
    """
    ax = axes(ax, height=4.2)
    _lines(ax, curves, ", predicted" if measured else "")
    for name, points in (measured or {}).items():
        colour, _, marker = _STYLES[list(curves).index(name)]
        ax.plot(*points, marker, color=colour, markersize=7, markeredgecolor="white",
                label=f"{name}, measured", zorder=4)  # fmt: skip
    for name, place in (marks or {}).items():
        colour = _STYLES[list(curves).index(name)][0]
        _mark(ax, place, colour, below=name == list(marks)[-1])
    ax.set_xscale("log")
    ax.set_yscale("log")
    si_axis(ax.yaxis, unit)
    ax.yaxis.set_minor_formatter(NullFormatter())
    _sizes(ax, [size for sizes, _ in curves.values() for size in sizes])
    _legend(ax)
    return ax


def lines_by_ranks(
    curves: Mapping[str, Points], unit: str, ax: Axes | None = None
) -> Axes:
    """One line a name against the number of ranks, both axes logarithmic."""
    ax = axes(ax, height=4.0)
    _lines(ax, curves)
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ax.xaxis.set_major_formatter("{x:g}")
    ax.set_xlabel("ranks")
    si_axis(ax.yaxis, unit)
    ax.yaxis.set_minor_formatter(NullFormatter())
    _legend(ax)
    return ax


def ring_states(states: Sequence[np.ndarray], ax: Axes | None = None) -> Axes:
    """A panel a step, in two rows: one line a rank, one square a piece.

    `states[k][rank, piece]` is how many ranks' parts the piece holds after step k; the
    more, the darker, and a complete sum is green.
    """
    ranks, wide = len(states[0]), (len(states) + 1) // 2
    ax = axes(ax, height=4.4)
    for step, state in enumerate(states):
        x, y = step % wide * (ranks + 1.0), step // wide * (ranks + 1.5)
        for (rank, piece), parts in np.ndenumerate(state):
            _piece(ax, x + piece, y + rank, parts, ranks)
        name = f"step {step}" if step else "start"
        ax.text(x + ranks / 2, y - 0.3, name, ha="center")
    for rank in [(row, rank) for row in (0, 1) for rank in range(ranks)]:
        ax.text(-0.3, rank[0] * (ranks + 1.5) + rank[1] + 0.5, f"rank {rank[1]}",
                ha="right", va="center")  # fmt: skip
    ax.set_xlim(-2.4, wide * (ranks + 1.0) - 0.9)
    ax.set_ylim(2 * ranks + 1.6, -1.0)
    ax.set_aspect("equal")
    ax.axis("off")
    return ax


def _lines(ax: Axes, curves: Mapping[str, Points], suffix: str = "") -> None:
    for (name, points), (colour, dashes, _) in zip(
        curves.items(), _STYLES[: len(curves)], strict=True
    ):
        ax.plot(*points, dashes, color=colour, linewidth=2, label=name + suffix)


def _mark(ax: Axes, place: tuple[float, float], colour: str, *, below: bool) -> None:
    ax.plot(*place, "o", markersize=10, markerfacecolor="white",
            markeredgecolor=colour, markeredgewidth=2, zorder=5)  # fmt: skip
    ax.annotate(format_si(place[0], "B"), place, xytext=(9, -13) if below else (-9, 8),
                ha="left" if below else "right", color=colour,
                textcoords="offset points")  # fmt: skip


def _sizes(ax: Axes, sizes: Sequence[float]) -> None:
    low, high = min(sizes), max(sizes)
    ax.set_xlim(low / 1.25, high * 1.25)
    ax.xaxis.set_major_locator(FixedLocator([s for s in _SIZES if low <= s <= high]))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(lambda size, _: _binary(size))
    ax.set_xlabel("payload")


def _binary(size: float) -> str:
    for unit, name in ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if size >= unit:
            return f"{size / unit:g} {name}"
    return f"{size:g} B"


def _legend(ax: Axes) -> None:
    columns = 2 if len(ax.get_legend_handles_labels()[0]) == 4 else 3
    legend_above(ax, columns)


def _piece(ax: Axes, x: float, y: float, parts: int, ranks: int) -> None:
    done = parts == ranks
    shade = 1.0 if done else 0.12 + 0.75 * (parts - 1) / ranks
    ax.add_patch(Rectangle((x, y), 1, 1, facecolor="#009e73" if done else "#0072b2",
                           alpha=shade, edgecolor="none"))  # fmt: skip
    ax.add_patch(Rectangle((x, y), 1, 1, fill=False, edgecolor="white", linewidth=2))
    ax.text(x + 0.5, y + 0.5, f"{parts}", ha="center", va="center",
            color="white" if shade > 0.4 else INK)  # fmt: skip
