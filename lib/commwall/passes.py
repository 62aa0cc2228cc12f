r"""Seconds of one pipeline stage for one micro-batch, forward and backward.

Leaves out: communication, which `exposure` adds, and what `kernels` leaves out.
"""

from dataclasses import dataclass

from commwall.hardware import GPU
from commwall.kernels import (
    LOSS_BYTES,
    attention_time,
    elementwise_bytes,
    layer_matmul_time,
    memory_time,
    product_time,
    score_bytes,
)
from commwall.model import Model
from commwall.plan import Plan
from commwall.units import Seconds
from commwall.volumes import held_params

__all__ = [
    "Pass",
    "Stage",
    "accumulation_time",
    "backward_pass",
    "host_time",
    "layer_pass",
    "logits_pass",
    "slowest_stage",
]

LAUNCH: Seconds = 10e-6
"""Host's seconds to launch one operation of PyTorch."""

LAUNCHES = {"fused": 60, "eager": 200}
"""Operations of one layer, forward and backward: fused by hand or compiler, or one by
one with a copy for each change of layout."""

COLLECTIVE_LAUNCH: Seconds = 0.3e-3
"""Host's seconds to issue a collective inside a layer and to order the streams around
it. From the H100 sweep, whose layers take 4.5 ms at tp 2, 4 and 8 however small they
are: 200 launches, and 8 collectives."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Pass:
    """One stage's seconds for one micro-batch, in one direction."""

    matmul: Seconds
    attention: Seconds
    elementwise: Seconds
    scores: Seconds  # softmax and dropout, where attention is not fused

    @property
    def memory_bound(self) -> Seconds:
        return self.elementwise + self.scores

    @property
    def total(self) -> Seconds:
        return self.matmul + self.attention + self.memory_bound

    def of_layers(self, layers: int) -> "Pass":
        """So many of them, one after another."""
        return Pass(
            matmul=layers * self.matmul,
            attention=layers * self.attention,
            elementwise=layers * self.elementwise,
            scores=layers * self.scores,
        )


_NOTHING = Pass(matmul=0.0, attention=0.0, elementwise=0.0, scores=0.0)


@dataclass(frozen=True, kw_only=True, slots=True)
class Stage:
    """One stage's work for one micro-batch, and what the others have on average."""

    layers: int
    forward: Pass
    backward: Pass
    logits: Pass  # both directions; nothing where another stage has them
    other_layers: float
    other_logits: Seconds

    @property
    def layer_seconds(self) -> Seconds:
        """Of all its layers, both directions."""
        return self.forward.total + self.backward.total

    @property
    def memory_bound(self) -> Seconds:
        """Of the kernels that are as slow as their bytes."""
        passes = (self.forward, self.backward, self.logits)
        return sum(each.memory_bound for each in passes)


def slowest_stage(model: Model, plan: Plan, gpu: GPU) -> Stage:
    """The stage that sets the pace: the last, with the logits, if stages are equal."""
    most, last = plan.most_layers(model), plan.layers_on(model, plan.pp - 1)
    logits, one = logits_pass(model, plan, gpu), layer_pass(model, plan, gpu)
    at_end = (most - last) * (
        one.total + backward_pass(plan, one).total
    ) <= logits.total
    layers = last if at_end else most
    forward = one.of_layers(layers)
    others = max(1, plan.pp - 1)
    return Stage(
        layers=layers,
        forward=forward,
        backward=backward_pass(plan, forward),
        logits=logits if at_end else _NOTHING,
        other_layers=(model.layers - layers) / others,
        other_logits=0.0 if at_end else logits.total / others,
    )


def layer_pass(model: Model, plan: Plan, gpu: GPU) -> Pass:
    """One layer forward, for one micro-batch."""
    return Pass(
        matmul=layer_matmul_time(model, plan, gpu),
        attention=attention_time(model, plan, gpu),
        elementwise=memory_time(elementwise_bytes(model, plan), gpu),
        scores=memory_time(score_bytes(model, plan), gpu),
    )


def backward_pass(plan: Plan, forward: Pass) -> Pass:
    """Twice the forward pass, and what is recomputed once more.

    A fused attention kernel kept no scores, so its backward pass computes them again:
    five products for the forward's two. dao2022flash.
    """
    all_again = 2 + (plan.recompute == "full")
    core_again = 2 + (plan.recompute in ("selective", "full"))
    fused_again = 2.5 + (plan.recompute == "full")
    return Pass(
        matmul=all_again * forward.matmul,
        attention=(fused_again if plan.fused_attention else core_again)
        * forward.attention,
        elementwise=all_again * forward.elementwise,
        scores=core_again * forward.scores,
    )


def logits_pass(model: Model, plan: Plan, gpu: GPU) -> Pass:
    """The output projection and the loss, both directions, on the last stage."""
    tokens = plan.micro_batch * model.seq * model.scored / plan.cp
    if not tokens:
        return _NOTHING
    width = model.vocab / plan.tp
    each = LOSS_BYTES[plan.kernels]
    projection = 3 * product_time(tokens, width, model.hidden, gpu, plan)
    return Pass(
        matmul=projection,
        attention=0.0,
        elementwise=memory_time(each * tokens * width, gpu),
        scores=0.0,
    )


def accumulation_time(model: Model, plan: Plan, gpu: GPU) -> Seconds:
    """Adding one micro-batch's gradients to the sum of those before, on the last stage.

    Reads the new ones, reads and writes the sum. A single micro-batch has nothing to
    add to, a fused product adds as it goes, and ZeRO-2 and 3 keep only their shard.
    """
    if plan.micro_batches == 1 or plan.fused_kernels:
        return 0.0
    held = sum(held_params(model, plan, "last"))
    shard = plan.replicas if plan.zero_stage >= 2 else 1
    precision = plan.precision
    moved = precision.weights + 2 * precision.gradients
    return memory_time(moved * held / shard, gpu)


def host_time(plan: Plan, layers: int) -> Seconds:
    """Host's seconds to launch so many layers of a micro-batch, both directions.

    Kernels that end sooner wait for the next: small layers take no less than this.
    """
    if plan.cuda_graphs:
        return 0.0
    again = 1.5 if plan.recompute == "full" else 1
    launches = LAUNCH * LAUNCHES[plan.kernels]
    collectives = (8 if plan.sequence_parallel else 4) if plan.tp > 1 else 0
    return layers * again * (launches + COLLECTIVE_LAUNCH * collectives)
