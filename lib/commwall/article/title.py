"""Figures for the article's title and introduction."""

from math import ceil

from commwall import catalog
from commwall.accuracy import throughput
from commwall.catalog import LLAMA2_7B, LLAMA2_70B, RTX_4090, cluster
from commwall.memory import memory
from commwall.model import Model
from commwall.plan import Plan
from commwall.published import runs
from commwall.steptime import StepTime, step_time
from commwall.units import Bytes

CARDS = 8


def training_state(model: Model, plan: Plan) -> Bytes:
    """Weights, gradients and Adam's state on one card. rajbhandari2020."""
    kept = memory(model, plan)
    return kept.weights + kept.gradients + kept.optimizer


def state_of_70b() -> Bytes:
    """Training state of LLaMA-2 70B, on all cards together."""
    return training_state(LLAMA2_70B, Plan())


def memory_of_cards(cards: int = CARDS) -> Bytes:
    """Memory of some RTX 4090s, nothing kept back."""
    return cards * RTX_4090.memory


def cards_for_state_of_70b() -> int:
    """RTX 4090s that its training state alone fills."""
    return ceil(state_of_70b() / RTX_4090.memory)


def state_of_7b_on_a_card() -> Bytes:
    """Training state of LLaMA-2 7B on each of eight cards, sharded by ZeRO-3."""
    return training_state(LLAMA2_7B, Plan(dp=CARDS, zero_stage=3, global_batch=CARDS))


def step_of_7b() -> StepTime:
    """One step of 7B on eight RTX 4090s: ZeRO-3, two sequences each, recomputed."""
    plan = Plan(dp=CARDS, zero_stage=3, micro_batch=2, global_batch=2 * CARDS,
                recompute="full")  # fmt: skip
    return step_time(LLAMA2_7B, plan, cluster("RTX 4090", CARDS))


def communication_of_7b() -> float:
    """Share of that step that is traffic which nothing hides."""
    step = step_of_7b()
    return sum(step.exposed.values()) / step.total


def best_published_utilisation() -> float:
    """MFU of the 13B model of llm-foundry on eight A100s, sequences of 4,096 tokens."""
    run = foundry_run(tokens=4096)
    peak = run.plan.gpus * run.cluster.gpu.compute
    return throughput(run) * run.model.flop_per_token / peak


def foundry_run(tokens: int):
    """The published run of a 13B model on eight A100-80s at that sequence length."""
    return next(
        run
        for run in runs()
        if run.source == "llm-foundry"
        and run.model.seq == tokens
        and run.cluster.gpu is catalog.A100
        and run.plan.gpus == CARDS
        and round(run.model.params / 1e9) == 13
    )


def times_the_next_fastest() -> float:
    """Peak of the RTX 4090 over the best earlier GeForce card of the catalog."""
    cards = map(catalog.gpu, catalog.gpu_names())
    earlier = [c for c in cards if c.geforce and c.year < RTX_4090.year]
    return RTX_4090.compute / max(card.compute for card in earlier)


def share_of_an_a100() -> float:
    """Peak of the RTX 4090 over that of an A100."""
    return RTX_4090.compute / catalog.A100.compute


def is_fastest_yet() -> bool:
    """Whether that is more than one."""
    return times_the_next_fastest() > 1
