r"""Bytes on the fullest GPU of a plan, part by part.

Counts what training must keep; what the driver, the communication library and the
allocator keep besides is one number, `RESERVE`. Leaves out: offloading to the host,
paged optimizers, quantised weights, and the peaks inside a kernel.
"""

from dataclasses import dataclass, fields

from commwall.hardware import GPU
from commwall.model import Model
from commwall.pipeline import in_flight
from commwall.plan import Plan
from commwall.rules import whole
from commwall.units import GIB, Bytes
from commwall.volumes import held_params

__all__ = ["RESERVE", "Memory", "layer_activations", "memory", "stage_memory"]

RESERVE: Bytes = 2 * GIB
"""Kept back on every GPU: CUDA context, NCCL buffers, fragmentation. See the
assumptions page for where it comes from."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Memory:
    """Bytes on one GPU, by what they hold."""

    weights: Bytes
    gradients: Bytes
    optimizer: Bytes
    activations: Bytes
    logits: Bytes
    buffers: Bytes

    @property
    def total(self) -> Bytes:
        """All parts together."""
        state = self.weights + self.gradients + self.optimizer
        return state + self.activations + self.logits + self.buffers

    @property
    def parts(self) -> dict[str, Bytes]:
        """What the total is made of, by name."""
        return {part.name: getattr(self, part.name) for part in fields(self)}

    def fits(self, gpu: GPU) -> bool:
        """Whether it fits, leaving `RESERVE` to driver, NCCL and fragmentation."""
        return self.total <= gpu.memory - RESERVE


def memory(model: Model, plan: Plan) -> Memory:
    """Bytes on the worst GPU: the fullest stage, of equal ones the first or the last.

    The first stage holds the embedding and the most micro-batches in flight; the
    last holds the output projection and the logits.

    >>> llama = Model(80, 8192, 64, 8, 28672, 32000, 4096, gated_mlp=True,
    ...               tied_embeddings=False)
    >>> state = memory(llama, Plan())
    >>> round((state.weights + state.gradients + state.optimizer) / 1e9)  # 16 * 68.98
    1104
    """
    plan.check(model)
    layer = layer_activations(model, plan)
    if plan.pp == 1:
        return _stage(model, plan, 0, layer)
    equal = plan.stage_layers is None
    stages = (0, plan.pp - 1) if equal else range(plan.pp)
    kept = [_stage(model, plan, stage, layer) for stage in stages]
    return max(kept, key=lambda stage: stage.total)


def stage_memory(model: Model, plan: Plan, stage: int) -> Memory:
    """Bytes on a GPU of one pipeline stage, counted from 0."""
    plan.check(model)
    if whole("stage", stage, 0) >= plan.pp:
        raise ValueError(
            f"stage={stage} must be below pp={plan.pp}; "
            f"nearest legal value: {plan.pp - 1}"
        )
    return _stage(model, plan, stage, layer_activations(model, plan))


def _stage(model: Model, plan: Plan, stage: int, layer: Bytes) -> Memory:
    shared, routed = held_params(model, plan, stage)
    held = shared + routed
    shard = shared / plan.replicas + routed * plan.ep / plan.replicas
    sharded = plan.zero_stage
    precision = plan.precision
    return Memory(
        weights=precision.weights * (shard if sharded == 3 else held),
        gradients=precision.gradients * (shard if sharded >= 2 else held),
        optimizer=precision.optimizer * (shard if sharded >= 1 else held),
        activations=_activations(model, plan, stage, layer),
        logits=_logits(model, plan) if stage == plan.pp - 1 else 0.0,
        buffers=_buffers(model, plan),
    )


def layer_activations(model: Model, plan: Plan) -> Bytes:
    r"""What one layer keeps of one micro-batch for its backward pass.

    Per token, in units of the hidden size and two bytes a value: the inputs of two
    norms, of attention and of the feed-forward block (8h); queries, keys, values and
    the attention output; the feed-forward middle, twice (three times if gated); one
    byte a dropout mask; a mixture of experts also the copies that went to the experts.
    A GPT layer keeps $34 s b h$, or $10 + 24/t$ of it under tensor
    parallelism, and all of it divided by $t$ with sequence parallelism.
    korthikanti2022. Fused attention does not keep the $s \times s$ scores; without it
    they add $5 a s^2 b$.

    Operation by operation, PyTorch keeps SwiGLU's two halves, the activated one and
    the product: four times the middle. Rotated queries and keys are copies beside the
    merged product, which its slice of values keeps alive. With `keep_gathered` the
    inputs of attention and of the feed-forward block stay whole on every rank.
    """
    tokens = plan.micro_batch * model.seq / plan.cp
    width = plan.precision.activations
    copies = model.top_k * model.moe_layers / model.layers
    inputs = ((4 + copies) * width + (2 if model.dropout else 0)) * model.hidden
    divided = width * (_attention_values(model, plan) + _mlp_values(model, plan))
    spread = plan.tp if plan.sequence_parallel else 1
    kept = tokens * (inputs / spread + divided / plan.tp)
    if plan.keep_gathered:
        kept += tokens * 2 * width * model.hidden * (1 - 1 / spread)
    if plan.fused_attention or plan.recompute == "selective":
        return kept
    scores = model.heads / plan.tp * tokens * model.seq
    return kept + scores * (2 * width + 1 if model.dropout else width)


def _attention_values(model: Model, plan: Plan) -> float:
    rotated = not (model.learned_positions or plan.fused_kernels)
    return (3 if rotated else 2) * model.head_dim * (model.heads + model.kv_heads)


def _mlp_values(model: Model, plan: Plan) -> float:
    """Values kept of the feed-forward block's middle, per token, mean over layers."""
    copies = 2 + model.gated_mlp * (1 if plan.fused_kernels else 2)
    experts = model.top_k + model.shared_experts
    moe = model.moe_layers * experts * model.moe_ffn
    return copies * (model.dense_layers * model.ffn + moe) / model.layers


