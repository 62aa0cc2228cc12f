"""Expert parallelism equals the layer on one rank, and its four trips are counted."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commwall.simulators.experts import (
    ExpertParallel,
    balanced_choices,
    mixture,
    mixture_gradients,
)

HIDDEN = 5


def layer(tokens, experts, top_k, seed=0):
    """Tokens, gates, weights and a gradient of the output, for one rank."""
    rng = np.random.default_rng(seed)
    return (
        rng.normal(size=(tokens, HIDDEN)),
        rng.random(size=(tokens, top_k)),
        rng.normal(size=(experts, HIDDEN, HIDDEN)),
        rng.normal(size=(tokens, HIDDEN)),
    )


def split(ranks, x, choices, gates, weights, dout):
    parallel = ExpertParallel(
        *(np.split(weights, ranks), np.split(choices, ranks), np.split(gates, ranks))
    )
    out, *forward = parallel.forward(np.split(x, ranks))
    *gradients, there, back = parallel.backward(np.split(dout, ranks))
    return [out, *gradients], [*forward, there, back]


def test_the_gradients_of_the_layer_are_its_slope():
    """Central differences along random directions; the layer is a cubic, so nearly."""
    x, gates, weights, dout = layer(tokens=6, experts=4, top_k=2)
    choices = balanced_choices(6, 4, 2)
    rng = np.random.default_rng(1)
    directions = [rng.normal(size=each.shape) for each in (x, gates, weights)]
    step = 1e-4

    def value(sign):
        moved = [
            each + sign * step * direction
            for each, direction in zip((x, gates, weights), directions, strict=True)
        ]
        return np.sum(dout * mixture(moved[0], choices, moved[1], moved[2]))

    gradients = mixture_gradients(dout, x, choices, gates, weights)
    slope = sum(np.sum(g * d) for g, d in zip(gradients, directions, strict=True))
    assert (value(1) - value(-1)) / (2 * step) == pytest.approx(slope, rel=1e-7)


@settings(max_examples=60, deadline=None)
@given(
    ranks=st.sampled_from([1, 2, 3, 4]),
    share=st.integers(1, 3),
    tokens=st.integers(1, 6),
    top_k=st.integers(1, 3),
    seed=st.integers(0, 2**32 - 1),
)
def test_any_routing_equals_the_layer_on_one_rank(ranks, share, tokens, top_k, seed):
    """Forward, and the gradients of tokens, gates and weights; balanced or not."""
    experts = ranks * share
    x, gates, weights, dout = layer(ranks * tokens, experts, top_k, seed)
    rng = np.random.default_rng(seed)
    choices = rng.integers(0, experts, size=gates.shape)

    parts, _ = split(ranks, x, choices, gates, weights, dout)

    expected = [
        mixture(x, choices, gates, weights),
        *mixture_gradients(dout, x, choices, gates, weights),
    ]
    for part, reference in zip(parts, expected, strict=True):
        assert np.allclose(np.concatenate(part), reference, rtol=0, atol=1e-12)


@pytest.mark.parametrize("ranks", [1, 2, 4, 8])
@pytest.mark.parametrize("top_k", [1, 2, 8])
def test_balanced_routing_sends_all_but_one_nth_of_its_copies_on_each_trip(
    ranks, top_k
):
    """8 tokens a rank, top_k copies of each: the payload is 8 * top_k * hidden."""
    tokens, experts = 8 * ranks, 8
    x, gates, weights, dout = layer(tokens, experts, top_k)
    choices = balanced_choices(tokens, experts, top_k)

    _, trips = split(ranks, x, choices, gates, weights, dout)

    payload = 8 * top_k * HIDDEN
    for trip in trips:
        assert trip.values_sent == [payload * (ranks - 1) / ranks] * ranks
        assert trip.steps == ranks - 1


def test_a_favourite_expert_makes_one_rank_the_busiest_of_the_way_back():
    """All 16 tokens choose expert 0: 4 a rank go there, 12 come back from one."""
    x, gates, weights, dout = layer(tokens=16, experts=4, top_k=1)
    choices = np.zeros((16, 1), dtype=int)

    _, (there, back, *_) = split(4, x, choices, gates, weights, dout)

    assert there.values_sent == [0, 4 * HIDDEN, 4 * HIDDEN, 4 * HIDDEN]
    assert back.values_sent == [12 * HIDDEN, 0, 0, 0]


@settings(max_examples=60, deadline=None)
@given(experts=st.integers(1, 12), data=st.data())
def test_balanced_choices_differ_within_a_token_and_fill_the_experts_alike(
    experts, data
):
    top_k = data.draw(st.integers(1, experts))

    choices = balanced_choices(experts, experts, top_k)

    assert all(len(set(mine)) == top_k for mine in choices.tolist())
    assert np.bincount(choices.ravel()).tolist() == [top_k] * experts


def test_more_choices_than_experts_are_refused():
    with pytest.raises(ValueError, match="top_k=3 is not between 1 and experts=2"):
        balanced_choices(tokens=4, experts=2, top_k=3)
