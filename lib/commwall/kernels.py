r"""Seconds of one GPU's kernels: matrix products, and kernels bound by memory.

A matrix product runs tile by tile, one tile on each multiprocessor at a time; a norm or
an activation takes as long as its bytes. Leaves out: caches, and kernels that run side
by side.
"""

from functools import lru_cache
from math import ceil

from commwall.hardware import GPU
from commwall.model import Model
from commwall.plan import Plan
from commwall.rules import nonnegative, positive
from commwall.units import Bytes, FlopPerSecond, Seconds

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
    "product_rate",
    "product_time",
    "score_bytes",
]

SUSTAINED = {"fused": 0.89, "eager": 0.80}
"""Fraction of a GPU's best measured product that a long product holds in training, by
software: kernels fused by hand or compiler, or PyTorch operation by operation. The two
fitted constants: to 18 runs of Megatron, and to 36 of InternEvo and PaddleNLP."""

MEMORY_FRACTION = 0.85
"""Fraction of the memory's data-sheet bandwidth that streaming kernels reach."""

PROLOGUE = 200
"""Steps of k that a tile spends filling its pipeline and writing its result."""

LOSS_BYTES = {"fused": 32, "eager": 60}
"""Bytes that the loss moves for each logit, forward and backward. Fused: cast to fp32
(2 + 4), reduce (4), softmax (4 + 4), gradient (4 + 4), cast back (4 + 2). Operation by
operation: cast (2 + 4), maximum (4), subtract (4 + 4), exponential (4 + 4), sum (4),
divide (4 + 4), gradient (4 + 4 twice), cast back (4 + 2)."""

TILES = ((128, 256, 1.0), (256, 128, 1.0), (128, 128, 0.95), (64, 128, 0.85))
"""Rows and columns of the tiles a library chooses from, and their relative rate."""

_FUSED = Plan(fused_kernels=True)


def memory_time(size: Bytes, gpu: GPU) -> Seconds:
    """Seconds to read or write `size` bytes of the GPU's own memory."""
    return nonnegative("size", size) / (MEMORY_FRACTION * gpu.memory_bandwidth)


def product_rate(gpu: GPU, plan: Plan = _FUSED) -> FlopPerSecond:
    """FLOP/s that a long product holds on this GPU, in the plan's arithmetic."""
    return SUSTAINED[plan.kernels] * gpu.best_product(plan.precision.arithmetic)


def matmul_time(
    m: float,
    n: float,
    k: float,
    gpu: GPU,
    batch: float = 1,
    *,
    rate: FlopPerSecond | None = None,
    width: Bytes = 2,
) -> Seconds:
    r"""`batch` products of m x k by k x n, in whole waves of tiles.

    $$t = \min_\text{tiles} \left\lceil \frac{\text{tiles}}{\text{SMs}} \right\rceil
    \frac{2\,t_m t_n (k + k_0)}{\eta F / \text{SMs}}$$

    and never faster than its bytes, `width` a value. A last wave that is nearly empty
    costs as much as a full one, which is why a product cut eight ways takes more than
    an eighth. `rate` is what a long product holds, by default in fused bf16 training.
    """
    for field, size in (("m", m), ("n", n), ("k", k), ("batch", batch)):
        positive(field, size)
    rate = product_rate(gpu) if rate is None else positive("rate", rate)
    return _matmul_time(m, n, k, batch, gpu.sms, rate, gpu.memory_bandwidth, width)


@lru_cache(maxsize=65536)
def _matmul_time(m, n, k, batch, sms, rate, memory_bandwidth, width) -> Seconds:
    steps = min(
        ceil(batch * ceil(m / rows) * ceil(n / columns) / sms) * rows * columns / speed
        for rows, columns, speed in TILES
    )
    flop = 2 * steps * (k + PROLOGUE) * sms
    size = width * batch * (m * k + k * n + m * n)
    return max(flop / rate, size / (MEMORY_FRACTION * memory_bandwidth))


def product_time(
    m: float, n: float, k: float, gpu: GPU, plan: Plan, batch: float = 1
) -> Seconds:
    """`matmul_time` in the plan's software and arithmetic."""
    rate, width = product_rate(gpu, plan), plan.precision.activations
    return _matmul_time(m, n, k, batch, gpu.sms, rate, gpu.memory_bandwidth, width)


