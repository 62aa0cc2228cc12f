"""Bytes on the fullest GPU: by hand, by Korthikanti 2022, by what must not rise."""

from dataclasses import replace
from math import inf, isfinite

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from commwall.memory import RESERVE, layer_activations, memory, stage_memory
from commwall.plan import Plan, Precision
from commwall.units import GIB
from samples import A100, LLAMA_70B, MIXTRAL, gpt, models, planned, plans

PARTS = ("weights", "gradients", "optimizer", "activations", "logits", "buffers")
GPT_22B = gpt(48, 6144, 64, 2048)
GPT_175B = gpt(96, 12288, 96, 2048)
FUSED = Plan(fused_kernels=True)


def in_sbh(model, plan):
    """Activations of a layer as the paper counts them, in bytes per s b h."""
    return layer_activations(model, plan) / (
        model.seq * plan.micro_batch * model.hidden
    )


def test_llama_70b_needs_1104_gigabytes_of_state():
    """16 bytes each: 2 weights, 2 gradients, 12 optimizer. Eight RTX 4090s have 206."""
    kept = memory(LLAMA_70B, Plan())

    assert kept.weights == kept.gradients == 2 * LLAMA_70B.params
    assert kept.optimizer == 12 * LLAMA_70B.params
    assert kept.weights + kept.gradients + kept.optimizer == pytest.approx(1103.626e9)


def test_zero_shards_match_rajbhandari_2020():
    """Figure 1: psi = 7.5e9 on 64 GPUs, 120, 31.4, 16.6 and 1.9 GB."""
    model = gpt(36, 4096, 32, 2048)
    published = {0: 120, 1: 31.4, 2: 16.6, 3: 1.9}
    for stage, gigabytes in published.items():
        kept = memory(model, Plan(dp=64, global_batch=64, zero_stage=stage))
        state = kept.weights + kept.gradients + kept.optimizer
        assert state * 7.5e9 / model.params / 1e9 == pytest.approx(gigabytes, abs=0.05)


def test_the_largest_model_without_sharding_on_24_gib_has_1_6_billion_parameters():
    assert 24 * GIB / Precision().bytes_per_param == pytest.approx(1.61e9, rel=1e-3)


@pytest.mark.parametrize("model", [GPT_22B, GPT_175B])
@pytest.mark.parametrize("t", [1, 2, 4, 8])
def test_activations_of_a_layer_match_korthikanti_2022(model, t):
    """34 sbh + 5 a s^2 b alone, 10 + 24/t, 34/t with sequences; table 2."""
    scores = 5 * model.heads * model.seq / model.hidden
    plain = Plan(tp=t, micro_batch=4, global_batch=4, fused_attention=False)
    sliced = replace(plain, sequence_parallel=True)

    assert in_sbh(model, plain) == pytest.approx(10 + 24 / t + scores / t)
    assert in_sbh(model, sliced) == pytest.approx((34 + scores) / t)
    core_again = replace(sliced, recompute="selective")
    assert in_sbh(model, core_again) == pytest.approx(34 / t)
    fused = replace(plain, fused_attention=True)
    assert in_sbh(model, fused) == pytest.approx(10 + 24 / t)


@pytest.mark.parametrize(
    ("model", "sequence_parallel", "recompute", "percent"),
    [
        (GPT_22B, True, "none", 66.84),
        (GPT_22B, False, "selective", 49.42),
        (GPT_22B, True, "selective", 16.18),
        (GPT_22B, False, "full", 7.64),
        (GPT_175B, True, "none", 62.04),
        (GPT_175B, False, "selective", 56.53),
        (GPT_175B, True, "selective", 18.49),
    ],
)
def test_savings_match_figure_7_of_korthikanti_2022(
    model, sequence_parallel, recompute, percent
):
    """All layers of one stage, against tensor parallelism of eight alone."""
    alone = Plan(tp=8, fused_attention=False)
    plan = replace(alone, sequence_parallel=sequence_parallel, recompute=recompute)
    one_layer = layer_activations(model, alone) / model.layers

    kept = memory(model, plan).activations
    if recompute == "full":  # the figure leaves out the layer that is being recomputed
        kept -= layer_activations(model, plan)
    share = kept / model.layers / one_layer / model.layers
    assert 100 * share == pytest.approx(percent, abs=0.4)


def test_70_billion_of_gpt_shape_on_eight_gpus_as_the_audit_counts_it():
    """11.4 GB with sequence parallelism, 34.9 without; recomputed, 0.67 and a layer."""
    model = gpt(80, 8192, 64, 4096)
    without, with_ = Plan(tp=8), Plan(tp=8, sequence_parallel=True)

    assert memory(model, with_).activations == pytest.approx(11.4e9, rel=2e-3)
    assert memory(model, without).activations == pytest.approx(34.9e9, rel=2e-3)
    again = replace(with_, recompute="full")
    one_layer = layer_activations(model, again) - 4096 * 8192 * 2 / 8
    assert memory(model, again).activations - one_layer == pytest.approx(
        0.67e9, rel=2e-3
    )


