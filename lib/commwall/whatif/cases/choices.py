"""The reader's machine: the best plan that fits it, and the runners-up."""

from commwall import catalog
from commwall.economics import MILLION, cost_of_tokens, energy_of_tokens
from commwall.hardware import Cluster
from commwall.memory import RESERVE, Memory, memory
from commwall.model import Model
from commwall.sweep import Candidate, lightest, search
from commwall.units import GIB, HOUR, Bytes, format_si
from commwall.whatif.answers import Answer
from commwall.whatif.cases import names
from commwall.whatif.controls import Choice, Control, Range, scale
from commwall.whatif.front import WhatIf
from commwall.whatif.pictures import Axis, Bar, Bars, Table, part

WAYS = {"tp": "every layer over all GPUs", "pp": "a pipeline over all GPUs",
        "dp": "data over all GPUs"}  # fmt: skip
STEP = Axis(label="one optimizer step", unit="s")
RENT = catalog.prices("RTX 4090", unit="GPU-second")[0].low * HOUR


def _machine(most: int) -> tuple[Control, ...]:
    """Model and machine; a search takes the longer the more GPUs there are."""
    return (
        names.model(),
        names.gpu(),
        names.count("gpus", "GPUs", most, 8),
        names.p2p(),
        names.network(),
        Range(name="sequences", label="Sequences a step", whole=True, start=64,
              stops=tuple(2**n for n in range(11))),
    )  # fmt: skip


def _rig(gpu: str, gpus: int, p2p: str, network: str) -> Cluster:
    return catalog.cluster(gpu, gpus, network=names.of_network(network),
                           p2p=names.PEERS[p2p])  # fmt: skip


def _bar(label: str, found: Candidate) -> Bar:
    """A step by its parts; traffic that hides is pale, and beyond the step's end."""
    step = found.step
    shown = [part(name, size) for name, size in step.parts.items()]
    shown += [part(f"hidden {axis}", size) for axis, size in step.hidden.items()]
    return Bar(label, tuple(shown), format_si(step.total, "s"))


def _nothing_fits(model: Model, rig: Cluster, sequences: int) -> Answer:
    """How much the most frugal of all plans lacks."""
    plan = lightest(model, rig, sequences)
    if plan is None:
        raise ValueError(
            f"sequences={sequences} must be a multiple of dp, which no plan of "
            f"{model.name} on {rig.gpus} GPUs allows; a legal value: {rig.gpus}"
        )
    kept, usable = memory(model, plan), rig.gpu.memory - RESERVE
    needs, gives, lacks = map(_gib, (kept.total, usable, kept.total - usable))
    return Answer(
        finding=f"No plan fits, by {lacks}: the most frugal needs {needs} on a GPU "
        f"that has {gives} to give.",
        facts=(("lacking on each GPU", lacks),
               ("most frugal plan", names.plan_words(plan)),
               (f"usable of {rig.gpu.name}", gives)),
        picture=_kept(kept, rig.gpu.name, usable),
    )  # fmt: skip


def _kept(kept: Memory, name: str, usable: Bytes) -> Bars:
    parts = tuple(part(*piece) for piece in kept.parts.items())
    return Bars(
        axis=Axis(label="on the fullest GPU", unit="GiB", one=GIB),
        bars=(Bar("the most frugal plan", parts, _gib(kept.total)),),
        limit=(f"usable of {name}", usable),
    )


def _gib(size: Bytes) -> str:
    return f"{size / GIB:,.1f} GiB"


def your_rig(model: str, gpu: str, gpus: int, p2p: str, network: str,
             sequences: int) -> Answer:  # fmt: skip
    """The fastest plan that fits, beside the fastest of each pure kind."""
    shape, rig = catalog.model(model), _rig(gpu, gpus, p2p, network)
    found = search(shape, rig, sequences)
    if not found:
        return _nothing_fits(shape, rig, sequences)
    best, words = found[0], names.plan_words(found[0].plan)
    bars = [_bar("the fastest of all", best)]
    for axis, way in WAYS.items():
        pure = next((c for c in found if c.plan.ranks(axis) == gpus > 1), None)
        bars += [_bar(way, pure)] if pure else []
    return Answer(
        finding=f"It fits: {best.tokens_per_second:,.0f} tokens/s, "
        f"{names.percent(best.step.mfu)} of the peak, with {words}.",
        facts=(*_facts(best, rig), ("plans that fit", f"{len(found):,}")),
        picture=Bars(axis=STEP, bars=tuple(bars)),
    )


