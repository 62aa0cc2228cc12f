r"""Seconds and bytes of the collectives, in the alpha-beta model.

A message of $S$ bytes takes $\alpha + S/B$: a latency per hop and a bandwidth, one
direction of one GPU (hockney1994). `payload` is the whole, unsharded buffer, so an
all-reduce costs a reduce-scatter plus an all-gather of the same payload; for an
all-to-all it is the buffer that one rank holds. Sizes may be numpy arrays.

Leaves out: switches between protocols in the middle sizes, the cost of the additions,
ranks that arrive late, and other traffic on the same wires.
"""

from collections.abc import Sequence
from math import ceil, log2

from commwall.hardware import Link
from commwall.rules import choice, instance, nonnegative, positive, whole
from commwall.units import Bytes, BytesPerSecond, Seconds

_BUS_FACTORS = {  # bytes a rank sends over bytes of payload, in a ring
    "all_reduce": lambda n: 2 * (n - 1) / n,
    "all_gather": lambda n: (n - 1) / n,
    "reduce_scatter": lambda n: (n - 1) / n,
    "all_to_all": lambda n: (n - 1) / n,
    "broadcast": lambda n: 1 if n > 1 else 0,
    "send": lambda n: 1 if n > 1 else 0,
}


def bus_factor(op: str, ranks: int) -> float:
    r"""Bytes that one rank sends for each byte of payload, $2(n-1)/n$ for all-reduce.

    nccl-performance. The busiest rank of a broadcast or a send passes on everything.

    >>> bus_factor("all_reduce", 8), bus_factor("all_gather", 8)
    (1.75, 0.875)
    """
    choice("op", op, _BUS_FACTORS)
    return _BUS_FACTORS[op](whole("ranks", ranks))


def all_reduce_bytes(payload: Bytes, ranks: int) -> Bytes:
    r"""Bytes that one GPU sends in a ring all-reduce, $2\frac{n-1}{n}S$. patarasuk2009.

    >>> all_reduce_bytes(8e9, 8)      # 2 * 7/8 * 8e9
    14000000000.0
    """
    return nonnegative("payload", payload) * bus_factor("all_reduce", ranks)


def all_gather_bytes(payload: Bytes, ranks: int) -> Bytes:
    r"""Bytes that one GPU sends in a ring all-gather, $\frac{n-1}{n}S$."""
    return nonnegative("payload", payload) * bus_factor("all_gather", ranks)


def reduce_scatter_bytes(payload: Bytes, ranks: int) -> Bytes:
    r"""Bytes that one GPU sends in a ring reduce-scatter, $\frac{n-1}{n}S$."""
    return nonnegative("payload", payload) * bus_factor("reduce_scatter", ranks)


def all_to_all_bytes(payload: Bytes, ranks: int) -> Bytes:
    r"""Bytes that one GPU sends when it keeps $1/n$ of its buffer, $\frac{n-1}{n}S$."""
    return nonnegative("payload", payload) * bus_factor("all_to_all", ranks)


def broadcast_bytes(payload: Bytes, ranks: int) -> Bytes:
    """Bytes that one GPU passes on in a chain: all of them."""
    return nonnegative("payload", payload) * bus_factor("broadcast", ranks)


def send_bytes(payload: Bytes, ranks: int = 2) -> Bytes:
    """Bytes that one GPU sends to its neighbour: all of them."""
    return nonnegative("payload", payload) * bus_factor("send", ranks)


def _hops(hops: int, payload: Bytes, share: float, link: Link) -> Seconds:
    """Seconds of `hops` hops that together carry `share` of the payload."""
    instance("link", link, Link)
    return (
        hops * link.latency + share * nonnegative("payload", payload) / link.bandwidth
    )


def reduce_scatter_time(
    payload: Bytes, ranks: int, link: Link, algorithm: str = "ring"
) -> Seconds:
    r"""Ring reduce-scatter: each rank ends with the sum of its own $n$-th.

    $$t = (n-1)\left(\alpha + \frac{S}{nB}\right)$$

    patarasuk2009.
    """
    choice("algorithm", algorithm, ("ring",))
    return _hops(whole("ranks", ranks) - 1, payload, (ranks - 1) / ranks, link)


def all_gather_time(
    payload: Bytes, ranks: int, link: Link, algorithm: str = "ring"
) -> Seconds:
    r"""Ring all-gather: each rank ends with every rank's $n$-th.

    $$t = (n-1)\left(\alpha + \frac{S}{nB}\right)$$

    patarasuk2009.
    """
    choice("algorithm", algorithm, ("ring",))
    return _hops(whole("ranks", ranks) - 1, payload, (ranks - 1) / ranks, link)


