r"""Bytes that one GPU sends in one optimizer step, axis by axis.

Counted for a GPU of an interior pipeline stage. Leaves out: the collectives of the
embedding and of the logits, the scalars of gradient clipping, and the gradients of
replicated norms under sequence parallelism, all small beside what is counted.
"""

from dataclasses import dataclass

from commwall.collectives import bus_factor
from commwall.model import Model
from commwall.plan import AXES, Plan
from commwall.units import MIB, Bytes

__all__ = ["Traffic", "held_params", "traffic", "volumes"]

BUCKET: Bytes = 25 * MIB
"""Gradients that leave together where sync overlaps the backward pass: PyTorch's
default. li2020ddp."""

_PASSES = {"none": 2, "selective": 2, "full": 3}  # forward, backward, forward again


@dataclass(frozen=True, kw_only=True, slots=True)
class Traffic:
    """One kind of collective, issued `calls` times in a step."""

    axis: str
    op: str
    ranks: int
    payload: Bytes  # as `collectives` counts it
    calls: float
    what: str

    @property
    def bytes(self) -> Bytes:
        """Bytes that one GPU sends in a step."""
        return self.calls * self.payload * bus_factor(self.op, self.ranks)


def volumes(model: Model, plan: Plan) -> dict[str, Bytes]:
    """Bytes sent by one GPU in one optimizer step, by axis.

    >>> from commwall.model import Model
    >>> llama = Model(80, 8192, 64, 8, 28672, 32000, 4096, gated_mlp=True,
    ...               tied_embeddings=False)
    >>> volumes(llama, Plan(tp=8))["tp"]    # 4 * 2 * 7/8 * 4096 * 8192 * 2 * 80
    37580963840.0
    """
    total = dict.fromkeys(AXES, 0.0)
    for record in traffic(model, plan):
        total[record.axis] += record.bytes
    return total


def traffic(model: Model, plan: Plan) -> tuple[Traffic, ...]:
    """Every kind of collective that the plan issues; axes of one rank issue none."""
    plan.check(model)
    records = []
    if plan.tp > 1:
        records += tensor_parallel(model, plan)
    if plan.cp > 1:
        records += context_parallel(model, plan)
    if plan.ep > 1:
        records += expert_parallel(model, plan)
    if plan.replicas > 1:
        records += data_parallel(model, plan)
    if plan.pp > 1:
        records += pipeline_parallel(model, plan)
    return tuple(records)


def activation(model: Model, plan: Plan) -> Bytes:
    """Bytes of one micro-batch's activations between layers, on one context rank."""
    whole = plan.micro_batch * model.seq * model.hidden
    return whole * plan.precision.activations / plan.cp


def tensor_parallel(model: Model, plan: Plan) -> list[Traffic]:
    r"""Activation all-reduces inside every layer.

    Each layer all-reduces its activations twice forward and twice backward, once per
    micro-batch; full recomputation repeats the forward two:

    $$\text{payload} = 2sbh \qquad \text{calls} = 4 m L / p$$

    With sequence parallelism each becomes a reduce-scatter and an all-gather of the
    same total. shoeybi2019, narayanan2021, korthikanti2022.
    """
    return [
        Traffic(
            axis="tp",
            op="all_reduce",
            ranks=plan.tp,
            payload=activation(model, plan),
            calls=2
            * _PASSES[plan.recompute]
            * plan.micro_batches
            * plan.most_layers(model),
            what="activations and their gradients",
        )
    ]


def context_parallel(model: Model, plan: Plan) -> list[Traffic]:
    r"""Keys and values of other parts of the sequence.

    Ring: each rank passes a block of keys and values to its neighbour $c-1$ times
    forward; backward, the block travels again with its gradient (liu2023ring).
    Ulysses: queries, keys, values and the output change hands in an all-to-all
    (jacobs2023ulysses).
    """
    tokens = plan.micro_batch * model.seq / plan.cp
    value = tokens * model.head_dim * plan.precision.activations / plan.tp
    calls = plan.micro_batches * plan.most_layers(model)
    if plan.context == "ring":
        hops = (plan.cp - 1) * (4 if plan.recompute == "full" else 3)
        return [
            Traffic(axis="cp", op="send", ranks=plan.cp, calls=calls * hops,
                    payload=2 * model.kv_heads * value, what="keys and values")
        ]  # fmt: skip
    held = 2 * (model.heads + model.kv_heads) * value
    return [
        Traffic(axis="cp", op="all_to_all", ranks=plan.cp, payload=held,
                calls=calls * _PASSES[plan.recompute],
                what="queries, keys, values and attention outputs")
    ]  # fmt: skip


def expert_parallel(model: Model, plan: Plan) -> list[Traffic]:
    r"""Tokens to their experts and back, in every MoE layer.

    Dispatch and combine are an all-to-all each, forward and backward. Assumes a
    router that spreads tokens evenly. lepikhin2020.
    """
    copies = model.top_k / (plan.tp if plan.sequence_parallel else 1)
    layers = model.moe_layers / model.layers * plan.most_layers(model)
    return [
        Traffic(axis="ep", op="all_to_all", ranks=plan.ep,
                payload=activation(model, plan) * copies,
                calls=2 * _PASSES[plan.recompute] * plan.micro_batches * layers,
                what="tokens to experts and back")
    ]  # fmt: skip