def _facts(best: Candidate, rig: Cluster) -> tuple[tuple[str, str], ...]:
    step, usable = best.step, (rig.gpu.memory - RESERVE) / GIB
    waits = sum(step.exposed.values()) / step.total
    kept = f"{best.memory.total / GIB:.1f} of {usable:.1f} GiB usable"
    return (
        ("tokens a second", f"{best.tokens_per_second:,.0f}"),
        ("MFU", names.percent(step.mfu)),
        ("on the fullest GPU", kept),
        ("of the step, waiting for wires", names.percent(waits)),
        ("of the step, in the bubble", names.percent(step.bubble / step.total)),
    )


YOUR_RIG = WhatIf(
    name="your_rig",
    title="Your rig: how fast would it train, and how?",
    controls=_machine(64),
    answer=your_rig,
)


def plan_search(show: int, rent: float, prefer: str, model: str, sequences: int,
                **hardware) -> Answer:  # fmt: skip
    """The first plans of the ranking, by parts, and all about each in the table."""
    shape, rig = catalog.model(model), _rig(**hardware)
    found = sorted(search(shape, rig, sequences), key=PREFERENCES[prefer])[:show]
    if not found:
        return _nothing_fits(shape, rig, sequences)
    first, last = found[0], found[-1]
    slower = last.step.total / first.step.total - 1
    return Answer(
        finding=f"{names.plan_words(first.plan)}: {first.tokens_per_second:,.0f} "
        f"tokens/s, on {first.memory.total / GIB:.1f} GiB.",
        facts=(
            *_bill(rig, rent, first.tokens_per_second),
            ("MFU", names.percent(first.step.mfu)),
            (f"step of plan {len(found)}, against the first", f"{slower:+z.1%}"),
        ),
        picture=Bars(
            axis=STEP, bars=tuple(_bar(names.plan_code(c.plan), c) for c in found)
        ),
        table=_plan_table(found),
    )


def _bill(rig: Cluster, rent: float, useful: float) -> tuple[tuple[str, str], ...]:
    """Money and energy; of one machine neither changes the order that speed gives."""
    money = cost_of_tokens(MILLION, rent * rig.gpus, useful)
    energy = energy_of_tokens(MILLION, rig.gpus * rig.gpu.tdp, useful)
    return (
        ("a million tokens, at that rent", names.money(money)),
        ("and their energy, cards alone", format_si(energy / HOUR, "Wh")),
    )


PREFERENCES = {
    "speed": lambda found: found.step.total,
    "little memory": lambda found: found.memory.total,
    "little traffic": lambda found: sum(found.step.exposed.values()),
}


def _plan_table(found: list[Candidate]) -> Table:
    head = ("tp", "pp", "chunks", "dp", "ZeRO", "micro-batch", "recompute",
            "step (s)", "tokens/s", "MFU", "GiB")  # fmt: skip
    rows = (
        (str(p.tp), str(p.pp), str(p.vpp), str(p.dp), str(p.zero_stage),
         str(p.micro_batch), p.recompute, c.step.total, c.tokens_per_second,
         c.step.mfu, c.memory.total / GIB)
        for c in found
        for p in [c.plan]
    )  # fmt: skip
    return Table(head, tuple(rows))


PLAN_SEARCH = WhatIf(
    name="plan_search",
    title="Which plan is best on your machine?",
    controls=(
        *_machine(16),
        Choice(name="prefer", label="Rank by", options=tuple(PREFERENCES),
               start="speed"),
        Range(name="show", label="Plans to show", stops=tuple(range(1, 13)), start=5,
              whole=True),
        Range(name="rent", label="Rent of a GPU-hour, your money", start=RENT,
              one=1 / HOUR, stops=(0.0, *scale(0.1, 20))),
    ),
    answer=plan_search,
)  # fmt: skip
