r"""The pipeline bubble: in closed form, and read from the tasks of a schedule.

A stage is idle while the first micro-batches fill the pipeline and while the last
ones drain it. `schedule` gives the tasks, the functions on `tasks` measure them, and
the closed forms are what a search over thousands of plans can afford; the tests hold
the two together.

Leaves out: what `commwall.schedules` leaves out. The closed forms take equal stages.
"""

from collections.abc import Sequence

from commwall.rules import nonnegative, whole
from commwall.schedules import SCHEDULES, Task, check, schedule, weights_part
from commwall.units import Seconds

__all__ = [
    "SCHEDULES",
    "Task",
    "bubble_fraction",
    "bubble_overhead",
    "bubble_time",
    "busy",
    "critical_sends",
    "idle_fraction",
    "idle_overhead",
    "in_flight",
    "makespan",
    "overhead_to_fraction",
    "peak_in_flight",
    "schedule",
]


def bubble_overhead(pp: int, micro_batches: int, vpp: int = 1) -> float:
    r"""Bubble over ideal time: how much longer the bubble makes the step.

    $$\frac{p-1}{v m}$$

    narayanan2021, sec. 2.2. It can exceed 1 and is a straight line in p; the share of
    the step that is lost, `bubble_fraction`, does neither.

    >>> bubble_overhead(pp=8, micro_batches=16)     # 7 / 16
    0.4375
    """
    _check_counts(pp, micro_batches, vpp)
    return (pp - 1) / (vpp * micro_batches)


def bubble_fraction(pp: int, micro_batches: int, vpp: int = 1) -> float:
    r"""Bubble over the whole step: the share of its time that a GPU waits.

    $$\frac{p-1}{v m + p - 1}$$

    Efficiency is one minus this. Twice the stages is less than twice the bubble, and
    m counts micro-batches of one replica and step, not sequences. huang2019.

    >>> round(bubble_fraction(pp=8, micro_batches=16), 4)     # 7 / (16 + 7)
    0.3043
    """
    _check_counts(pp, micro_batches, vpp)
    return (pp - 1) / (vpp * micro_batches + pp - 1)


def overhead_to_fraction(overhead: float) -> float:
    """The same bubble as a share of the whole step, x / (1 + x).

    >>> round(overhead_to_fraction(0.4375), 4)     # 7/16 is 7/23 of the whole
    0.3043
    """
    return nonnegative("overhead", overhead) / (1 + overhead)


def bubble_time(
    name: str,
    pp: int,
    micro_batches: int,
    vpp: int = 1,
    *,
    forward: Seconds = 1.0,
    backward: Seconds = 2.0,
    weights: Seconds | None = None,
) -> Seconds:
    r"""Seconds of one step in which the slowest stage waits, were sends free.

    GPipe and 1F1B wait $(p-1)(f+b)/v$; zero bubble, whose backward b contains w, waits

    $$(p-1)(f+b-w) - (\min(m, p) - 1) \min(f, b-w, w)$$

    which is qi2024's table 2 once $m \ge p$ and w is the shortest part. f, b and w are
    an ordinary stage's. If the last stage is slower, the step is m times that stage's
    own time plus this (at most, for zero bubble). If another is, ask `schedule`.

    >>> bubble_time("1f1b", 8, 16, vpp=2)     # 7 * (1 + 2) / 2
    10.5
    >>> bubble_time("zero_bubble", 8, 16)     # 7 * (1 + 1) - 7 * 1: a third of 1F1B's
    7.0
    """
    check(name, pp, micro_batches, vpp)
    nonnegative("forward", forward)
    later = weights_part(nonnegative("backward", backward), weights)
    if name != "zero_bubble":
        return (pp - 1) * (forward + backward) / vpp
    first = backward - later
    saved = (min(micro_batches, pp) - 1) * min(forward, first, later)
    return (pp - 1) * (forward + first) - saved


