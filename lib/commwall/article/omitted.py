"""Figures for what the article leaves out."""

from commwall.article.layer import RANKS
from commwall.article.tensor_wall import all_reduces
from commwall.article.title import foundry_run
from commwall.balance import tensor_parallel_ratio
from commwall.catalog import (
    A100,
    H100,
    LLAMA2_13B,
    LLAMA2_70B,
    NVLINK4,
    PCIE4,
    PCIE4_HOST,
    RTX_4090,
    measured,
)
from commwall.collectives import bus_factor, half_bandwidth_payload
from commwall.plan import Plan
from commwall.steptime import step_time
from commwall.units import Bytes, BytesPerSecond, Seconds, Watts
from commwall.volumes import volumes


def half_bandwidth() -> Bytes:
    """Payload at which latency costs eight RTX 4090s as much as bandwidth."""
    return half_bandwidth_payload(RANKS, PCIE4_HOST)


def algorithm_bandwidth() -> BytesPerSecond:
    """Payload a second of a ring over eight H100s."""
    return NVLINK4.bandwidth / bus_factor("all_reduce", RANKS)


def zero3_traffic() -> Bytes:
    """Bytes that each of eight cards sends for a micro-batch of 13B under ZeRO-3."""
    plan = Plan(dp=RANKS, zero_stage=3, global_batch=RANKS)
    return volumes(LLAMA2_13B, plan)["dp"]


def small_all_reduces() -> Seconds:
    """All-reduces of one generated token of 70B, as fast as 8 bytes are on eight cards.

    Two a layer; the small message as measured on eight RTX 4090s. nccl-1530.
    """
    row = next(row for row in measured("RTX 4090", gpus=RANKS) if row.small_message)
    return 2 * LLAMA2_70B.layers * row.small_message


def recomputed_all_reduces() -> float:
    """All-reduces of a step with everything recomputed, over those without."""
    return all_reduces("full") / all_reduces()


def card_memory() -> Bytes:
    """An RTX 4090's 24 GiB."""
    return RTX_4090.memory


def hardware_over_model_flop() -> float:
    """HFU over MFU of llm-foundry's 13B on A100s, where everything is recomputed."""
    run = foundry_run(tokens=4096)
    step = step_time(run.model, run.plan, run.cluster)
    return step.hfu / step.mfu


def ratio_in_eight_bits() -> float:
    """Compute over communication of the 12 h^2 layer if activations go in 8 bits."""
    hidden, peak = LLAMA2_70B.hidden, RTX_4090.compute
    return tensor_parallel_ratio(hidden, RANKS, PCIE4.datasheet, peak, 1)


def power(gpu: str, cards: int) -> Watts:
    """What some cards may draw. No host, no cooling."""
    return cards * {"RTX 4090": RTX_4090, "A100": A100, "H100": H100}[gpu].tdp


def work_for_energy(gain: float = 1.4) -> float:
    """Tokens a joule of the anecdote's four A100s over those of its RTX 4090s."""
    return gain * power("RTX 4090", 8) / power("A100", 4)
