r"""Seconds of one optimizer step: compute, bubble, exposed traffic, optimizer.

The slowest stage sets the pace: it does all micro-batches one after another, and the
pipeline fills and drains around it. Leaves out: the input pipeline, checkpoints,
stragglers, and traffic that slows the compute it hides behind.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from commwall.exposure import exposed_and_hidden
from commwall.hardware import Cluster
from commwall.kernels import memory_time
from commwall.model import Model
from commwall.passes import (
    Stage,
    accumulation_time,
    host_time,
    slowest_stage,
)
from commwall.pipeline import bubble_time
from commwall.plan import Plan
from commwall.units import Flop, FlopPerSecond, Seconds
from commwall.volumes import held_params

__all__ = ["StepTime", "step_time"]


@dataclass(frozen=True, kw_only=True, slots=True)
class StepTime:
    """Seconds of one step, part by part; the parts sum to `total`."""

    compute: Seconds  # the slowest stage's kernels, and waiting for their launch
    elementwise: Seconds  # of compute: the memory-bound kernels
    launch: Seconds  # of compute: the GPU waits for the host
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
        return self.compute - self.elementwise - self.launch

    @property
    def parts(self) -> dict[str, Seconds]:
        """What the total is made of, by the names that the palette knows."""
        return {
            "compute": self.matmul,
            "elementwise": self.elementwise,
            "launch": self.launch,
            **self.exposed,
            "bubble": self.bubble,
            "optimizer": self.optimizer,
        }

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
    stage = slowest_stage(model, plan, cluster.gpu)
    exposed, hidden = exposed_and_hidden(model, plan, cluster, stage)
    inside = sum(exposed[axis] for axis in ("tp", "cp", "ep")) / plan.micro_batches
    launch = max(0.0, host_time(plan, stage.layers) - stage.layer_seconds - inside)
    m, adding = plan.micro_batches, accumulation_time(model, plan, cluster.gpu)
    return StepTime(
        compute=m * (stage.layer_seconds + stage.logits.total + adding + launch),
        elementwise=m * (stage.memory_bound + adding),
        launch=m * launch,
        bubble=_bubble(plan, stage, inside + launch),
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


def _bubble(plan: Plan, stage: Stage, inside: Seconds) -> Seconds:
    """Seconds that the slowest stage waits while the pipeline fills and drains.

    The others hold `other_layers` on average. Their work is stretched by the traffic
    inside a stage that nothing hides and by waiting for the host, of which a third is
    taken to be forward, as of the work.
    """
    if plan.pp == 1:
        return 0.0
    share = stage.other_layers / max(1, stage.layers)
    backward = stage.backward.total + inside * 2 / 3
    return bubble_time(
        plan.schedule,
        plan.pp,
        plan.micro_batches,
        plan.vpp,
        forward=share * (stage.forward.total + inside / 3) + stage.other_logits / 3,
        backward=share * backward + stage.other_logits * 2 / 3,
    )


def _optimizer(model: Model, plan: Plan, cluster: Cluster) -> Seconds:
    """Adam on the parameters that this GPU updates.

    Fused: reads gradients, reads and writes the state, writes the weights. Operation by
    operation each of Adam's ten reads and writes what it works on: 14 times a moment, 4
    times the master copy, twice the gradient.
    """
    shared, routed = held_params(model, plan)
    if plan.zero_stage:
        shared, routed = shared / plan.replicas, routed * plan.ep / plan.replicas
    precision = plan.precision
    moved = precision.gradients + 2 * precision.optimizer + precision.weights
    if not plan.fused_kernels:
        updated = precision.master or precision.weights
        moved = 7 * precision.moments + 4 * updated + 2 * precision.gradients
        moved += precision.weights + precision.master if precision.master else 0
    return memory_time(moved * (shared + routed), cluster.gpu)


def _hardware_flop(model: Model, plan: Plan) -> Flop:
    """FLOP of one token with recomputation: a forward pass is a third of a step."""
    attention = 2 * model.layers * model.seq * model.heads * model.head_dim
    if plan.recompute == "none":
        return model.flop_per_token
    if plan.recompute == "selective":
        return model.flop_per_token + attention
    projection = 2 * model.scored * model.vocab * model.hidden
    return model.flop_per_token * 4 / 3 - projection