def pipeline_parallel(model: Model, plan: Plan) -> list[Traffic]:
    r"""Activations forward and their gradients back across stage boundaries.

    An interior stage sends two messages per micro-batch and chunk, $2vm$ of them; with
    two stages there is no interior one, and each sends half of that. Under sequence
    parallelism, or where the boundary is scattered, a rank sends only its own part.
    narayanan2021.
    """
    part = plan.tp if plan.sequence_parallel or plan.scatter_gather else 1
    return [
        Traffic(axis="pp", op="send", ranks=2, payload=activation(model, plan) / part,
                calls=2 * plan.vpp * plan.micro_batches,
                what="activations across stage boundaries")
    ]  # fmt: skip


def data_parallel(model: Model, plan: Plan) -> list[Traffic]:
    r"""Gradients to be summed, and under ZeRO the weights to be gathered.

    Stage 0 all-reduces the gradients once a step. Stage 1 reduce-scatters them and
    gathers the updated weights: the same bytes. Stage 2 keeps no whole gradient, so it
    reduce-scatters after every micro-batch; stage 3 keeps no whole weights either and
    gathers them twice per micro-batch. rajbhandari2020, zhao2023fsdp.
    """
    shared, routed = held_params(model, plan)
    if plan.ep == 1:
        return _synchronise(model, plan, shared + routed, "")
    records = _synchronise(model, plan, shared, "")
    if plan.replicas > plan.ep:
        records += _synchronise(model, plan, routed, " of experts")
    return records


def _synchronise(model: Model, plan: Plan, params: float, of: str) -> list[Traffic]:
    ranks = plan.replicas if of == "" else plan.replicas // plan.ep
    gradients = plan.precision.gradients * params
    weights = plan.precision.weights * params
    m, stage = plan.micro_batches, plan.zero_stage
    sent, got = _pieces(model, plan, gradients), _pieces(model, plan, weights)
    if stage == 0:
        return [
            Traffic(axis="dp", op="all_reduce", ranks=ranks, payload=gradients / sent,
                    calls=sent, what="gradients" + of)
        ]  # fmt: skip
    return [
        Traffic(axis="dp", op="reduce_scatter", ranks=ranks, payload=gradients / sent,
                calls=sent * (m if stage > 1 else 1), what="gradients" + of),
        Traffic(axis="dp", op="all_gather", ranks=ranks, payload=weights / got,
                calls=got * (2 * m if stage == 3 else 1), what="weights" + of),
    ]  # fmt: skip


def _pieces(model: Model, plan: Plan, size: Bytes) -> float:
    """Messages that a buffer is cut into, so that the first can leave early."""
    if plan.zero_stage == 3:
        return plan.most_layers(model)
    return -(-size // BUCKET) if plan.overlap.dp else 1


def held_params(
    model: Model, plan: Plan, stage: str | int = "interior"
) -> tuple[int, int]:
    """Parameters on one GPU of a stage: (those every replica has, routed experts).

    Norms, routers and the bias that follows a row-parallel matrix are whole on every
    tensor-parallel rank; everything else is divided. `stage` is "interior" (of unequal
    ones, with the layers of the fullest), "first", "last" or a number from 0; with one
    stage all are the whole model. Stages 2 and 3 of ZeRO shard what is counted here.
    """
    layers, first, last = _place(model, plan, stage)
    moe = layers * model.moe_layers / model.layers
    tp = plan.tp
    bias = model.hidden if model.biases else 0
    replicated = 2 * model.norm_params + bias
    attention = (model.attention_params - bias) / tp
    dense = (model.mlp_params(model.ffn) - bias) / tp + bias
    held = layers * (replicated + attention) + (layers - moe) * dense
    held += moe * (model.router_params + model.shared_expert_params / tp)
    routed = moe * model.expert_params / (tp * plan.ep)
    return held + _ends(model, plan, first=first, last=last), routed


def _place(model: Model, plan: Plan, stage: str | int) -> tuple[int, bool, bool]:
    """Layers of a stage, and whether it is the first and the last."""
    if stage == "interior":
        return plan.most_layers(model), plan.pp == 1, plan.pp == 1
    last = plan.pp - 1
    index = 0 if stage == "first" else last if stage == "last" else stage
    return plan.layers_on(model, index), index == 0, index == last


def _ends(model: Model, plan: Plan, *, first: bool, last: bool) -> float:
    matrix = model.vocab * model.hidden / plan.tp
    embedding = matrix + (model.embedding_params - model.vocab * model.hidden)
    copies_head = not model.tied_embeddings or (last and not first)
    head = model.norm_params + (matrix if copies_head else 0)
    return (embedding if first else 0) + (head if last else 0)
