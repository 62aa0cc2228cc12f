"""Pipeline schedules as timed tasks: an order for each stage, then a clock.

A stage is counted from 0 and holds layers / pp layers, in vpp chunks. Position
chunk * pp + stage is a chunk's place in the model.

Leaves out: the optimizer and the gradient all-reduce after the last task, links that
are shared or busy, schedules with two copies of the weights or chunks laid out in a V
(DualPipe, ZB-V), and asynchronous ones that mix versions of the weights (PipeDream).
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from commwall.rules import choice, multiple, nonnegative, positive, whole
from commwall.units import Seconds

__all__ = ["SCHEDULES", "Task", "Times", "check", "schedule", "weights_part"]

SCHEDULES = ("gpipe", "1f1b", "zero_bubble")

Times = Seconds | Sequence[Seconds]  # one for all, one per stage, or one per chunk
_Step = tuple[str, int, int]  # kind, micro-batch, position


@dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """One stage's work on one micro-batch, from `start` to `end`."""

    stage: int
    kind: str  # forward, backward, weights
    micro_batch: int
    chunk: int  # below vpp
    start: Seconds
    end: Seconds


def schedule(
    name: str,
    pp: int,
    micro_batches: int,
    vpp: int = 1,
    *,
    forward: Times = 1.0,
    backward: Times = 2.0,
    weights: Times | None = None,
    send: Seconds = 0.0,
) -> tuple[Task, ...]:
    """Tasks of one step in the order they start, each as early as its input allows.

    "gpipe" (huang2019) runs all forwards, then all backwards. "1f1b" alternates them
    (harlap2018; with a flush, narayanan2021, sec. 2.2.1); vpp above 1 interleaves it
    (sec. 2.2.2) in Megatron-LM's order. "zero_bubble" is ZB-H1 (qi2024, sec. 2.1): the
    weight gradient, `weights` seconds of `backward` (half if not said), runs later.

    Times are for one micro-batch: one number, one per stage, or one per chunk in the
    order the data meet them. A send delays the receiver and occupies no GPU.

    >>> max(task.end for task in schedule("1f1b", 4, 8))     # (8 + 3) * (1 + 2)
    33.0
    """
    check(name, pp, micro_batches, vpp)
    seconds = {
        "forward": _per_chunk("forward", forward, pp, vpp),
        "backward": _per_chunk("backward", backward, pp, vpp),
    }
    positive("forward + backward", sum(seconds["forward"] + seconds["backward"]))
    halves = _halves(seconds["backward"], weights, pp, vpp)
    if name == "zero_bubble":
        seconds |= halves
    order = {"gpipe": _gpipe, "1f1b": _one_f_one_b, "zero_bubble": _zero_bubble}[name]
    orders = [tuple(order(stage, pp, micro_batches, vpp)) for stage in range(pp)]
    return _timed(orders, seconds, nonnegative("send", send))


def check(name: str, pp: int, micro_batches: int, vpp: int) -> None:
    """Raise ValueError unless the schedule exists and can run with these numbers."""
    choice("schedule", name, SCHEDULES)
    for field, value in (("pp", pp), ("micro_batches", micro_batches), ("vpp", vpp)):
        whole(field, value)
    if vpp == 1:
        return
    if name != "1f1b" or pp == 1:
        raise ValueError(
            f"vpp={vpp} needs schedule='1f1b' and pp of at least 2, but "
            f"schedule={name!r} and pp={pp}; nearest legal value: vpp=1"
        )
    multiple("micro_batches", micro_batches, f"pp={pp}", pp)


def weights_part(backward: Seconds, weights: Seconds | None) -> Seconds:
    """Seconds of `backward` that the weight gradient takes: half if not said."""
    if weights is None:
        return backward / 2
    if nonnegative("weights", weights) > backward:
        raise ValueError(
            f"weights={weights!r} must be at most backward={backward!r}; "
            f"nearest legal value: {backward!r}"
        )
    return weights


