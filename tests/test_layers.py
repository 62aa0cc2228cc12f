"""One layer's seconds: by hand, beside the step's, and what a cut cannot change."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commwall.collectives import all_reduce_time
from commwall.layers import layer_time, stage_times, weight_times
from commwall.passes import host_time, layer_pass, logits_pass
from commwall.pipeline import makespan, schedule
from commwall.plan import Overlap, Plan
from commwall.steptime import step_time
from samples import A100, LLAMA_70B, NVLINK, cluster

FUSED = Plan(tp=8, fused_kernels=True)


def test_a_layer_sums_its_activations_four_times():
    """4,096 tokens of 8,192 values of 2 bytes are 67,108,864 bytes."""
    found = layer_time(LLAMA_70B, FUSED, cluster(8))

    assert found.sums == pytest.approx(4 * all_reduce_time(67_108_864, 8, NVLINK))


def test_full_recomputation_sums_six_times():
    plain = layer_time(LLAMA_70B, FUSED, cluster(8))
    again = layer_time(LLAMA_70B, replace(FUSED, recompute="full"), cluster(8))

    assert again.sums == pytest.approx(1.5 * plain.sums)


@given(tp=st.sampled_from([1, 2, 4, 8]), pp=st.sampled_from([1, 2, 4]),
       m=st.sampled_from([1, 3, 8]), fused=st.booleans())  # fmt: skip
def test_all_layers_are_what_a_step_spends_on_them(tp, pp, m, fused):
    """The step has the logits besides, which no layer has."""
    plan = Plan(tp=tp, pp=pp, global_batch=m, fused_kernels=fused)
    machine = cluster(tp * pp)
    layers = m * LLAMA_70B.layers / pp
    one, step = (
        layer_time(LLAMA_70B, plan, machine),
        step_time(LLAMA_70B, plan, machine),
    )

    assert step.exposed["tp"] == pytest.approx(layers * one.sums, abs=1e-12)
    assert step.launch == pytest.approx(layers * one.launch, abs=1e-9)
    assert step.compute >= layers * (one.work + one.launch) * (1 - 1e-9)


@given(tp=st.sampled_from([1, 2, 4, 8]), seq=st.sampled_from([8, 64, 512, 4096]))
def test_a_layer_takes_no_less_than_its_launch(tp, seq):
    plan, model = Plan(tp=tp), replace(LLAMA_70B, seq=seq)

    assert layer_time(model, plan, cluster(8)).total >= host_time(plan, 1) - 1e-12


def test_what_may_hide_hides_behind_the_layer_s_own_work():
    hidden = replace(FUSED, overlap=Overlap(tp=True))
    found = layer_time(LLAMA_70B, hidden, cluster(8))

    assert found.sums == 0
    assert found.total == pytest.approx(layer_time(LLAMA_70B, FUSED, cluster(8)).work)


def test_an_eighth_of_a_layer_takes_more_than_an_eighth():
    """Norms and residuals are not divided, and tiles do not divide evenly."""
    whole = layer_time(LLAMA_70B, replace(FUSED, tp=1), cluster(8)).work

    assert layer_time(LLAMA_70B, FUSED, cluster(8)).work > whole / 8


def test_the_last_stage_has_the_logits_besides_its_layers():
    forward, backward = stage_times(LLAMA_70B, Plan(pp=8), A100)
    logits = logits_pass(LLAMA_70B, Plan(pp=8), A100).total

    assert len(set(forward[:-1])) == 1
    assert forward[-1] - forward[0] == pytest.approx(logits / 3)
    assert sum(backward) - 8 * backward[0] == pytest.approx(logits * 2 / 3)


@pytest.mark.parametrize(
    ("layers", "within"), [(None, 0.001), ((11, 10, 10, 10, 10, 10, 10, 9), 0.04)]
)
def test_a_schedule_of_the_stages_takes_a_step_s_compute_and_bubble(layers, within):
    """The step's closed form is for a slow last stage; a slow first one waits less."""
    plan = Plan(pp=8, global_batch=16, stage_layers=layers, fused_kernels=True)
    forward, backward = stage_times(LLAMA_70B, plan, A100)
    tasks = schedule("1f1b", 8, 16, forward=forward, backward=backward)
    step = step_time(LLAMA_70B, plan, cluster(8))
    closed = step.compute + step.bubble

    assert closed * (1 - within) <= makespan(tasks) <= closed * (1 + 1e-9)


def test_layers_stand_on_the_stage_that_the_plan_says():
    plan = Plan(pp=2, stage_layers=(79, 1))
    forward, _ = stage_times(LLAMA_70B, plan, A100)

    assert forward[0] > 10 * forward[1]


@given(pp=st.sampled_from([2, 4, 8]), fused=st.booleans())
def test_gradients_of_weights_take_less_than_half_of_the_backward_pass(pp, fused):
    plan = Plan(pp=pp, fused_kernels=fused)
    later = weight_times(LLAMA_70B, plan, A100)
    _, backward = stage_times(LLAMA_70B, plan, A100)

    assert all(0 < a < b / 2 for a, b in zip(later, backward, strict=True))


def test_gradients_of_weights_are_a_third_of_all_products():
    """Forward, gradient of the input, gradient of the weights: attention apart."""
    plan = Plan(pp=8, fused_kernels=True)
    one = layer_pass(LLAMA_70B, plan, A100)

    assert weight_times(LLAMA_70B, plan, A100)[0] == pytest.approx(10 * one.matmul)
