"""Figures for the article's section 3.3: data parallelism at scale."""

from math import ceil, log2

from commwall import balance
from commwall.article.layer import rate
from commwall.catalog import link
from commwall.collectives import all_reduce_time, bus_factor
from commwall.units import BytesPerSecond, Seconds

CARDS = 256
ARTICLE_NIC = "100 GbE RoCEv2"

PROFILE = {  # network, micro-batch, accumulation: forward, all-reduce, backward, step
    ("Ethernet", 1, 1): (36.65, 2205.86, 33.63, 74.96),
    ("Ethernet", 16, 1): (35.71, 2275.43, 60.81, 75.59),
    ("Ethernet", 16, 4): (137.80, 2259.36, 243.72, 74.92),
    ("InfiniBand", 1, 1): (25.36, 316.18, 23.25, 58.49),
    ("InfiniBand", 16, 1): (32.81, 336.40, 59.99, 57.79),
    ("InfiniBand", 16, 4): (131.04, 339.52, 237.92, 56.91),
}
"""Milliseconds of BERT-Large on 64 GPUs. tang2021onebit, its table of profiles."""


def ring_growth(more: int = CARDS, fewer: int = 8) -> float:
    """Bytes that a rank of the larger ring sends over those of the smaller."""
    return bus_factor("all_reduce", more) / bus_factor("all_reduce", fewer)


def hops(algorithm: str = "ring", ranks: int = CARDS) -> int:
    """Hops one after another in an all-reduce. patarasuk2009, sanders2009."""
    return 2 * (ranks - 1) if algorithm == "ring" else 2 * ceil(log2(ranks))


def latency_of_a_ring(name: str = ARTICLE_NIC, ranks: int = CARDS) -> Seconds:
    """What the hops of a flat ring cost, if each costs what a NIC's does."""
    return all_reduce_time(0, ranks, link(name))


def tokens_for_half(name: str = ARTICLE_NIC, gradient_bytes: float = 2) -> float:
    """Tokens a card and step at which sync takes half the time, nothing hidden.

    256 RTX 4090s in PyTorch, in nodes of eight with one such NIC each: a ring leaves
    and enters a node once, so that its rate is the NIC's.
    """
    sustained = rate("RTX 4090", "sustained")
    return balance.data_parallel_tokens(CARDS, _nic(name), sustained, gradient_bytes)


def sync_share(tokens: float, name: str = ARTICLE_NIC, gradient_bytes: float = 2):
    """Share of the step that gradient sync takes there, nothing hidden."""
    return balance.sync_share(tokens, tokens_for_half(name, gradient_bytes))


def exposed_sync_share(tokens: float, name: str = ARTICLE_NIC) -> float:
    """The same if it hides behind the backward pass, two thirds of the computing."""
    return balance.sync_share(tokens, tokens_for_half(name), overlap=True)


def _nic(name: str) -> BytesPerSecond:
    return link(name).bandwidth


def measured_sync_share(
    network: str = "InfiniBand", micro_batch: int = 16, accumulation: int = 1
) -> float:
    """Share of the step that the all-reduce took, on 64 GPUs. tang2021onebit."""
    parts = PROFILE[network, micro_batch, accumulation]
    return parts[1] / sum(parts)
