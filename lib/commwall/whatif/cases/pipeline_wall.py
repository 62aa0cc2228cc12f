"""How long the stages of a pipeline wait, read from its schedule."""

from collections.abc import Sequence

from commwall.pipeline import (
    Task,
    bubble_time,
    busy,
    idle_fraction,
    makespan,
    overhead_to_fraction,
    peak_in_flight,
    schedule,
)
from commwall.whatif.answers import Answer
from commwall.whatif.controls import Choice, Range, doublings
from commwall.whatif.front import WhatIf
from commwall.whatif.pictures import Axis, Span, Spans, Table

ORDERS = {"GPipe": "gpipe", "1F1B": "1f1b", "zero bubble": "zero_bubble"}
MOST = 1280  # tasks that a picture can show
SHARE = Axis(label="share of the step", unit="%")
COUNTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)


def pipeline_timeline(
    order: str,
    stages: int,
    micro_batches: int,
    chunks: int,
    backward: float,
    send: float,
) -> Answer:
    """The schedule on its clock, which counts forward passes of a stage."""
    counts = stages, micro_batches, chunks
    _check(order, *counts)
    tasks = schedule(ORDERS[order], *counts, backward=backward, send=send)
    waits, held = idle_fraction(tasks), peak_in_flight(tasks)
    closed = _formula(order, *counts, backward)
    chunked = f" of {chunks} chunks each" if chunks > 1 else ""
    return Answer(
        finding=f"{stages} stages{chunked} wait {SHARE.text(waits)} of the time over "
        f"{micro_batches} micro-batches, in the order of {order}, and hold up to "
        f"{max(held):.4g} of them.",
        facts=(
            ("Waits, in this schedule", SHARE.text(waits)),
            ("Waits, by the formula", SHARE.text(closed)),
            ("Step", f"{makespan(tasks):.4g} forward passes"),
            ("Held on stage 0", f"{held[0]:.4g} micro-batches"),
            ("Sends of an inner stage", f"{2 * chunks * micro_batches}"),
        ),
        picture=_picture(tasks, stages),
        table=_table(tasks, held),
    )


def _check(order: str, stages: int, micro_batches: int, chunks: int) -> None:
    tasks = stages * micro_batches * chunks * (3 if order == "zero bubble" else 2)
    if tasks > MOST:
        raise ValueError(
            f"tasks={tasks:,} must be at most {MOST:,} to be drawn: take fewer "
            "stages, micro-batches or chunks"
        )


def _formula(
    order: str, stages: int, micro_batches: int, chunks: int, backward: float
) -> float:
    """The bubble's share in closed form, where sends take no time."""
    waits = bubble_time(ORDERS[order], stages, micro_batches, chunks, backward=backward)
    return overhead_to_fraction(waits / (micro_batches * (1 + backward)))


def _picture(tasks: Sequence[Task], stages: int) -> Spans:
    """A row a stage, its boxes numbered by micro-batch while there is room."""
    numbered = len(tasks) <= 24 * stages
    return Spans(
        axis=Axis(label="time, in forward passes of one stage", low=0.0),
        rows=tuple(f"stage {stage}" for stage in range(stages)),
        spans=tuple(_span(task, numbered) for task in tasks),
        idle="bubble",
    )


def _span(task: Task, numbered: bool) -> Span:
    """Every other chunk is paler."""
    words = f"{task.micro_batch}" if numbered else ""
    kind = "weight gradients" if task.kind == "weights" else task.kind
    return Span(task.stage, task.start, task.end, kind, words,
                faded=task.chunk % 2 == 1)  # fmt: skip


def _table(tasks: Sequence[Task], held: Sequence[float]) -> Table:
    """One row a stage."""
    length = makespan(tasks)
    head = ("stage", "works (forward passes)", "waits, of the time",
            "holds (micro-batches)")  # fmt: skip
    rows = (
        (f"{stage}", work, 1 - work / length, most)
        for stage, (work, most) in enumerate(zip(busy(tasks), held, strict=True))
    )
    return Table(head, tuple(rows))


PIPELINE_TIMELINE = WhatIf(
    name="pipeline_timeline",
    title="How long do the stages wait?",
    controls=(
        Choice(name="order", label="Schedule", options=tuple(ORDERS), start="1F1B"),
        Range(name="stages", label="Stages", stops=(2, 3, 4, 6, 8, 12, 16), start=8,
              whole=True),
        Range(name="micro_batches", label="Micro-batches", stops=COUNTS, start=16,
              whole=True),
        Range(name="chunks", label="Chunks a stage", stops=doublings(1, 8), start=1,
              whole=True),
        Range(name="backward", label="Backward pass", unit="forwards",
              stops=(1, 1.5, 2, 2.5, 3), start=2),
        Range(name="send", label="Send", unit="forwards",
              stops=(0, 0.05, 0.1, 0.2, 0.5, 1), start=0),
    ),
    answer=pipeline_timeline,
)  # fmt: skip
