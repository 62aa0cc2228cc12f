"""The whole block, the oracle of every split: its gradients are slopes."""

import numpy as np
import pytest

from commwall.simulators.block import block, block_gradients, random_weights, rms_norm

HEAD_DIM = 4
SHAPE = {"hidden": 24, "heads": 16, "kv_heads": 8, "head_dim": HEAD_DIM, "ffn": 40}


def example():
    """Weights, an input and a gradient of the output."""
    rng = np.random.default_rng(0)
    weights = random_weights(rng, **SHAPE)
    return weights, *rng.normal(size=(2, 2, 16, 24))


@pytest.mark.parametrize(
    "name", ["x", *sorted(random_weights(np.random.default_rng(0), **SHAPE))]
)
def test_every_gradient_of_the_whole_block_is_a_slope(name):
    """Central differences along a random direction: the oracle itself is checked."""
    weights, x, dout = example()
    inputs = weights | {"x": x}
    direction = np.random.default_rng(1).normal(size=inputs[name].shape)
    step = 1e-5

    def value(sign):
        moved = inputs | {name: inputs[name] + sign * step * direction}
        return np.sum(dout * block(moved["x"], moved, HEAD_DIM)[0])

    _, saved = block(x, weights, HEAD_DIM)
    dx, gradients = block_gradients(dout, weights, saved)
    slope = np.sum((gradients | {"x": dx})[name] * direction)
    assert (value(1) - value(-1)) / (2 * step) == pytest.approx(slope, rel=1e-7)


def test_a_normed_token_has_unit_mean_square_times_the_gain():
    x = np.random.default_rng(0).normal(size=(1, 2, 1000)) * [[[5.0], [0.2]]]

    normed, _ = rms_norm(x, np.full(1000, 3.0))

    assert np.sqrt(np.mean(normed**2, axis=-1)) == pytest.approx(3.0, rel=1e-3)


def test_a_block_changes_no_token_because_of_a_later_one():
    weights, x, _ = example()
    changed = x.copy()
    changed[:, -1] += 1

    before, after = (block(each, weights, HEAD_DIM)[0] for each in (x, changed))

    assert np.array_equal(before[:, :-1], after[:, :-1])
    assert not np.allclose(before[:, -1], after[:, -1])
