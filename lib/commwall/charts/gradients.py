"""Gradients on their way: buckets beside the backward pass, and what batches cost."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes

from commwall.buckets import Bucket
from commwall.charts.style import COLOURS, INK, axes, legend_above, si_axis
from commwall.units import Seconds

__all__ = ["batch_lines", "bucket_timeline", "scaling_lines"]

_LINES = (("#009e73", "o"), ("#0072b2", "s"), ("#d55e00", "^"), ("#cc79a7", "D"))
Scaling = tuple[Sequence[int], Sequence[float], Sequence[float]]


def bucket_timeline(
    backward: Seconds,
    rows: Mapping[str, Sequence[Bucket]],
    ax: Axes | None = None,
) -> Axes:
    """The backward pass, and a row of buckets for each link; a line where it ends.

    What is right of the line lengthens the step.
    """
    ax = axes(ax, height=1.3 + 0.42 * len(rows))
    names = ["backward pass", *rows]
    ax.barh([0], [backward], height=0.6, color=COLOURS["compute"])
    for row, buckets in enumerate(rows.values(), start=1):
        _draw(ax, row, buckets, backward)
    ax.barh([0], [0], color="white", edgecolor=COLOURS["dp"], hatch="////",
            label="bucket, hidden")  # fmt: skip
    ax.barh([0], [0], color=COLOURS["dp"], label="ends after the pass")
    ax.axvline(backward, color=INK, linestyle="--", linewidth=1.2)
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.set_xlim(0, None)
    ax.grid(axis="y", visible=False)
    si_axis(ax.xaxis, "s")
    legend_above(ax, 2, centre=0.35)
    return ax


def _draw(ax: Axes, row: int, buckets: Sequence[Bucket], backward: Seconds) -> None:
    for bucket in buckets:
        hidden = bucket.end <= backward
        ax.barh(row, bucket.end - bucket.start, left=bucket.start, height=0.6,
                color="white" if hidden else COLOURS["dp"],
                edgecolor=COLOURS["dp"] if hidden else "white",
                hatch="////" if hidden else None, linewidth=0.6)  # fmt: skip


def batch_lines(
    batches: Sequence[float],
    curves: Mapping[str, Sequence[float]],
    best: Mapping[str, tuple[float, float]],
    critical: float | None = None,
    ax: Axes | None = None,
) -> Axes:
    """A factor against the tokens of a batch, log-log; `best` are dots on the lines.

    An upright line stands at the critical batch.
    """
    ax = axes(ax, height=4.2)
    for (name, line), (colour, _) in zip(curves.items(), _LINES, strict=False):
        ax.plot(batches, line, color=colour, linewidth=2, label=name)
        if name in best:
            ax.plot(*best[name], "o", color=colour, markersize=8,
                    markeredgecolor="white", zorder=4)  # fmt: skip
    if critical is not None:
        ax.axvline(critical, color=INK, linestyle="--", linewidth=1.2,
                   label="critical batch")  # fmt: skip
    ax.set_xscale("log")
    ax.set_yscale("log", base=2)
    ax.set_ylim(0.9, max(40, min(max(line) for line in curves.values())))
    ax.yaxis.set_major_formatter("{x:g}")
    ax.set_xlabel("tokens in a batch")
    ax.set_ylabel("training time, times the least")
    si_axis(ax.xaxis, "")
    legend_above(ax, 2)
    return ax


def scaling_lines(runs: Mapping[str, Scaling], ax: Axes | None = None) -> Axes:
    """Throughput of a GPU against how many there are: dots measured, lines predicted.

    A name goes with (GPUs, measured, predicted), both as parts of the first.
    """
    ax = axes(ax, height=4.2)
    for (name, (gpus, measured, predicted)), (colour, marker) in zip(
        runs.items(), _LINES, strict=False
    ):
        ax.plot(gpus, predicted, color=colour, linestyle="--", linewidth=1.5)
        ax.plot(gpus, measured, marker, color=colour, markersize=6,
                markeredgecolor="white", label=name)  # fmt: skip
    ax.plot([], [], color=INK, linestyle="--", label="predicted")
    ax.set_xscale("log", base=2)
    ax.xaxis.set_major_formatter("{x:g}")
    ax.set_ylim(0, 1.1)
    ax.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    ax.set_xlabel("GPUs")
    ax.set_ylabel("throughput of each, of the first row's")
    legend_above(ax, 2)
    return ax
