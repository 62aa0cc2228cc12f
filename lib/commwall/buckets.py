r"""Gradients that leave in buckets while the backward pass still makes others.

The last layer's gradients are ready first. A bucket leaves when it is full and the
link is free; what ends after the backward pass lengthens the step. li2020ddp.

Leaves out: layers of unequal size, several buckets on the wire at once, and that
sending slows the computing it hides behind.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from commwall.rules import nonnegative, positive
from commwall.units import Bytes, Seconds

__all__ = ["Bucket", "bucketed", "exposed"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Bucket:
    """One bucket's way; times count from the start of the backward pass."""

    payload: Bytes
    ready: Seconds  # its last gradient is made
    start: Seconds  # and the link is free
    end: Seconds  # every rank holds the sum


def bucketed(
    gradients: Bytes,
    size: Bytes,
    backward: Seconds,
    send: Callable[[Bytes], Seconds],
) -> tuple[Bucket, ...]:
    """Buckets of `size`, the last perhaps smaller, one after another on one link.

    Gradients are made at an even pace through `backward`; `send` is the seconds of
    one all-reduce of so many bytes.

    >>> [b.end for b in bucketed(4.0, 2.0, 2.0, lambda size: size)]  # ready at 1, 2
    [3.0, 5.0]
    """
    positive("size", size)
    edges = [size * k for k in range(-int(-positive("gradients", gradients) // size))]
    free, found = 0.0, []
    for low, high in pairwise([*edges, gradients]):
        ready = nonnegative("backward", backward) * high / gradients
        start = max(ready, free)
        free = start + send(high - low)
        found.append(Bucket(payload=high - low, ready=ready, start=start, end=free))
    return tuple(found)


def exposed(buckets: Sequence[Bucket], backward: Seconds) -> Seconds:
    """Seconds by which the last bucket outlasts the backward pass."""
    return max(0.0, buckets[-1].end - backward)
