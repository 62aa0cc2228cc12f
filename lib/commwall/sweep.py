"""Every legal plan of a model on a cluster: which fit, and which is fastest.

Leaves out: uneven stages and batches, mixtures of experts split by `ep` and sequences
split by `cp` unless asked for, and whatever `steptime` and `memory` leave out.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import permutations
from math import gcd

from commwall.hardware import Cluster, Link
from commwall.memory import Memory, memory
from commwall.model import Model
from commwall.plan import Plan
from commwall.rules import divisors, instance, positive, whole
from commwall.steptime import StepTime, step_time

__all__ = ["Candidate", "lightest", "neighbors", "plans", "scaled", "search"]

_DEFAULTS = Plan()


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """A plan that fits, what it keeps and how long a step takes."""

    plan: Plan
    memory: Memory
    step: StepTime = field(repr=False)

    @property
    def tokens_per_second(self) -> float:
        """Tokens a second, of all GPUs together."""
        return self.step.tokens_per_second


def search(
    model: Model,
    cluster: Cluster,
    global_batch: int,
    *,
    cp: Iterable[int] = (1,),
    ep: Iterable[int] = (1,),
    base: Plan = _DEFAULTS,
    progress: Callable[[float], None] | None = None,
) -> list[Candidate]:
    """Plans that fill the cluster and fit its GPUs, fastest first.

    The space: tp powers of two up to a node, pp and vpp dividing the layers,
    micro-batches of 1, 2, 4 and 8, ZeRO 0 to 3, three ways to recompute, sequence
    parallelism wherever tp is above 1. `base` sets everything else. An empty list means
    that no plan fits. `progress` is called now and then with the part that is done.
    """
    fitting = []
    space = plans(model, cluster, global_batch, cp=cp, ep=ep, base=base,
                  progress=progress)  # fmt: skip
    for plan in space:
        kept = memory(model, plan)
        if kept.fits(cluster.gpu):
            step = step_time(model, plan, cluster)
            fitting.append(Candidate(plan=plan, memory=kept, step=step))
    return sorted(fitting, key=lambda candidate: candidate.step.total)


def plans(
    model: Model,
    cluster: Cluster,
    global_batch: int,
    *,
    cp: Iterable[int] = (1,),
    ep: Iterable[int] = (1,),
    base: Plan = _DEFAULTS,
    progress: Callable[[float], None] | None = None,
) -> Iterator[Plan]:
    """Every legal plan of the space that `search` describes."""
    whole("global_batch", global_batch)
    instance("model", model, Model)
    contexts = [whole("cp", each) for each in cp]
    experts = [whole("ep", each) for each in ep]
    found = list(_degrees(model, cluster, contexts, experts))
    for done, degrees in enumerate(found, start=1):
        if progress is not None:
            progress(done / len(found))
        for batches in _batches(global_batch, degrees["dp"]):
            shape = _legal(model, base, degrees | batches)
            if shape is not None:
                yield from _variants(shape)


def lightest(model: Model, cluster: Cluster, global_batch: int) -> Plan | None:
    """The plan that takes the least memory, fitting or not; None if none is legal.

    Only micro-batches of 1 that recompute everything are weighed: in this space a
    larger micro-batch, or keeping more, never takes less.
    """
    frugal = (
        plan
        for plan in plans(model, cluster, global_batch)
        if plan.micro_batch == 1 and plan.recompute == "full"
    )
    return min(frugal, key=lambda plan: memory(model, plan).total, default=None)


def _degrees(
    model: Model, cluster: Cluster, cp: list[int], ep: list[int]
) -> Iterator[dict[str, int]]:
    for tp in _powers_of_two(min(cluster.gpus_per_node, cluster.gpus)):
        for pp in divisors(model.layers):
            for context in cp:
                dp, rest = divmod(cluster.gpus, tp * pp * context)
                if rest:
                    continue
                for vpp in divisors(model.layers // pp) if pp > 1 else (1,):
                    for experts in ep:
                        yield {"tp": tp, "pp": pp, "cp": context, "dp": dp,
                               "vpp": vpp, "ep": experts}  # fmt: skip


def _batches(global_batch: int, dp: int) -> Iterator[dict[str, int]]:
    for micro_batch in (1, 2, 4, 8):
        if global_batch % (dp * micro_batch) == 0:
            yield {"global_batch": global_batch, "micro_batch": micro_batch}


def _legal(model: Model, base: Plan, fields: dict[str, int]) -> Plan | None:
    try:
        plan = replace(base, **fields, sequence_parallel=fields["tp"] > 1)
        plan.check(model)
    except ValueError:
        return None
    return plan


def _variants(plan: Plan) -> Iterator[Plan]:
    for zero_stage in range(4) if plan.replicas > 1 else (0,):
        for recompute in ("none", "selective", "full"):
            yield replace(plan, zero_stage=zero_stage, recompute=recompute)


def _powers_of_two(limit: int) -> list[int]:
    return [2**power for power in range(limit.bit_length()) if 2**power <= limit]


def neighbors(model: Model, plan: Plan) -> dict[str, Plan]:
    """Legal plans one change away, by the change: why is this plan the fastest?

    A factor of two moves from one of tp, pp and dp to another; micro-batch or chunks
    double or halve; another ZeRO stage; another way to recompute. What has to follow
    does: no more chunks than layers, no ZeRO over one replica, sequence parallelism
    with tp. Whether they fit is not asked.

    >>> tiny = Model(2, 8, 2, 2, 32, 100, 16, gated_mlp=False, tied_embeddings=True)
    >>> list(neighbors(tiny, Plan(tp=2, global_batch=2, recompute="full")))
    ['tp 1, pp 2', 'tp 1, dp 2', 'micro_batch 2', 'recompute none', \
'recompute selective']
    """
    found, same = {}, _legal(model, plan, _followed(model, plan, {}))
    for change in _changes(plan):
        other = _legal(model, plan, _followed(model, plan, change))
        if other not in (None, same):
            name = ", ".join(f"{what} {value}" for what, value in change.items())
            found[name] = other
    return found


def _changes(plan: Plan) -> Iterator[dict[str, int | str]]:
    for giver, taker in permutations(("tp", "pp", "dp"), 2):
        half, rest = divmod(getattr(plan, giver), 2)
        if not rest:
            yield {giver: half, taker: 2 * getattr(plan, taker)}
    for name in ("vpp", "micro_batch"):
        value = getattr(plan, name)
        if value % 2 == 0:
            yield {name: value // 2}
        yield {name: 2 * value}
    for zero_stage in range(4):
        yield {"zero_stage": zero_stage}
    for recompute in ("none", "selective", "full"):
        yield {"recompute": recompute}


def _followed(model: Model, plan: Plan, change: dict) -> dict:
    names = ("tp", "pp", "dp", "vpp", "zero_stage")
    fields = {name: getattr(plan, name) for name in names} | change
    each = model.layers // fields["pp"]
    fields["vpp"] = gcd(fields["vpp"], each) if fields["pp"] > 1 else 1
    if fields["dp"] * plan.cp == 1:
        fields["zero_stage"] = 0
    return fields


def scaled(
    cluster: Cluster,
    *,
    compute: float = 1.0,
    memory: float = 1.0,
    memory_bandwidth: float = 1.0,
    bandwidth: float = 1.0,
    latency: float = 1.0,
) -> Cluster:
    """A cluster that does not exist: the same, with rates and sizes times a factor.

    `compute` is of every arithmetic, peak and measured alike; `memory` and
    `memory_bandwidth` are of a GPU; `bandwidth` and `latency` of every link. What the
    host takes to launch stays.
    """
    card = cluster.gpu
    rates = ("compute", "product", "attention", "tf32", "fp32")
    gpu = _times(card, rates, positive("compute", compute))
    gpu = _times(gpu, ("memory",), positive("memory", memory))
    gpu = _times(gpu, ("memory_bandwidth",), memory_bandwidth)
    return replace(
        cluster,
        gpu=gpu,
        tiers=tuple(
            replace(tier, link=_scaled_link(tier.link, bandwidth, latency))
            for tier in cluster.tiers
        ),
        uplink=cluster.uplink and _scaled_link(cluster.uplink, bandwidth, latency),
    )


def _scaled_link(link: Link, bandwidth: float, latency: float) -> Link:
    faster = _times(link, ("bandwidth", "datasheet", "in_network"), bandwidth)
    return _times(faster, ("latency", "in_network_latency"), latency)


def _times(record, fields: tuple[str, ...], factor: float):
    """The record with those of its fields that are known times a factor."""
    known = {name: getattr(record, name) for name in fields}
    return replace(
        record,
        **{name: factor * v for name, v in known.items() if v is not None},
    )
