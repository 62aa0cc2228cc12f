"""How the claims of a text were judged, section by section."""

from collections.abc import Mapping

from matplotlib.axes import Axes

from commwall.charts.style import axes, legend_above

__all__ = ["verdict_bars"]

_COLOURS = ("#009e73", "#56b4e9", "#e69f00", "#d55e00")  # from right to wrong


def verdict_bars(
    counts: Mapping[str, Mapping[str, int]], ax: Axes | None = None
) -> Axes:
    """One bar for each section, in parts by verdict, each part with its count.

    Verdicts stand in the order in which the first section has them, at most four.
    """
    ax = axes(ax, height=1.1 + 0.34 * len(counts))
    names = list(counts)
    verdicts = list(next(iter(counts.values()), {}))
    left = [0] * len(names)
    for verdict, colour in zip(verdicts, _COLOURS, strict=False):
        parts = [counts[name][verdict] for name in names]
        bars = ax.barh(names, parts, left=left, color=colour, label=verdict)
        labels = [str(part) if part else "" for part in parts]
        ax.bar_label(bars, labels, label_type="center", fontsize=9)
        left = [start + part for start, part in zip(left, parts, strict=True)]
    ax.invert_yaxis()
    ax.grid(axis="y", visible=False)
    ax.set_xlabel("claims")
    legend_above(ax, columns=4, centre=0.2, handlelength=1, columnspacing=1)
    return ax