def test_a_layer_of_llama_by_hand():
    """4 h of inputs; q and o 8192, k and v 1024; three times 28672; two bytes each."""
    values = 4 * 8192 + (2 * 8192 + 2 * 1024) + 3 * 28672

    assert layer_activations(LLAMA_70B, FUSED) == 4096 * 2 * values


def test_a_layer_of_llama_operation_by_operation():
    """The activated half of SwiGLU too, and queries and keys before and after rotation.

    A GPT neither gates nor rotates: the 34 sbh of Korthikanti 2022 either way.
    """
    values = 4 * 8192 + 3 * (8192 + 1024) + 4 * 28672

    assert layer_activations(LLAMA_70B, Plan()) == 4096 * 2 * values
    assert layer_activations(GPT_22B, Plan()) == layer_activations(GPT_22B, FUSED)


def test_gathered_inputs_may_stay_whole():
    """Of attention and of the feed-forward block: seven more parts of eight, twice."""
    parts = Plan(tp=8, sequence_parallel=True)
    whole = replace(parts, keep_gathered=True)

    more = layer_activations(LLAMA_70B, whole) - layer_activations(LLAMA_70B, parts)
    assert more == 4096 * 2 * 2 * 8192 * 7 / 8
    alone = Plan(keep_gathered=True)
    assert layer_activations(LLAMA_70B, alone) == layer_activations(LLAMA_70B, Plan())


def test_a_mixture_keeps_the_copies_that_went_to_its_experts():
    """Two experts visited: two more inputs, and the middle of each."""
    model = replace(MIXTRAL, seq=4096)
    values = (4 + 2) * 4096 + 2 * 128 * (32 + 8) + 3 * 2 * 14336

    assert layer_activations(model, FUSED) == 4096 * 2 * values
    shared = replace(model, shared_experts=1)
    assert layer_activations(shared, FUSED) == 4096 * 2 * (values + 3 * 14336)


def test_logits_by_hand():
    """32000 words, 4096 tokens: 2 bytes of logits and 4 of softmax, cut eight ways.

    Without a fused loss, two gradients of 4 bytes more.
    """
    fused = replace(FUSED, tp=8)
    assert memory(LLAMA_70B, fused).logits == 4096 * 32000 / 8 * 6
    assert memory(LLAMA_70B, Plan(tp=8)).logits == 4096 * 32000 / 8 * (6 + 8)


def test_gpipe_keeps_the_logits_of_every_micro_batch_and_1f1b_of_one():
    small = replace(LLAMA_70B, layers=8, hidden=1024, ffn=1024)
    plan = replace(FUSED, pp=2, global_batch=32)

    one = memory(small, replace(plan, schedule="1f1b"))
    every = memory(small, replace(plan, schedule="gpipe"))
    assert one.logits in (0, 4096 * 32000 * 6)
    assert every.logits == 32 * 4096 * 32000 * 6


def test_the_fuller_end_counts_the_first_where_micro_batches_wait():
    """Eight micro-batches in flight there; embedding, but neither logits nor head."""
    kept = memory(LLAMA_70B, Plan(tp=8, pp=8, global_batch=64))
    layer = 855_654_400 - 2 * 8192

    assert kept.logits == 0
    assert memory(LLAMA_70B, Plan(tp=8, pp=2, global_batch=64)).logits == 0
    held = (10 * layer + 32000 * 8192) / 8 + 10 * 2 * 8192
    assert kept.weights == pytest.approx(2 * held)


def test_the_fuller_end_counts_the_last_where_there_are_many_words():
    """One micro-batch in flight there: ten inputs of layers, one of them recomputed."""
    model = replace(LLAMA_70B, vocab=4_000_000)
    plan = replace(FUSED, tp=8, pp=8, global_batch=64, recompute="full")
    kept = memory(model, plan)

    assert kept.logits == 4096 * 4_000_000 / 8 * 6
    nine_inputs = 9 * 4096 * 8192 * 2
    expected = nine_inputs + layer_activations(model, plan)
    assert kept.activations == pytest.approx(expected)


