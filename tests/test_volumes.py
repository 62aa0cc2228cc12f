"""Bytes that one GPU sends in a step: by hand, by paper, by what must not change."""

from dataclasses import replace
from math import isfinite

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commwall.collectives import all_reduce_bytes
from commwall.plan import AXES, Plan, Precision
from commwall.volumes import held_params, traffic, volumes
from samples import LLAMA_70B, MIXTRAL, gpt, models, planned, plans

PARAMS = 68_976_648_192  # of LLAMA_70B


def scaled(precision, factor):
    fields = ("weights", "gradients", "master", "moments", "activations")
    sizes = {field: getattr(precision, field) * factor for field in fields}
    return Precision(**sizes)


def test_tensor_parallel_llama_70b_sends_nine_megabytes_a_token():
    """4 all-reduces a layer, 2 * 7/8 of 8192 values of two bytes, 80 layers."""
    per_token = 4 * 2 * 7 / 8 * 8192 * 2 * 80

    assert per_token == 9_175_040
    assert volumes(LLAMA_70B, Plan(tp=8))["tp"] == 4096 * per_token
    eight = Plan(tp=8, global_batch=8)
    assert volumes(LLAMA_70B, eight)["tp"] == 8 * 4096 * per_token


@pytest.mark.parametrize("tp", [1, 2, 4, 8])
def test_tensor_parallel_bytes_match_narayanan_2021(tp):
    """8 b s h (t-1)/t values per layer, micro-batch and GPU."""
    model = gpt(96, 12288, 96, 2048)
    published_values = 8 * 4 * model.seq * model.hidden * (tp - 1) / tp

    sent = volumes(model, Plan(tp=tp, micro_batch=4, global_batch=4))["tp"]
    assert sent / model.layers == pytest.approx(published_values * 2)


def test_full_recomputation_sends_six_where_there_were_four():
    none, selective, full = (
        volumes(LLAMA_70B, Plan(tp=8, recompute=recompute))["tp"]
        for recompute in ("none", "selective", "full")
    )

    assert selective == none
    assert full == 1.5 * none


def test_data_parallel_llama_70b_by_hand():
    """2 * 7/8 * 2 bytes * 69e9 parameters = 241.4 GB, and half again under ZeRO-3."""
    expected = 2 * 7 / 8 * 2 * PARAMS
    sent = [
        volumes(LLAMA_70B, Plan(dp=8, global_batch=8, zero_stage=stage))["dp"]
        for stage in range(4)
    ]

    assert sent == pytest.approx([expected, expected, expected, 1.5 * expected])


def test_zero_with_four_micro_batches_by_hand():
    """In units of (n-1)/n of the parameters: 2, 2, m + 1 and 3m of them."""
    unit = 7 / 8 * 2 * PARAMS
    sent = [
        volumes(LLAMA_70B, Plan(dp=8, global_batch=32, zero_stage=stage))["dp"] / unit
        for stage in range(4)
    ]

    assert sent == pytest.approx([2, 2, 5, 12])


def test_zero_volumes_match_rajbhandari_2020():
    """For many ranks 2 psi for stages 0 to 2 and 3 psi for stage 3."""
    for stage, multiple in ((0, 2), (1, 2), (2, 2), (3, 3)):
        plan = Plan(dp=1024, global_batch=1024, zero_stage=stage)
        values = volumes(LLAMA_70B, plan)["dp"] / 2
        assert values / PARAMS == pytest.approx(multiple, rel=2e-3)


def test_fp32_gradients_send_twice_what_bf16_gradients_do():
    wide = Plan(dp=8, global_batch=8, precision=Precision(gradients=4))

    assert volumes(LLAMA_70B, wide)["dp"] == 2 * 2 * 7 / 8 * 2 * PARAMS


def test_a_pipeline_sends_one_activation_each_way_per_micro_batch():
    """67.1 MB forward and 67.1 MB backward: 280 times less than tensor parallelism."""
    activation = 4096 * 8192 * 2

    assert volumes(LLAMA_70B, Plan(pp=8))["pp"] == 2 * activation
    sent = volumes(LLAMA_70B, Plan(tp=8))["tp"]
    assert sent / (2 * activation) == pytest.approx(280)


def test_interleaving_multiplies_the_messages_of_a_pipeline():
    plan = Plan(pp=8, global_batch=16)

    assert volumes(LLAMA_70B, replace(plan, vpp=5))["pp"] == pytest.approx(
        5 * volumes(LLAMA_70B, plan)["pp"]
    )


