"""Plans as dots, by what they keep and how fast they are; or as lines over the wire."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes

from commwall.charts.style import INK, axes, legend_above, si_axis
from commwall.units import GIB, Bytes, BytesPerSecond

__all__ = ["plan_scatter", "wire_lines"]

_STYLES = [("o", "#d55e00"), ("s", "#009e73"), ("^", "#0072b2"), ("D", "#cc79a7"),
           ("v", "#e69f00"), ("P", "#56b4e9"), ("X", "#7f7f7f")]  # fmt: skip

Places = tuple[Sequence[Bytes], Sequence[float]]


def plan_scatter(
    dots: Mapping[str, Places], limit: Bytes, ax: Axes | None = None
) -> Axes:
    """A dot a plan at (memory, tokens a second), a colour a kind; a line at `limit`.

    Right of the line a plan does not fit. Memory is logarithmic.
    """
    ax = axes(ax, height=4.6)
    for (name, (kept, rates)), (marker, colour) in zip(
        dots.items(), _STYLES, strict=False
    ):
        ax.scatter([size / GIB for size in kept], rates, s=16, marker=marker,
                   color=colour, alpha=0.75, linewidth=0, label=name)  # fmt: skip
    ax.axvline(limit / GIB, color=INK, linestyle="--", linewidth=1.2,
               label=f"{limit / GIB:.0f} GiB usable")  # fmt: skip
    ax.set_xscale("log", base=2)
    ax.xaxis.set_major_formatter(lambda size, _: f"{size:g}")
    ax.set_xlabel("GiB on the fullest GPU")
    ax.set_ylabel("tokens a second")
    ax.set_ylim(0, None)
    si_axis(ax.yaxis, "")
    legend_above(ax, 3)
    return ax


def wire_lines(
    bandwidths: Sequence[BytesPerSecond],
    curves: Mapping[str, Sequence[float]],
    *,
    mark: float | None = None,
    shares: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """What plans reach as the wire gets faster: tokens a second, or `shares`, their
    utilization; a level line at `mark`."""
    ax = axes(ax, height=4.0)
    for (name, line), (marker, colour) in zip(curves.items(), _STYLES, strict=False):
        ax.plot(bandwidths, line, marker=marker, markersize=5, color=colour,
                linewidth=1.8, label=name)  # fmt: skip
    if mark is not None:
        ax.axhline(mark, color=INK, linestyle="--", linewidth=1.2)
    ax.set_xscale("log", base=2)
    ax.set_xticks(list(bandwidths))
    si_axis(ax.xaxis, "B/s")
    ax.tick_params(axis="x", labelsize=9)
    ax.set_xlabel("bus bandwidth, one direction")
    ax.set_ylim(0, None)
    if shares:
        ax.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    else:
        si_axis(ax.yaxis, "")
    ax.set_ylabel("utilization" if shares else "tokens a second")
    legend_above(ax, 2)
    return ax
