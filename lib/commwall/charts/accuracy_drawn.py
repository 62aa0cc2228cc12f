"""Predictions against measurements, and what each part of the model earns."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes

from commwall.charts.style import INK, axes, legend_above, si_axis

__all__ = ["measured_scatter", "rung_bars"]

_STYLES = [("o", "#0072b2"), ("s", "#d55e00"), ("^", "#009e73"), ("D", "#cc79a7"),
           ("v", "#e69f00"), ("P", "#56b4e9"), ("X", "#7f7f7f")]  # fmt: skip

Places = tuple[Sequence[float], Sequence[float]]


def measured_scatter(
    dots: Mapping[str, Places],
    unit: str,
    share: float = 0.25,
    ax: Axes | None = None,
) -> Axes:
    """A dot a run at (measured, predicted), log-log, and a band of `share` around.

    Under the diagonal a prediction is too small: for seconds, too fast.
    """
    ax = axes(ax, height=5.0)
    values = [value for places in dots.values() for axis in places for value in axis]
    ends = [min(values) / 1.4, max(values) * 1.4]
    band = [end * (1 - share) for end in ends], [end * (1 + share) for end in ends]
    ax.fill_between(ends, *band, color="#e8f1f8", label=f"within {share:.0%}")
    ax.plot(ends, ends, color=INK, linewidth=1)
    for (name, places), (marker, colour) in zip(dots.items(), _STYLES, strict=False):
        ax.scatter(*places, s=26, marker=marker, color=colour, edgecolor="white",
                   linewidth=0.4, zorder=3, label=name)  # fmt: skip
    ax.set(xscale="log", yscale="log", xlim=ends, ylim=ends, aspect="equal")
    ax.set(xlabel="measured", ylabel="predicted")
    for axis in (ax.xaxis, ax.yaxis):
        si_axis(axis, unit)
    legend_above(ax, 2)
    return ax


def rung_bars(rungs: Mapping[str, Mapping[str, float]], ax: Axes | None = None) -> Axes:
    """Mean absolute error of each rung, a bar for each way of fitting it."""
    ways = list(dict.fromkeys(way for each in rungs.values() for way in each))
    ax = axes(ax, height=0.9 + 0.62 * len(rungs))
    thick = 0.8 / len(ways)
    for place, way in enumerate(ways):
        where = [
            row + (place - (len(ways) - 1) / 2) * thick for row in range(len(rungs))
        ]
        sizes = [each[way] for each in rungs.values()]
        bars = ax.barh(where, sizes, height=0.9 * thick, label=way,
                       color=_STYLES[place][1])  # fmt: skip
        ax.bar_label(bars, fmt=lambda size: f"{size:.1%}", padding=3, fontsize=9)
    ax.set_yticks(range(len(rungs)), list(rungs))
    ax.invert_yaxis()
    ax.grid(axis="y", visible=False)
    ax.margins(x=0.12)
    ax.xaxis.set_major_formatter(lambda size, _: f"{size:.0%}")
    ax.set_xlabel("mean absolute error")
    legend_above(ax, 1)
    return ax