def _activations(model: Model, plan: Plan, stage: int, layer: Bytes) -> Bytes:
    held = in_flight(plan.schedule, plan.pp, plan.micro_batches, plan.vpp, stage)
    layers = plan.layers_on(model, stage)
    if layers == 0:
        return 0.0
    if plan.recompute != "full":
        return held * layers * layer
    tokens = plan.micro_batch * model.seq / plan.cp
    spread = plan.tp if plan.sequence_parallel else 1
    inputs = tokens * model.hidden * plan.precision.activations / spread
    others = held * layers - 1  # the layer being recomputed counts its own input
    return others * inputs + layer


def _logits(model: Model, plan: Plan) -> Bytes:
    """Logits in 16 bits, and their softmax in fp32, of every micro-batch that waits.

    The last chunk of 1F1B turns back at once: one micro-batch, interleaved or not.
    PyTorch's own loss, as it turns back, holds two gradients in fp32 more: of the
    log-softmax, and of what went into it.
    """
    waiting = in_flight(plan.schedule, plan.pp, plan.micro_batches, stage=plan.pp - 1)
    tokens = plan.micro_batch * model.seq * model.scored / plan.cp
    gradients = 0 if plan.fused_kernels else 8
    each = waiting * (plan.precision.activations + 4) + gradients
    return tokens * model.vocab / plan.tp * each


def _buffers(model: Model, plan: Plan) -> Bytes:
    """Layers that ZeRO holds whole for a moment: a gradient, and two of weights."""
    if plan.zero_stage < 2 or plan.replicas == 1:
        return 0.0
    copied = model.moe_layers and plan.replicas > plan.ep
    moe = model.expert_params / plan.ep if copied else 0
    dense = model.mlp_params(model.ffn) if model.dense_layers else 0
    layer = (model.attention_params + max(dense, moe)) / plan.tp
    gathered = 2 * plan.precision.weights if plan.zero_stage == 3 else 0
    return layer * (gathered + plan.precision.gradients)
