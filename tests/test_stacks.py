"""Splitting the batch or the layers of a stack changes nothing but what is sent."""

import numpy as np
import pytest

from commwall.simulators.block import random_weights
from commwall.simulators.stacks import (
    data_parallel,
    flat,
    forward,
    gradient,
    loss,
    pipeline_parallel,
)

LAYERS, BATCH, SEQ, HIDDEN, HEAD_DIM = 4, 8, 6, 8, 4
SHAPE = {"hidden": HIDDEN, "heads": 2, "kv_heads": 1, "head_dim": HEAD_DIM, "ffn": 12}


def example():
    """Input, target and a stack of blocks."""
    rng = np.random.default_rng(0)
    stack = [random_weights(rng, **SHAPE) for _ in range(LAYERS)]
    x, target = rng.normal(size=(2, BATCH, SEQ, HIDDEN))
    return x, target, stack, HEAD_DIM


def close(a, b):
    return np.allclose(a, b, rtol=0, atol=1e-12)


def test_the_gradient_of_the_stack_is_the_slope_of_the_loss():
    x, target, stack, head_dim = example()
    rng = np.random.default_rng(1)
    directions = [
        {name: rng.normal(size=each.shape) for name, each in weights.items()}
        for weights in stack
    ]
    step = 1e-6

    def value(sign):
        moved = [
            {name: each + sign * step * way[name] for name, each in weights.items()}
            for weights, way in zip(stack, directions, strict=True)
        ]
        return loss(forward(x, moved, head_dim)[0], target)

    slope = gradient(x, target, stack, head_dim) @ flat(directions)
    assert (value(1) - value(-1)) / (2 * step) == pytest.approx(slope, rel=1e-7)


@pytest.mark.parametrize("dp", [1, 2, 4, 8])
def test_the_mean_gradient_of_the_replicas_is_that_of_the_big_batch(dp):
    expected = gradient(*example())

    gradients, wire = data_parallel(*example(), dp)

    assert len(gradients) == dp
    assert all(close(each, expected) for each in gradients)
    assert wire.steps == 2 * (dp - 1)
    assert sum(wire.values_sent) == 2 * (dp - 1) * expected.size


@pytest.mark.parametrize("pp", [1, 2, 3, 4])
@pytest.mark.parametrize("micro_batches", [1, 2, 8])
def test_a_pipeline_gives_the_gradient_of_the_unsplit_stack(pp, micro_batches):
    total, _ = pipeline_parallel(*example(), pp, micro_batches)

    assert close(total, gradient(*example()))


@pytest.mark.parametrize("micro_batches", [1, 2, 8])
def test_only_the_boundaries_send_activations_one_way_and_gradients_the_other(
    micro_batches,
):
    """b s h numbers a micro-batch: 0 -> 1 -> 2 -> 3 and back, nothing else."""
    payload = BATCH // micro_batches * SEQ * HIDDEN

    _, wire = pipeline_parallel(*example(), 4, micro_batches)

    links = {(0, 1), (1, 2), (2, 3), (3, 2), (2, 1), (1, 0)}
    assert {(message.source, message.target) for message in wire.log} == links
    assert {message.values for message in wire.log} == {payload}
    assert wire.messages == 2 * 3 * micro_batches
    whole = BATCH * SEQ * HIDDEN  # an interior stage sends both ways, an end one way
    assert wire.values_sent == [whole, 2 * whole, 2 * whole, whole]


def test_uneven_shares_are_refused_by_name():
    with pytest.raises(ValueError, match="a batch of 8 is not a multiple of dp=3"):
        data_parallel(*example(), 3)
    with pytest.raises(ValueError, match="is not a multiple of micro_batches=5"):
        pipeline_parallel(*example(), 2, 5)
    with pytest.raises(ValueError, match="pp=5 stages do not fit 4 layers"):
        pipeline_parallel(*example(), 5, 1)
