r"""How much a machine can send for each FLOP it computes, and how much that must be.

Compute at a rate $F$ FLOP/s beside a link of $B$ byte/s: ratios above 1 mean that the
computation takes longer than the traffic. Leaves out: latency, overlap, and kernels
that are not matrix products. williams2009 is the same picture for memory.
"""

from commwall.rules import positive, whole
from commwall.units import Bytes, BytesPerSecond, FlopPerSecond

__all__ = [
    "bytes_per_flop",
    "data_parallel_tokens",
    "sync_share",
    "tensor_parallel_ratio",
]


def bytes_per_flop(bandwidth: BytesPerSecond, compute: FlopPerSecond) -> float:
    """Bytes a GPU can send in the time of one FLOP, one direction.

    Vendors count both directions: their figure is twice this one.
    """
    return positive("bandwidth", bandwidth) / positive("compute", compute)


def tensor_parallel_ratio(
    hidden: int,
    ranks: int,
    bandwidth: BytesPerSecond,
    compute: FlopPerSecond,
    bytes_per_value: Bytes = 2,
) -> float:
    r"""Compute time over communication time of a tensor-parallel layer.

    A layer of $12h^2$ weights computes $72h^2T/n$ FLOP for $T$ tokens and sends
    $4 \cdot 2\frac{n-1}{n} \cdot 2hT$ bytes, forward and backward, so that

    $$\frac{4.5\,h}{n-1}\,\frac{B}{F}$$

    Batch and sequence have cancelled: a bigger batch does not help. Leaves out:
    attention's $s^2$ products, and the smaller $kv$ matrices and gates of newer models.

    >>> round(tensor_parallel_ratio(8192, 8, 31.5077e9, 165.2e12), 3)
    1.004
    """
    per_rank = 9 * whole("hidden", hidden) / (whole("ranks", ranks, 2) - 1)
    byte_rate = bytes_per_flop(bandwidth, compute)
    return per_rank / positive("bytes_per_value", bytes_per_value) * byte_rate


def data_parallel_tokens(
    ranks: int,
    bandwidth: BytesPerSecond,
    compute: FlopPerSecond,
    gradient_bytes: Bytes = 2,
) -> float:
    r"""Tokens per GPU and step at which half the time is gradient sync, $T^*$.

    Computing takes $6PT/F$, a ring all-reduce $2\frac{n-1}{n} g P / B$; the parameters
    cancel, and equal times give

    $$T^* = \frac{n-1}{n}\,\frac{gF}{3B}$$

    Leaves out: attention, recomputation, and overlap with the backward pass.

    >>> round(data_parallel_tokens(256, 24.5e9, 82.6e12))   # 255/256 * 2 * 82.6e12
    2239
    """
    share = (whole("ranks", ranks) - 1) / ranks
    return (
        share
        * positive("gradient_bytes", gradient_bytes)
        / (3 * bytes_per_flop(bandwidth, compute))
    )


def sync_share(tokens: float, half: float) -> float:
    r"""Share of a step that gradient sync takes, if nothing hides.

    Computing grows with the tokens per GPU and step, the sum does not, and at $T^*$
    they are equal:

    $$\frac{T^*}{T^* + T}$$

    `half` is $T^*$ of `data_parallel_tokens`. Leaves out what that leaves out.

    >>> sync_share(3000, half=1000)     # three times the tokens: a quarter of the step
    0.25
    """
    return positive("half", half) / (half + positive("tokens", tokens))
