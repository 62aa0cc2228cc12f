r"""A stack of blocks and a loss, split by sequences and split by layers.

The loss is half the squared distance to a target, summed over a sequence and averaged
over the batch, so that gradients of equal shares of a batch average to those of all.

- *data parallel*: each replica takes some sequences; gradients are averaged, once;
- *pipeline*: each stage takes some layers; activations cross the p - 1 boundaries
  between them, and their gradients cross back.

narayanan2021; li2020ddp (data parallel).

Leaves out embeddings and overlap: a stage here waits for the one before it, so the
wire's steps are messages one after another, not the schedule (that is `pipeline`).
"""

from __future__ import annotations

import numpy as np

from commwall.simulators.block import Array, Weights, block, block_gradients
from commwall.simulators.counting import ring_all_reduce
from commwall.simulators.wire import Wire

Stack = list[Weights]


def loss(out: Array, target: Array) -> float:
    """Half the squared distance of a sequence, averaged over the batch."""
    return 0.5 * float(np.sum((out - target) ** 2)) / len(out)


def forward(x: Array, stack: Stack, head_dim: int) -> tuple[Array, list[tuple]]:
    """Output of the last block, and what every block keeps."""
    saved = []
    for weights in stack:
        x, kept = block(x, weights, head_dim)
        saved.append(kept)
    return x, saved


def backward(dout: Array, stack: Stack, saved: list[tuple]) -> tuple[Array, Stack]:
    """Gradients of the stack's input and of all its weights."""
    gradients = []
    for weights, kept in zip(reversed(stack), reversed(saved), strict=True):
        dout, mine = block_gradients(dout, weights, kept)
        gradients.append(mine)
    return dout, gradients[::-1]


def gradient(x: Array, target: Array, stack: Stack, head_dim: int) -> Array:
    """All weight gradients of the loss in one vector, on one rank."""
    out, saved = forward(x, stack, head_dim)
    _, gradients = backward((out - target) / len(x), stack, saved)
    return flat(gradients)


def flat(stack: Stack) -> Array:
    """All weights, or all gradients, in one vector."""
    return np.concatenate(
        [weights[name].ravel() for weights in stack for name in sorted(weights)]
    )


def data_parallel(
    x: Array, target: Array, stack: Stack, head_dim: int, dp: int
) -> tuple[list[Array], Wire]:
    """The gradient of the whole batch at each of dp replicas: one all-reduce."""
    if len(x) % dp:
        raise ValueError(f"a batch of {len(x)} is not a multiple of {dp=}")
    shares = zip(np.split(x, dp), np.split(target, dp), strict=True)
    own = [gradient(*share, stack, head_dim) for share in shares]
    sums, wire = ring_all_reduce(own)
    return [total / dp for total in sums], wire


def pipeline_parallel(
    x: Array, target: Array, stack: Stack, head_dim: int, pp: int, micro_batches: int
) -> tuple[Array, Wire]:
    """The gradient of the whole batch, from pp stages that each hold some layers."""
    if len(x) % micro_batches:
        raise ValueError(f"a batch of {len(x)} is not a multiple of {micro_batches=}")
    if not 1 <= pp <= len(stack):
        raise ValueError(f"{pp=} stages do not fit {len(stack)} layers")
    cuts = [chunk.tolist() for chunk in np.array_split(np.arange(len(stack)), pp)]
    stages = [[stack[layer] for layer in layers] for layers in cuts]
    wire = Wire(pp)
    total = 0.0
    shares = (np.split(whole, micro_batches) for whole in (x, target))
    for inputs, wanted in zip(*shares, strict=True):
        out, saved = _down(inputs, stages, head_dim, wire)
        total += flat(_up((out - wanted) / len(x), stages, saved, wire))
    return total, wire


def _down(
    x: Array, stages: list[Stack], head_dim: int, wire: Wire
) -> tuple[Array, list[list[tuple]]]:
    saved = []
    for stage, layers in enumerate(stages):
        x, kept = forward(x, layers, head_dim)
        saved.append(kept)
        if stage + 1 < len(stages):
            x = wire.step({(stage, stage + 1): x})[stage, stage + 1]
    return x, saved


def _up(
    dout: Array, stages: list[Stack], saved: list[list[tuple]], wire: Wire
) -> Stack:
    gradients: Stack = []
    for stage in reversed(range(len(stages))):
        dout, mine = backward(dout, stages[stage], saved[stage])
        gradients = mine + gradients
        if stage > 0:
            dout = wire.step({(stage, stage - 1): dout})[stage, stage - 1]
    return gradients
