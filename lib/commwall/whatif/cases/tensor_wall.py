"""How far a layer should be cut: its time against the GPUs that share it."""

from collections.abc import Iterator
from dataclasses import replace

from commwall import catalog
from commwall.hardware import Cluster
from commwall.layers import LayerTime, layer_time
from commwall.model import Model
from commwall.plan import Plan
from commwall.units import format_si
from commwall.whatif.answers import Answer
from commwall.whatif.cases import names
from commwall.whatif.controls import Choice, Range, Toggle, doublings
from commwall.whatif.front import WhatIf
from commwall.whatif.pictures import Axis, Line, Lines, Mark, Table

DEGREES = doublings(1, 32)
MODELS = ("LLaMA-2 7B", "LLaMA-3 8B", "LLaMA-2 13B", "LLaMA-2 70B", "GPT-3 175B",
          "LLaMA-3.1 405B", "Megatron GPT 1T")  # fmt: skip
GPUS = ("RTX 3090", "RTX 4090", "RTX 5090", "RTX PRO 6000 Blackwell", "A100-80 SXM",
        "H100 SXM5", "B200 SXM", "GB200 (per GPU)", "MI300X")  # fmt: skip
SHARE = Axis(label="share of a layer", unit="%")

Times = dict[int, LayerTime]


def tensor_scaling(
    model: str,
    gpu: str,
    network: str,
    p2p: bool,
    micro_batch: int,
    wide: bool,
    fused_kernels: bool,
) -> Answer:
    """Seconds of one layer against tp, up to four nodes of eight GPUs.

    `wide` gives the model at least 32 key-value heads, as the page does, so that 32
    GPUs can share them.
    """
    shape = _widened(catalog.model(model)) if wide else catalog.model(model)
    rig = catalog.cluster(gpu, 32, network=names.of_network(network),
                          p2p=p2p or None)  # fmt: skip
    batch = {"micro_batch": micro_batch, "global_batch": micro_batch}
    times = dict(_times(shape, rig, fused_kernels=fused_kernels, **batch))
    edge = max((tier.gpus for tier in rig.tiers if tier.gpus < 32), default=None)
    best = min(times, key=lambda degree: times[degree].total)
    return Answer(
        finding=_finding(shape, times, best, edge),
        facts=_facts(shape, rig, times, edge or 8),
        picture=_picture(times, best, edge),
        table=_table(times),
    )


def _widened(model: Model) -> Model:
    return replace(model, kv_heads=max(model.kv_heads, 32))


def _times(
    model: Model, rig: Cluster, **software: bool | int
) -> Iterator[tuple[int, LayerTime]]:
    """Each degree that can cut the model, and what a layer then takes."""
    for degree in DEGREES:
        plan = Plan(tp=degree, **software)
        try:
            plan.check(model)
        except ValueError:
            continue
        yield degree, layer_time(model, plan, rig)


def _finding(model: Model, times: Times, best: int, edge: int | None) -> str:
    took = times[best].total
    words = (
        f"A layer of {model.name} is fastest over {best} GPU{'s' if best > 1 else ''}: "
        f"{format_si(took, 's')}, {times[1].total / took:.1f} times as fast as on one"
    )
    if edge not in times or 2 * edge not in times:
        return f"{words}."
    longer = times[2 * edge].total / times[edge].total
    return f"{words}; from {edge} to {2 * edge} it takes {longer:.2f} times as long."


def _facts(
    model: Model, rig: Cluster, times: Times, edge: int
) -> tuple[tuple[str, str], ...]:
    shown = [degree for degree in (edge, 2 * edge) if degree in times]
    skipped = [f"{degree}" for degree in DEGREES if degree not in times]
    cannot = f"{' and '.join(skipped)} do not divide {model.kv_heads} key-value heads"
    return (
        *((f"Over {degree} GPUs", _parts(times[degree])) for degree in shown),
        *((f"Link across {degree}", _link(rig, degree)) for degree in shown),
        *([("Left out", cannot)] if skipped else []),
    )


def _parts(time: LayerTime) -> str:
    waits = f", host {SHARE.text(time.launch / time.total)}" if time.launch else ""
    sums = SHARE.text(time.sums / time.total)
    return f"{format_si(time.total, 's')}: sums {sums}{waits}"


def _link(rig: Cluster, degree: int) -> str:
    link = rig.link_across(degree)
    host = ", through the host" if link.through_host else ""
    return f"{format_si(link.bandwidth, 'B/s')}{host}"


def _picture(times: Times, best: int, edge: int | None) -> Lines:
    alone = times[1].total
    return Lines(
        x=Axis(label="GPUs that share each layer", log=2, low=1, high=32),
        y=Axis(label="time of one layer, forward and backward", unit="s", log=10),
        lines=(
            Line("whole layer", [*times], [each.total for each in times.values()]),
            Line("kernels alone", [*times], [each.work for each in times.values()]),
            Line("an even share", [*times], [alone / degree for degree in times]),
        ),
        marks=(Mark("fastest", best, times[best].total),),
        rules=(("node ends", edge),) if edge else (),
    )


def _table(times: Times) -> Table:
    head = ("GPUs", "products (s)", "memory-bound (s)", "sums (s)",
            "waiting for the host (s)", "layer (s)")  # fmt: skip
    rows = (
        (f"{degree}", t.products, t.memory_bound, t.sums, t.launch, t.total)
        for degree, t in times.items()
    )
    return Table(head, tuple(rows))


TENSOR_SCALING = WhatIf(
    name="tensor_scaling",
    title="How many GPUs should share a layer?",
    controls=(
        Choice(name="model", label="Model", options=MODELS, start="LLaMA-2 70B"),
        Choice(name="gpu", label="GPU", options=GPUS, start="RTX 4090"),
        names.network("100 GbE RoCEv2"),
        Range(name="micro_batch", label="Micro-batch", unit="sequences",
              stops=doublings(1, 16), start=1, whole=True),
        Toggle(name="p2p", label="Patched driver: peer to peer"),
        Toggle(name="wide", label="At least 32 key-value heads", start=True),
        Toggle(name="fused_kernels", label="Fused kernels"),
    ),
    answer=tensor_scaling,
)  # fmt: skip
