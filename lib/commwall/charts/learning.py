"""How well a network has learned, against what that took."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes

from commwall.charts.style import axes, legend_above, si_axis

__all__ = ["loss_curves"]

_STYLES = [("#000000", "-"), ("#d55e00", "--"), ("#d55e00", "-"), ("#0072b2", "-"),
           ("#009e73", "-"), ("#cc79a7", "-"), ("#e69f00", "--")]  # fmt: skip


def loss_curves(
    curves: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    unit: str,
    label: str,
    ax: Axes | None = None,
) -> Axes:
    """Each run's loss above the floor against steps, bytes or seconds, log-log."""
    ax = axes(ax, height=3.8)
    for (name, (spent, loss)), (colour, dashes) in zip(
        curves.items(), _STYLES, strict=False
    ):
        ax.plot(spent, loss, dashes, color=colour, linewidth=1.8, label=name)
    ax.set(xscale="log", yscale="log", xlabel=label)
    ax.set_ylabel("loss above the floor, nats")
    ax.yaxis.set_major_formatter("{x:g}")
    ax.yaxis.set_minor_formatter("{x:.1g}")
    si_axis(ax.xaxis, unit)
    legend_above(ax, 2)
    return ax
