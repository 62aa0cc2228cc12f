"""A block and a stack in miniature, run over ranks, to see what is sent and what not.

The sizes are chosen so that no two kinds of tensor are equally large: the payload of a
collective says what it carried. The counts do not depend on the sizes.
"""

from functools import cache

import numpy as np

from commwall.simulators.block import random_weights
from commwall.simulators.sharded import Sharded, tensor_parallel
from commwall.simulators.stacks import pipeline_parallel

TOKENS, HIDDEN, HEADS, KV_HEADS, HEAD_DIM, FFN = 5, 16, 4, 2, 6, 40
RANKS = 2
WIDTHS = {"q": HEADS * HEAD_DIM, "k": KV_HEADS * HEAD_DIM, "v": KV_HEADS * HEAD_DIM,
          "ffn middle": FFN}  # fmt: skip


@cache
def sharded_block() -> Sharded:
    """One block forward and backward on two tensor-parallel ranks."""
    rng = np.random.default_rng(0)
    weights = random_weights(rng, hidden=HIDDEN, heads=HEADS, kv_heads=KV_HEADS,
                             head_dim=HEAD_DIM, ffn=FFN)  # fmt: skip
    x = rng.normal(size=(1, TOKENS, HIDDEN))
    return tensor_parallel(x, rng.normal(size=x.shape), weights, HEAD_DIM, RANKS)


def collectives_of_a_layer() -> int:
    """Collectives of one block, forward and backward. shoeybi2019."""
    return len(sharded_block().calls)


def collectives_of_the_stream() -> int:
    """Those whose payload is the stream between layers: tokens times hidden size."""
    stream = TOKENS * HIDDEN * np.dtype(float).itemsize
    return sum(call.payload == stream for call in sharded_block().calls)


def backward_collectives() -> int:
    """Those that carry gradients of activations backward."""
    return sum(call.name.startswith("backward") for call in sharded_block().calls)


def tensors_sent(tensors: str) -> int:
    """Collectives that carried one of these tensors, whole or one rank's part of it.

    `tensors` are names out of `WIDTHS`, with commas between.
    """
    widths = [WIDTHS[name.strip()] for name in tensors.split(",")]
    whole = {TOKENS * width * np.dtype(float).itemsize for width in widths}
    sizes = whole | {size // RANKS for size in whole}
    return sum(call.payload in sizes for call in sharded_block().calls)


def weight_gradients_sent() -> int:
    """Collectives whose payload is the gradient of a weight, whole or one rank's."""
    sizes = set()
    for gradient in sharded_block().weight_gradients[0].values():
        sizes |= {gradient.nbytes, RANKS * gradient.nbytes}
    return sum(call.payload in sizes for call in sharded_block().calls)


@cache
def boundaries_crossed(layers: int = 80, stages: int = 8) -> int:
    """Places between layers at which a micro-batch's activations change GPU.

    Counted on a stack of tiny layers; each crossing is one message forward and one
    backward. huang2019.
    """
    rng = np.random.default_rng(0)
    stack = [
        random_weights(rng, hidden=4, heads=2, kv_heads=1, head_dim=2, ffn=4)
        for _ in range(layers)
    ]
    x = rng.normal(size=(1, 2, 4))
    _, wire = pipeline_parallel(x, x, stack, 2, stages, 1)
    return wire.messages // 2
