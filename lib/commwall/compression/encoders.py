"""The codecs as numpy: what a rank really sends, and what its peers read from it.

The first axis of `values` is the rank, and each rank encodes its own tensor: `encode`
returns the arrays that go over the wire, and `codecs` counts their bytes. Leaves out:
kernels that do it in one pass, and overlap.
"""

from collections.abc import Callable
from math import prod

import numpy as np

from commwall.compression.codecs import (
    BFloat16,
    Codec,
    Int8,
    LowRank,
    Shape,
    Sign,
    TopK,
    as_matrix,
)

Array = np.ndarray
Parts = tuple[Array, ...]


def _over(per_rank: Array, values: Array) -> Array:
    """One number a rank, shaped to multiply that rank's tensor."""
    return per_rank.reshape(-1, *[1] * (values.ndim - 1))


def to_bfloat16(values: Array) -> Array:
    """The upper 16 bits of each value, rounded to nearest, ties to even.

    >>> to_bfloat16(np.array([1.0, 1.00390625]))  # 1 + 2**-8 lies halfway: to even
    array([16256, 16256], dtype=uint16)
    """
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    rounded = bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
    return (rounded >> np.uint32(16)).astype(np.uint16)


def from_bfloat16(halves: Array) -> Array:
    """Values whose lower 16 bits are zero."""
    return (halves.astype(np.uint32) << np.uint32(16)).view(np.float32)


def _flat(values: Array) -> Array:
    return values.reshape(len(values), -1)


def _encode_int8(codec: Int8, values: Array) -> Parts:
    scale = np.abs(_flat(values)).max(axis=1) / np.float32(127)
    steps = np.where(scale > 0, scale, np.float32(1))
    return np.rint(values / _over(steps, values)).astype(np.int8), scale


def _decode_int8(parts: Parts, shape: Shape) -> Array:
    levels, scale = parts
    return levels * _over(scale, levels)


def _encode_sign(codec: Sign, values: Array) -> Parts:
    flat = _flat(values)
    return np.packbits(flat >= 0, axis=1), np.abs(flat).mean(axis=1)


def _decode_sign(parts: Parts, shape: Shape) -> Array:
    bits, scale = parts
    ones = np.unpackbits(bits, axis=1, count=prod(shape)).reshape(-1, *shape)
    return (2 * ones.astype(np.float32) - 1) * _over(scale, ones)


def _encode_top_k(codec: TopK, values: Array) -> Parts:
    flat, kept = _flat(values), codec.kept(values.shape[1:])
    places = np.argpartition(np.abs(flat), -kept, axis=1)[:, -kept:]
    return np.take_along_axis(flat, places, axis=1), places.astype(np.uint32)


def _decode_top_k(parts: Parts, shape: Shape) -> Array:
    kept, places = parts
    values = np.zeros((len(kept), prod(shape)), dtype=kept.dtype)
    np.put_along_axis(values, places.astype(np.int64), kept, axis=1)
    return values.reshape(-1, *shape)


_ENCODE: dict[type[Codec], Callable] = {
    Codec: lambda codec, values: (values,),
    BFloat16: lambda codec, values: (to_bfloat16(values),),
    Int8: _encode_int8,
    Sign: _encode_sign,
    TopK: _encode_top_k,
}
_DECODE: dict[type[Codec], Callable] = {
    Codec: lambda parts, shape: parts[0],
    BFloat16: lambda parts, shape: from_bfloat16(parts[0]),
    Int8: _decode_int8,
    Sign: _decode_sign,
    TopK: _decode_top_k,
}


def encode(codec: Codec, values: Array) -> Parts:
    """The arrays that stand for a tensor, rank by rank; for low rank see `factors`."""
    return _ENCODE[type(codec)](codec, values)


def decode(codec: Codec, parts: Parts, shape: Shape) -> Array:
    """The tensors that those arrays stand for."""
    return _DECODE[type(codec)](parts, shape)


def rounded(codec: Codec, values: Array) -> Array:
    """What is left of each rank's tensor after encoding and decoding."""
    return decode(codec, encode(codec, values), values.shape[1:])


def first_factor(codec: LowRank, shape: Shape, seed: int = 0) -> Array:
    """A random right factor to begin with, the same at all ranks."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(as_matrix(shape)[1], codec.rank)).astype(np.float32)


def factors(matrices: Array, right: Array) -> Parts:
    """Left and right factor of the mean of the ranks' matrices: two all-reduces.

    One power iteration from the last step's `right`. vogels2019, algorithm 1.
    """
    left, _ = np.linalg.qr((matrices @ right).mean(axis=0))
    return left, (matrices.swapaxes(1, 2) @ left).mean(axis=0)