def _per_chunk(field: str, times: Times, pp: int, vpp: int) -> list[Seconds]:
    each = list(times) if hasattr(times, "__len__") else [times] * pp
    each = [nonnegative(field, value) for value in each]
    if len(each) == pp:
        return [value / vpp for value in each] * vpp
    if len(each) != pp * vpp:
        raise ValueError(
            f"{field} has {len(each)} values, but needs one, or one per stage "
            f"(pp={pp}), or one per chunk (pp * vpp = {pp * vpp})"
        )
    return each


def _halves(
    backward: list[Seconds], weights: Times | None, pp: int, vpp: int
) -> dict[str, list[Seconds]]:
    given = [None] * len(backward)
    if weights is not None:
        given = _per_chunk("weights", weights, pp, vpp)
    later = [weights_part(*pair) for pair in zip(backward, given, strict=True)]
    first = [total - part for total, part in zip(backward, later, strict=True)]
    return {"backward": first, "weights": later}


def _gpipe(stage: int, pp: int, micro_batches: int, vpp: int) -> Iterator[_Step]:
    for kind in ("forward", "backward"):
        for micro_batch in range(micro_batches):
            yield kind, micro_batch, stage


def _warm_up(stage: int, pp: int, vpp: int) -> int:
    """Forwards before the first pair of 1F1B; interleaved, a doubled lead per stage."""
    behind = pp - 1 - stage
    return behind if vpp == 1 else 2 * behind + (vpp - 1) * pp


def _one_f_one_b(stage: int, pp: int, micro_batches: int, vpp: int) -> Iterator[_Step]:
    forwards, backwards = [], []
    for first in range(0, micro_batches, pp):
        group = range(first, min(first + pp, micro_batches))
        for chunk in range(vpp):
            position, mirrored = chunk * pp + stage, (vpp - 1 - chunk) * pp + stage
            forwards += [("forward", each, position) for each in group]
            backwards += [("backward", each, mirrored) for each in group]
    ahead = min(_warm_up(stage, pp, vpp), len(forwards))
    yield from forwards[:ahead]
    for pair in zip(forwards[ahead:], backwards, strict=False):
        yield from pair
    yield from backwards[len(forwards) - ahead :]


def _zero_bubble(stage: int, pp: int, micro_batches: int, vpp: int) -> Iterator[_Step]:
    for kind, micro_batch, position in _one_f_one_b(stage, pp, micro_batches, vpp):
        yield kind, micro_batch, position
        if kind == "backward" and micro_batch >= stage:
            yield "weights", micro_batch - stage, position
    for micro_batch in range(max(0, micro_batches - stage), micro_batches):
        yield "weights", micro_batch, stage


def _source(kind: str, micro_batch: int, position: int, last: int) -> _Step | None:
    """The task whose result this one needs, None for data that are there at once."""
    if kind == "forward":
        return ("forward", micro_batch, position - 1) if position else None
    if kind == "backward" and position < last:
        return "backward", micro_batch, position + 1
    return ("forward" if kind == "backward" else "backward"), micro_batch, position


def _runnable(orders: list[tuple[_Step, ...]], last: int) -> Iterator[tuple]:
    """Every step with its source, after that source, each stage in its own order."""
    queues, done = [deque(order) for order in orders], {None}
    while any(queues):
        for queue in queues:
            while queue and (source := _source(*queue[0], last)) in done:
                done.add(queue[0])
                yield queue.popleft(), source


def _timed(
    orders: list[tuple[_Step, ...]], seconds: dict[str, list[Seconds]], send: Seconds
) -> tuple[Task, ...]:
    pp, last = len(orders), len(seconds["forward"]) - 1
    free, ends, tasks = [0.0] * pp, {None: 0.0}, []
    for step, source in _runnable(orders, last):
        kind, micro_batch, position = step
        chunk, stage = divmod(position, pp)
        delay = send if source and source[2] % pp != stage else 0.0
        start = max(free[stage], ends[source] + delay)
        ends[step] = free[stage] = start + seconds[kind][position]
        tasks.append(
            Task(
                stage=stage,
                kind=kind,
                micro_batch=micro_batch,
                chunk=chunk,
                start=start,
                end=ends[step],
            )
        )
    return tuple(sorted(tasks, key=lambda task: task.start))
