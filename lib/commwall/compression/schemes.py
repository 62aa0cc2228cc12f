"""A way of synchronising gradients: how they are encoded, how often, how late.

The three are independent of each other: `codec` and `feedback` say what a message
holds, `every` how many steps share one, `delay` by how many steps it may be late. Only
the first two save bytes: a late message is as long as one in time.

Leaves out: what tensor, pipeline and expert parallelism send, which are not gradients.
"""

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass

from commwall.collectives import all_gather_bytes, all_reduce_bytes, all_to_all_bytes
from commwall.compression.codecs import (
    COLLECTIVES,
    FLOAT32,
    BFloat16,
    Codec,
    Int8,
    LowRank,
    Shape,
    Sign,
    TopK,
)
from commwall.rules import choice, flag, instance, nonnegative, whole
from commwall.units import Bytes


@dataclass(frozen=True, slots=True)
class Scheme:
    """How data-parallel ranks agree on a step.

    With `every` above 1 each rank walks alone for so many steps, and what is sent is
    how far it has come: local SGD (stich2019), or DiLoCo where an outer optimizer
    with Nesterov momentum takes the mean walk as its gradient (douillard2023).
    """

    name: str
    _: KW_ONLY
    codec: Codec = FLOAT32
    feedback: bool = False  # add what was not sent to the next gradient
    every: int = 1  # steps between two exchanges, H
    delay: int = 0  # steps between a gradient and its use, d
    outer_rate: float = 1.0  # step of the outer optimizer; used if every > 1
    outer_momentum: float = 0.0
    collective: str = ""  # "": the one that suits the codec

    def __post_init__(self):
        instance("codec", self.codec, Codec)
        flag("feedback", self.feedback)
        object.__setattr__(self, "every", whole("every", self.every))
        object.__setattr__(self, "delay", whole("delay", self.delay, 0))
        for field in ("outer_rate", "outer_momentum"):
            nonnegative(field, getattr(self, field))
        own = self.codec.collective
        suited = choice("collective", self.collective or own, COLLECTIVES)
        object.__setattr__(self, "collective", suited)
        if suited == "all_reduce" != own:
            raise ValueError(f"collective='all_reduce' cannot sum {self.codec}")
        if self.every > 1 and self.delay:
            raise ValueError(f"delay={self.delay} must be 0 with every={self.every}")


def encoded(scheme: Scheme, shapes: Iterable[Shape]) -> Bytes:
    """Bytes of all gradients as one rank encodes them, once."""
    return sum(scheme.codec.encoded(shape) for shape in shapes)


def sent(scheme: Scheme, shapes: Iterable[Shape], ranks: int) -> Bytes:
    r"""Bytes that one rank sends in a step, on average.

    With $S$ encoded bytes: $2\frac{n-1}{n}S$ where a ring can sum them, as much in two
    phases, but $(n-1)S$ where all gather all; an $H$-th of it if only every $H$-th step
    sends. So one bit, if all gather all, is more than bf16 in a ring from 33 ranks on:

    >>> gathered = Scheme("1 bit", codec=Sign(), collective="all_gather")
    >>> ring = Scheme("bf16", codec=BFloat16())
    >>> round(sent(gathered, [(2**20,)], 33) / sent(ring, [(2**20,)], 33), 3)
    1.031
    """
    payload = encoded(scheme, shapes)
    ways = {
        "all_reduce": lambda: all_reduce_bytes(payload, ranks),
        "two_phase": lambda: (
            all_to_all_bytes(payload, ranks) + all_gather_bytes(payload, ranks)
        ),
        "all_gather": lambda: all_gather_bytes(ranks * payload, ranks),
    }
    return ways[scheme.collective]() / scheme.every


SCHEMES = (
    Scheme("fp32"),
    Scheme("bf16", codec=BFloat16()),
    Scheme("int8", codec=Int8()),
    Scheme("1 bit", codec=Sign()),
    Scheme("1 bit, feedback", codec=Sign(), feedback=True),
    Scheme("top 1 %", codec=TopK(0.01)),
    Scheme("top 1 %, feedback", codec=TopK(0.01), feedback=True),
    Scheme("rank 1", codec=LowRank(1), feedback=True),
    Scheme("rank 2", codec=LowRank(2), feedback=True),
    Scheme("rank 4", codec=LowRank(4), feedback=True),
    Scheme("local 8", every=8),
    Scheme("local 32", every=32),
    Scheme("DiLoCo 32", every=32, outer_rate=0.7, outer_momentum=0.9),
    Scheme("late 1", delay=1),
    Scheme("late 4", delay=4),
    Scheme("late 16", delay=16),
)
"""The article's three proposals and their kin, each at a usual setting."""
