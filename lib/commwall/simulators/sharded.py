"""A transformer block split over ranks as Megatron does, to be compared with the whole.

Query, key, value, gate and up matrices are cut by columns (whole heads), output and
down matrices by rows.
A rank works alone between the cuts; only where a half of the block, attention or
feed-forward, takes its input from the stream of activations and gives its output back
is anything sent:

- *tensor parallel*: every rank holds the whole stream; what leaves a half is
  all-reduced, and backward the gradient of what entered it;
- *with sequence parallelism*: every rank holds some tokens of the stream; what enters
  a half is all-gathered, what leaves it reduce-scattered, and backward the same.

shoeybi2019; korthikanti2022.

Leaves out the embedding and the loss, and cutting one key-value head in two.
The gathered input of each half is kept for the weight gradients; Megatron saves that
memory by gathering it once more backward, hidden behind a matmul.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from commwall.simulators.block import (
    Array,
    Weights,
    feed_forward,
    feed_forward_gradients,
    rms_norm,
    rms_norm_gradients,
    self_attention,
    self_attention_gradients,
)
from commwall.simulators.counting import Arrays
from commwall.simulators.ledger import Call, Ledger
from commwall.simulators.wire import each_rank

COLUMNS = ("q", "k", "v", "gate", "up")
ROWS = ("o", "down")
NORMS = ("norm1", "norm2")
SEQ = 1  # axis of activations (batch, seq, hidden)


@dataclass(frozen=True)
class Sharded:
    """What each rank ends up with, and every collective it took."""

    outputs: Arrays  # whole; with sequence parallelism this rank's tokens
    input_gradients: Arrays  # likewise
    weight_gradients: list[Weights]  # of this rank's shard
    calls: list[Call]


def tensor_parallel(
    x: Array,
    dout: Array,
    weights: Weights,
    head_dim: int,
    ranks: int,
    sequence_parallel: bool = False,
) -> Sharded:
    """Forward and backward of one block, from its input and its output's gradient.

    Four all-reduces of the size of x.
    With sequence parallelism four all-gathers and four reduce-scatters of that size,
    and one all-reduce of the gradients of both norms: each rank saw some tokens only.
    """
    shards = shard(weights, ranks, head_dim)
    seam = Seam(Ledger(ranks), sequence_parallel)
    attend = partial(self_attention, head_dim=head_dim)
    mixing = Half("attention", "norm1", attend, self_attention_gradients)
    feeding = Half("ffn", "norm2", feed_forward, feed_forward_gradients)
    middle, first = mixing.forward(seam.stream(x), shards, seam)
    out, second = feeding.forward(middle, shards, seam)
    dmiddle, ffn = feeding.backward(seam.stream(dout), shards, second, seam)
    dx, attention = mixing.backward(dmiddle, shards, first, seam)
    gradients = seam.norms_summed(each_rank(dict.__or__, attention, ffn))
    return Sharded(out, dx, gradients, seam.ledger.calls)


def shard(weights: Weights, ranks: int, head_dim: int) -> list[Weights]:
    """Each rank's heads and share of the feed-forward layer; the norms are copied."""
    kv_heads = weights["k"].shape[1] // head_dim
    if kv_heads % ranks:
        raise ValueError(f"{kv_heads=} is not a multiple of {ranks=}")
    columns = {name: np.array_split(weights[name], ranks, axis=1) for name in COLUMNS}
    rows = {name: np.array_split(weights[name], ranks, axis=0) for name in ROWS}
    norms = {name: [weights[name]] * ranks for name in NORMS}
    cut = columns | rows | norms
    return [{name: cut[name][rank] for name in weights} for rank in range(ranks)]


def unshard(shards: list[Weights]) -> Weights:
    """The whole matrices again; the norms are those of rank 0."""
    whole = {name: shards[0][name] for name in NORMS}
    for names, axis in ((COLUMNS, 1), (ROWS, 0)):
        for name in names:
            whole[name] = np.concatenate([mine[name] for mine in shards], axis=axis)
    return whole


@dataclass
class Seam:
    """Where the stream of activations meets the cut layers: all that is ever sent."""

    ledger: Ledger
    sequence_parallel: bool

    def stream(self, x: Array) -> Arrays:
        """What each rank already holds: everything, or its tokens."""
        if self.sequence_parallel:
            return np.array_split(x, self.ledger.ranks, axis=SEQ)
        return [x] * self.ledger.ranks

    def gathered(self, stream: Arrays, name: str) -> Arrays:
        """The whole stream on every rank: no news without sequence parallelism."""
        if self.sequence_parallel:
            return self.ledger.all_gather(stream, name, axis=SEQ)
        return stream

    def summed(self, partials: Arrays, name: str) -> Arrays:
        """The sum of what the ranks found: whole, or this rank's tokens of it."""
        if self.sequence_parallel:
            return self.ledger.reduce_scatter(partials, name, axis=SEQ)
        return self.ledger.all_reduce(partials, name)

    def norms_summed(self, gradients: list[Weights]) -> list[Weights]:
        """Gradients of the norms over all tokens: no news when all ranks saw all."""
        if not self.sequence_parallel:
            return gradients
        joined = [np.concatenate([mine[norm] for norm in NORMS]) for mine in gradients]
        totals = self.ledger.all_reduce(joined, "backward norm gains")
        return [
            mine | dict(zip(NORMS, np.split(total, len(NORMS)), strict=True))
            for mine, total in zip(gradients, totals, strict=True)
        ]


class Half(NamedTuple):
    """Attention or feed-forward, with its norm before and its residual around it."""

    name: str
    norm: str
    layer: Callable
    layer_gradients: Callable

    def forward(
        self, stream: Arrays, shards: list[Weights], seam: Seam
    ) -> tuple[Arrays, list]:
        """The stream after this half, and what each rank keeps for backward."""
        gains = [mine[self.norm] for mine in shards]
        normed, norms = _unzipped(each_rank(rms_norm, stream, gains))
        inputs = seam.gathered(normed, f"forward {self.name} input")
        partials, kept = _unzipped(each_rank(self.layer, inputs, shards))
        outputs = seam.summed(partials, f"forward {self.name} output")
        return each_rank(np.add, stream, outputs), [norms, kept]

    def backward(
        self, dstream: Arrays, shards: list[Weights], saved: list, seam: Seam
    ) -> tuple[Arrays, list[Weights]]:
        """The gradient before this half, and those of each rank's weights."""
        norms, kept = saved
        doutputs = seam.gathered(dstream, f"backward {self.name} output")
        partials, gradients = _unzipped(
            each_rank(self.layer_gradients, doutputs, shards, kept)
        )
        dnormed = seam.summed(partials, f"backward {self.name} input")
        dx, dgains = _unzipped(each_rank(rms_norm_gradients, dnormed, norms))
        with_norm = each_rank(
            lambda mine, dgain: mine | {self.norm: dgain}, gradients, dgains
        )
        return each_rank(np.add, dstream, dx), with_norm


def _unzipped(pairs: list[tuple]) -> list[list]:
    return [list(column) for column in zip(*pairs, strict=True)]
