"""Every legal plan of a model on a cluster: which fit, and which is fastest.

Leaves out: uneven stages and batches, mixtures of experts split by `ep` and sequences
split by `cp` unless asked for, and whatever `steptime` and `memory` leave out.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from commwall.hardware import Cluster
from commwall.memory import Memory, memory
from commwall.model import Model
from commwall.plan import Plan
from commwall.rules import divisors, instance, whole
from commwall.steptime import StepTime, step_time

__all__ = ["Candidate", "plans", "search"]

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