def layer_matmul_time(model: Model, plan: Plan, gpu: GPU) -> Seconds:
    """One layer's matrix products forward, for one micro-batch, without attention.

    A mixture of experts counts the experts a token visits, evenly filled; layers of
    both kinds are averaged.
    """
    tokens = plan.micro_batch * model.seq / plan.cp
    h, tp, d = model.hidden, plan.tp, model.head_dim
    width = (model.heads + 2 * model.kv_heads) * d / tp
    attention = product_time(tokens, width, h, gpu, plan)
    attention += product_time(tokens, h, model.heads * d / tp, gpu, plan)
    dense = _mlp_time(model, model.ffn, tokens, plan, gpu) if model.dense_layers else 0
    if not model.moe_layers:
        return attention + dense
    local = model.experts // plan.ep
    routed = tokens * model.top_k / model.experts * plan.ep
    moe = local * _mlp_time(model, model.moe_ffn, routed, plan, gpu)
    shared = model.shared_experts * model.moe_ffn
    moe += _mlp_time(model, shared, tokens, plan, gpu) if shared else 0.0
    of_dense = model.dense_layers / model.layers
    return attention + of_dense * dense + (1 - of_dense) * moe


def _mlp_time(model: Model, width: int, tokens: float, plan: Plan, gpu: GPU) -> Seconds:
    inner = width * (2 if model.gated_mlp else 1) / plan.tp
    up = product_time(tokens, inner, model.hidden, gpu, plan)
    return up + product_time(tokens, model.hidden, width / plan.tp, gpu, plan)


def attention_time(model: Model, plan: Plan, gpu: GPU) -> Seconds:
    r"""Attention's two products forward, one layer and micro-batch.

    Unfused, they are a batch of small products, one per head, over all of $s \times s$:
    queries by keys is only a head deep, so filling the tile costs more than using it.
    A fused kernel skips the masked half, at a rate of its own: the exponentials between
    the products take time too.
    """
    s, d = model.seq, model.head_dim
    queries, heads = s / plan.cp, plan.micro_batch * model.heads / plan.tp
    if plan.fused_attention:
        return 2 * heads * queries * s * d / gpu.fused_attention
    scores = product_time(queries, s, d, gpu, plan, heads)
    return scores + product_time(queries, d, s, gpu, plan, heads)


def elementwise_bytes(model: Model, plan: Plan) -> Bytes:
    r"""Bytes that one layer's memory-bound kernels move forward, for one micro-batch.

    In values a token: two norms read and write (4h), two residual additions read two
    and write one (6h, and a byte for a dropout mask). Fused, biases or rotations read
    and write queries, keys and values once, and the activation reads and writes the
    feed-forward middle. Operation by operation, queries, keys and values are copied
    three times (transposed, rotated, laid out for the kernel) and the output once, and
    a gate is a kernel of its own. korthikanti2022 names the kernels; the counts are our
    own. `score_bytes` is apart, since selective recomputation repeats it alone.
    """
    tokens = plan.micro_batch * model.seq / plan.cp
    spread = plan.tp if plan.sequence_parallel else 1
    between = 10 * model.hidden / spread
    qkv = (model.heads + 2 * model.kv_heads) * model.head_dim / plan.tp
    middle = _mean_ffn(model) / plan.tp
    if plan.fused_kernels:
        inside = 2 * qkv + (3 if model.gated_mlp else 2) * middle
    else:
        output = model.heads * model.head_dim / plan.tp
        inside = 6 * qkv + 2 * output + (5 if model.gated_mlp else 2) * middle
    masks = (2 if model.dropout else 0) * model.hidden / spread
    return tokens * (plan.precision.activations * (between + inside) + masks)


def score_bytes(model: Model, plan: Plan) -> Bytes:
    r"""Bytes that unfused softmax, mask and dropout move over the $s \times s$ scores.

    Softmax reads and writes, dropout reads, writes and keeps a mask of a byte.
    """
    if plan.fused_attention:
        return 0.0
    tokens = plan.micro_batch * model.seq / plan.cp
    width = plan.precision.activations
    each = 4 * width + 1 if model.dropout else 2 * width
    return each * tokens * model.seq * model.heads / plan.tp


def _mean_ffn(model: Model) -> float:
    experts = model.top_k + model.shared_experts
    moe = model.moe_layers * experts * model.moe_ffn
    return (model.dense_layers * model.ffn + moe) / model.layers
