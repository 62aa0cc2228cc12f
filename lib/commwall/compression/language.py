"""A language of 64 words whose entropy is known, and a small network that learns it.

The next word depends on the two before it: a fixed random source with frequencies that
fall as in Zipf's law. Its entropy rate is the floor of every loss, and the loss itself
is the exact mean over all pairs of words, not a sample: a difference in the fourth
digit is a difference. bengio2003 is the network.

Leaves out: everything that makes language hard, and attention.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

Array = np.ndarray
Tensors = list[Array]
Batch = tuple[Array, Array, Array]  # the word before last, the last, the next


@dataclass(frozen=True)
class Source:
    """A random language in which two words set the odds of the next."""

    words: int = 64
    features: int = 8
    strength: float = 0.6  # how far a context moves the odds
    seed: int = 0

    @cached_property
    def odds(self) -> Array:
        """Probability of the next word after each pair: [before, last, next]."""
        rng = np.random.default_rng(self.seed)
        first, second, target = rng.normal(size=(3, self.words, self.features))
        rank = rng.permutation(self.words) + 1
        context = first[:, None] + second
        logits = self.strength * context @ target.T - np.log(rank)
        odds = np.exp(logits - logits.max(axis=-1, keepdims=True))
        return odds / odds.sum(axis=-1, keepdims=True)

    @cached_property
    def pairs(self) -> Array:
        """How often each pair of words stands in an endless text: [before, last]."""
        share = np.full((self.words, self.words), self.words**-2.0)
        for _ in range(200):
            share = np.einsum("ab,abc->bc", share, self.odds)
        return share

    @cached_property
    def joint(self) -> Array:
        """How often each three words follow each other."""
        return self.pairs[..., None] * self.odds

    @cached_property
    def entropy(self) -> float:
        """Nats a word that no model can save: the floor of the loss."""
        return float(-(self.joint * np.log(self.odds)).sum())

    @cached_property
    def _cumulated(self) -> Array:
        return np.cumsum(self.joint)

    def batch(self, rng: np.random.Generator, size: tuple[int, int]) -> Batch:
        """Three words each from random places of an endless text: [rank, place]."""
        drawn = rng.random(size) * self._cumulated[-1]
        places = np.searchsorted(self._cumulated, drawn)
        return np.unravel_index(places, self.joint.shape)


@dataclass(frozen=True)
class Network:
    """Two embeddings side by side, one hidden layer of tanh, a softmax over words.

    Every array has the ranks as its first axis: parameters have one entry for each
    rank, or a single one that all share.
    """

    words: int = 64
    width: int = 16
    hidden: int = 64

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """Embedding, hidden weights and offsets, output weights and offsets."""
        inputs = 2 * self.width
        return [
            (self.words, self.width),
            (inputs, self.hidden),
            (self.hidden,),
            (self.hidden, self.words),
            (self.words,),
        ]

    def start(self, seed: int = 1) -> Tensors:
        """Small random weights and offsets of zero, shared by all ranks."""
        rng = np.random.default_rng(seed)
        scales = 1.0, (2 * self.width) ** -0.5, 0, self.hidden**-0.5, 0
        return [
            (scale * rng.normal(size=(1, *shape))).astype(np.float32)
            for scale, shape in zip(scales, self.shapes, strict=True)
        ]

    def _inputs(self, words: Array) -> Array:
        return np.eye(self.words, dtype=np.float32)[words]

    def _forward(self, params: Tensors, before: Array, last: Array) -> Tensors:
        """Embedded words, hidden values and logits; before and last are one-hot."""
        embedding, into, into_offset, outof, outof_offset = params
        inputs = np.concatenate([before @ embedding, last @ embedding], axis=-1)
        hidden = np.tanh(inputs @ into + into_offset[:, None])
        return [inputs, hidden, hidden @ outof + outof_offset[:, None]]

    def gradient(self, params: Tensors, batch: Batch) -> Tensors:
        """Gradient of the mean loss of each rank's batch, by hand."""
        before, last, target = (self._inputs(words) for words in batch)
        inputs, hidden, logits = self._forward(params, before, last)
        error = (_softmax(logits) - target) / target.shape[1]
        inner = (error @ _turned(params[3])) * (1 - hidden**2)
        first, second = np.split(inner @ _turned(params[1]), 2, axis=-1)
        return [
            _turned(before) @ first + _turned(last) @ second,
            _turned(inputs) @ inner,
            inner.sum(axis=1),
            _turned(hidden) @ error,
            error.sum(axis=1),
        ]

    def loss(self, params: Tensors, source: Source) -> float:
        """Exact mean loss over everything that the source can say, in nats a word."""
        pairs = np.divmod(np.arange(self.words**2)[None], self.words)
        logits = self._forward(params, *map(self._inputs, pairs))[-1][0]
        shifted = logits - logits.max(axis=-1, keepdims=True)
        total = np.log(np.exp(shifted).sum(axis=-1))
        said = np.vdot(source.joint.astype(np.float32), shifted)
        return float(source.pairs.ravel() @ total - said)


def _turned(matrices: Array) -> Array:
    return matrices.swapaxes(-1, -2)


def _softmax(logits: Array) -> Array:
    odds = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return odds / odds.sum(axis=-1, keepdims=True)
