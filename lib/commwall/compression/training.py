"""A network trained by several ranks under a scheme: loss against steps and bytes.

Ranks share one process and no clock: what they send is counted by `schemes.sent`, what
it takes in seconds is for `costs`. Everything is seeded; a run gives the same curve
again on the same machine.

Leaves out: ranks with data of different kinds, failures, learning-rate schedules.
"""

from collections import deque
from dataclasses import dataclass, field

import numpy as np

from commwall.compression.exchange import Exchange
from commwall.compression.language import Batch, Network, Source, Tensors
from commwall.compression.schemes import Scheme, sent
from commwall.rules import choice, positive, whole
from commwall.units import Bytes

LANGUAGE, NETWORK = Source(), Network()

RATES = {
    "fp32": 2.0,
    "bf16": 2.0,
    "int8": 2.0,
    "1 bit": 1.0,
    "1 bit, feedback": 1.0,
    "top 1 %": 2.0,
    "top 1 %, feedback": 1.0,
    "rank 1": 1.0,
    "rank 2": 2.0,
    "rank 4": 2.0,
    "local 8": 2.0,
    "local 32": 2.0,
    "DiLoCo 32": 1.0,
    "late 1": 2.0,
    "late 4": 0.5,
    "late 16": 0.125,
}
"""Each scheme's best learning rate for SGD by the standard recipe, among powers of two
and over three seeds: a rate that suits one scheme ruins another."""


SQUARE_DECAY = 0.99
"""Adam's second decay, shorter than the usual 0.999: a run has some hundred steps."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What all runs that are compared have in common."""

    source: Source = LANGUAGE
    network: Network = NETWORK
    ranks: int = 8
    batch: int = 32  # of one rank
    steps: int = 384
    optimizer: str = "sgd"  # or "adam"
    rate: float = 1.0
    momentum: float = 0.9
    seed: int = 2
    sampled: int = 32  # steps between two measurements of the loss

    def __post_init__(self):
        for name in ("ranks", "batch", "steps", "sampled"):
            whole(name, getattr(self, name))
        choice("optimizer", self.optimizer, ("sgd", "adam"))
        positive("rate", self.rate)


@dataclass(frozen=True)
class Run:
    """What one training gave."""

    scheme: Scheme
    steps: list[int]  # at which the loss was taken
    losses: list[float]  # nats a word, exact
    floor: float  # the source's entropy
    sent: Bytes  # by one rank in one step, on average

    @property
    def excess(self) -> list[float]:
        """Nats a word above what any model could reach."""
        return [loss - self.floor for loss in self.losses]


@dataclass
class Optimizer:
    """SGD with momentum as a running mean, or Adam (kingma2015)."""

    recipe: Recipe
    steps: int = 0
    mean: Tensors = field(default_factory=list)
    square: Tensors = field(default_factory=list)

    def update(self, params: Tensors, gradient: Tensors) -> Tensors:
        """The parameters after one more gradient."""
        recipe, self.steps = self.recipe, self.steps + 1
        if not self.mean:
            self.mean = [np.zeros_like(g) for g in gradient]
            self.square = [np.zeros_like(g) for g in gradient]
        self.mean = _mixed(self.mean, gradient, recipe.momentum)
        if recipe.optimizer == "sgd":
            return [p - recipe.rate * m for p, m in zip(params, self.mean, strict=True)]
        self.square = _mixed(self.square, [g * g for g in gradient], SQUARE_DECAY)
        first, second = (1 - d**self.steps for d in (recipe.momentum, SQUARE_DECAY))
        rate = recipe.rate * second**0.5 / first
        moments = zip(params, self.mean, self.square, strict=True)
        return [p - rate * m / (np.sqrt(s) + 1e-8) for p, m, s in moments]


def _mixed(old: Tensors, new: Tensors, kept: float) -> Tensors:
    return [kept * a + (1 - kept) * b for a, b in zip(old, new, strict=True)]


class Together:
    """Ranks that take every step together, with the mean of their gradients."""

    def __init__(self, scheme: Scheme, recipe: Recipe):
        self.network, self.params = recipe.network, recipe.network.start()
        self.optimizer = Optimizer(recipe)
        self.exchange = Exchange.start(scheme, recipe.network.shapes)
        self.late = deque(maxlen=scheme.delay + 1)

    def step(self, batch: Batch) -> None:
        """One gradient of each rank, and the update of `delay` steps ago."""
        gradients = self.network.gradient(self.params, batch)
        self.late.append([mean[None] for mean in self.exchange.mean(gradients)])
        if len(self.late) == self.late.maxlen:
            self.params = self.optimizer.update(self.params, self.late[0])


class Apart:
    """Ranks that walk alone for `every` steps and then average how far they came."""

    def __init__(self, scheme: Scheme, recipe: Recipe):
        self.scheme, self.network = scheme, recipe.network
        self.params = self.own = recipe.network.start()
        self.optimizer = Optimizer(recipe)
        self.exchange = Exchange.start(scheme, recipe.network.shapes)
        self.momentum = [np.zeros_like(p) for p in self.params]

    def step(self, batch: Batch) -> None:
        """One step of each rank by itself, and every so often a common one."""
        gradients = self.network.gradient(self.own, batch)
        self.own = self.optimizer.update(self.own, gradients)
        if self.optimizer.steps % self.scheme.every == 0:
            self._meet()

    def _meet(self) -> None:
        rate, kept = self.scheme.outer_rate, self.scheme.outer_momentum
        walks = [start - end for start, end in zip(self.params, self.own, strict=True)]
        means = [mean[None] for mean in self.exchange.mean(walks)]
        self.momentum = [
            kept * m + mean for m, mean in zip(self.momentum, means, strict=True)
        ]
        moves = [mean + kept * m for m, mean in zip(self.momentum, means, strict=True)]
        self.params = [p - rate * d for p, d in zip(self.params, moves, strict=True)]
        self.own = self.params


def train(scheme: Scheme, recipe: Recipe | None = None) -> Run:
    """The curve of one scheme, at its best rate if no recipe is given."""
    recipe = recipe or Recipe(rate=RATES[choice("scheme", scheme.name, RATES)])
    rng, source = np.random.default_rng(recipe.seed), recipe.source
    ranks = (Together if scheme.every == 1 else Apart)(scheme, recipe)
    losses = [recipe.network.loss(ranks.params, source)]
    for step in range(1, recipe.steps + 1):
        ranks.step(source.batch(rng, (recipe.ranks, recipe.batch)))
        if step % recipe.sampled == 0:
            losses.append(recipe.network.loss(ranks.params, source))
    a_step = sent(scheme, recipe.network.shapes, recipe.ranks)
    steps = [recipe.sampled * sample for sample in range(len(losses))]
    return Run(scheme, steps, losses, source.entropy, a_step)
