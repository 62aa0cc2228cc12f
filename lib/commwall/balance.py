r"""How much a machine can send for each FLOP it computes, and how much that must be.

Compute at a rate $F$ FLOP/s beside a link of $B$ byte/s: ratios above 1 mean that the
computation takes longer than the traffic. Leaves out: latency, overlap, and kernels
that are not matrix products. williams2009 is the same picture for memory.
"""

from commwall.rules import nonnegative, positive, whole
from commwall.units import Bytes, BytesPerSecond, FlopPerSecond

__all__ = [
    "bytes_per_flop",
    "data_parallel_intensity",
    "data_parallel_tokens",
    "roofline_rate",
    "sync_share",
    "tensor_parallel_intensity",
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
    intensity = tensor_parallel_intensity(hidden, ranks, bytes_per_value)
    return intensity * bytes_per_flop(bandwidth, compute)


def tensor_parallel_intensity(
    hidden: int, ranks: int, bytes_per_value: Bytes = 2
) -> float:
    r"""FLOP for each byte that a tensor-parallel layer sends.

    $$I = \frac{9\,h}{(n-1)\,w}$$

    for values of $w$ bytes, whatever the machine and the batch. Leaves out what
    `tensor_parallel_ratio` does.

    >>> round(tensor_parallel_intensity(8192, 8))   # 9 * 8192 / (7 * 2)
    5266
    """
    per_rank = 9 * whole("hidden", hidden) / (whole("ranks", ranks, 2) - 1)
    return per_rank / positive("bytes_per_value", bytes_per_value)


def data_parallel_intensity(
    tokens: float, ranks: int, gradient_bytes: Bytes = 2
) -> float:
    r"""FLOP for each byte of gradients sent, for T tokens a GPU and step.

    $$I = \frac{n}{n-1}\,\frac{3\,T}{g}$$

    It grows with the tokens, which a tensor-parallel layer's does not. Leaves out what
    `data_parallel_tokens` does.

    >>> round(data_parallel_intensity(4096, 8))   # 8/7 * 3 * 4096 / 2
    7022
    """
    share = (whole("ranks", ranks, 2) - 1) / ranks
    sent = share * positive("gradient_bytes", gradient_bytes)
    return 3 * positive("tokens", tokens) / sent


def roofline_rate(
    intensity: float,
    bandwidth: BytesPerSecond,
    compute: FlopPerSecond,
    overlap: bool = True,
) -> FlopPerSecond:
    r"""FLOP/s of a GPU that sends a byte for every $I$ FLOP.

    $$\min(F,\; I B) \qquad \text{or}\qquad \frac{1}{1/F + 1/(I B)}$$

    where all sending hides behind the arithmetic, and where none does.

    >>> roofline_rate(1000, 1e9, 4e12), roofline_rate(1000, 1e9, 1e12, overlap=False)
    (1000000000000.0, 500000000000.0)
    """
    wire = positive("intensity", intensity) * positive("bandwidth", bandwidth)
    roof = positive("compute", compute)
    return min(roof, wire) if overlap else roof * wire / (roof + wire)


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


def sync_share(tokens: float, half: float, overlap: bool = False) -> float:
    r"""Share of a step that gradient sync takes, for T tokens a GPU and step.

    $$\frac{T^*}{T^* + T}$$

    with `half` for $T^*$. With `overlap` it hides behind the backward pass, two thirds
    of the computing, and $T^* - \frac{2}{3}T$ stands for the $T^*$ above: longer steps
    first make it small and then make it nothing. Leaves out: the last bucket, which
    always shows.

    >>> sync_share(2239, 2239), round(sync_share(2239, 2239, overlap=True), 3)
    (0.5, 0.25)
    """
    positive("tokens", tokens)
    hidden = 2 / 3 * tokens if overlap else 0.0
    shown = max(0.0, nonnegative("half", half) - hidden)
    return shown / (shown + tokens)
