"""Which part of a step takes most of what is lost, plan by plan."""

from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.patches import Patch

from commwall.charts.style import COLOURS, LABELS, axes, legend_above

__all__ = ["term_grid"]

Term = tuple[str, float]


def term_grid(rows: Mapping[str, Mapping[str, Term]], ax: Axes | None = None) -> Axes:
    """A table of cells, each in the colour of its term and with its share in it.

    A row and a column have names; a cell is (term, share of the step).
    """
    columns = list(next(iter(rows.values())))
    ax = axes(ax, height=1.4 + 0.5 * len(rows))
    for y, row in enumerate(rows.values()):
        for x, column in enumerate(columns):
            term, share = row[column]
            ax.barh(y, 0.96, left=x - 0.48, height=0.9, color=COLOURS[term])
            ax.text(x, y, f"{share:.0%}", ha="center", va="center", fontsize=10,
                    bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5,
                          "alpha": 0.85})  # fmt: skip
    ax.set_xticks(range(len(columns)), columns, fontsize=9)
    ax.set_yticks(range(len(rows)), list(rows))
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.grid(visible=False)
    found = dict.fromkeys(term for row in rows.values() for term, _ in row.values())
    handles = [Patch(color=COLOURS[term], label=LABELS.get(term, term))
               for term in found]  # fmt: skip
    legend_above(ax, 2, centre=0.4, handles=handles)
    return ax
