"""Which part of a machine is worth replacing: the best step before and after."""

from functools import lru_cache

from commwall import catalog
from commwall.hardware import Cluster
from commwall.memory import memory
from commwall.model import Model
from commwall.plan import Plan
from commwall.steptime import StepTime, step_time
from commwall.sweep import Candidate, scaled, search
from commwall.units import GIB, format_si
from commwall.whatif.answers import Answer
from commwall.whatif.cases import names
from commwall.whatif.controls import Choice, Range
from commwall.whatif.front import WhatIf
from commwall.whatif.pictures import Axis, Bar, Bars, part

BATCH = 64  # sequences a step, as on the page
MODELS = ("LLaMA-2 7B", "LLaMA-3 8B", "Qwen2.5 7B", "Megatron GPT 3.6B")
GPUS = ("RTX 3090", "RTX 4090", "RTX 5090", "RTX A6000", "A100-80 SXM", "H100 SXM5")
FACTORS = (0.25, 0.5, 1, 2, 4, 8, 10, 16)


def new_hardware(
    model: str,
    gpu: str,
    bandwidth: float,
    memory_bandwidth: float,
    memory_size: float,
    compute: float,
) -> Answer:
    """The fastest plan of eight GPUs, and of the same eight times the factors."""
    shape, old = catalog.model(model), catalog.cluster(gpu, 8)
    new = scaled(old, bandwidth=bandwidth, memory_bandwidth=memory_bandwidth,
                 memory=memory_size, compute=compute)  # fmt: skip
    before, after = _best(shape, old), _best(shape, new)
    gain = after.tokens_per_second / before.tokens_per_second
    steps = {"as it is": before.step, **_same_plan(shape, before.plan, new),
             "changed, its best plan": after.step}  # fmt: skip
    return Answer(
        finding=f"A step of {model} on 8 x {gpu} becomes {gain:.2f} times as fast: "
        f"{format_si(after.step.total, 's')} instead of "
        f"{format_si(before.step.total, 's')}.",
        facts=_facts(before, after, new),
        picture=Bars(
            axis=Axis(label=f"one step of {BATCH} sequences", unit="s", low=0.0),
            bars=_bars(steps),
        ),
    )


@lru_cache(maxsize=64)
def _best(model: Model, rig: Cluster) -> Candidate:
    found = search(model, rig, BATCH)
    if not found:
        raise ValueError(
            f"memory={rig.gpu.memory / GIB:.3g} GiB a GPU must be larger: no plan of "
            f"{model.name} fits {rig.gpus} of them"
        )
    return found[0]


def _same_plan(model: Model, plan: Plan, rig: Cluster) -> dict[str, StepTime]:
    """The step if nobody looks for a new plan; none if the old one does not fit."""
    if not memory(model, plan).fits(rig.gpu):
        return {}
    return {"changed, same plan": step_time(model, plan, rig)}


def _facts(
    before: Candidate, after: Candidate, rig: Cluster
) -> tuple[tuple[str, str], ...]:
    gpu, link = rig.gpu, rig.link_across(rig.gpus)
    return (
        ("Best plan before", names.plan_words(before.plan)),
        ("Best plan after", names.plan_words(after.plan)),
        ("Link", f"{format_si(link.bandwidth, 'B/s')} one way"),
        ("Memory", f"{gpu.memory / GIB:.3g} GiB at "
                   f"{format_si(gpu.memory_bandwidth, 'B/s')}"),
        ("Best product", format_si(gpu.best_product(), "FLOP/s")),
    )  # fmt: skip


def _bars(steps: dict[str, StepTime]) -> tuple[Bar, ...]:
    """A bar a step; a piece that is in one of them is in all, if only as nothing."""
    sizes = {label: step.parts for label, step in steps.items()}
    every = dict.fromkeys(name for each in sizes.values() for name in each)
    shown = [name for name in every if any(each[name] > 0 for each in sizes.values())]
    return tuple(
        Bar(label, tuple(part(name, sizes[label][name]) for name in shown),
            note=format_si(step.total, "s"))
        for label, step in steps.items()
    )  # fmt: skip


NEW_HARDWARE = WhatIf(
    name="new_hardware",
    title="Which part of the machine would you replace?",
    controls=(
        Choice(name="model", label="Model", options=MODELS, start="LLaMA-2 7B"),
        Choice(name="gpu", label="Eight of", options=GPUS, start="RTX 4090"),
        Range(name="bandwidth", label="Links", unit="x", stops=FACTORS, start=10),
        Range(name="memory_bandwidth", label="Memory speed", unit="x", stops=FACTORS,
              start=1),
        Range(name="memory_size", label="Memory size", unit="x", stops=FACTORS,
              start=1),
        Range(name="compute", label="Arithmetic", unit="x", stops=FACTORS, start=1),
    ),
    answer=new_hardware,
)  # fmt: skip