def test_unequal_stages_are_tried_one_by_one():
    """Forty layers with 3 micro-batches in flight hold more than either end."""
    plan = Plan(tp=8, pp=4, global_batch=64, stage_layers=(15, 40, 15, 10))
    kept = [stage_memory(LLAMA_70B, plan, stage) for stage in range(4)]

    assert memory(LLAMA_70B, plan) == kept[1]
    assert kept[1].activations == 3 * 40 * layer_activations(LLAMA_70B, plan)
    assert kept[0].activations == 4 * 15 * layer_activations(LLAMA_70B, plan)
    assert [stage.logits > 0 for stage in kept] == [False, False, False, True]
    with pytest.raises(ValueError, match="stage=4 must be below pp=4"):
        stage_memory(LLAMA_70B, plan, 4)


def test_a_stage_without_layers_keeps_its_logits_only():
    plan = Plan(pp=2, stage_layers=(80, 0), recompute="full")
    last = stage_memory(LLAMA_70B, plan, 1)

    assert last.activations == 0
    assert last.weights == 2 * (LLAMA_70B.head_params + LLAMA_70B.norm_params)


@pytest.mark.parametrize("recompute", ["none", "full"])
def test_equal_stages_may_be_spelled_out(recompute):
    plan = Plan(pp=4, tp=8, global_batch=64, recompute=recompute)

    same = replace(plan, stage_layers=(20, 20, 20, 20))
    assert memory(LLAMA_70B, same) == memory(LLAMA_70B, plan)


def test_context_parallelism_divides_activations_and_logits():
    plan = Plan(tp=2, global_batch=2)
    for how in ("none", "full"):
        alone = memory(LLAMA_70B, replace(plan, recompute=how))
        cut = memory(LLAMA_70B, replace(plan, recompute=how, cp=4))
        assert cut.activations == pytest.approx(alone.activations / 4)
        assert cut.logits == alone.logits / 4
        assert cut.weights == alone.weights


def test_experts_are_sharded_only_among_their_copies():
    """Sixteen ranks, each owning one expert of eight: two copies to shard over."""
    plan = Plan(ep=8, dp=16, global_batch=16, zero_stage=1)
    routed = 32 * MIXTRAL.expert_params
    rest = MIXTRAL.params - routed

    kept = memory(MIXTRAL, plan)
    assert kept.weights == pytest.approx(2 * (rest + routed / 8))
    assert kept.optimizer == pytest.approx(12 * (rest / 16 + routed / 8 / 2))


def test_zero_holds_two_layers_of_weights_and_one_of_gradients_for_a_moment():
    """A layer less its norms; of experts that have no copy nothing is gathered."""
    layer = 855_654_400 - 2 * 8192
    plan = Plan(dp=8, global_batch=8)
    kept = [memory(LLAMA_70B, replace(plan, zero_stage=z)).buffers for z in range(4)]

    assert kept == [0, 0, 2 * layer, (2 + 2 * 2) * layer]
    assert memory(LLAMA_70B, Plan(zero_stage=3)).buffers == 0
    alone = Plan(ep=8, dp=8, global_batch=8, zero_stage=3)
    assert memory(MIXTRAL, alone).buffers == 6 * MIXTRAL.attention_params
    twice = replace(alone, dp=16, global_batch=16)
    experts = MIXTRAL.attention_params + MIXTRAL.expert_params / 8
    assert memory(MIXTRAL, twice).buffers == 6 * experts


def test_the_first_stage_of_1f1b_holds_as_much_as_no_pipeline_at_all():
    """p micro-batches of L / p layers each."""
    plan = Plan(pp=8, tp=8, global_batch=64)
    alone = Plan(tp=8, global_batch=64)

    assert memory(LLAMA_70B, plan).activations == pytest.approx(
        memory(LLAMA_70B, alone).activations
    )


def test_interleaving_costs_what_korthikanti_2022_says():
    """Section 4.2.3: 1 + (p - 1) / (p v) times as much on the first stage."""
    plan = Plan(pp=8, tp=8, global_batch=64)
    interleaved = replace(plan, vpp=5)

    ratio = (
        memory(LLAMA_70B, interleaved).activations / memory(LLAMA_70B, plan).activations
    )
    assert ratio == pytest.approx(1 + 7 / (8 * 5))


def test_fitting_leaves_a_reserve():
    kept = memory(LLAMA_70B, Plan(tp=8, pp=8))
    enough = replace(A100, memory=kept.total + RESERVE)

    assert RESERVE == 2 * GIB
    assert kept.fits(enough)
    assert not kept.fits(replace(enough, memory=enough.memory - 10))
    assert kept.fits(replace(A100, memory=inf))


def test_seventy_billion_does_not_fit_on_eight_cards_of_24_gib_however_it_is_cut():
    card = replace(A100, memory=24 * GIB)
    base = Plan(recompute="full", zero_stage=3)

    for tp, pp, dp in ((8, 1, 1), (1, 8, 1), (1, 1, 8), (2, 2, 2)):
        plan = replace(base, tp=tp, pp=pp, dp=dp, global_batch=dp)
        assert not memory(LLAMA_70B, plan).fits(card)