@pytest.mark.parametrize(
    "change", [{"sequence_parallel": True}, {"scatter_gather": True}]
)
def test_a_boundary_that_is_split_sends_a_part_a_rank(change):
    plan = Plan(tp=8, pp=8)

    whole, part = (volumes(LLAMA_70B, p)["pp"] for p in (plan, replace(plan, **change)))
    assert part == whole / 8


def test_ring_attention_by_hand():
    """Keys and values of 8 heads of 128, two bytes: 4096 bytes a token and layer.

    Three trips (two forward blocks of backward) of 3 hops of 1024 tokens, 80 layers.
    """
    sent = volumes(LLAMA_70B, Plan(cp=4))["cp"]

    assert sent == 3 * 3 * 1024 * (2 * 8 * 128 * 2) * 80


def test_ulysses_by_hand():
    """Queries and outputs of 64 heads, keys and values of 8: 3/4 go, there and back."""
    sent = volumes(LLAMA_70B, Plan(cp=4, context="ulysses"))["cp"]

    assert sent == 2 * 3 / 4 * 1024 * (2 * 64 + 2 * 8) * 128 * 2 * 80


def test_ulysses_shrinks_with_more_ranks_and_a_ring_does_not():
    ring, ulysses = (
        [volumes(LLAMA_70B, Plan(cp=cp, context=how))["cp"] for cp in (2, 4, 8)]
        for how in ("ring", "ulysses")
    )

    assert ring == sorted(ring)
    assert ulysses == sorted(ulysses, reverse=True)


@pytest.mark.parametrize("axis", ["tp", "pp"])
def test_context_parallelism_divides_the_activations_that_other_axes_send(axis):
    plan = Plan(tp=2, pp=2)

    whole, part = (volumes(LLAMA_70B, p)[axis] for p in (plan, replace(plan, cp=4)))
    assert part == whole / 4


@pytest.mark.parametrize("context", ["ring", "ulysses"])
def test_tensor_parallelism_divides_the_heads_that_context_parallelism_sends(context):
    plan = Plan(cp=2, context=context)

    whole, part = (volumes(LLAMA_70B, p)["cp"] for p in (plan, replace(plan, tp=4)))
    assert part == whole / 4


def test_experts_by_hand():
    """Mixtral, 8 ranks: 2 copies of 4096 values, 7/8 leave, four trips, 32 layers."""
    plan = Plan(ep=8, dp=8, global_batch=8)
    model = replace(MIXTRAL, seq=4096)

    expected = 4 * 7 / 8 * 4096 * 2 * 4096 * 2 * 32
    assert volumes(model, plan)["ep"] == pytest.approx(expected)


def test_a_stage_sends_the_tokens_of_its_own_layers_only():
    plan = Plan(ep=8, dp=8, global_batch=8)

    alone, staged = (volumes(MIXTRAL, p)["ep"] for p in (plan, replace(plan, pp=4)))
    assert staged == alone / 4


def test_experts_are_synchronised_only_among_their_copies():
    """With a rank for each expert no expert has a copy: only the rest is summed."""
    plan = Plan(ep=8, dp=8, global_batch=8)
    rest = MIXTRAL.params - 32 * MIXTRAL.expert_params

    assert volumes(MIXTRAL, plan)["dp"] == pytest.approx(2 * 7 / 8 * 2 * rest)
    twice = replace(plan, dp=16, global_batch=16)
    routed = 32 * MIXTRAL.expert_params / 8
    expected = 2 * 15 / 16 * 2 * rest + 2 * 1 / 2 * 2 * routed
    assert volumes(MIXTRAL, twice)["dp"] == pytest.approx(expected)


def test_gradients_overtake_tensor_parallel_below_some_tokens():
    """The article's 30 to 50 % more holds between 12,530 and 7,518 tokens only."""
    sync = 2 * PARAMS / 8 * 2
    per_token = volumes(LLAMA_70B, Plan(tp=8))["tp"] / 4096

    assert sync / (0.3 * per_token) == pytest.approx(12_530, abs=1)
    assert sync / (0.5 * per_token) == pytest.approx(7_518, abs=1)


@given(case=planned())
def test_volumes_are_finite_and_zero_on_axes_of_one_rank(case):
    model, plan = case
    sent = volumes(model, plan)

    assert tuple(sent) == AXES
    assert all(isfinite(bytes_) and bytes_ >= 0 for bytes_ in sent.values())
    for axis, bytes_ in sent.items():
        busy = plan.ranks(axis) > 1 and (axis != "ep" or model.moe_layers)
        assert (bytes_ > 0) == bool(busy)


