"""Figures for the article's section 3.2: the pipeline's bubble."""

from math import ceil, isclose

from commwall.article.layer import (
    communication_share,
    layer_flop_per_token,
    rate,
)
from commwall.catalog import LLAMA2_70B, link
from commwall.collectives import all_reduce_bytes, send_time
from commwall.pipeline import bubble_fraction, bubble_overhead, idle_fraction, schedule
from commwall.plan import Plan
from commwall.units import Bytes, Flop, Seconds
from commwall.volumes import traffic, volumes

STAGES = 8


def message(axis: str = "pp") -> Bytes:
    """Payload of one message of 70B cut eight ways along an axis, 4,096 tokens."""
    plan = Plan(**{axis: STAGES})
    return next(r.payload for r in traffic(LLAMA2_70B, plan) if r.axis == axis)


def sent_in_an_all_reduce() -> Bytes:
    """Bytes that a rank sends in one tensor-parallel all-reduce."""
    return all_reduce_bytes(message("tp"), STAGES)


def times_fewer_bytes() -> float:
    """Tensor parallelism's bytes in a step over the pipeline's, eight ways each."""
    cut = {axis: volumes(LLAMA2_70B, Plan(**{axis: STAGES})) for axis in ("tp", "pp")}
    return cut["tp"]["tp"] / cut["pp"]["pp"]


def micro_batches_to_win(name: str = "PCIe 4.0 x16 host bounce") -> int:
    """Micro-batches from which the pipeline's bubble costs less than the all-reduces.

    Products only, on eight RTX 4090s in PyTorch: the pipeline works $m/(m+p-1)$ of the
    time, tensor parallelism what `communication_share` leaves.
    """
    idle = communication_share("RTX 4090", name, "sustained", "achieved")
    return ceil((STAGES - 1) * (1 - idle) / idle)


def bubble(stages: int = STAGES, micro_batches: int = 16, chunks: int = 1) -> float:
    """Idle share of the whole step. huang2019."""
    return bubble_fraction(stages, micro_batches, chunks)


def bubble_growth(stages: int = 16, fewer: int = 8, micro_batches: int = 16) -> float:
    """The bubble of more stages over that of fewer."""
    return bubble(stages, micro_batches) / bubble(fewer, micro_batches)


def overhead(stages: int = STAGES, micro_batches: int = 16) -> float:
    """The bubble over the work, $(p-1)/m$, which some papers print. narayanan2021."""
    return bubble_overhead(stages, micro_batches)


def stage_flop() -> Flop:
    """FLOP of one of eight stages of 70B on a sequence, forward, as in `layer`."""
    model = LLAMA2_70B
    forward = layer_flop_per_token() / 3
    return model.layers // STAGES * forward * model.seq


def stage_seconds() -> Seconds:
    """What one stage's forward products take on an RTX 4090 in PyTorch."""
    return stage_flop() / rate("RTX 4090", "sustained")


def message_seconds(name: str = "PCIe 4.0 x16 host bounce") -> Seconds:
    """A message across a stage boundary, latency included."""
    return send_time(message(), 2, link(name))


def message_share(name: str = "PCIe 4.0 x16 host bounce") -> float:
    """That message over a stage's forward products."""
    return message_seconds(name) / stage_seconds()


def latency_share(name: str = "PCIe 4.0 x16 host bounce") -> float:
    """Latency over the whole of that message's time."""
    return link(name).latency / message_seconds(name)


def article_efficiency(pipeline_depth: int = STAGES, batch_size: int = 16) -> float:
    """The article's own formula, letter by letter."""
    return 1 / (1 + (pipeline_depth - 1) / batch_size)


def simulated_efficiency(stages: int = STAGES, micro_batches: int = 16) -> float:
    """What stages really work, read from the tasks of a 1F1B schedule."""
    return 1 - idle_fraction(schedule("1f1b", stages, micro_batches))


def formula_matches_schedule(micro_batches: int = 16) -> bool:
    """Whether the two agree, with micro-batches in place of the batch."""
    ours = simulated_efficiency(micro_batches=micro_batches)
    return isclose(article_efficiency(batch_size=micro_batches), ours)
