"""What becomes of a layer, a bubble or a memory as a model is cut more ways."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, MultipleLocator, NullFormatter

from commwall.charts.style import INK, axes, legend_above, si_axis
from commwall.units import Seconds

__all__ = ["bubble_lines", "degree_lines", "held_lines"]

_STYLES = (  # colour, marker: told apart without colour too
    ("#0072b2", "o"),
    ("#009e73", "s"),
    ("#d55e00", "^"),
    ("#cc79a7", "D"),
)


def degree_lines(
    degrees: Sequence[int],
    curves: Mapping[str, Sequence[Seconds]],
    *,
    bare: Mapping[str, Sequence[Seconds]] | None = None,
    measured: Mapping[str, Mapping[int, Seconds]] | None = None,
    node: int | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Seconds against the tensor-parallel degree, both logarithmic; a line a name.

    `bare` are dotted lines in the same colours, `measured` large open markers, and
    `node` the degree up to which a group stays in a machine.
    """
    ax = axes(ax, height=4.2)
    for (name, line), (colour, marker) in zip(curves.items(), _STYLES, strict=False):
        ax.plot(degrees, line, color=colour, marker=marker, markersize=4, label=name)
        if name in (bare or {}):
            ax.plot(degrees, bare[name], ":", color=colour)
        if name in (measured or {}):
            found = measured[name]
            ax.plot(list(found), list(found.values()), marker, color=colour,
                    markersize=10, markerfacecolor="none", markeredgewidth=2,
                    label=f"{name}, measured")  # fmt: skip
    _log_degrees(ax, degrees)
    ax.set_yscale("log")
    ax.yaxis.set_minor_formatter(NullFormatter())
    si_axis(ax.yaxis, "s")
    if node is not None:
        _edge(ax, node)
    ax.set_xlabel("GPUs that share each layer")
    legend_above(ax)
    return ax


def bubble_lines(
    stages: Sequence[int], shares: Mapping[str, Sequence[float]], ax: Axes | None = None
) -> Axes:
    """Shares against the number of pipeline stages; dashed from the third name on."""
    ax = axes(ax, height=3.8)
    for number, ((name, line), (colour, marker)) in enumerate(
        zip(shares.items(), _STYLES, strict=False)
    ):
        ax.plot(stages, line, "-" if number < 2 else "--", color=colour, marker=marker,
                markersize=4, label=name)  # fmt: skip
    _log_degrees(ax, stages)
    ax.set_ylim(0, None)
    ax.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    ax.set_xlabel("stages")
    legend_above(ax)
    return ax


def held_lines(held: Mapping[str, Sequence[float]], ax: Axes | None = None) -> Axes:
    """Micro-batches that each stage holds at its fullest, a line a schedule."""
    ax = axes(ax)
    for (name, line), (colour, marker) in zip(held.items(), _STYLES, strict=False):
        ax.plot(range(len(line)), line, color=colour, marker=marker, markersize=5,
                label=name)  # fmt: skip
    ax.set_ylim(0, None)
    ax.xaxis.set_major_locator(MultipleLocator(1))
    ax.yaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_xlabel("stage")
    ax.set_ylabel("micro-batches held")
    legend_above(ax)
    return ax


def _log_degrees(ax: Axes, degrees: Sequence[int]) -> None:
    ax.set_xscale("log", base=2)
    ax.set_xticks(list(degrees), [f"{degree:g}" for degree in degrees])
    ax.xaxis.set_minor_formatter(NullFormatter())


def _edge(ax: Axes, node: int) -> None:
    """An upright line just beyond the last degree that fits a machine."""
    place = node * 2**0.5
    ax.axvline(place, color=INK, linestyle="--", linewidth=1.0)
    ax.annotate("the node ends", (place, 0.03), xycoords=ax.get_xaxis_transform(),
                xytext=(-4, 0), textcoords="offset points", ha="right",
                fontsize=9)  # fmt: skip