@given(case=planned())
def test_records_add_up_to_the_volumes_and_fit_their_groups(case):
    model, plan = case
    records = traffic(model, plan)

    for axis in AXES:
        of_axis = [record.bytes for record in records if record.axis == axis]
        assert sum(of_axis) == pytest.approx(volumes(model, plan)[axis])
    assert len(set(records)) == len(records)
    assert all(1 < r.ranks <= max(plan.ranks(r.axis), 2) for r in records)
    assert all(record.calls > 0 or record.axis == "ep" for record in records)


@given(case=planned(), factor=st.floats(1e-3, 1e3))
def test_wider_values_send_more_bytes_in_proportion(case, factor):
    model, plan = case
    wider = replace(plan, precision=scaled(plan.precision, factor))

    before, after = volumes(model, plan), volumes(model, wider)
    assert list(after.values()) == pytest.approx([factor * v for v in before.values()])


@given(case=planned())
def test_sequence_parallelism_leaves_the_tensor_parallel_volume_alone(case):
    model, plan = case
    with_, without = (
        volumes(model, replace(plan, sequence_parallel=on)) for on in (True, False)
    )

    assert with_["tp"] == without["tp"]
    for axis in AXES:
        assert with_[axis] <= without[axis]


@given(case=planned(), times=st.integers(2, 5))
def test_activations_scale_with_the_batch_and_gradients_do_not(case, times):
    model, plan = case
    bigger = replace(plan, global_batch=times * plan.global_batch)

    before, after = volumes(model, plan), volumes(model, bigger)
    for axis in ("tp", "cp", "ep", "pp"):
        assert after[axis] == pytest.approx(times * before[axis])
    repeats = {0: 1, 1: 1, 3: times}.get(plan.zero_stage)
    if repeats:
        assert after["dp"] == pytest.approx(repeats * before["dp"])


@given(case=planned())
def test_a_later_zero_stage_never_sends_less(case):
    model, plan = case
    sent = [volumes(model, replace(plan, zero_stage=z))["dp"] for z in range(4)]

    assert sent[0] == pytest.approx(sent[1])
    assert sent[1] <= sent[2] * (1 + 1e-12) <= sent[3] * (1 + 1e-9)


@given(model=models())
def test_one_gpu_holds_every_parameter(model):
    assert sum(held_params(model, Plan())) == pytest.approx(model.params, rel=1e-12)


@given(data=st.data())
def test_the_gpus_of_one_replica_hold_every_parameter_and_some_twice(data):
    """Norms, routers, some biases and positions on every tensor-parallel rank."""
    model = data.draw(models())
    plan = data.draw(plans(model))
    stages = (
        ["first", *["interior"] * (plan.pp - 2), "last"] if plan.pp > 1 else ["first"]
    )
    shared, routed = np.sum(
        [held_params(model, plan, stage) for stage in stages], axis=0
    )

    total = plan.tp * (shared + routed * plan.ep)
    assert total >= model.params * (1 - 1e-9)
    tied_twice = model.vocab * model.hidden * (model.tied_embeddings and plan.pp > 1)
    whole = model.layers * (4 * model.norm_params + model.router_params)
    whole += model.norm_params + model.embedding_params
    assert total <= model.params + tied_twice + plan.tp * whole


@given(case=planned())
def test_interior_stages_hold_no_more_than_the_ends(case):
    model, plan = case
    first, interior, last = (
        sum(held_params(model, plan, stage)) for stage in ("first", "interior", "last")
    )

    assert interior <= first
    assert interior <= last


def test_bytes_of_a_gradient_may_be_an_array():
    """Precision in an array: a volume for each, for formulas are plain arithmetic."""
    widths = np.array([1.0, 2.0, 4.0])
    plan = Plan(dp=8, global_batch=8, precision=Precision(gradients=widths))

    assert volumes(LLAMA_70B, plan)["dp"] == pytest.approx(
        all_reduce_bytes(widths * PARAMS, 8)
    )


@pytest.mark.parametrize("question", [volumes, traffic])
def test_plans_that_do_not_divide_the_model_have_no_volume(question):
    with pytest.raises(ValueError, match="pp=7 must divide layers=80"):
        question(LLAMA_70B, Plan(pp=7))
    with pytest.raises(ValueError, match="model='LLaMA-2 70B' must be a Model"):
        question("LLaMA-2 70B", Plan())
