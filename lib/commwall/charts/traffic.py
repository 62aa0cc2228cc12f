"""Bytes that a plan sends: axis by axis, and as one thing about it grows."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, NullFormatter

from commwall.charts.style import COLOURS, INK, axes, legend_above
from commwall.units import Bytes, format_si

_GAINS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#000000")

__all__ = ["axis_bars", "gain_lines", "growth_lines"]


def axis_bars(rows: Mapping[str, Mapping[str, Bytes]], ax: Axes | None = None) -> Axes:
    """One bar for each axis that a named plan uses, on a scale of powers of ten.

    `rows` holds bytes by axis, as `volumes` returns them; a plan of two axes gets two
    bars under each other, for on such a scale they cannot be stacked.
    """
    bars = [
        (name, axis, size)
        for name, sent in rows.items()
        for axis, size in sent.items()
        if size > 0
    ]
    ax = axes(ax, height=1.0 + 0.36 * len(bars))
    sizes = [size for _, _, size in bars]
    ax.barh(range(len(bars)), sizes, color=[COLOURS[axis] for _, axis, _ in bars])
    for place, size in enumerate(sizes):
        ax.annotate(format_si(size, "B"), (size, place), xytext=(4, 0),
                    textcoords="offset points", va="center", fontsize=9)  # fmt: skip
    ax.set_yticks(range(len(bars)), _row_labels(bars))
    ax.invert_yaxis()
    ax.set_xscale("log")
    ax.set_xlim(min(sizes) / 4, max(sizes) * 6)
    ax.grid(axis="y", visible=False)
    _si_log_axis(ax.xaxis, "B")
    ax.set_xlabel("sent by one GPU in one step")
    return ax


def growth_lines(
    values: Sequence[float],
    curves: Mapping[str, Sequence[float]],
    unit: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Named curves over values that double, both axes logarithmic.

    A curve whose name begins with a part in the palette has its colour, dashed if
    another has it already; any other is dark and dashed. `unit` is None for ratios.
    """
    ax = axes(ax)
    used = {INK}
    for name, heights in curves.items():
        colour = COLOURS.get(name.split()[0].rstrip(":,"), INK)
        ax.plot(values, heights, "--" if colour in used else "-", color=colour,
                marker="o", markersize=4, label=name)  # fmt: skip
        used.add(colour)
    ax.set_xscale("log", base=2)
    ax.set_xticks(values, [f"{value:g}" for value in values])
    ax.set_yscale("log", base=2 if unit is None else 10)
    _si_log_axis(ax.yaxis, unit)
    legend_above(ax)
    return ax


def gain_lines(
    factors: Sequence[float],
    gains: Mapping[str, Sequence[float]],
    ax: Axes | None = None,
) -> Axes:
    """Gain against the factor by which one part of a machine grows; 1 is no gain."""
    ax = axes(ax)
    for (name, line), colour in zip(gains.items(), _GAINS, strict=False):
        ax.plot(factors, line, marker="o", markersize=4, color=colour, label=name)
    ax.set_xscale("log", base=2)
    ax.set_xticks(factors, [f"{factor:g}" for factor in factors])
    ax.set_xlabel("times as much of it")
    ax.set_ylabel("gain in tokens/s")
    legend_above(ax, 3)
    return ax


def _row_labels(bars: Sequence[tuple[str, str, Bytes]]) -> list[str]:
    """The plan's name at the first of its bars, and the axis wherever it has two."""
    names = [name for name, _, _ in bars]
    labels = []
    for place, (name, axis, _) in enumerate(bars):
        plan = name if place == names.index(name) else ""
        two = names.count(name) > 1
        labels.append(f"{plan}  [{axis}]".strip() if two else plan)
    return labels


def _si_log_axis(axis, unit: str | None) -> None:
    """SI prefixes, or plain ratios, at whole powers and nothing between."""
    axis.set_minor_formatter(NullFormatter())
    axis.set_major_formatter(
        FuncFormatter(lambda x, _: f"{x:g}" if unit is None else format_si(x, unit))
    )