def all_reduce_time(
    payload: Bytes, ranks: int, link: Link, algorithm: str = "ring"
) -> Seconds:
    r"""Ring all-reduce: a reduce-scatter, then an all-gather.

    $$t = 2(n-1)\left(\alpha + \frac{S}{nB}\right)$$

    For many ranks the bandwidth term tends to $2S/B$: another GPU makes the message
    hardly cheaper and adds two hops. patarasuk2009.

    `algorithm="tree"` is a pipelined double binary tree (sanders2009),
    $2\lceil\log_2 n\rceil\alpha + 2S/B$ ($S/B$ for two ranks, $1.5S/B$ for three);
    `"in_network"` lets the switch add (graham2016), $2\alpha + S/B_\text{switch}$, a
    latency and a rate of its own: each rank sends its buffer about once.

    >>> link = Link(name="x", bandwidth=450e9, latency=2e-6, source="example")
    >>> round(all_reduce_time(9e9, 4, link), 9)   # 6 * (2e-6 + 9e9 / (4 * 450e9))
    0.030012
    """
    choice("algorithm", algorithm, ("ring", "tree", "in_network"))
    if whole("ranks", ranks) == 1:
        return 0.0 * nonnegative("payload", payload)
    if algorithm == "tree":
        return _hops(2 * ceil(log2(ranks)), payload, min(2, ranks / 2), link)
    if algorithm == "in_network":
        return _in_network(payload, link)
    scatter = reduce_scatter_time(payload, ranks, link)
    gather = all_gather_time(payload, ranks, link)
    return scatter + gather


def _in_network(payload: Bytes, link: Link) -> Seconds:
    if instance("link", link, Link).in_network is None:
        raise ValueError(
            f"algorithm='in_network' needs a link whose switch can add, "
            f"but {link.name} has in_network=None"
        )
    own = link.in_network_latency
    return (
        2 * (link.latency if own is None else own)
        + nonnegative("payload", payload) / link.in_network
    )


def all_to_all_time(
    payload: Bytes, ranks: int, link: Link, algorithm: str = "ring"
) -> Seconds:
    r"""Every rank sends an $n$-th of its buffer to every other, one after another.

    $$t = (n-1)\left(\alpha + \frac{S}{nB}\right)$$

    Leaves out: pairs that meet on one wire, which is what hurts it over PCIe.
    thakur2005.
    """
    choice("algorithm", algorithm, ("ring",))
    return _hops(whole("ranks", ranks) - 1, payload, (ranks - 1) / ranks, link)


def broadcast_time(
    payload: Bytes, ranks: int, link: Link, algorithm: str = "ring"
) -> Seconds:
    r"""Pipelined chain: the buffer flows through all ranks in small pieces.

    $$t = (n-1)\alpha + \frac{S}{B}$$

    `algorithm="tree"` is a binomial tree that passes the whole buffer on,
    $\lceil\log_2 n\rceil(\alpha + S/B)$: fewer hops, more bytes. thakur2005.
    """
    choice("algorithm", algorithm, ("ring", "tree"))
    if whole("ranks", ranks) == 1:
        return 0.0 * nonnegative("payload", payload)
    if algorithm == "tree":
        return ceil(log2(ranks)) * _hops(1, payload, 1, link)
    return _hops(ranks - 1, payload, 1, link)


def send_time(
    payload: Bytes, ranks: int, link: Link, algorithm: str = "ring"
) -> Seconds:
    r"""A message handed from the first of `ranks` GPUs to the last, hop by hop.

    $$t = (n-1)\left(\alpha + \frac{S}{B}\right)$$

    Two ranks are one hop, which is what a pipeline sends across a boundary.
    """
    choice("algorithm", algorithm, ("ring",))
    return (whole("ranks", ranks) - 1) * _hops(1, payload, 1, link)


def hierarchical_all_reduce_time(
    payload: Bytes, tiers: Sequence[tuple[int, Link]]
) -> Seconds:
    r"""Reduce-scatter in the node, all-reduce across nodes, all-gather in the node.

    `tiers` are (ranks, link) from inside out. The outer tier carries only $S/n$ of
    the innermost one, so the slow wire meets an $n$-th of the bytes. thakur2005.

    >>> fast = Link(name="in", bandwidth=100e9, latency=0, source="example")
    >>> slow = Link(name="out", bandwidth=10e9, latency=0, source="example")
    >>> round(hierarchical_all_reduce_time(8e9, [(8, fast), (2, slow)]), 9)
    0.24
    """
    if not tiers:
        raise ValueError("tiers=() must name at least one (ranks, link)")
    (ranks, link), *outer = tiers
    if not outer:
        return all_reduce_time(payload, ranks, link)
    return (
        reduce_scatter_time(payload, ranks, link)
        + hierarchical_all_reduce_time(payload / ranks, outer)
        + all_gather_time(payload, ranks, link)
    )


def algbw(payload: Bytes, seconds: Seconds) -> BytesPerSecond:
    """Algorithm bandwidth: bytes of payload a second, what a program feels."""
    return nonnegative("payload", payload) / positive("seconds", seconds)


def busbw(
    payload: Bytes, seconds: Seconds, ranks: int, op: str = "all_reduce"
) -> BytesPerSecond:
    r"""Bus bandwidth: algorithm bandwidth times the ring's bytes per payload byte.

    It can be held against the wire whatever the number of ranks. nccl-performance.

    >>> busbw(9e9, 0.03, 4)        # 9e9 / 0.03 * 2 * 3/4
    450000000000.0
    """
    return algbw(payload, seconds) * bus_factor(op, ranks)


def half_bandwidth_payload(ranks: int, link: Link) -> Bytes:
    r"""Payload at which a ring all-reduce pays latency and bandwidth alike.

    $$S_{1/2} = n \alpha B$$

    Below it, a faster wire does not help. hockney1994.
    """
    if not instance("link", link, Link).latency:
        return 0.0 * whole("ranks", ranks)  # even where the bandwidth is infinite
    return whole("ranks", ranks) * link.latency * link.bandwidth
