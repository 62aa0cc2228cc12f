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
    matmul_time,
    memory_time,
    score_bytes,
)
from commwall.model import Model
from commwall.plan import Plan
from commwall.units import Seconds

__all__ = ["Pass", "backward_pass", "forward_pass", "logits_pass"]


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


def forward_pass(model: Model, plan: Plan, gpu: GPU) -> Pass:
    layers = model.layers // plan.pp
    return Pass(
        matmul=layers * layer_matmul_time(model, plan, gpu),
        attention=layers * attention_time(model, plan, gpu),
        elementwise=layers * memory_time(elementwise_bytes(model, plan), gpu),
        scores=layers * memory_time(score_bytes(model, plan), gpu),
    )


def backward_pass(plan: Plan, forward: Pass) -> Pass:
    """Twice the forward pass, and what is recomputed once more."""
    all_again = 2 + (plan.recompute == "full")
    core_again = 2 + (plan.recompute in ("selective", "full"))
    return Pass(
        matmul=all_again * forward.matmul,
        attention=core_again * forward.attention,
        elementwise=all_again * forward.elementwise,
        scores=core_again * forward.scores,
    )


def logits_pass(model: Model, plan: Plan, gpu: GPU) -> Pass:
    """The output projection and the loss, both directions, on the last stage."""
    tokens = plan.micro_batch * model.seq / plan.cp
    width = model.vocab / plan.tp
    loss = memory_time(LOSS_BYTES * tokens * width, gpu)
    projection = 3 * matmul_time(tokens, width, model.hidden, gpu)
    return Pass(matmul=projection, attention=0.0, elementwise=loss, scores=0.0)
