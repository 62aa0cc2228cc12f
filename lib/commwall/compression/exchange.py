"""The mean of the ranks' tensors, as a scheme delivers it.

What encoding loses is either lost or, with feedback, kept by the rank and added to what
it sends next. Then all that was ever delivered, plus what still waits, is the sum of
all true means. seide2014, karimireddy2019.
"""

from dataclasses import dataclass, field

import numpy as np

from commwall.compression.codecs import LowRank, Shape
from commwall.compression.encoders import Array, factors, first_factor, rounded
from commwall.compression.schemes import Scheme


@dataclass
class Channel:
    """One tensor's way between the ranks, with the residuals that wait at its ends."""

    scheme: Scheme
    shape: Shape
    residuals: Array | float = 0.0  # what each rank holds back
    held: Array | float = 0.0  # what the second phase holds back
    right: Array = field(init=False)  # low rank: the last step's factor

    def __post_init__(self) -> None:
        if self._factored:
            self.right = first_factor(self.scheme.codec, self.shape)

    @property
    def _factored(self) -> bool:
        codec = self.scheme.codec
        return isinstance(codec, LowRank) and codec.factored(self.shape)

    @property
    def waiting(self) -> Array:
        """The part of the mean that has not been delivered yet."""
        return np.atleast_1d(self.residuals).mean(axis=0) + self.held

    def mean(self, tensors: Array) -> Array:
        """The mean over ranks that every rank gets; the first axis is the rank."""
        if self.scheme.feedback:
            tensors = tensors + self.residuals
        read, mean = self._exchanged(tensors)
        if self.scheme.feedback:
            self.residuals = tensors - read
        return self._returned(mean) if self.scheme.collective == "two_phase" else mean

    def _exchanged(self, tensors: Array) -> tuple[Array, Array]:
        """What peers read of each rank's tensor, and the mean of it."""
        codec = self.scheme.codec
        if not isinstance(codec, LowRank):
            read = rounded(codec, tensors)
            return read, read.mean(axis=0)
        if not self._factored:
            return tensors, tensors.mean(axis=0)
        matrices = tensors.reshape(len(tensors), self.shape[0], -1)
        left, self.right = factors(matrices, self.right)
        mean = (left @ self.right.T).reshape(self.shape)
        return mean, mean

    def _returned(self, mean: Array) -> Array:
        """The mean, encoded once more for the way back."""
        if self.scheme.feedback:
            mean = mean + self.held
        read = rounded(self.scheme.codec, mean[None])[0]
        if self.scheme.feedback:
            self.held = mean - read
        return read


@dataclass(frozen=True)
class Exchange:
    """A channel for each tensor of a model."""

    channels: list[Channel]

    @classmethod
    def start(cls, scheme: Scheme, shapes: list[Shape]) -> "Exchange":
        """Channels in which nothing waits."""
        return cls([Channel(scheme, shape) for shape in shapes])

    def mean(self, tensors: list[Array]) -> list[Array]:
        """The delivered mean of each tensor."""
        pairs = zip(self.channels, tensors, strict=True)
        return [channel.mean(tensor) for channel, tensor in pairs]
