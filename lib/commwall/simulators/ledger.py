"""Collectives run and written down: what each was for, its payload, and its wire."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from commwall.simulators.counting import (
    Arrays,
    ring_all_gather,
    ring_all_reduce,
    ring_reduce_scatter,
)
from commwall.simulators.wire import Wire


class Call(NamedTuple):
    """One collective: its purpose, the operation, the payload and what it sent."""

    name: str
    op: str
    payload: int  # bytes of the whole, unsharded buffer
    wire: Wire


@dataclass
class Ledger:
    """Ring collectives among the same ranks, each leaving a `Call` behind."""

    ranks: int
    calls: list[Call] = field(default_factory=list)

    def all_reduce(self, buffers: Arrays, name: str) -> Arrays:
        """The sum, at every rank."""
        return self._run(name, ring_all_reduce, buffers, buffers[0].nbytes)

    def reduce_scatter(self, buffers: Arrays, name: str, axis: int = 0) -> Arrays:
        """The sum, a piece of it at each rank."""
        scatter = partial(ring_reduce_scatter, axis=axis)
        return self._run(name, scatter, buffers, buffers[0].nbytes)

    def all_gather(self, pieces: Arrays, name: str, axis: int = 0) -> Arrays:
        """All pieces joined, at every rank."""
        gather = partial(ring_all_gather, axis=axis)
        return self._run(name, gather, pieces, sum(piece.nbytes for piece in pieces))

    @property
    def total(self) -> Wire:
        """The traffic of all calls, one after another."""
        return sum((call.wire for call in self.calls), Wire(self.ranks))

    def _run(self, name, collective, buffers: Arrays, payload: int) -> Arrays:
        results, wire = collective(buffers)
        named = getattr(collective, "func", collective).__name__
        self.calls.append(Call(name, named.removeprefix("ring_"), payload, wire))
        return results
