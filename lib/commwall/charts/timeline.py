"""A pipeline schedule as it runs: one row a stage, one box a task."""

from collections.abc import Sequence

from matplotlib.axes import Axes

from commwall.charts.style import axes, legend_above, si_axis
from commwall.pipeline import Task

__all__ = ["timeline"]

_FACES = {"forward": "#56b4e9", "backward": "#009e73", "weights": "#e69f00"}


def timeline(
    tasks: Sequence[Task], unit: str | None = None, ax: Axes | None = None
) -> Axes:
    """Boxes numbered by micro-batch; what is left white is the bubble.

    `unit` is None where times are multiples of one forward pass.
    """
    stages = 1 + max(task.stage for task in tasks)
    ax = axes(ax, height=1.0 + 0.38 * stages)
    end = max(task.end for task in tasks)
    ax.barh(range(stages), end, color="white", edgecolor="#999999", hatch="...",
            height=0.8, zorder=0)  # fmt: skip
    for task in tasks:
        _draw(ax, task, numbered=len(tasks) / stages <= 24)
    for kind in dict.fromkeys(task.kind for task in tasks):
        ax.barh([0], [0], color=_FACES[kind], label=kind)
    ax.barh([0], [0], color="white", edgecolor="#999999", hatch="...", label="bubble")
    ax.set_yticks(range(stages), [f"stage {stage}" for stage in range(stages)])
    ax.set_ylim(stages - 0.45, -0.55)
    ax.set_xlim(0, end)
    ax.grid(visible=False)
    legend_above(ax, 4)
    if unit is None:
        ax.set_xlabel("time, in forward passes of one stage")
    else:
        si_axis(ax.xaxis, unit)
    return ax


def _draw(ax: Axes, task: Task, *, numbered: bool) -> None:
    width = task.end - task.start
    face, shade = _FACES[task.kind], 1.0 if task.chunk % 2 == 0 else 0.6
    ax.barh(task.stage, width, left=task.start, height=0.8, color=face, alpha=1.0,
            edgecolor="white", linewidth=0.6)  # fmt: skip
    if shade < 1:
        ax.barh(task.stage, width, left=task.start, height=0.8, color="white",
                alpha=0.4)  # fmt: skip
    if numbered:
        middle = task.start + width / 2
        ax.text(middle, task.stage, str(task.micro_batch + 1), ha="center",
                va="center", fontsize=7)  # fmt: skip
