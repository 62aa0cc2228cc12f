"""Pipeline schedules as they run: one row a stage, one box a task."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes

from commwall.charts.style import axes, legend_above, si_axis
from commwall.pipeline import Task

__all__ = ["timeline", "timelines"]

_FACES = {"forward": "#56b4e9", "backward": "#009e73", "weights": "#e69f00"}
_IDLE = {"color": "white", "edgecolor": "#999999", "hatch": "..."}
_CLOCK = "time, in forward passes of one stage"


def timeline(
    tasks: Sequence[Task], unit: str | None = None, ax: Axes | None = None
) -> Axes:
    """Boxes numbered by micro-batch; what is left white is the bubble.

    `unit` is None where times are multiples of one forward pass.
    """
    ax = axes(ax, height=1.0 + 0.38 * _stages(tasks))
    _rows(ax, tasks)
    _finish(ax, [tasks], unit)
    ax.set_ylim(_stages(tasks) - 0.45, -0.55)
    return ax


def timelines(
    schedules: Mapping[str, Sequence[Task]],
    unit: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """One timeline under another on one clock, so that one sees who ends first.

    Each has its name above it, and dots until its own end.
    """
    blocks = [1 + _stages(tasks) for tasks in schedules.values()]
    ax = axes(ax, height=1.0 + 0.27 * sum(blocks))
    ticks, top = {}, 0
    for (name, tasks), rows in zip(schedules.items(), blocks, strict=True):
        ax.text(0, top, name, va="center", fontsize=10)
        _rows(ax, tasks, top + 1)
        ticks |= {top + 1 + stage: f"stage {stage}" for stage in range(rows - 1)}
        top += rows
    _finish(ax, list(schedules.values()), unit)
    ax.set_yticks(list(ticks), list(ticks.values()), fontsize=8)
    ax.set_ylim(top - 0.45, -0.75)
    return ax


def _stages(tasks: Sequence[Task]) -> int:
    return 1 + max(task.stage for task in tasks)


def _rows(ax: Axes, tasks: Sequence[Task], top: int = 0) -> None:
    """The boxes of one schedule, its first stage in row `top`."""
    stages, end = _stages(tasks), max(task.end for task in tasks)
    ax.barh(range(top, top + stages), end, height=0.8, zorder=0, **_IDLE)
    for task in tasks:
        _draw(ax, task, top, numbered=len(tasks) / stages <= 24)


def _finish(ax: Axes, schedules: Sequence[Sequence[Task]], unit: str | None) -> None:
    tasks = [task for each in schedules for task in each]
    for kind in [kind for kind in _FACES if any(task.kind == kind for task in tasks)]:
        ax.barh([0], [0], color=_FACES[kind], label=kind)
    ax.barh([0], [0], label="bubble", **_IDLE)
    stages = _stages(tasks)
    ax.set_yticks(range(stages), [f"stage {stage}" for stage in range(stages)])
    ax.set_xlim(0, max(task.end for task in tasks))
    ax.grid(visible=False)
    legend_above(ax, 4)
    if unit is None:
        ax.set_xlabel(_CLOCK)
    else:
        si_axis(ax.xaxis, unit)


def _draw(ax: Axes, task: Task, top: int, *, numbered: bool) -> None:
    width, row = task.end - task.start, top + task.stage
    face, shade = _FACES[task.kind], 1.0 if task.chunk % 2 == 0 else 0.6
    ax.barh(row, width, left=task.start, height=0.8, color=face, alpha=1.0,
            edgecolor="white", linewidth=0.6)  # fmt: skip
    if shade < 1:
        ax.barh(row, width, left=task.start, height=0.8, color="white",
                alpha=0.4)  # fmt: skip
    if numbered:
        middle = task.start + width / 2
        ax.text(middle, row, str(task.micro_batch + 1), ha="center",
                va="center", fontsize=7)  # fmt: skip
