"""Figures for the article's section 5, but for its anecdote."""

from dataclasses import replace
from functools import cache
from math import ceil

from commwall.boxes import pcie_box
from commwall.catalog import (
    LLAMA2_7B,
    LLAMA2_70B,
    NVLINK3,
    RTX_4090,
    gpu,
    measured,
)
from commwall.memory import Memory, memory
from commwall.plan import Plan
from commwall.topology import bus_bandwidth, ring_all_reduce_flows
from commwall.units import GIB, Bytes, BytesPerSecond
from commwall.volumes import volumes

RULE = 0.8  # the article's factor


def bytes_of_a_step(ranks: int = 8) -> float:
    """Bytes that a step of 70B sends in all, in units of those of eight cards."""
    return ranks * _sent(ranks) / (8 * _sent(8))


def _sent(ranks: int) -> Bytes:
    return volumes(LLAMA2_70B, Plan(tp=ranks))["tp"]


def compute_growth(before: str = "A100-80 SXM", after: str = "H100 SXM5") -> float:
    """Peak of one GPU over that of another."""
    return gpu(after).compute / gpu(before).compute


@cache
def largest_micro_batch(memory_gib: int = 24) -> int:
    """Sequences at once of 7B on eight cards of that memory: ZeRO-3, recomputed."""
    card, sequences = replace(RTX_4090, memory=memory_gib * GIB), 0
    while _seven_b(sequences + 1).fits(card):
        sequences += 1
    return sequences


def _seven_b(sequences: int) -> Memory:
    plan = Plan(dp=8, zero_stage=3, micro_batch=sequences, global_batch=8 * sequences,
                recompute="full")  # fmt: skip
    return memory(LLAMA2_7B, plan)


def switch_bandwidth(p2p: bool = False) -> BytesPerSecond:
    """What each of eight cards sends in a ring, four of them behind each PCIe switch.

    The wires carry what their data sheets say.
    """
    box = pcie_box(achieved=1, gpus=8, gpus_per_switch=4, sockets=1)
    return bus_bandwidth(box, ring_all_reduce_flows(box, p2p=p2p))


def switch_is_slower() -> bool:
    """Whether it is less than the NVSwitch of an A100 gives each GPU."""
    return switch_bandwidth(p2p=True) < NVLINK3.datasheet


def gain_of_peer_to_peer(op: str = "all_reduce") -> float:
    """Measured on four RTX 4090s: bus bandwidth with peer-to-peer over without."""
    on, off = (
        measured("RTX 4090", op=op, gpus=4, p2p=p2p, odd=None) for p2p in (True, False)
    )
    by_source = {row.source: row.bus for row in off if row.source == "nccl-1603"}
    return next(r.bus / by_source[r.source] for r in on if r.source in by_source)


def cards(params: float, bytes_per_param: float = 1, memory_gib: int = 24) -> float:
    """The article's rule with the bytes of a parameter that it forgets, not rounded."""
    return params * bytes_per_param / (RULE * memory_gib * GIB)


def whole_cards(params: float, bytes_per_param: float, memory_gib: int = 24) -> int:
    """The same as a number of cards: the fewest whose memory is enough."""
    return ceil(cards(params, bytes_per_param, memory_gib))


def head_room() -> Bytes:
    """What the article's rule leaves free on an RTX 4090."""
    return (1 - RULE) * RTX_4090.memory


def activations_of_70b(
    recompute: str = "none", sequence_parallel: bool = False, fused: bool = True
) -> Bytes:
    """Activations on each of eight cards, one sequence.

    LLaMA's gated layer without dropout: not the $34sbh$ of a GPT layer.
    korthikanti2022.
    """
    plan = Plan(tp=8, sequence_parallel=sequence_parallel, recompute=recompute,
                fused_kernels=fused)  # fmt: skip
    return memory(LLAMA2_70B, plan).activations
