"""Attention with grouped queries in numpy, forward and backward, whole.

The oracle that context and tensor parallelism have to equal.
Shapes, after any leading axes: queries (heads, seq, head_dim), keys and values
(kv_heads, seq, head_dim), where consecutive heads share one key-value head.

Leaves out rotary positions and dropout: both act on each value where it is and send
nothing.
vaswani2017; grouped queries ainslie2023gqa.
"""

from __future__ import annotations

import numpy as np

Array = np.ndarray


def attention(q: Array, k: Array, v: Array, causal: bool = True) -> tuple[Array, Array]:
    """Softmax of the scores times the values, and the softmax for the way back."""
    seen = visible(np.arange(q.shape[-2]), np.arange(k.shape[-2]), causal)
    logits = scores(q, k, seen)
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return weights @ spread(v, like=q), weights


def attention_gradients(
    dout: Array, q: Array, k: Array, v: Array, weights: Array
) -> tuple[Array, Array, Array]:
    """Gradients of queries, keys and values, given that of the output."""
    dweights = dout @ transposed(spread(v, like=q))
    mean = (weights * dweights).sum(axis=-1, keepdims=True)
    dlogits = weights * (dweights - mean) / np.sqrt(q.shape[-1])
    dq = dlogits @ spread(k, like=q)
    dk = folded(transposed(dlogits) @ q, like=k)
    dv = folded(transposed(weights) @ dout, like=v)
    return dq, dk, dv


def visible(query_places: Array, key_places: Array, causal: bool) -> Array:
    """True where a query may look at a key: everywhere, or at none after itself."""
    return (key_places <= query_places[:, None]) | (not causal)


def scores(q: Array, k: Array, seen: Array) -> Array:
    """Scaled products of queries and keys, minus infinity where not visible."""
    logits = q @ transposed(spread(k, like=q)) / np.sqrt(q.shape[-1])
    return np.where(seen, logits, -np.inf)


def spread(kv: Array, like: Array) -> Array:
    """Keys or values repeated so that every query head has its own."""
    return np.repeat(kv, like.shape[-3] // kv.shape[-3], axis=-3)


def folded(gradient: Array, like: Array) -> Array:
    """The transpose of `spread`: a sum over the heads that share a key-value head."""
    *lead, heads, seq, head_dim = gradient.shape
    kv_heads = like.shape[-3]
    grouped = (*lead, kv_heads, heads // kv_heads, seq, head_dim)
    return gradient.reshape(grouped).sum(axis=-3)


def transposed(array: Array) -> Array:
    """The array with its last two axes exchanged."""
    return np.swapaxes(array, -1, -2)
