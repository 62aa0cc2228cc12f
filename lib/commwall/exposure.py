r"""Seconds of a step's traffic, and how much of it lengthens the step.

What can hide is a property of the framework, stated in `Plan.overlap`. Leaves out:
traffic that slows the compute it hides behind, and buckets that fill unevenly.
"""

from collections.abc import Mapping

from commwall.collectives import (
    all_gather_time,
    all_reduce_time,
    all_to_all_time,
    reduce_scatter_time,
    send_time,
)
from commwall.hardware import Cluster
from commwall.model import Model
from commwall.passes import Stage
from commwall.pipeline import critical_sends
from commwall.plan import AXES, Plan
from commwall.units import Seconds
from commwall.volumes import Traffic, traffic

__all__ = ["exposed_and_hidden", "traffic_time"]

_TIMES = {
    "all_reduce": all_reduce_time,
    "all_gather": all_gather_time,
    "reduce_scatter": reduce_scatter_time,
    "all_to_all": all_to_all_time,
    "send": lambda payload, ranks, link: send_time(payload, 2, link),
}


def traffic_time(record: Traffic, plan: Plan, cluster: Cluster) -> Seconds:
    """Seconds of one step's calls, on the link that the axis meets.

    Between nodes an all-reduce takes the faster of ring and tree, as NCCL does.
    """
    span = plan.span(record.axis)
    if record.op in ("send", "all_to_all"):
        link = cluster.link_alone(span)
    else:
        link = cluster.link_across(span, stride=span // record.ranks)
    each = _TIMES[record.op](record.payload, record.ranks, link)
    if record.op == "all_reduce" and span > cluster.gpus_per_node:
        tree = all_reduce_time(record.payload, record.ranks, link, "tree")
        each = min(each, tree)
    return record.calls * each


def exposed_and_hidden(
    model: Model, plan: Plan, cluster: Cluster, stage: Stage
) -> tuple[dict[str, Seconds], dict[str, Seconds]]:
    """What of each axis's traffic lengthens the step, and what hides.

    Traffic inside the layers is that of the stage's own.
    """
    forward, backward = stage.forward, stage.backward
    own = stage.layers / plan.most_layers(model)
    spent = {each: traffic_time(each, plan, cluster) for each in traffic(model, plan)}
    m = plan.micro_batches
    total, exposed = dict.fromkeys(AXES, 0.0), dict.fromkeys(AXES, 0.0)
    for record, seconds in spent.items():
        seconds *= own if record.axis in ("tp", "cp", "ep") else 1
        total[record.axis] += seconds
        if record.axis == "pp":
            exposed["pp"] += seconds * _waiting_sends(plan) / record.calls
        elif record.axis != "dp":
            exposed[record.axis] += seconds
    if plan.overlap.tp:
        exposed["tp"] = max(0.0, total["tp"] - m * (forward.total + backward.total))
    if plan.overlap.cp and plan.context == "ring":
        attention = forward.attention + backward.attention
        exposed["cp"] = max(0.0, total["cp"] - m * attention)
    exposed["dp"] = _exposed_sync(spent, plan, cluster, model, stage)
    hidden = {axis: max(0.0, total[axis] - exposed[axis]) for axis in AXES}
    return exposed, hidden


def _waiting_sends(plan: Plan) -> int:
    """Boundary messages that a stage has to wait for; others pass while it works."""
    if not plan.overlap.pp:
        return 2 * plan.vpp * plan.micro_batches
    return critical_sends(plan.schedule, plan.pp, plan.micro_batches, plan.vpp)


def _clear_of_host(plan: Plan, cluster: Cluster) -> bool:
    """Whether gradients go from GPU to GPU without crossing the host's memory."""
    return not cluster.link_across(plan.span("dp"), plan.stride("dp")).through_host


def _exposed_sync(
    spent: Mapping[Traffic, Seconds],
    plan: Plan,
    cluster: Cluster,
    model: Model,
    stage: Stage,
) -> Seconds:
    r"""What of gradient sync and ZeRO's gathers no compute can hide.

    Gradients go out layer by layer while the backward pass goes on, so that the last
    layer's share always shows. ZeRO-3 gathers one layer ahead: half behind the forward
    pass, half behind the backward pass, which then hides both. The weights that ZeRO-1
    and 2 gather after the optimizer hide behind nothing. li2020ddp, zhao2023fsdp.
    Neither does what bounces through host memory: on the boxes that people measured, a
    second card costs at least its whole traffic (see the page on published runs).
    """
    m, forward, backward = plan.micro_batches, stage.forward, stage.backward
    sync = sum(s for r, s in spent.items() if r.axis == "dp" and r.op != "all_gather")
    gather = sum(s for r, s in spent.items() if r.axis == "dp" and r.op == "all_gather")
    if not (plan.overlap.host or _clear_of_host(plan, cluster)):
        return sync + gather
    rounds = m if plan.zero_stage >= 2 else 1
    shows = plan.pp / model.layers
    if plan.zero_stage < 3:
        window = rounds * backward.total if plan.overlap.dp else 0.0
        return sync - min(sync * (1 - shows), window) + gather
    behind_backward = (sync if plan.overlap.dp else 0) + (
        gather / 2 if plan.overlap.zero3 else 0
    )
    behind_forward = gather / 2 if plan.overlap.zero3 else 0
    hidden = min(behind_forward * (1 - shows), m * forward.total)
    hidden += min(behind_backward * (1 - shows), m * backward.total)
    return sync + gather - hidden
