"""Stacked horizontal bars: a step by its parts, memory by what it holds."""

from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.patheffects import withStroke

from commwall.charts.style import COLOURS, INK, LABELS, axes, legend_above, si_axis
from commwall.memory import Memory
from commwall.steptime import StepTime
from commwall.units import GIB

__all__ = ["memory_bars", "part_bars", "step_bars"]


def part_bars(
    rows: Mapping[str, Mapping[str, float]], unit: str, ax: Axes | None = None
) -> Axes:
    """One stacked bar per row, from a mapping of part to size; no empty parts.

    A part whose name is in the palette has its colour; "hidden tp" is hatched.
    """
    shown = [p for p in _parts(rows) if any(row.get(p, 0) > 0 for row in rows.values())]
    ax = axes(ax, height=1.0 + 0.4 * len(rows) + 0.12 * len(shown))
    left = [0.0] * len(rows)
    for part in shown:
        label = LABELS.get(part, part)
        widths = [row.get(part, 0) for row in rows.values()]
        ax.barh(list(rows), widths, left=left, label=label, height=0.62, **_face(part))
        left = [edge + width for edge, width in zip(left, widths, strict=True)]
    ax.invert_yaxis()
    ax.grid(axis="y", visible=False)
    si_axis(ax.xaxis, unit)
    if shown:
        _legend(ax)
    return ax


def _face(part: str) -> dict[str, str]:
    if part.startswith("hidden "):
        edge = COLOURS.get(part.removeprefix("hidden "), INK)
        return {"color": "white", "edgecolor": edge, "hatch": "////"}
    return {"color": COLOURS.get(part, "#e69f00"), "edgecolor": "white"}


def step_bars(steps: Mapping[str, StepTime], ax: Axes | None = None) -> Axes:
    """One bar per named step: matrix products, other kernels, exposed traffic by axis,
    bubble, optimizer."""
    return part_bars({name: step.parts for name, step in steps.items()}, "s", ax)


def memory_bars(
    rows: Mapping[str, Memory], limit: float | None = None, ax: Axes | None = None
) -> Axes:
    """One bar per named plan, in GiB, and a line where the GPU ends."""
    parts = {
        row: {part: size / GIB for part, size in kept.parts.items()}
        for row, kept in rows.items()
    }
    ax = part_bars(parts, "GiB", ax)
    ax.xaxis.set_major_formatter("{x:g}")
    ax.set_xlabel("GiB on the fullest GPU")
    if limit is not None:
        name = f"{limit / GIB:.0f} GiB card"
        line = ax.axvline(limit / GIB, color=INK, linestyle="--", label=name)
        line.set_path_effects([withStroke(linewidth=4, foreground="white")])
        _legend(ax)
    return ax


def _legend(ax: Axes) -> None:
    legend_above(ax, centre=0.4, fontsize=9)


def _parts(rows: Mapping[str, Mapping[str, float]]) -> list[str]:
    return list(dict.fromkeys(part for row in rows.values() for part in row))
