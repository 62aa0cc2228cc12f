r"""Seconds of one GPU's kernels: matrix products, and kernels bound by memory.

A matrix product runs tile by tile, one tile on each multiprocessor at a time; a norm or
an activation takes as long as its bytes. Leaves out: launch overhead, caches, power
limits, and kernels that run side by side.
"""

from functools import lru_cache
from math import ceil

from commwall.hardware import GPU
from commwall.model import Model
from commwall.plan import Plan
from commwall.rules import nonnegative, positive
from commwall.units import Bytes, Seconds

__all__ = [
    "LOSS_BYTES",
    "MEMORY_FRACTION",
    "PROLOGUE",
    "SUSTAINED",
    "TILES",
    "attention_time",
    "elementwise_bytes",
    "layer_matmul_time",
    "matmul_time",
    "memory_time",
    "score_bytes",
]

SUSTAINED = 0.77
"""Fraction of the peak that a long matrix product holds; the one fitted constant."""

MEMORY_FRACTION = 0.85
"""Fraction of the memory's data-sheet bandwidth that streaming kernels reach."""

PROLOGUE = 200
"""Steps of k that a tile spends filling its pipeline and writing its result."""

LOSS_BYTES = 32
"""Bytes that the loss moves for each logit, forward and backward: cast to fp32 (2 + 4),
reduce (4), softmax (4 + 4), gradient (4 + 4), cast back (4 + 2)."""

TILES = ((128, 256, 1.0), (256, 128, 1.0), (128, 128, 0.95), (64, 128, 0.85))
"""Rows and columns of the tiles a library chooses from, and their relative rate."""


def memory_time(size: Bytes, gpu: GPU) -> Seconds:
    """Seconds to read or write `size` bytes of the GPU's own memory."""
    return nonnegative("size", size) / (MEMORY_FRACTION * gpu.memory_bandwidth)


def matmul_time(m: float, n: float, k: float, gpu: GPU, batch: float = 1) -> Seconds:
    r"""`batch` products of m x k by k x n, in whole waves of tiles.

    $$t = \min_\text{tiles} \left\lceil \frac{\text{tiles}}{\text{SMs}} \right\rceil
    \frac{2\,t_m t_n (k + k_0)}{\eta F / \text{SMs}}$$

    and never faster than its bytes. A last wave that is nearly empty costs as much as
    a full one, which is why a product cut eight ways takes more than an eighth.
    """
    for field, size in (("m", m), ("n", n), ("k", k), ("batch", batch)):
        positive(field, size)
    return _matmul_time(m, n, k, batch, gpu.sms, gpu.compute, gpu.memory_bandwidth)


@lru_cache(maxsize=65536)
def _matmul_time(m, n, k, batch, sms, compute, memory_bandwidth) -> Seconds:
    steps = min(
        ceil(batch * ceil(m / rows) * ceil(n / columns) / sms) * rows * columns / rate
        for rows, columns, rate in TILES
    )
    flop = 2 * steps * (k + PROLOGUE) * sms
    size = 2 * batch * (m * k + k * n + m * n)
    memory = size / (MEMORY_FRACTION * memory_bandwidth)
    return max(flop / (SUSTAINED * compute), memory)


def layer_matmul_time(model: Model, plan: Plan, gpu: GPU) -> Seconds:
    """One layer's matrix products forward, for one micro-batch, without attention.

    A mixture of experts counts the experts a token visits, evenly filled; layers of
    both kinds are averaged.
    """
    tokens = plan.micro_batch * model.seq / plan.cp
    h, tp, d = model.hidden, plan.tp, model.head_dim
    attention = matmul_time(tokens, (model.heads + 2 * model.kv_heads) * d / tp, h, gpu)
    attention += matmul_time(tokens, h, model.heads * d / tp, gpu)
    dense = _mlp_time(model, model.ffn, tokens, tp, gpu) if model.dense_layers else 0.0
    if not model.moe_layers:
        return attention + dense
    local = model.experts // plan.ep
    routed = tokens * model.top_k / model.experts * plan.ep
    moe = local * _mlp_time(model, model.moe_ffn, routed, tp, gpu)
    shared = model.shared_experts * model.moe_ffn
    moe += _mlp_time(model, shared, tokens, tp, gpu) if shared else 0.0
    of_dense = model.dense_layers / model.layers
    return attention + of_dense * dense + (1 - of_dense) * moe


def _mlp_time(model: Model, width: int, tokens: float, tp: int, gpu: GPU) -> Seconds:
    inner = width * (2 if model.gated_mlp else 1) / tp
    up = matmul_time(tokens, inner, model.hidden, gpu)
    return up + matmul_time(tokens, model.hidden, width / tp, gpu)


def attention_time(model: Model, plan: Plan, gpu: GPU) -> Seconds:
    r"""Attention's two products forward, one layer and micro-batch.

    Unfused, they are a batch of small products, one per head, over all of $s \times s$:
    queries by keys is only a head deep, so filling the tile costs more than using it.
    A fused kernel skips the masked half. Leaves out: that fused kernels sustain
    somewhat less than a plain matrix product.
    """
    s, d = model.seq, model.head_dim
    queries, heads = s / plan.cp, plan.micro_batch * model.heads / plan.tp
    if plan.fused_attention:
        return 2 * heads * queries * s * d / (SUSTAINED * gpu.compute)
    scores = matmul_time(queries, s, d, gpu, heads)
    return scores + matmul_time(queries, d, s, gpu, heads)


def elementwise_bytes(model: Model, plan: Plan) -> Bytes:
    r"""Bytes that one layer's memory-bound kernels move forward, for one micro-batch.

    Two bytes a value: two norms read and write (8h a token), two residual additions
    read two and write one (12h, and a byte for a dropout mask), the activation reads
    and writes the feed-forward middle, biases or rotations read and write queries, keys
    and values. korthikanti2022 names the kernels; the counts are our own.
    `score_bytes` is apart, since selective recomputation repeats it alone.
    """
    tokens = plan.micro_batch * model.seq / plan.cp
    spread = plan.tp if plan.sequence_parallel else 1
    between = (20 + (2 if model.dropout else 0)) * model.hidden / spread
    qkv = 4 * (model.heads + 2 * model.kv_heads) * model.head_dim / plan.tp
    middle = (6 if model.gated_mlp else 4) * _mean_ffn(model) / plan.tp
    return tokens * (between + qkv + middle)


def score_bytes(model: Model, plan: Plan) -> Bytes:
    r"""Bytes that unfused softmax, mask and dropout move over the $s \times s$ scores.

    Softmax reads and writes (4 bytes), dropout reads, writes and keeps a mask (5).
    """
    if plan.fused_attention:
        return 0.0
    tokens = plan.micro_batch * model.seq / plan.cp
    each = 9 if model.dropout else 4
    return each * tokens * model.seq * model.heads / plan.tp


def _mean_ffn(model: Model) -> float:
    experts = model.top_k + model.shared_experts
    moe = model.moe_layers * experts * model.moe_ffn
    return (model.dense_layers * model.ffn + moe) / model.layers
