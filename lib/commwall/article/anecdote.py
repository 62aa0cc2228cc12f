"""Figures for the article's anecdote: 13B on eight RTX 4090s, then on four A100s."""

from dataclasses import fields, replace
from math import inf

from commwall.accuracy import throughput
from commwall.article.title import foundry_run, training_state
from commwall.catalog import A100, LLAMA2_13B, RTX_4090, cluster, data_sheet
from commwall.hardware import Cluster
from commwall.memory import memory
from commwall.plan import Plan, Precision
from commwall.steptime import StepTime, step_time
from commwall.units import GIB, TFLOP_PER_S, Bytes, FlopPerSecond

SHARE, GAIN, LOSS = 0.35, 1.40, 0.20  # the article's numbers
CARDS, FEWER = 8, 4
STATES = {  # bytes a parameter: 16, and less for optimizers of fewer bits
    16: Precision(),
    10: Precision(moments=2),
    8: Precision(master=0, moments=4),
}


def plan(bytes_per_param: int = 8, sequences: int = 2) -> Plan:
    """ZeRO-3 on eight cards with everything recomputed."""
    return Plan(dp=CARDS, zero_stage=3, micro_batch=sequences,
                global_batch=CARDS * sequences, recompute="full",
                precision=STATES[bytes_per_param])  # fmt: skip


def state_of_13b(bytes_per_param: int = 16) -> Bytes:
    """Training state on each of eight cards."""
    return training_state(LLAMA2_13B, plan(bytes_per_param, 1))


def bytes_per_parameter_at_most() -> float:
    """Bytes a parameter that eight cards could hold, if they held nothing else."""
    return CARDS * RTX_4090.memory / LLAMA2_13B.params


def fits(bytes_per_param: int = 16) -> bool:
    """Whether one sequence a card fits, everything recomputed."""
    return memory(LLAMA2_13B, plan(bytes_per_param, 1)).fits(RTX_4090)


def tokens_per_second(share: float = SHARE, accumulate: str = "fp32") -> float:
    """Tokens a second of eight RTX 4090s at that share of their peak, 6P a token."""
    return share * CARDS * _peak(accumulate) / (6 * LLAMA2_13B.params)


def _peak(accumulate: str) -> FlopPerSecond:
    if accumulate == "fp32":
        return RTX_4090.compute
    return float(data_sheet("gpu", "RTX 4090")["fp16_acc_tflop_per_s"]) * TFLOP_PER_S


def step(
    sequences: int = 2, box: Cluster | None = None, bytes_per_param: int = 8
) -> StepTime:
    """One step as predicted, on eight RTX 4090s unless another box is given."""
    box = box or cluster("RTX 4090", CARDS)
    return step_time(LLAMA2_13B, plan(bytes_per_param, sequences), box)


def utilisation(sequences: int = 2) -> float:
    """MFU as predicted, with a state of 8 bytes a parameter."""
    return step(sequences).mfu


def compute_change(accumulate: str = "fp32") -> float:
    """Peak of four A100s over that of eight RTX 4090s, less one."""
    return FEWER * A100.compute / (CARDS * _peak(accumulate)) - 1


def peak_for_the_loss() -> FlopPerSecond:
    """What an RTX 4090 would have to reach for four A100s to be 20 % less."""
    return FEWER * A100.compute / (1 - LOSS) / CARDS


def clock_for_the_loss() -> float:
    """Hertz at which its data sheet's units would reach that."""
    clock = float(data_sheet("gpu", "RTX 4090")["clock_mhz"]) * 1e6
    return clock * peak_for_the_loss() / RTX_4090.compute


def implied_utilisation(change: float | None = None) -> float:
    """MFU of the A100s that 35 % and +40 % imply, 6P a token, at a change of peak."""
    change = compute_change() if change is None else change
    return SHARE * GAIN / (1 + change)


def gain_by_a_published_run() -> float:
    """Four A100s as fast as llm-foundry's eight, each, over 35 % of eight RTX 4090s."""
    run = foundry_run(tokens=4096)
    each = throughput(run) / run.plan.gpus
    return FEWER * each / tokens_per_second() - 1


def things_that_change() -> int:
    """What differs between the two boxes of the anecdote, counted.

    Peak, memory, memory bandwidth, multiprocessors, peer-to-peer, the rate of fp32
    accumulation, the link, and the number of cards.
    """
    counted = {"compute", "memory", "memory_bandwidth", "sms", "p2p", "geforce"}
    names = counted & {field.name for field in fields(RTX_4090)}
    ours, theirs = cluster("RTX 4090", CARDS), cluster("A100-80 SXM", FEWER)
    differing = sum(getattr(RTX_4090, n) != getattr(A100, n) for n in names)
    differing += ours.gpus != theirs.gpus
    return differing + (ours.tiers[0].link is not theirs.tiers[0].link)


def gain_of_free_links() -> float:
    """The same eight cards and plan on links that cost nothing, less one."""
    free = replace(cluster("RTX 4090", CARDS), p2p=True)
    tiers = tuple(
        replace(tier, link=replace(tier.link, bandwidth=inf, latency=0.0,
                                   through_host=False))
        for tier in free.tiers
    )  # fmt: skip
    unbound = step(box=replace(free, tiers=tiers))
    return unbound.tokens_per_second / step().tokens_per_second - 1


def gain_of_memory(sequences: int = 8, memory_gib: int = 80) -> float:
    """The same eight cards on the same links with more memory, less one."""
    kept = memory(LLAMA2_13B, plan(16, sequences))
    larger = replace(RTX_4090, memory=memory_gib * GIB)
    if not kept.fits(larger):
        raise ValueError(f"sequences={sequences} does not fit {memory_gib} GiB")
    roomy = step(sequences, bytes_per_param=16)
    return roomy.tokens_per_second / step().tokens_per_second - 1
