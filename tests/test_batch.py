"""What a bigger batch buys: by hand, by property, and with gradients made up."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commwall.batch import (
    best_batch,
    examples_factor,
    noise_scale,
    steps_factor,
    training_factor,
)

batches = st.floats(1e3, 1e9)


@pytest.mark.parametrize(
    ("batch", "steps", "examples"), [(1e5, 11, 1.1), (1e6, 2, 2), (1e7, 1.1, 11)]
)
def test_steps_and_examples_by_hand(batch, steps, examples):
    """A critical batch of a million: 1 + 1e6/B steps, 1 + B/1e6 examples."""
    assert steps_factor(batch, 1e6) == pytest.approx(steps)
    assert examples_factor(batch, 1e6) == pytest.approx(examples)


@given(batch=batches, critical=batches)
def test_the_hyperbola_of_steps_and_examples(batch, critical):
    """mccandlish2018: (S/S_min - 1)(E/E_min - 1) = 1."""
    more = (steps_factor(batch, critical) - 1) * (examples_factor(batch, critical) - 1)

    assert more == pytest.approx(1)


@given(batch=batches, critical=batches)
def test_examples_are_batch_times_steps(batch, critical):
    steps, examples = steps_factor(batch, critical), examples_factor(batch, critical)

    assert examples * critical == pytest.approx(steps * batch)


@given(critical=batches, half=batches, factor=st.floats(0.01, 100))
def test_no_batch_beats_the_best(critical, half, factor):
    best = best_batch(critical, half)
    least = (1 + (half / critical) ** 0.5) ** 2

    assert training_factor(best, critical, half) == pytest.approx(least)
    assert training_factor(factor * best, critical, half) >= least * (1 - 1e-9)


def test_on_a_perfect_wire_only_the_examples_count():
    assert training_factor(3e6, 1e6, 0) == examples_factor(3e6, 1e6)


def test_the_noise_scale_of_gradients_that_are_made_up():
    """Dimension 50, each with deviation 2 around a mean of squared norm 10: 20."""
    random, mean = np.random.default_rng(0), np.full(50, np.sqrt(10 / 50))
    squares = {
        size: np.mean(
            np.sum((mean + 2 * random.normal(size=(4000, 50)) / size**0.5) ** 2, 1)
        )
        for size in (4, 64)
    }

    assert noise_scale(squares[4], squares[64], 4, 64) == pytest.approx(20, rel=0.05)


def test_two_equal_sizes_tell_nothing():
    with pytest.raises(ValueError, match="small=4 must be less than big=4"):
        noise_scale(2, 2, 4, 4)