def critical_sends(name: str, pp: int, micro_batches: int, vpp: int = 1) -> int:
    r"""Sends that lengthen the step, one after the other, if each is short.

    GPipe $2(p-1)$. 1F1B $2(p-1) + 2\lfloor (m-1)(p-1)/p \rfloor$: stage 0 starts no
    micro-batch before one of its p is back, so it waits for sends all step long.
    Interleaved $2(vp-1)$: its deeper warm-up hides the rest. Zero bubble as 1F1B, but
    for p micro-batches at most.

    Exact for GPipe and 1F1B; for interleaved if a send is no longer than a chunk's
    forward or backward; for zero bubble if it is at most half of w, the shortest part.
    Beyond, more is exposed. A slower last stage hides some. Own derivation.

    >>> critical_sends("gpipe", 8, 16), critical_sends("1f1b", 8, 16)     # 14 + 2 * 13
    (14, 40)
    """
    check(name, pp, micro_batches, vpp)
    if name == "gpipe":
        return 2 * (pp - 1)
    if vpp > 1:
        return 2 * (vpp * pp - 1)
    returns = min(micro_batches - 1, pp) if name == "zero_bubble" else micro_batches - 1
    return 2 * (pp - 1 + returns * (pp - 1) // pp)


def in_flight(
    name: str, pp: int, micro_batches: int, vpp: int = 1, stage: int = 0
) -> float:
    r"""Micro-batches whose activations stage i holds at its fullest.

    GPipe m; 1F1B $\min(m, p-i)$; zero bubble $\min(m, p)$; interleaved

    $$\min(vm, (v+1)p - 1 - 2i) / v$$

    which on stage 0 is p times the $1 + (p-1)/(pv)$ of korthikanti2022, sec. 4.2.3.
    With 1F1B more micro-batches shrink the bubble and cost no memory.

    Counts zero bubble's micro-batch until its weight gradient is done, though the
    first half of the backward frees part of it. qi2024, sec. 2.3.

    >>> in_flight("gpipe", 8, 16), in_flight("1f1b", 8, 16), in_flight("1f1b", 8, 16, 2)
    (16.0, 8.0, 11.5)
    """
    check(name, pp, micro_batches, vpp)
    if whole("stage", stage, 0) >= pp:
        raise ValueError(
            f"stage={stage} must be below pp={pp}; nearest legal value: {pp - 1}"
        )
    if name == "gpipe":
        return float(micro_batches)
    if name == "zero_bubble":
        return float(min(micro_batches, pp))
    if vpp == 1:
        return float(min(micro_batches, pp - stage))
    return min(vpp * micro_batches, (vpp + 1) * pp - 1 - 2 * stage) / vpp


def makespan(tasks: Sequence[Task]) -> Seconds:
    """Seconds from the first start to the last end.

    >>> makespan(schedule("gpipe", 4, 8))     # (8 + 3) * (1 + 2)
    33.0
    """
    return max(task.end for task in tasks) - min(task.start for task in tasks)


def busy(tasks: Sequence[Task]) -> tuple[Seconds, ...]:
    """Seconds that each stage works."""
    seconds = [0.0] * (1 + max(task.stage for task in tasks))
    for task in tasks:
        seconds[task.stage] += task.end - task.start
    return tuple(seconds)


def idle_fraction(tasks: Sequence[Task]) -> float:
    """Share of all GPU time in which a GPU waits, averaged over the stages.

    With equal stages this is `bubble_fraction`; with unequal ones it also counts how
    long the fast stages wait for the slowest.

    >>> round(idle_fraction(schedule("1f1b", 8, 16)), 4)     # 7 / 23
    0.3043
    """
    work = busy(tasks)
    return 1 - sum(work) / (len(work) * makespan(tasks))


def idle_overhead(tasks: Sequence[Task]) -> float:
    """Waiting over work: what `bubble_overhead` is for equal stages.

    >>> idle_overhead(schedule("1f1b", 8, 16))     # 7 / 16
    0.4375
    """
    work = busy(tasks)
    return len(work) * makespan(tasks) / sum(work) - 1


def peak_in_flight(tasks: Sequence[Task]) -> tuple[float, ...]:
    """Most micro-batches each stage holds at once, from forward to end of backward.

    A chunk counts as 1 / vpp of a micro-batch; a backward in two halves ends with its
    weight gradient.

    >>> peak_in_flight(schedule("1f1b", 4, 8))
    (4.0, 3.0, 2.0, 1.0)
    """
    frees = "weights" if any(task.kind == "weights" for task in tasks) else "backward"
    chunks = 1 + max(task.chunk for task in tasks)
    held = [0] * (1 + max(task.stage for task in tasks))
    peak = list(held)
    for task in sorted(tasks, key=lambda task: (task.start, task.end)):
        held[task.stage] += (task.kind == "forward") - (task.kind == frees)
        peak[task.stage] = max(peak[task.stage], held[task.stage])
    return tuple(most / chunks for most in peak)


def _check_counts(pp: int, micro_batches: int, vpp: int) -> None:
    whole("pp", pp)
    whole("vpp", vpp)
    array = hasattr(micro_batches, "ravel")
    for count in micro_batches.ravel().tolist() if array else (micro_batches,):
        whole("micro_batches", count)
