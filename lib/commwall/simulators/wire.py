"""A wire that carries numpy arrays from rank to rank and counts what passes.

Nothing here knows a formula.
Arrays really move, so a result that comes out right and a count of what it took are
two facts that a formula has to agree with.

Leaves out time: a step has no duration and a link no bandwidth.
What a step or a byte costs is the business of `collectives`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

Hop = tuple[int, int]  # source, target


class Message(NamedTuple):
    """One array that went from one rank to another."""

    step: int
    source: int
    target: int
    values: int  # numbers in it, whatever their type
    bytes: int


@dataclass
class Wire:
    """A link in each direction between any two ranks, and a log of what they carried.

    One step is one round: everybody may send one array on each link, and all arrive.
    A rank numbered `ranks` or more (a switch) may take part; totals leave it out.

    >>> wire = Wire(ranks=3)
    >>> arrived = wire.step({(0, 1): np.ones(4), (1, 2): np.ones(2)})
    >>> wire.steps, wire.messages, wire.sent      # 4 and 2 values of 8 bytes
    (1, 2, [32, 16, 0])
    """

    ranks: int
    steps: int = 0
    log: list[Message] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.ranks < 1:
            raise ValueError(f"ranks={self.ranks} is not at least 1")

    def step(self, outgoing: dict[Hop, np.ndarray]) -> dict[Hop, np.ndarray]:
        """Copies of the arrays, delivered to the far end of each link."""
        for (source, target), array in outgoing.items():
            if source == target:
                raise ValueError(f"rank {source} sends to itself: no link for that")
            message = Message(self.steps, source, target, array.size, array.nbytes)
            self.log.append(message)
        self.steps += 1
        return {hop: array.copy() for hop, array in outgoing.items()}

    @property
    def messages(self) -> int:
        """How many arrays were sent, empty ones included."""
        return len(self.log)

    @property
    def sent(self) -> list[int]:
        """Bytes sent, rank by rank."""
        return self._total("source", "bytes")

    @property
    def received(self) -> list[int]:
        """Bytes received, rank by rank."""
        return self._total("target", "bytes")

    @property
    def values_sent(self) -> list[int]:
        """Numbers sent, rank by rank, whatever the bytes of each."""
        return self._total("source", "values")

    @property
    def busiest(self) -> int:
        """Bytes sent by the rank that sends most: what the slowest rank waits for."""
        return max(self.sent)

    def _total(self, end: str, unit: str) -> list[int]:
        totals = [0] * self.ranks
        for message in self.log:
            rank = getattr(message, end)
            if rank < self.ranks:
                totals[rank] += getattr(message, unit)
        return totals

    def __add__(self, later: Wire) -> Wire:
        """This traffic, and then the other: bytes add and so do steps."""
        shifted = [m._replace(step=m.step + self.steps) for m in later.log]
        return Wire(self.ranks, self.steps + later.steps, self.log + shifted)

    def __or__(self, other: Wire) -> Wire:
        """Both at the same time: bytes add, steps do not, and no link is used twice."""
        used = {message[:3] for message in self.log}
        for step, source, target, *_ in other.log:
            if (step, source, target) in used:
                raise ValueError(f"link {source} -> {target} is busy in step {step}")
        return Wire(self.ranks, max(self.steps, other.steps), self.log + other.log)

    def among(self, group: list[int], ranks: int) -> Wire:
        """The same traffic in a world of `ranks`, where rank i here is `group[i]`."""
        moved = [
            m._replace(source=group[m.source], target=group[m.target]) for m in self.log
        ]
        return Wire(ranks, self.steps, moved)

    def inside(self, gpus_per_node: int) -> Wire:
        """Only what stays in a node, and the steps in which something does."""
        return self._only(
            lambda m: m.source // gpus_per_node == m.target // gpus_per_node
        )

    def across(self, gpus_per_node: int) -> Wire:
        """Only what leaves a node, and the steps in which something does."""
        return self._only(
            lambda m: m.source // gpus_per_node != m.target // gpus_per_node
        )

    def _only(self, wanted: Callable[[Message], bool]) -> Wire:
        kept = [message for message in self.log if wanted(message)]
        return Wire(self.ranks, len({message.step for message in kept}), kept)


def each_rank(compute: Callable, *per_rank: list) -> list[Any]:
    """What every rank computes by itself, from its own entry of each list.

    >>> each_rank(max, [1, 5], [2, 3])
    [2, 5]
    """
    return [compute(*mine) for mine in zip(*per_rank, strict=True)]
