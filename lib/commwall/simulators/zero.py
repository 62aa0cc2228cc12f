r"""ZeRO: data parallelism in which each rank keeps only a piece, moved and counted.

One step of m micro-batches over n ranks sends, in units of (n-1)/n of the payload S:

- stage 0, everything on every rank: 2, an all-reduce of the gradients;
- stage 1, a piece of the optimizer: 2, the gradients reduce-scattered and the
  parameters all-gathered;
- stage 2, of the gradients too: m + 1, for they cannot wait whole for the last
  micro-batch;
- stage 3, of the parameters too: 3m, for they are gathered for the forward pass,
  dropped, and gathered again for the backward pass.

rajbhandari2020.

Leaves out gathering layer by layer (the same bytes in more calls), keeping parameters
between forward and backward, and gradients and parameters of different width.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from commwall.simulators.counting import Arrays
from commwall.simulators.ledger import Ledger
from commwall.simulators.wire import each_rank

Array = np.ndarray
Batch = tuple[Array, Array]  # inputs, targets


class Trainable(Protocol):
    """A model whose parameters are one vector."""

    def forward(self, params: Array, batch: Batch) -> tuple:
        """What backward needs; parameters are not part of it."""

    def backward(self, params: Array, saved: tuple) -> Array:
        """The gradient of the mean loss of the batch."""


@dataclass
class Adam:
    """Adam for one vector of parameters, or for a piece of it. kingma2015."""

    learning_rate: float = 1e-2
    decay1: float = 0.9
    decay2: float = 0.999
    steps: int = 0
    mean: Array | float = 0.0
    square: Array | float = 0.0

    def updated(self, params: Array, gradient: Array) -> Array:
        """The parameters after one more gradient."""
        self.steps += 1
        self.mean = self.decay1 * self.mean + (1 - self.decay1) * gradient
        self.square = self.decay2 * self.square + (1 - self.decay2) * gradient**2
        mean = self.mean / (1 - self.decay1**self.steps)
        square = self.square / (1 - self.decay2**self.steps)
        return params - self.learning_rate * mean / (np.sqrt(square) + 1e-8)


@dataclass
class Zero:
    """Data-parallel training at one ZeRO stage; `ledger` tells what it sent.

    Between steps `params` holds, rank by rank, what that rank keeps: a piece in
    stage 3, everything otherwise.
    """

    stage: int
    model: Trainable
    params: Arrays
    optimizers: list[Adam]
    ledger: Ledger = field(init=False)

    @classmethod
    def start(cls, stage: int, model: Trainable, params: Array, dp: int) -> Zero:
        """dp ranks that begin with the same parameters."""
        if stage not in range(4):
            raise ValueError(f"zero_{stage=} is not 0, 1, 2 or 3")
        kept = np.array_split(params, dp) if stage == 3 else [params] * dp
        return cls(stage, model, kept, [Adam() for _ in range(dp)])

    def __post_init__(self) -> None:
        self.ledger = Ledger(len(self.params))

    def step(self, batches: list[list[Batch]]) -> None:
        """One optimizer step on `batches[rank][micro_batch]`, all of equal size."""
        gradients = self._mean_gradients(batches)
        if self.stage == 0:
            gradients = self.ledger.all_reduce(gradients, "gradients")
        if self.stage == 1:
            gradients = self.ledger.reduce_scatter(gradients, "gradients")
        pieces = self.params
        if self.stage in (1, 2):
            pieces = [np.array_split(p, self.ranks)[r] for r, p in enumerate(pieces)]
        self.params = each_rank(Adam.updated, self.optimizers, pieces, gradients)
        if self.stage in (1, 2):
            self.params = self.ledger.all_gather(self.params, "parameters")

    @property
    def ranks(self) -> int:
        """How many data-parallel ranks there are."""
        return self.ledger.ranks

    def _mean_gradients(self, batches: list[list[Batch]]) -> Arrays:
        """This rank's share of the mean: summed over ranks already from stage 2 on."""
        totals: list[Array | float] = [0.0] * self.ranks
        for micro_batch in zip(*batches, strict=True):
            gradients = self._gradients(list(micro_batch))
            if self.stage >= 2:
                gradients = self.ledger.reduce_scatter(gradients, "gradients")
            totals = each_rank(np.add, totals, gradients)
        return [total / (len(batches[0]) * self.ranks) for total in totals]

    def _gradients(self, micro_batch: list[Batch]) -> Arrays:
        params = self._whole("forward parameters")
        saved = each_rank(self.model.forward, params, micro_batch)
        params = self._whole("backward parameters")
        return each_rank(self.model.backward, params, saved)

    def _whole(self, name: str) -> Arrays:
        if self.stage < 3:
            return self.params
        return self.ledger.all_gather(self.params, name)


@dataclass(frozen=True)
class Perceptron:
    """One hidden layer of tanh and one output, small enough to follow by hand."""

    inputs: int
    hidden: int

    @property
    def size(self) -> int:
        """How many parameters there are."""
        return (self.inputs + 1) * self.hidden

    def forward(self, params: Array, batch: Batch) -> tuple:
        """Inputs, hidden values and errors: what backward needs."""
        into, outof = self._matrices(params)
        x, target = batch
        hidden = np.tanh(x @ into)
        return x, hidden, hidden @ outof - target

    def backward(self, params: Array, saved: tuple) -> Array:
        """The gradient of half the squared error, averaged over the batch."""
        _, outof = self._matrices(params)
        x, hidden, error = saved
        error = error / len(x)
        into = x.T @ (np.outer(error, outof) * (1 - hidden**2))
        return np.concatenate([into.ravel(), hidden.T @ error])

    def _matrices(self, params: Array) -> tuple[Array, Array]:
        into, outof = np.split(params, [self.inputs * self.hidden])
        return into.reshape(self.inputs, self.hidden), outof
