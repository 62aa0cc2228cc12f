r"""Context parallelism: one long sequence over several ranks, moved and counted.

Each rank holds a block of consecutive tokens: its queries, keys and values.
Two ways to let every query see every key, both exact:

- *ring*: blocks of keys and values go round, and each rank keeps a running softmax;
- *Ulysses*: an all-to-all turns tokens split over ranks into heads split over ranks.

Leaves out: balancing the causal triangle (striped or zigzag blocks), which changes who
computes how much but not the bytes, and skipping blocks that nobody after will use.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from commwall.simulators.attention import (
    Array,
    attention,
    attention_gradients,
    folded,
    scores,
    spread,
    transposed,
    visible,
)
from commwall.simulators.counting import Arrays, all_to_all
from commwall.simulators.wire import Wire, each_rank

HEADS, SEQ = -3, -2  # axes of a block: (..., heads, seq, head_dim)


@dataclass(frozen=True)
class Gradients:
    """What comes back for queries, keys and values: a block a rank."""

    q: Arrays
    k: Arrays
    v: Arrays


def blocks(array: Array, ranks: int) -> Arrays:
    """Consecutive tokens for each rank."""
    return np.array_split(array, ranks, axis=SEQ)


@dataclass
class RunningSoftmax:
    """Attention of some queries to the keys met so far. milakov2018."""

    highest: Array | float = -np.inf  # score so far
    mass: Array | float = 0.0  # sum of exp(score - highest)
    mixed: Array | float = 0.0  # values weighted with the same

    def meet(self, logits: Array, values: Array) -> None:
        """Take one more block of keys into account."""
        top = logits.max(axis=-1, keepdims=True, initial=-np.inf)
        highest = np.maximum(self.highest, top)
        shrink = np.exp(self.highest - highest)
        weights = np.exp(logits - highest)
        self.mass = self.mass * shrink + weights.sum(axis=-1, keepdims=True)
        self.mixed = self.mixed * shrink + weights @ values
        self.highest = highest

    @property
    def output(self) -> Array:
        """The mean of the values under the softmax."""
        return self.mixed / self.mass

    @property
    def log_mass(self) -> Array:
        """The logarithm of the sum of all exponentials, all the way back needs."""
        return self.highest + np.log(self.mass)


def ring_attention(
    q: Arrays, k: Arrays, v: Arrays, causal: bool = True
) -> tuple[Arrays, Arrays, Wire]:
    r"""Output and log mass of each block: keys and values visit every rank.

    $n-1$ steps, in each of which every rank passes on one block of keys and values.
    The owner meets its own block first, so a causal query always sees something.
    liu2023ring.
    """
    n = len(q)
    wire = Wire(n)
    softmax = [RunningSoftmax() for _ in range(n)]
    held = _stacked(k, v)
    for hop in range(n):
        held = _rotated(held, wire) if hop else held
        for rank in range(n):
            keys, values = held[rank]
            logits = scores(q[rank], keys, _seen(k, rank, (rank - hop) % n, causal))
            softmax[rank].meet(logits, spread(values, like=q[rank]))
    return [each.output for each in softmax], [each.log_mass for each in softmax], wire


def ring_attention_gradients(
    dout: Arrays,
    q: Arrays,
    k: Arrays,
    v: Arrays,
    out: Arrays,
    log_mass: Arrays,
    causal: bool = True,
) -> tuple[Gradients, Wire]:
    r"""Gradients of each block: keys and values go round again, and so do theirs.

    $n-1$ hops of keys and values and $n-1$ of their gradients, which leave from the
    owner's successor, grow at every rank and end at the owner, who adds its own part.
    Backward therefore sends twice what forward does.
    The hops are counted one after another; a real ring lets both travel together.
    """
    n = len(q)
    wire = Wire(n)
    held, own, guests = _stacked(k, v), [], []
    dq = [np.zeros_like(block) for block in q]
    for hop in range(n):
        held = _rotated(held, wire) if hop else held
        seen = [_seen(k, rank, (rank - hop) % n, causal) for rank in range(n)]
        meetings = each_rank(_meeting_gradients, dout, q, held, out, log_mass, seen)
        to_q, to_kv = map(list, zip(*meetings, strict=True))
        dq = each_rank(np.add, dq, to_q)
        if hop == 0:
            own = to_kv
        elif hop == 1:
            guests = to_kv
        else:
            guests = each_rank(np.add, _rotated(guests, wire), to_kv)
    dkv = each_rank(np.add, own, _rotated(guests, wire)) if n > 1 else own
    return Gradients(dq, [dk for dk, _ in dkv], [dv for _, dv in dkv]), wire


def ulysses_attention(
    q: Arrays, k: Arrays, v: Arrays, causal: bool = True
) -> tuple[Arrays, list[tuple[Array, ...]], Wire]:
    """Output of each block, and what each rank keeps for the way back.

    Four all-to-alls: queries, keys and values become whole sequences of some heads,
    the output becomes all heads of some tokens again. jacobs2023ulysses.
    """
    n, kv_heads = len(q), k[0].shape[HEADS]
    if kv_heads % n:
        raise ValueError(f"{kv_heads=} is not a multiple of the {n} ranks")
    wire = Wire(n)
    whole = []
    for shards in (q, k, v):
        by_head, traffic = all_to_all(shards, split=HEADS, join=SEQ)
        wire += traffic
        whole.append(by_head)
    kept = [(*qkv, causal) for qkv in zip(*whole, strict=True)]
    mixed = [attention(*mine) for mine in kept]
    out, traffic = all_to_all([each for each, _ in mixed], split=SEQ, join=HEADS)
    saved = [(*mine[:3], w) for mine, (_, w) in zip(kept, mixed, strict=True)]
    return out, saved, wire + traffic


def ulysses_attention_gradients(
    dout: Arrays, saved: list[tuple[Array, ...]]
) -> tuple[Gradients, Wire]:
    """Gradients of each block: the same four all-to-alls, the other way."""
    by_head, wire = all_to_all(dout, split=HEADS, join=SEQ)
    per_rank = [
        attention_gradients(gradient, *kept)
        for gradient, kept in zip(by_head, saved, strict=True)
    ]
    back = []
    for gradients in zip(*per_rank, strict=True):
        by_block, traffic = all_to_all(list(gradients), split=SEQ, join=HEADS)
        wire += traffic
        back.append(by_block)
    return Gradients(*back), wire


def _meeting_gradients(
    dout: Array, q: Array, kv: Array, out: Array, log_mass: Array, seen: Array
) -> tuple[Array, Array]:
    """What one meeting of queries and keys adds to dq, and to dk and dv."""
    keys, values = kv
    weights = np.exp(scores(q, keys, seen) - log_mass)
    dweights = dout @ transposed(spread(values, like=q))
    mean = (dout * out).sum(axis=-1, keepdims=True)
    dlogits = weights * (dweights - mean) / np.sqrt(q.shape[-1])
    dk = folded(transposed(dlogits) @ q, like=keys)
    dv = folded(transposed(weights) @ dout, like=values)
    return dlogits @ spread(keys, like=q), np.stack([dk, dv])


def _seen(k: Arrays, query_owner: int, key_owner: int, causal: bool) -> Array:
    lengths = [block.shape[SEQ] for block in k]
    first = np.concatenate([[0], np.cumsum(lengths)])
    places = [np.arange(first[r], first[r + 1]) for r in (query_owner, key_owner)]
    return visible(*places, causal)


def _rotated(held: Arrays, wire: Wire) -> Arrays:
    n = len(held)
    arrived = wire.step({(rank, (rank + 1) % n): held[rank] for rank in range(n)})
    return [arrived[(rank - 1) % n, rank] for rank in range(n)]


def _stacked(k: Arrays, v: Arrays) -> Arrays:
    return each_rank(lambda *pair: np.stack(pair), k, v)
