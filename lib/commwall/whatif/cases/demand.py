"""What a plan sends in a step, by axis, and what it keeps on the fullest GPU."""

from collections.abc import Mapping

from commwall import catalog
from commwall.hardware import GPU
from commwall.memory import RESERVE, Memory, memory
from commwall.plan import AXES, Plan
from commwall.units import GIB, Bytes, format_si
from commwall.volumes import volumes
from commwall.whatif.answers import Answer
from commwall.whatif.cases import names
from commwall.whatif.controls import Choice, Toggle
from commwall.whatif.front import WhatIf
from commwall.whatif.pictures import Axis, Bar, Bars, part

AXIS_WORDS = {"tp": "tensor parallel", "pp": "pipeline", "dp": "data parallel",
              "cp": "context parallel", "ep": "expert parallel"}  # fmt: skip


def _plan(dp: int, micro_batches: int, micro_batch: int, zero_stage: str,
          **others) -> Plan:  # fmt: skip
    return Plan(dp=dp, micro_batch=micro_batch, zero_stage=int(zero_stage),
                global_batch=dp * micro_batches * micro_batch,
                sequence_parallel=others["tp"] > 1, **others)  # fmt: skip


def bytes_by_axis(model: str, **fields) -> Answer:
    """Bytes that one GPU of a stage in the interior sends in a step."""
    shape, plan = catalog.model(model), _plan(**fields)
    sent = volumes(shape, plan)
    total, tokens = sum(sent.values()), plan.global_batch * shape.seq
    host, link = catalog.PCIE4_HOST.bandwidth, catalog.NVLINK4.bandwidth
    return Answer(
        finding=_sends(plan.gpus, sent),
        facts=(
            ("tokens a step", f"{tokens:,}"),
            ("sent by a GPU for each of them", format_si(total / tokens, "B")),
            ("through the host, nothing hidden", format_si(total / host, "s")),
            ("on NVLink 4", format_si(total / link, "s")),
        ),
        picture=Bars(
            axis=Axis(label="sent by one GPU in a step", unit="B"),
            bars=tuple(_axis_bar(axis, sent[axis]) for axis in AXES),
        ),
    )


def _sends(gpus: int, sent: Mapping[str, Bytes]) -> str:
    most, total = max(AXES, key=sent.get), sum(sent.values())
    if not total:
        return "One GPU alone sends nothing."
    return (
        f"Each of {gpus:,} GPUs sends {format_si(total, 'B')} a step, "
        f"{names.percent(sent[most] / total)} of it {AXIS_WORDS[most]}."
    )


def _axis_bar(axis: str, sent: float) -> Bar:
    words = f"{AXIS_WORDS[axis]} ({axis})"
    return Bar(words, (part(axis, sent),), format_si(sent, "B"))


BYTES_BY_AXIS = WhatIf(
    name="bytes_by_axis",
    title="What does each way of splitting send?",
    controls=(
        names.model("LLaMA-2 70B"),
        names.count("tp", "Tensor parallel (tp)", 64, 8),
        names.count("pp", "Pipeline stages (pp)", 64, 1),
        names.count("dp", "Data parallel (dp)", 1024, 8),
        names.count("cp", "Context parallel (cp)", 64, 1),
        names.count("micro_batches", "Micro-batches a replica", 512, 1),
        names.count("micro_batch", "Sequences in one", 16, 1),
        Choice(name="zero_stage", label="ZeRO stage", options=tuple("0123"), start="0"),
        Choice(name="recompute", label="Recompute", options=names.RECOMPUTE,
               start="none"),
    ),
    answer=bytes_by_axis,
)  # fmt: skip


def will_it_fit(model: str, gpu: str, fused: bool, **fields) -> Answer:
    """Bytes on the fullest GPU, part by part, against what the card can give."""
    card, plan = catalog.gpu(gpu), _plan(fused_kernels=fused, **fields)
    kept = memory(catalog.model(model), plan)
    state = kept.weights + kept.gradients + kept.optimizer
    pieces = tuple(part(name, size) for name, size in kept.parts.items())
    return Answer(
        finding=_verdict(kept, card, plan.gpus),
        facts=(
            ("weights, gradients, optimizer", _gib(state)),
            ("activations", _gib(kept.activations)),
            ("logits and buffers", _gib(kept.logits + kept.buffers)),
            ("kept back for driver, NCCL, fragmentation", _gib(RESERVE)),
        ),
        picture=Bars(
            axis=Axis(label="on the fullest GPU", unit="GiB", one=GIB),
            bars=(Bar(model, pieces, _gib(kept.total)),),
            limit=(f"usable of {gpu}", card.memory - RESERVE),
        ),
    )


def _gib(size: float) -> str:
    return f"{size / GIB:,.1f} GiB"


def _verdict(kept: Memory, card: GPU, gpus: int) -> str:
    spare = card.memory - RESERVE - kept.total
    one = f"The fullest of {gpus:,} GPUs needs" if gpus > 1 else "One GPU needs"
    how = "fits, with {} to spare" if kept.fits(card) else "does not fit: {} too much"
    return f"{one} {_gib(kept.total)}: it {how.format(_gib(abs(spare)))}."


WILL_IT_FIT = WhatIf(
    name="will_it_fit",
    title="Will it fit?",
    controls=(
        names.model(),
        names.gpu(),
        names.count("tp", "Tensor parallel (tp)", 64, 1),
        names.count("pp", "Pipeline stages (pp)", 64, 1),
        names.count("dp", "Data parallel (dp)", 1024, 8),
        Choice(name="zero_stage", label="ZeRO stage", options=tuple("0123"), start="3"),
        names.count("micro_batches", "Micro-batches a replica", 512, 1),
        names.count("micro_batch", "Sequences in one", 16, 1),
        Choice(name="recompute", label="Recompute", options=names.RECOMPUTE,
               start="full"),
        Toggle(name="fused", label="Fused kernels"),
    ),
    answer=will_it_fit,
)  # fmt: skip
