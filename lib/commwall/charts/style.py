"""One palette and one look for every figure; loaded when `charts` is imported."""

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from commwall.palette import COLOURS, INK, LABELS
from commwall.units import format_si

__all__ = ["COLOURS", "INK", "LABELS", "axes", "legend_above", "si_axis"]

mpl.rcParams.update(
    {
        "figure.figsize": (5.8, 3.2),
        "figure.dpi": 130,
        "figure.constrained_layout.use": True,
        "savefig.facecolor": "white",
        "font.size": 10,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.edgecolor": INK,
        "axes.grid": True,
        "grid.color": "#e6e6e6",
        "axes.axisbelow": True,
        "legend.frameon": False,
        "hatch.linewidth": 0.6,
        "svg.hashsalt": "commwall",
    }
)


def axes(ax: Axes | None = None, *, height: float | None = None) -> Axes:
    """The axes to draw on: the given ones, or those of a new figure."""
    if ax is not None:
        return ax
    width, default = mpl.rcParams["figure.figsize"]
    return plt.subplots(figsize=(width, height or default))[1]


def si_axis(axis, unit: str) -> None:
    """Label an axis's ticks with SI prefixes: the only place a chart converts."""
    axis.set_major_formatter(FuncFormatter(lambda value, _: format_si(value, unit)))


def legend_above(ax: Axes, columns: int = 2, *, centre: float = 0.5, **style) -> None:
    """A legend over the axes, where no data can lie under it."""
    place = {"loc": "lower center", "bbox_to_anchor": (centre, 1.0)}
    ax.legend(**place, ncols=columns, **style)
