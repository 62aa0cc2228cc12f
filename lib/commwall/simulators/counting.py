"""Collectives that really move arrays over a `Wire`, so that they can be counted.

Each takes one array a rank and returns one result a rank and the wire that did it.
They hold for any number of ranks and any size; a buffer that does not divide is cut
as `np.array_split` cuts it, the first pieces one longer.
The arrays given are never changed.

Leaves out: time, protocols, channels, and NCCL's choice among algorithms.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from commwall.simulators.wire import Wire, each_rank

Arrays = list[np.ndarray]  # one a rank
Counted = tuple[Arrays, Wire]


def send(buffers: Arrays, source: int, target: int) -> Counted:
    """The source's buffer, also at the target: one message."""
    wire = Wire(len(buffers))
    results = list(buffers)
    if source != target:
        arrived = wire.step({(source, target): buffers[source]})
        results[target] = arrived[source, target]
    return results, wire


def ring_broadcast(buffers: Arrays, root: int = 0, chunks: int = 1) -> Counted:
    """Rank `root`'s buffer at every rank: a chain down which chunks follow each other.

    Takes n - 2 + chunks steps, and everyone but the last rank sends S once.
    """
    n = len(buffers)
    wire = Wire(n)
    chain = [(root + place) % n for place in range(n)]
    held: list[Arrays] = [[] for _ in chain]
    held[root] = np.array_split(buffers[root].ravel(), chunks)
    for step in range(n - 2 + chunks if n > 1 else 0):
        outgoing = {
            (here, there): held[here][step - place]
            for place, (here, there) in enumerate(pairwise(chain))
            if 0 <= step - place < chunks
        }
        for (_, there), chunk in wire.step(outgoing).items():
            held[there].append(chunk)
    shape = buffers[root].shape
    return [np.concatenate(chunks).reshape(shape) for chunks in held], wire


def ring_reduce_scatter(buffers: Arrays, axis: int = 0) -> Counted:
    """Piece r of the sum, at rank r: partial sums go once round the ring.

    n-1 steps; rank r sends every piece but its own, (n-1)/n of S when n divides.
    patarasuk2009.
    """
    n = len(buffers)
    wire = Wire(n)
    pieces = [np.array_split(buffer, n, axis=axis) for buffer in buffers]
    for step in range(n - 1):
        outgoing = {
            (rank, (rank + 1) % n): pieces[rank][(rank - step - 1) % n]
            for rank in range(n)
        }
        for (source, rank), partial in wire.step(outgoing).items():
            piece = (source - step - 1) % n
            pieces[rank][piece] = pieces[rank][piece] + partial
    return [pieces[rank][rank] for rank in range(n)], wire


def ring_all_gather(pieces: Arrays, axis: int = 0) -> Counted:
    """All pieces joined in order, at every rank: pieces go once round the ring.

    n-1 steps; rank r sends every piece but its successor's.
    The payload S is what comes out, not what each rank puts in. patarasuk2009.
    """
    n = len(pieces)
    wire = Wire(n)
    held = [{rank: piece} for rank, piece in enumerate(pieces)]
    for step in range(n - 1):
        outgoing = {
            (rank, (rank + 1) % n): held[rank][(rank - step) % n] for rank in range(n)
        }
        for (source, rank), piece in wire.step(outgoing).items():
            held[rank][(source - step) % n] = piece
    return [
        np.concatenate([mine[piece] for piece in range(n)], axis=axis) for mine in held
    ], wire


def ring_all_reduce(buffers: Arrays) -> Counted:
    """The sum at every rank: a reduce-scatter, then an all-gather.

    2(n-1) steps and 2(n-1)/n of S sent by each rank when n divides S.
    When it does not, rank r sends all of S twice but for pieces r and r+1.
    patarasuk2009.

    >>> sums, wire = ring_all_reduce([np.ones(4), np.ones(4)])
    >>> sums[0], wire.steps, wire.sent     # 2 steps of 2 values of 8 bytes
    (array([2., 2., 2., 2.]), 2, [32, 32])
    """
    pieces, scatter = ring_reduce_scatter([buffer.ravel() for buffer in buffers])
    sums, gather = ring_all_gather(pieces)
    return _shaped(sums, buffers), scatter + gather


def exchange(pieces: list[Arrays]) -> tuple[list[Arrays], Wire]:
    """All-to-all of ready-cut pieces: `pieces[s][t]` arrives as `results[t][s]`.

    n-1 steps: in step k every rank sends to the one k places on.
    """
    n = len(pieces)
    wire = Wire(n)
    arrived = {(rank, rank): pieces[rank][rank] for rank in range(n)}
    for hop in range(1, n):
        arrived |= wire.step(
            {
                (rank, (rank + hop) % n): pieces[rank][(rank + hop) % n]
                for rank in range(n)
            }
        )
    return [[arrived[s, t] for s in range(n)] for t in range(n)], wire


def all_to_all(buffers: Arrays, split: int = 0, join: int = 0) -> Counted:
    """Each buffer cut along axis `split`, a piece for each rank, joined along `join`.

    Every rank keeps one piece and sends n-1.
    The payload S is the buffer that one rank holds.
    """
    cut = [np.array_split(buffer, len(buffers), axis=split) for buffer in buffers]
    received, wire = exchange(cut)
    return [np.concatenate(pieces, axis=join) for pieces in received], wire


def in_network_all_reduce(buffers: Arrays) -> Counted:
    """The sum at every rank: a switch adds, so that each rank sends S and receives S.

    Two steps whatever n, and half the bytes of a large ring.
    The switch is rank n on the wire; totals by rank leave it out. graham2016.
    """
    n = switch = len(buffers)
    wire = Wire(n)
    if n == 1:
        return [buffers[0].copy()], wire
    upward = wire.step({(rank, switch): buffers[rank] for rank in range(n)})
    total = sum(upward.values())
    downward = wire.step({(switch, rank): total for rank in range(n)})
    return [downward[switch, rank] for rank in range(n)], wire


def hierarchical_all_reduce(buffers: Arrays, gpus_per_node: int) -> Counted:
    """The sum at every rank, with only 1/g of the payload of each GPU leaving a node.

    Reduce-scatter in each node, all-reduce among GPUs of equal place in their nodes,
    all-gather in each node.
    `wire.inside(g)` and `wire.across(g)` are the two tiers of the count.
    """
    n = len(buffers)
    if n % gpus_per_node:
        raise ValueError(f"{n} ranks are not a multiple of {gpus_per_node=}")
    ranks = list(range(n))
    nodes = [ranks[first : first + gpus_per_node] for first in ranks[::gpus_per_node]]
    rails = [ranks[place::gpus_per_node] for place in range(gpus_per_node)]
    flat = [buffer.ravel() for buffer in buffers]
    pieces, scatter = at_once(nodes, ring_reduce_scatter, flat)
    sums, between = at_once(rails, ring_all_reduce, pieces)
    whole, gather = at_once(nodes, ring_all_gather, sums)
    return _shaped(whole, buffers), scatter + between + gather


def at_once(
    groups: list[list[int]], collective: Callable[[Arrays], Counted], buffers: Arrays
) -> Counted:
    """Results of one collective, run in separate groups of ranks at the same time."""
    results = list(buffers)
    wire = Wire(len(buffers))
    for group in groups:
        outcome, traffic = collective([buffers[rank] for rank in group])
        wire |= traffic.among(group, len(buffers))
        for rank, result in zip(group, outcome, strict=True):
            results[rank] = result
    return results, wire


def _shaped(flat: Arrays, like: Arrays) -> Arrays:
    return each_rank(lambda array, original: array.reshape(original.shape), flat, like)
