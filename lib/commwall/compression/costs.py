r"""Seconds of a scheme: encoding in each GPU's memory, sending over the link.

Encoding and decoding are passes over memory, so they take bytes over memory bandwidth,
or FLOP over the compute rate where that is longer. What is left after that is linear
in the inverse of the link's bandwidth, so the bandwidth at which compressing stops to
pay has a closed form:

$$B^* = \frac{k_0 - k}{c - c_0 + (m - m_0)\alpha}$$

with $k$ bytes sent, $c$ seconds of encoding and $m$ hops, and the same of the rival
with index 0. Below $B^*$ the scheme is faster; a faster link is better left alone.

Leaves out: launches of kernels, encoding beside other work, the outer optimizer of
local steps, and what slower learning costs: that is for `training`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, prod

from commwall.collectives import all_gather_time, all_reduce_time, all_to_all_time
from commwall.compression.codecs import FULL, Shape
from commwall.compression.schemes import Scheme, encoded, sent
from commwall.hardware import GPU, Link
from commwall.kernels import memory_time, product_rate
from commwall.rules import nonnegative, positive, whole
from commwall.units import Bytes, BytesPerSecond, Seconds

FEEDBACK_BYTES = 3 * FULL  # a value: old residual read, sum written, new one written


def memory_traffic(scheme: Scheme, shapes: Sequence[Shape], ranks: int) -> Bytes:
    """Bytes through one GPU's memory to encode, decode and keep residuals, once.

    fp32 and bf16 are summed where they lie and cost nothing here.
    """
    codec, values = scheme.codec, sum(map(prod, shapes))
    if not codec.scans:
        return 0.0
    payload, feedback = encoded(scheme, shapes), FEEDBACK_BYTES * scheme.feedback
    peers = whole("ranks", ranks) if scheme.collective == "all_gather" else 1
    total = (FULL * codec.scans + feedback) * values + payload  # encode
    total += peers * payload + FULL * values  # decode
    total += peers * sum(map(codec.scattered, shapes))
    if scheme.collective == "two_phase":  # all pieces in, their sum kept and sent
        total += payload + (payload + (FULL + feedback) * values) / ranks
    return total


def codec_time(
    scheme: Scheme,
    shapes: Sequence[Shape],
    ranks: int,
    gpu: GPU,
    slowdown: float = 1.0,
) -> Seconds:
    """Seconds of one GPU to encode and decode once: memory, or products if slower.

    With `slowdown` 1 every pass is one kernel at full speed. Encoders put together
    from a framework's own operations are several times slower, which is why few of
    200 set-ups that were tried gained anything: agarwal2022.
    """
    positive("slowdown", slowdown)
    if ranks == 1:
        return 0.0
    flop = sum(map(scheme.codec.flop, shapes))
    traffic = memory_traffic(scheme, shapes, ranks)
    return slowdown * max(
        memory_time(traffic, gpu),
        flop / product_rate(gpu),
    )


def wire_time(
    scheme: Scheme, shapes: Sequence[Shape], ranks: int, link: Link
) -> Seconds:
    """Seconds on the link of one exchange, in the collective that suits the scheme."""
    payload, rounds = encoded(scheme, shapes), scheme.codec.rounds
    if scheme.collective == "all_reduce":
        return rounds * all_reduce_time(payload / rounds, ranks, link)
    if scheme.collective == "all_gather":
        return all_gather_time(ranks * payload, ranks, link)
    scatter = all_to_all_time(payload, ranks, link)
    return scatter + all_gather_time(payload, ranks, link)


@dataclass(frozen=True, kw_only=True, slots=True)
class StepCost:
    """Seconds of a step and what made them, on average over the steps."""

    compute: Seconds
    codec: Seconds  # encoding and decoding
    exposed: Seconds  # of the link's seconds, those that lengthen the step
    sent: Bytes  # by one rank

    @property
    def total(self) -> Seconds:
        """Seconds of the step."""
        return self.compute + self.codec + self.exposed


def step_cost(
    scheme: Scheme,
    compute: Seconds,
    shapes: Sequence[Shape],
    ranks: int,
    link: Link,
    gpu: GPU,
    hidden: Seconds = 0.0,
    slowdown: float = 1.0,
) -> StepCost:
    """A step that computes for `compute` seconds and then synchronises.

    Of the link's seconds, `hidden` hide behind computation. A late message may hide
    behind all of it, however many steps late: the link still has to carry one a step.
    """
    nonnegative("compute", compute)
    nonnegative("hidden", hidden)
    behind = compute if scheme.delay else min(hidden, compute)
    wire = wire_time(scheme, shapes, ranks, link)
    return StepCost(
        compute=compute,
        codec=codec_time(scheme, shapes, ranks, gpu, slowdown) / scheme.every,
        exposed=max(0.0, wire - behind) / scheme.every,
        sent=sent(scheme, shapes, ranks),
    )


def break_even_bandwidth(
    scheme: Scheme,
    rival: Scheme,
    shapes: Sequence[Shape],
    ranks: int,
    gpu: GPU,
    latency: Seconds = 0.0,
    slowdown: float = 1.0,
) -> BytesPerSecond:
    """Bandwidth of a link below which `scheme` is faster than `rival`.

    Infinite: it is faster on every link. Zero: it sends no less, and so never pays.
    Leaves out: traffic that hides behind computation, and `delay`.
    """
    saved = sent(rival, shapes, ranks) - sent(scheme, shapes, ranks)
    wire = Link(name="latency only", bandwidth=inf, latency=latency, source="")

    def fixed(one: Scheme) -> Seconds:
        hops = wire_time(one, shapes, ranks, wire)
        encoding = codec_time(one, shapes, ranks, gpu, slowdown)
        return (encoding + hops) / one.every

    extra = fixed(scheme) - fixed(rival)
    if saved <= 0:
        return 0.0
    return saved / extra if extra > 0 else inf
