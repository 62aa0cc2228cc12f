"""Figures for the article's section 4: bridges, compression, new hardware."""

from math import copysign

from commwall import catalog
from commwall.article.demand import extra_of_gradient_sync
from commwall.article.layer import wire
from commwall.balance import bytes_per_flop
from commwall.catalog import LLAMA2_7B, RTX_4090, data_sheet
from commwall.collectives import all_gather_bytes, all_reduce_bytes, bus_factor
from commwall.compression import Scheme, sent
from commwall.plan import Overlap, Plan
from commwall.units import GBIT_PER_S, Bytes, BytesPerSecond
from commwall.volumes import volumes

CARDS = 256
ONE_BIT = 1 / 8


def bridge_lanes() -> int:
    """Links of the RTX 3090's NVLink bridge."""
    return int(data_sheet("link", data_sheet("gpu", "RTX 3090")["bridge"])["lanes"])


def bridge(directions: int = 2) -> BytesPerSecond:
    """Bandwidth of that bridge, one direction or both."""
    return directions * wire(data_sheet("gpu", "RTX 3090")["bridge"])


def article_over_bridge() -> float:
    """The article's 600 GB/s over both directions of the bridge."""
    return 600e9 / bridge()


def flop_per_dollar(gpu: str = "RTX 4090") -> float:
    """Peak over the maker's list price at launch."""
    card = catalog.gpu(gpu)
    return card.compute / card.launch_price


def break_even_price() -> float:
    """Part of an RTX 4090's price below which an RTX 3090 gives more peak a dollar."""
    return catalog.gpu("RTX 3090").compute / RTX_4090.compute


def byte_per_flop(gpu: str, link: str) -> float:
    """One direction of a link over the peak."""
    return bytes_per_flop(wire(link), catalog.gpu(gpu).compute)


def times_smaller(before: int = 32, after: int = 1) -> float:
    """Bits of a gradient before over those after."""
    return before / after


def sent_uncompressed(ranks: int = CARDS) -> Bytes:
    """Bytes a parameter that a rank sends to sum 16-bit gradients in a ring."""
    return all_reduce_bytes(2, ranks)


def sent_one_bit_gathered(ranks: int = CARDS) -> Bytes:
    """Bytes a parameter if every rank gathers the bits of all, which do not add up."""
    return all_gather_bytes(ONE_BIT * ranks, ranks)


def sent_one_bit_in_two_phases(ranks: int = CARDS) -> Bytes:
    """Bytes a parameter if each rank averages a part and sends one bit of it again.

    tang2021onebit.
    """
    return ONE_BIT * bus_factor("all_to_all", ranks) + all_gather_bytes(ONE_BIT, ranks)


def ranks_until_gathering_loses() -> int:
    """The most ranks at which gathering the bits sends no more than the 16-bit ring."""
    ranks = range(2, CARDS)
    return max(n for n in ranks if sent_one_bit_gathered(n) <= sent_uncompressed(n))


def saved_by_lateness() -> Bytes:
    """Bytes a step that are saved where gradients may arrive while work goes on."""
    late = Plan(dp=8, global_batch=8, overlap=Overlap(dp=True))
    now = Plan(dp=8, global_batch=8, overlap=Overlap(dp=False))
    return volumes(LLAMA2_7B, now)["dp"] - volumes(LLAMA2_7B, late)["dp"]


def bytes_per_sequence(micro_batches: int) -> Bytes:
    """Gradient sync of a step over its sequences, eight replicas."""
    plan = Plan(dp=8, global_batch=8 * micro_batches)
    return volumes(LLAMA2_7B, plan)["dp"] / plan.global_batch


def saved_by_accumulation(micro_batches: int = 8) -> float:
    """How many times fewer bytes a sequence cost when gradients are added up first."""
    return bytes_per_sequence(1) / bytes_per_sequence(micro_batches)


def saved_by_local_steps(steps: int = 500) -> float:
    """How many times fewer bytes if replicas meet once in so many steps."""
    shapes = [(LLAMA2_7B.params,)]
    always, seldom = (sent(Scheme("", every=n), shapes, CARDS) for n in (1, steps))
    return always / seldom


def one_bit_mean(feedback: bool, rounds: int = 3000, scale: float = 5) -> float:
    """Mean over rounds of what three workers' gradients become, one bit each.

    The gradients are 4, -1 and -1 in every round; `feedback` adds to the next gradient
    what its bit left out. seide2014.
    """
    gradients, total = (4.0, -1.0, -1.0), 0.0
    errors = [0.0] * len(gradients)
    for _ in range(rounds):
        for worker, gradient in enumerate(gradients):
            wanted = gradient + errors[worker] * feedback
            sent = copysign(scale, wanted)
            errors[worker] = wanted - sent
            total += sent / len(gradients)
    return total / rounds


def points_away() -> bool:
    """Whether one bit without feedback has the wrong sign: the true mean is 2/3."""
    return one_bit_mean(feedback=False) < 0


def gradient_share(tokens: int = 4096) -> float:
    """Gradients' part of all bytes of 70B, cut eight ways, with many replicas."""
    extra = extra_of_gradient_sync(tokens)
    return extra / (1 + extra)


def optical_ports(ports: int = 1, terabits: float = 1.6) -> BytesPerSecond:
    """One direction of so many optical ports, each of so many Tbit/s."""
    return ports * terabits * 1000 * GBIT_PER_S


def sent_by_a_node(ranks: int = 8) -> float:
    """Bytes that all ranks send in one all-reduce, in units of its payload."""
    return ranks * bus_factor("all_reduce", ranks)


def intensity(tokens: int = 4096, width: int = 8192) -> float:
    """FLOP for each byte of a GPU's own memory, in a square 16-bit product."""
    moved = 2 * (2 * tokens * width + width**2)
    return 2 * tokens * width**2 / moved


def ridge(gpu: str = "H100 SXM5") -> float:
    """FLOP a byte at which a GPU's memory keeps up with its peak. williams2009."""
    card = catalog.gpu(gpu)
    return card.compute / card.memory_bandwidth
