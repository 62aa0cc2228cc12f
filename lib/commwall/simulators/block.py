r"""One transformer block in float64 numpy, forward and backward by hand, whole.

Pre-norm, as in LLaMA: $y = x + \text{Attention}(\text{RMSNorm}(x))$, then the same
again with SwiGLU in place of attention.
This is the oracle that every way of splitting a model has to equal.

Attention and the feed-forward layer take their number of heads and their width from
the weights they are given, so a rank that holds an eighth of the heads runs the very
same code (`sharded`).

Leaves out biases, dropout and rotary positions, none of which sends anything.
zhang2019rmsnorm (RMSNorm), shazeer2020glu (SwiGLU), touvron2023llama2.
"""

from __future__ import annotations

import numpy as np

from commwall.simulators.attention import Array, attention, attention_gradients

Weights = dict[str, Array]
EPSILON = 1e-5


def random_weights(
    rng: np.random.Generator,
    *,
    hidden: int,
    heads: int,
    kv_heads: int,
    head_dim: int,
    ffn: int,
) -> Weights:
    """Weights of one block, so scaled that activations neither grow nor fade."""
    shapes = {
        "q": (hidden, heads * head_dim),
        "k": (hidden, kv_heads * head_dim),
        "v": (hidden, kv_heads * head_dim),
        "o": (heads * head_dim, hidden),
        "gate": (hidden, ffn),
        "up": (hidden, ffn),
        "down": (ffn, hidden),
    }
    weights = {
        name: rng.normal(size=shape) / np.sqrt(shape[0])
        for name, shape in shapes.items()
    }
    gains = {name: 1 + rng.normal(size=hidden) / 10 for name in ("norm1", "norm2")}
    return weights | gains


def block(x: Array, weights: Weights, head_dim: int) -> tuple[Array, tuple]:
    """Output of the block for x (batch, seq, hidden), and what backward needs."""
    normed, norm1 = rms_norm(x, weights["norm1"])
    mixed, first = self_attention(normed, weights, head_dim)
    middle = x + mixed
    normed, norm2 = rms_norm(middle, weights["norm2"])
    fed, second = feed_forward(normed, weights)
    return middle + fed, (norm1, first, norm2, second)


def block_gradients(
    dout: Array, weights: Weights, saved: tuple
) -> tuple[Array, Weights]:
    """Gradients of the input and of every weight, given that of the output."""
    norm1, first, norm2, second = saved
    dnormed, ffn = feed_forward_gradients(dout, weights, second)
    dx, gain2 = rms_norm_gradients(dnormed, norm2)
    dmiddle = dout + dx
    dnormed, mixing = self_attention_gradients(dmiddle, weights, first)
    dx, gain1 = rms_norm_gradients(dnormed, norm1)
    return dmiddle + dx, mixing | ffn | {"norm1": gain1, "norm2": gain2}


def rms_norm(x: Array, gain: Array) -> tuple[Array, tuple]:
    """Each token divided by its root mean square, times a gain for each channel."""
    scale = 1 / np.sqrt(np.mean(x**2, axis=-1, keepdims=True) + EPSILON)
    return x * scale * gain, (x * scale, scale, gain)


def rms_norm_gradients(dout: Array, saved: tuple) -> tuple[Array, Array]:
    """Gradients of the input and of the gain, which sums over all tokens."""
    unit, scale, gain = saved
    dunit = dout * gain
    dx = scale * (dunit - unit * np.mean(dunit * unit, axis=-1, keepdims=True))
    return dx, np.einsum("bsh,bsh->h", dout, unit)


def self_attention(x: Array, weights: Weights, head_dim: int) -> tuple[Array, tuple]:
    """Causal attention among the heads whose weights are given, projected back."""
    q, k, v = (_split_heads(x @ weights[name], head_dim) for name in "qkv")
    mixed, softmax = attention(q, k, v)
    joined = _join_heads(mixed)
    return joined @ weights["o"], (x, q, k, v, softmax, joined)


def self_attention_gradients(
    dout: Array, weights: Weights, saved: tuple
) -> tuple[Array, Weights]:
    """Gradients of the input and of the four projections."""
    x, q, k, v, softmax, joined = saved
    dmixed = _split_heads(dout @ weights["o"].T, head_dim=q.shape[-1])
    parts = attention_gradients(dmixed, q, k, v, softmax)
    dqkv = {name: _join_heads(part) for name, part in zip("qkv", parts, strict=True)}
    dx = sum(part @ weights[name].T for name, part in dqkv.items())
    gradients = {name: _weight_gradient(x, part) for name, part in dqkv.items()}
    return dx, gradients | {"o": _weight_gradient(joined, dout)}


def feed_forward(x: Array, weights: Weights) -> tuple[Array, tuple]:
    """SwiGLU: a gate, squashed, times a second projection, projected back."""
    gate, up = x @ weights["gate"], x @ weights["up"]
    sigmoid = 1 / (1 + np.exp(-gate))
    middle = gate * sigmoid * up
    return middle @ weights["down"], (x, gate, up, sigmoid, middle)


def feed_forward_gradients(
    dout: Array, weights: Weights, saved: tuple
) -> tuple[Array, Weights]:
    """Gradients of the input and of the three projections."""
    x, gate, up, sigmoid, middle = saved
    dmiddle = dout @ weights["down"].T
    dup = dmiddle * gate * sigmoid
    dgate = dmiddle * up * sigmoid * (1 + gate * (1 - sigmoid))
    gradients = {
        "gate": _weight_gradient(x, dgate),
        "up": _weight_gradient(x, dup),
        "down": _weight_gradient(middle, dout),
    }
    return dgate @ weights["gate"].T + dup @ weights["up"].T, gradients


def _split_heads(x: Array, head_dim: int) -> Array:
    batch, seq, width = x.shape
    return x.reshape(batch, seq, width // head_dim, head_dim).swapaxes(1, 2)


def _join_heads(x: Array) -> Array:
    batch, heads, seq, head_dim = x.shape
    return x.swapaxes(1, 2).reshape(batch, seq, heads * head_dim)


def _weight_gradient(x: Array, dout: Array) -> Array:
    return np.einsum("bsi,bso->io", x, dout)
