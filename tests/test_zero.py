"""Every ZeRO stage trains exactly as one rank does, and sends what its stage must."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commwall.simulators.zero import Adam, Perceptron, Zero

MODEL = Perceptron(inputs=3, hidden=6)  # 24 parameters
STEPS = 3


def batches(ranks, micro_batches, seed=0, size=4):
    """Inputs and targets, `[rank][micro_batch]`."""
    rng = np.random.default_rng(seed)
    return [
        [
            (rng.normal(size=(size, 3)), rng.normal(size=size))
            for _ in range(micro_batches)
        ]
        for _ in range(ranks)
    ]


def start(seed=0):
    return np.random.default_rng(seed).normal(size=MODEL.size)


def on_one_rank(params, steps):
    """Plain Adam on all the data at once."""
    adam = Adam()
    for data in steps:
        pairs = [pair for rank in data for pair in rank]
        whole = tuple(np.concatenate(column) for column in zip(*pairs, strict=True))
        gradient = MODEL.backward(params, MODEL.forward(params, whole))
        params = adam.updated(params, gradient)
    return params


def trained(stage, ranks, micro_batches, steps=STEPS):
    training = Zero.start(stage, MODEL, start(), ranks)
    for seed in range(steps):
        training.step(batches(ranks, micro_batches, seed))
    return training


def test_the_gradient_of_the_perceptron_is_its_slope():
    params, direction = start(), start(seed=1)
    ((batch,),) = batches(1, 1)

    def value(sign):
        *_, error = MODEL.forward(params + sign * 1e-5 * direction, batch)
        return 0.5 * np.mean(error**2)

    slope = MODEL.backward(params, MODEL.forward(params, batch)) @ direction
    assert (value(1) - value(-1)) / 2e-5 == pytest.approx(slope, rel=1e-8)


def test_the_first_step_of_adam_by_hand():
    """Mean and square cancel to the sign: each parameter moves by the learning rate."""
    adam = Adam(learning_rate=0.5)

    moved = adam.updated(np.zeros(3), np.array([4.0, -0.1, 7.0]))

    assert np.allclose(moved, [-0.5, 0.5, -0.5], rtol=1e-6)


@settings(max_examples=40, deadline=None)
@given(
    stage=st.integers(0, 3), ranks=st.integers(1, 7), micro_batches=st.integers(1, 3)
)
def test_every_stage_trains_as_plain_adam_on_one_rank(stage, ranks, micro_batches):
    """Also for 5 and 7 ranks, by which 24 parameters do not divide."""
    data = [batches(ranks, micro_batches, seed) for seed in range(STEPS)]
    expected = on_one_rank(start(), data)

    kept = trained(stage, ranks, micro_batches).params

    whole = [np.concatenate(kept)] if stage == 3 else kept
    assert all(np.allclose(each, expected, rtol=0, atol=1e-12) for each in whole)


@pytest.mark.parametrize("micro_batches", [1, 2, 4])
@pytest.mark.parametrize("ranks", [1, 2, 4, 8])
@pytest.mark.parametrize(
    ("stage", "payloads"),
    [
        (0, lambda m: 2),  # an all-reduce is two halves
        (1, lambda m: 2),  # gradients once, parameters once
        (2, lambda m: m + 1),  # gradients every micro-batch, parameters once
        (3, lambda m: 3 * m),  # parameters twice and gradients, every micro-batch
    ],
)
def test_a_step_sends_what_its_stage_must(stage, payloads, ranks, micro_batches):
    """In units of (n-1)/n of the 24 parameters, the same at every rank."""
    wire = trained(stage, ranks, micro_batches, steps=1).ledger.total

    unit = 24 * (ranks - 1) / ranks
    assert wire.values_sent == [payloads(micro_batches) * unit] * ranks


@pytest.mark.parametrize(
    ("stage", "expected"),
    [
        (0, ["all_reduce gradients"]),
        (1, ["reduce_scatter gradients", "all_gather parameters"]),
        (2, 2 * ["reduce_scatter gradients"] + ["all_gather parameters"]),
        (
            3,
            2
            * [
                "all_gather forward parameters",
                "all_gather backward parameters",
                "reduce_scatter gradients",
            ],
        ),
    ],
)
def test_the_calls_of_a_step_of_two_micro_batches(stage, expected):
    calls = trained(stage, ranks=4, micro_batches=2, steps=1).ledger.calls

    assert [f"{call.op} {call.name}" for call in calls] == expected
    assert {call.payload for call in calls} == {24 * 8}


def test_the_first_two_stages_are_free_and_the_third_costs_half_again():
    """With one micro-batch: 2, 2, 2 and 3 payloads."""
    sent = [trained(stage, 8, 1, steps=1).ledger.total.busiest for stage in range(4)]

    assert sent == [336, 336, 336, 504]  # 2 * 7/8 * 24 * 8 bytes, and 1.5 times that


def test_what_a_rank_keeps_shrinks_with_the_stage():
    kept = {stage: trained(stage, ranks=8, micro_batches=1) for stage in range(4)}

    states = [each.optimizers[0].mean.size for each in kept.values()]
    assert states == [24, 3, 3, 3]
    assert [each.params[0].size for each in kept.values()] == [24, 24, 24, 3]


def test_an_unknown_stage_is_refused():
    with pytest.raises(ValueError, match="zero_stage=4 is not 0, 1, 2 or 3"):
        Zero.start(4, MODEL, start(), dp=2)
