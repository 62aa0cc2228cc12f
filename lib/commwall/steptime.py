r"""Seconds of one optimizer step: compute, bubble, exposed traffic, optimizer.

The slowest stage sets the pace: it does all micro-batches one after another, and the
pipeline fills and drains around it. Leaves out: launch overhead of small kernels, the
input pipeline, checkpoints, stragglers, and traffic that slows compute it hides behind.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from commwall.exposure import exposed_and_hidden
from commwall.hardware import Cluster
from commwall.kernels import memory_time
from commwall.model import Model
from commwall.passes import Pass, backward_pass, forward_pass, logits_pass
from commwall.pipeline import bubble_time
from commwall.plan import Plan
from commwall.units import Flop, FlopPerSecond, Seconds
from commwall.volumes import held_params

__all__ = ["StepTime", "step_time"]


@dataclass(frozen=True, kw_only=True, slots=True)
class StepTime:
    """Seconds of one step, part by part; the parts sum to `total`."""

    compute: Seconds  # matrix products and memory-bound kernels, slowest stage
    elementwise: Seconds  # of compute: the memory-bound kernels
    bubble: Seconds
    exposed: Mapping[str, Seconds]  # traffic that lengthens the step, by axis
    hidden: Mapping[str, Seconds]  # traffic behind compute, not part of the total
    optimizer: Seconds
    tokens: int  # of the global batch
    flop_per_token: Flop  # recomputation not counted
    hardware_flop_per_token: Flop  # with recomputation
    peak: FlopPerSecond  # of all GPUs together

    @property
    def total(self) -> Seconds:
        """The whole step."""
        exposed = sum(self.exposed.values())
        return self.compute + self.bubble + exposed + self.optimizer

    @property
    def matmul(self) -> Seconds:
        """Of compute: the matrix products."""
        return self.compute - self.elementwise

    @property
    def mfu(self) -> float:
        """Model FLOP utilisation: useful FLOP over what the peak allows."""
        return self.tokens * self.flop_per_token / (self.total * self.peak)

    @property
    def hfu(self) -> float:
        """Hardware FLOP utilisation: MFU that also counts recomputation."""
        return self.mfu * (self.hardware_flop_per_token / self.flop_per_token)

    @property
    def tokens_per_second(self) -> float:
        """Tokens a second, of all GPUs together."""
        return self.tokens / self.total


def step_time(model: Model, plan: Plan, cluster: Cluster) -> StepTime:
    """The step's time on this cluster, from compute, traffic and the schedule."""
    plan.check(model)
    _check_gpus(plan, cluster)
    forward = forward_pass(model, plan, cluster.gpu)
    backward = backward_pass(plan, forward)
    logits = logits_pass(model, plan, cluster.gpu)
    exposed, hidden = exposed_and_hidden(model, plan, cluster, forward, backward)
    passes = (forward, backward, logits)
    return StepTime(
        compute=plan.micro_batches * sum(each.total for each in passes),
        elementwise=plan.micro_batches * sum(each.memory_bound for each in passes),
        bubble=_bubble(plan, forward, backward, exposed),
        exposed=exposed,
        hidden=hidden,
        optimizer=_optimizer(model, plan, cluster),
        tokens=plan.global_batch * model.seq,
        flop_per_token=model.flop_per_token,
        hardware_flop_per_token=_hardware_flop(model, plan),
        peak=cluster.gpus * cluster.gpu.compute,
    )


def _check_gpus(plan: Plan, cluster: Cluster) -> None:
    if plan.gpus != cluster.gpus:
        raise ValueError(
            f"tp * cp * dp * pp = {plan.gpus} GPUs must equal the cluster's "
            f"gpus={cluster.gpus}; nearest legal value: gpus={plan.gpus}"
        )


def _bubble(
    plan: Plan, forward: Pass, backward: Pass, exposed: Mapping[str, Seconds]
) -> Seconds:
    """Seconds that the slowest stage waits while the pipeline fills and drains.

    A stage's work is stretched by the traffic inside it that nothing hides, of which a
    third is taken to be forward, as of the work.
    """
    if plan.pp == 1:
        return 0.0
    inside = sum(exposed[axis] for axis in ("tp", "cp", "ep")) / plan.micro_batches
    return bubble_time(
        plan.schedule,
        plan.pp,
        plan.micro_batches,
        plan.vpp,
        forward=forward.total + inside / 3,
        backward=backward.total + inside * 2 / 3,
    )


def _optimizer(model: Model, plan: Plan, cluster: Cluster) -> Seconds:
    """Reading gradients, reading and writing the state, writing the weights."""
    shared, routed = held_params(model, plan)
    if plan.zero_stage:
        shared, routed = shared / plan.replicas, routed * plan.ep / plan.replicas
    precision = plan.precision
    per_param = precision.gradients + 2 * precision.optimizer + precision.weights
    return memory_time(per_param * (shared + routed), cluster.gpu)


def _hardware_flop(model: Model, plan: Plan) -> Flop:
    """FLOP of one token with recomputation: a forward pass is a third of a step."""
    attention = 2 * model.layers * model.seq * model.heads * model.head_dim
    if plan.recompute == "none":
        return model.flop_per_token
    if plan.recompute == "selective":
        return model.flop_per_token + attention
    projection = 2 * model.vocab * model.hidden
    return model.flop_per_token * 4 / 3 - projection
