"""How a tensor of gradients becomes fewer bytes: one small class for each way.

Encoding reads a gradient in fp32. `encoded` counts the bytes of one tensor as one rank
encodes it; `collective` is how ranks can then form a sum:

- "all_reduce": encoded tensors add up, so that a ring can sum them on the way;
- "two_phase": they do not, so each rank gathers one piece from all others, decodes,
  sums and encodes it again, then all gather the pieces (tang2021onebit);
- "all_gather": each rank takes what all the others have and decodes it by itself.

Leaves out: entropy coding, tensors glued together before encoding, and 16-bit factors.
"""

from dataclasses import dataclass
from math import ceil, prod
from typing import ClassVar

from commwall.rules import positive, whole
from commwall.units import Bytes, Flop

Shape = tuple[int, ...]

FULL = 4  # bytes of an fp32 value, of a scale, and of an index
SECTOR = 32
"""Bytes of GPU memory that reaching one value by itself moves. nvidia-cuda-guide."""

COLLECTIVES = ("all_reduce", "two_phase", "all_gather")


@dataclass(frozen=True, slots=True)
class Codec:
    """fp32 as it is: nothing to encode, and the measure of the others."""

    collective: ClassVar[str] = "all_reduce"
    scans: ClassVar[int] = 0  # how often encoding reads the tensor
    rounds: ClassVar[int] = 1  # collectives one after another

    def encoded(self, shape: Shape) -> Bytes:
        """Bytes of one tensor, encoded by one rank."""
        return FULL * prod(shape)

    def flop(self, shape: Shape) -> Flop:
        """FLOP of encoding and decoding beyond a pass over the tensor."""
        return 0.0

    def scattered(self, shape: Shape) -> Bytes:
        """Bytes that decoding moves in memory to reach single values."""
        return 0.0


FLOAT32 = Codec()


@dataclass(frozen=True, slots=True)
class BFloat16(Codec):
    """The upper half of every fp32 value, rounded to nearest.

    Mixed precision has its gradients in this form already: encoding costs nothing.
    """

    def encoded(self, shape: Shape) -> Bytes:
        """Two bytes a value."""
        return 2 * prod(shape)


@dataclass(frozen=True, slots=True)
class Int8(Codec):
    """A byte a value and one scale a tensor, its largest magnitude over 127.

    Sums overflow a byte and scales differ, so a ring cannot add it. alistarh2017 is the
    family; theirs rounds at random, which this does not.
    """

    collective: ClassVar[str] = "two_phase"
    scans: ClassVar[int] = 2  # the largest, then the rounding

    def encoded(self, shape: Shape) -> Bytes:
        """A byte a value and the scale."""
        return prod(shape) + FULL


@dataclass(frozen=True, slots=True)
class Sign(Codec):
    """A bit a value and one scale a tensor, its mean magnitude.

    seide2014 (with a scale a column), tang2021onebit, karimireddy2019.

    >>> Sign().encoded((1024, 1024)) / FLOAT32.encoded((1024, 1024)) * 32
    1.000030517578125
    """

    collective: ClassVar[str] = "two_phase"
    scans: ClassVar[int] = 2  # the mean, then the signs

    def encoded(self, shape: Shape) -> Bytes:
        """Eight values a byte and the scale."""
        return ceil(prod(shape) / 8) + FULL


@dataclass(frozen=True, slots=True)
class TopK(Codec):
    """The largest values of a tensor with their places; the rest is not sent.

    Each rank picks other places, so that sums fill up: all gather all. lin2018,
    stich2018. Exact selection by radix reads the tensor once for each byte of a value.

    >>> TopK(0.01).encoded((1000, 1000))        # 10,000 values of 4 + 4 bytes
    80000
    """

    fraction: float

    collective: ClassVar[str] = "all_gather"
    scans: ClassVar[int] = 5  # four digits of the threshold, then the picking

    def __post_init__(self):
        if positive("fraction", self.fraction) > 1:
            raise ValueError(f"fraction={self.fraction} must be at most 1")

    def kept(self, shape: Shape) -> int:
        """How many values are sent: at least one."""
        return max(1, round(self.fraction * prod(shape)))

    def encoded(self, shape: Shape) -> Bytes:
        """A value and its index, each of four bytes."""
        return 2 * FULL * self.kept(shape)

    def scattered(self, shape: Shape) -> Bytes:
        """A sector read and one written for each value that is added in its place."""
        return 2 * SECTOR * self.kept(shape)


@dataclass(frozen=True, slots=True)
class LowRank(Codec):
    r"""Two thin factors of each matrix, $r(m+n)$ values for $mn$; vectors stay whole.

    One step of power iteration from the last step's factor. Both factors are linear in
    the gradients, so that a ring can sum them, one after the other. vogels2019.

    >>> LowRank(4).encoded((4096, 4096)) / FLOAT32.encoded((4096, 4096)) * 512
    1.0
    """

    rank: int

    scans: ClassVar[int] = 2  # times each factor
    rounds: ClassVar[int] = 2

    def __post_init__(self):
        object.__setattr__(self, "rank", whole("rank", self.rank))

    def factored(self, shape: Shape) -> bool:
        """Whether factors are smaller than the tensor, seen as a matrix."""
        rows, columns = as_matrix(shape)
        return self.rank * (rows + columns) < rows * columns

    def encoded(self, shape: Shape) -> Bytes:
        """Both factors in fp32, or the tensor itself where that is less."""
        if not self.factored(shape):
            return FULL * prod(shape)
        return FULL * self.rank * sum(as_matrix(shape))

    def flop(self, shape: Shape) -> Flop:
        r"""$6mnr$ for three products and $2mr^2$ for making columns orthogonal."""
        if not self.factored(shape):
            return 0.0
        rows, columns = as_matrix(shape)
        return 6 * rows * columns * self.rank + 2 * rows * self.rank**2


def as_matrix(shape: Shape) -> tuple[int, int]:
    """Rows, and all other dimensions together; a vector is one row."""
    return (1, *shape) if len(shape) < 2 else (shape[0], prod(shape[1:]))