@given(case=planned())
def test_parts_are_finite_and_sum_to_the_total(case):
    kept = memory(*case)

    parts = [getattr(kept, part) for part in PARTS]
    assert all(isfinite(part) and part >= 0 for part in parts)
    assert sum(parts) == pytest.approx(kept.total)
    assert min(kept.weights, kept.gradients, kept.optimizer, kept.activations) > 0


@given(data=st.data())
def test_a_later_zero_stage_never_keeps_more(data):
    """With four layers or more, all alike, on a stage: stage 3 holds two of them."""
    plan = data.draw(plans(model := data.draw(models())))
    assume(model.layers / plan.pp >= 4 and model.dense_layers in (0, model.layers))
    totals = [memory(model, replace(plan, zero_stage=z)).total for z in range(4)]

    assert totals == sorted(totals, reverse=True)


@given(case=planned())
def test_recomputing_more_never_keeps_more(case):
    model, plan = case
    kept = [
        memory(model, replace(plan, recompute=how)).activations
        for how in ("none", "selective", "full")
    ]

    assert kept[0] >= kept[1] * (1 - 1e-12)
    assert kept[1] >= kept[2] * (1 - 1e-12) or not plan.fused_attention


@given(case=planned())
def test_fusing_attention_or_splitting_sequences_never_keeps_more(case):
    model, plan = case
    for field in ("fused_attention", "sequence_parallel"):
        with_, without = (
            memory(model, replace(plan, **{field: on})).total for on in (True, False)
        )
        assert with_ <= without


@given(case=planned())
def test_a_smaller_micro_batch_of_the_same_batch_never_keeps_more_in_flight(case):
    """1F1B: more and smaller micro-batches, as many in flight."""
    model, plan = case
    plan = replace(plan, schedule="1f1b", vpp=1)
    bigger = replace(plan, micro_batch=2 * plan.micro_batch,
                     global_batch=2 * plan.global_batch)  # fmt: skip

    small, big = memory(model, plan), memory(model, bigger)
    assert small.activations == pytest.approx(big.activations / 2)
    assert small.weights == big.weights


@given(case=planned(), times=st.integers(2, 4))
def test_with_1f1b_more_micro_batches_cost_no_memory_beyond_the_first_p(case, times):
    model, plan = case
    plan = replace(plan, schedule="1f1b", vpp=1,
                   global_batch=plan.dp * plan.micro_batch * plan.pp)  # fmt: skip
    longer = replace(plan, global_batch=times * plan.global_batch)

    assert memory(model, longer) == memory(model, plan)
    flushed = [memory(model, replace(p, schedule="gpipe")) for p in (plan, longer)]
    assert flushed[0].total <= flushed[1].total


@given(case=planned(), factor=st.floats(0.5, 4))
def test_state_is_proportional_to_the_bytes_of_each_kind(case, factor):
    model, plan = case
    plan = replace(plan, pp=1, vpp=1)  # one stage: which is fullest cannot change
    precision = Precision(weights=2 * factor, gradients=3 * factor, master=factor)
    base = Precision(weights=2, gradients=3, master=1, moments=8)

    before = memory(model, replace(plan, precision=base))
    after = memory(model, replace(plan, precision=precision))
    assert after.weights == pytest.approx(factor * before.weights)
    assert after.gradients == pytest.approx(factor * before.gradients)
    assert after.optimizer == pytest.approx((factor + 8) / 9 * before.optimizer)
    assert after.activations == before.activations


@given(model=models(), tp=st.sampled_from([2, 4, 8]))
def test_cutting_a_layer_never_keeps_more(model, tp):
    assume(model.kv_heads % tp == 0)

    assert memory(model, Plan(tp=tp)).total <= memory(model, Plan()).total


@given(model=models(), pp=st.sampled_from([2, 4]))
def test_a_pipeline_never_keeps_more_than_one_gpu_would_of_as_many_micro_batches(
    model, pp
):
    assume(model.layers % pp == 0)
    plan = Plan(pp=pp, global_batch=pp, schedule="gpipe")

    assert memory(model, plan).total <= memory(model, replace(plan, pp=1)).total * (
        1 + 1e-9
    )


def test_plans_that_do_not_divide_the_model_have_no_memory():
    with pytest.raises(ValueError, match="tp=3 must divide heads=64"):
        memory(LLAMA_70B, Plan(tp=3))
    with pytest.raises(ValueError, match="model='13B' must be a Model"):
        memory("13B", Plan())
