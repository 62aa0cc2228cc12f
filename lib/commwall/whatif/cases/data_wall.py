"""What part of a step the sum of gradients takes."""

from collections.abc import Iterator
from dataclasses import replace

from commwall import catalog
from commwall.balance import data_parallel_tokens, sync_share
from commwall.hardware import GPU, Cluster
from commwall.kernels import product_rate
from commwall.memory import memory
from commwall.model import Model
from commwall.plan import Overlap, Plan, Precision
from commwall.steptime import StepTime, step_time
from commwall.units import GIB, format_si
from commwall.whatif.answers import Answer
from commwall.whatif.cases import names
from commwall.whatif.controls import Choice, Range, Toggle, doublings
from commwall.whatif.front import WhatIf
from commwall.whatif.pictures import Axis, Line, Lines, Mark

TINY = Model(22, 2048, 32, 4, 5632, 32000, 2048, gated_mlp=True, tied_embeddings=False,
             name="TinyLlama-1.1B",
             source="https://github.com/whyNLP/tinyllama")  # fmt: skip
HALF = replace(TINY, layers=11, dense_layers=11, name="half of TinyLlama's layers")
OTHERS = ("GPT-2 124M", "LLaMA-2 7B", "LLaMA-3 8B", "LLaMA-2 70B")
MODELS = {each.name: each for each in (TINY, HALF, *map(catalog.model, OTHERS))}
GPUS = ("RTX 3090", "RTX 4090", "RTX 5090", "RTX PRO 6000 Blackwell", "A100-80 SXM",
        "H100 SXM5", "B200 SXM", "MI300X")  # fmt: skip
SYNCS = {  # stage of ZeRO, bytes of a gradient
    "sum in bf16": (0, 2), "sum in fp32": (0, 4), "ZeRO-1": (1, 2), "ZeRO-2": (2, 2),
    "ZeRO-3 (FSDP)": (3, 2),
}  # fmt: skip
SHARE = Axis(label="share of sync in the step", unit="%", low=0.0, high=1.0)
TOKENS = doublings(256, 2**20)
TIMES = doublings(1, 128)  # micro-batches of one step


def gradient_sync(
    model: str,
    gpu: str,
    gpus: int,
    network: str,
    p2p: bool,
    sync: str,
    micro_batches: int,
) -> Answer:
    """The share of sync against tokens, in a whole step and by the formula.

    A micro-batch is one sequence; kernels run operation by operation, as on the page.
    """
    shape, (zero_stage, width) = MODELS[model], SYNCS[sync]
    rig = catalog.cluster(gpu, gpus, network=names.of_network(network),
                          p2p=p2p or None)  # fmt: skip
    plan = Plan(dp=gpus, zero_stage=zero_stage, global_batch=gpus * micro_batches,
                precision=Precision(gradients=width))  # fmt: skip
    step, half = step_time(shape, plan, rig), _half(plan, rig)
    tokens = step.tokens // gpus
    return Answer(
        finding=f"{gpus} x {gpu} spend {SHARE.text(_share(step))} of a step on the "
        f"gradients of {shape.name}, {tokens:,} tokens a GPU; {_said(half)}.",
        facts=_facts(step, half, _kept(shape, plan, rig.gpu)),
        picture=Lines(
            x=Axis(label="tokens a GPU and step", log=2, low=TOKENS[0],
                   high=TOKENS[-1]),
            y=SHARE,
            lines=tuple(_lines(shape, plan, rig, half)),
            marks=(Mark("", tokens, _share(step)),),
            rules=(("T*", half),) if half else (),
        ),
    )  # fmt: skip


def _share(step: StepTime) -> float:
    return step.exposed["dp"] / step.total


def _half(plan: Plan, rig: Cluster) -> float | None:
    """T* of the formula, which knows one sync a step; None where there are more."""
    if plan.zero_stage > 1:
        return None
    bandwidth, rate = rig.link_across(rig.gpus).bandwidth, product_rate(rig.gpu, plan)
    return data_parallel_tokens(rig.gpus, bandwidth, rate, plan.precision.gradients)


def _said(half: float | None) -> str:
    if half is None:
        return "it syncs in every micro-batch, so more of them hardly help"
    return f"by the formula half is reached at {half:,.0f}"


def _facts(
    step: StepTime, half: float | None, kept: str
) -> tuple[tuple[str, str], ...]:
    return (
        ("Step", format_si(step.total, "s")),
        ("Sync that shows", format_si(step.exposed["dp"], "s")),
        ("Sync that hides", format_si(step.hidden["dp"], "s")),
        *([("Half by the formula, T*", f"{half:,.0f} tokens")] if half else []),
        ("Batch of all GPUs", f"{step.tokens:,} tokens"),
        ("Memory of a GPU", kept),
    )


def _kept(model: Model, plan: Plan, gpu: GPU) -> str:
    kept = memory(model, plan)
    words = "" if kept.fits(gpu) else ": does not fit"
    return f"{kept.total / GIB:.1f} of {gpu.memory / GIB:.0f} GiB{words}"


def _lines(
    model: Model, plan: Plan, rig: Cluster, half: float | None
) -> Iterator[Line]:
    """This step, the same if sync hid as it does elsewhere, and the formula."""
    yield _line("whole step", model, plan, rig)
    if rig.link_across(rig.gpus).through_host:
        words, overlap = "if the host let it hide", Overlap(host=True)
    else:
        words, overlap = "if nothing hid", Overlap(dp=False, zero3=False)
    yield _line(words, model, replace(plan, overlap=overlap), rig)
    if half:
        shares = [sync_share(tokens, half) for tokens in TOKENS]
        yield Line("formula: nothing hides", TOKENS, shares)


def _line(words: str, model: Model, plan: Plan, rig: Cluster) -> Line:
    counts = [count for count in TIMES if count * model.seq <= TOKENS[-1]]
    plans = (replace(plan, global_batch=plan.dp * count) for count in counts)
    shares = [_share(step_time(model, each, rig)) for each in plans]
    return Line(words, [count * model.seq for count in counts], shares)


GRADIENT_SYNC = WhatIf(
    name="gradient_sync",
    title="What part of a step does the sum of gradients take?",
    controls=(
        Choice(name="gpu", label="GPU", options=GPUS, start="RTX 4090"),
        Range(name="gpus", label="GPUs", stops=doublings(2, 1024), start=256,
              whole=True),
        names.network("100 GbE RoCEv2"),
        Choice(name="model", label="Model", options=tuple(MODELS), start=TINY.name),
        Choice(name="sync", label="Gradients", options=tuple(SYNCS),
               start="sum in bf16"),
        Range(name="micro_batches", label="Micro-batches a step", stops=TIMES, start=2,
              whole=True),
        Toggle(name="p2p", label="Patched driver: peer to peer"),
    ),
    answer=gradient_sync,
)  # fmt: skip
