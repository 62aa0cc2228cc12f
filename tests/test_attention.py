"""Whole attention: its gradient is its slope, and heads share keys as they should."""

import numpy as np
import pytest

from commwall.simulators.attention import attention, attention_gradients


def tensors():
    """Queries of 8 heads, keys and values of 4, and a gradient of the output."""
    rng = np.random.default_rng(0)
    return [rng.normal(size=(2, heads, 16, 4)) for heads in (8, 4, 4, 8)]


@pytest.mark.parametrize("causal", [True, False])
def test_the_gradient_of_attention_is_its_slope(causal):
    """Central differences along a random direction, all three inputs at once."""
    q, k, v, dout = tensors()
    rng = np.random.default_rng(1)
    directions = [rng.normal(size=each.shape) for each in (q, k, v)]
    step = 1e-5

    def value(sign):
        pairs = zip((q, k, v), directions, strict=True)
        moved = (each + sign * step * direction for each, direction in pairs)
        return np.sum(dout * attention(*moved, causal)[0])

    _, weights = attention(q, k, v, causal)
    gradients = attention_gradients(dout, q, k, v, weights)
    slope = sum(np.sum(g * d) for g, d in zip(gradients, directions, strict=True))
    assert (value(1) - value(-1)) / (2 * step) == pytest.approx(slope, rel=1e-8)


def test_a_causal_query_does_not_feel_later_keys():
    q, k, v, _ = tensors()
    changed = v.copy()
    changed[..., -1, :] += 1

    before, after = attention(q, k, v)[0], attention(q, k, changed)[0]

    assert np.array_equal(before[..., :-1, :], after[..., :-1, :])
    assert not np.allclose(before[..., -1, :], after[..., -1, :])


def test_two_neighbouring_heads_share_one_pair_of_keys_and_values():
    q, k, v, _ = tensors()

    grouped, _ = attention(q, k, v)
    repeated, _ = attention(q, np.repeat(k, 2, axis=1), np.repeat(v, 2, axis=1))

    assert np.array_equal(grouped, repeated)


def test_with_equal_keys_a_token_takes_the_mean_of_the_values_so_far():
    """Equal keys give equal weights: 1, then halves, then thirds."""
    q, k, v, _ = tensors()

    out, _ = attention(q[:, :4], np.ones_like(k), v)

    expected = np.cumsum(v, axis=-2) / np.arange(1, 17)[:, None]
    assert np.allclose(out, expected, rtol=0, atol=1e-14)
