"""Seconds of kernels: by hand, tile by tile, and against one measured layer."""

from dataclasses import replace
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commwall.hardware import USUAL_ATTENTION
from commwall.kernels import (
    LOSS_BYTES,
    MEMORY_FRACTION,
    PROLOGUE,
    SUSTAINED,
    TILES,
    attention_time,
    elementwise_bytes,
    layer_matmul_time,
    matmul_time,
    memory_time,
    product_rate,
    product_time,
    score_bytes,
)
from commwall.passes import (
    LAUNCH,
    LAUNCHES,
    accumulation_time,
    backward_pass,
    host_time,
    logits_pass,
    slowest_stage,
)
from commwall.plan import Plan, Precision
from samples import A100, LLAMA_70B, MIXTRAL, NOT_SIZES, gpt, planned, stage_forward

GPT_22B = gpt(48, 6144, 64, 2048)
KEPT_WHOLE = replace(A100, memory_bandwidth=inf)  # bytes cost nothing
dims = st.integers(1, 20_000)


FUSED = Plan(fused_kernels=True)


def rate():
    """FLOP/s that a long product holds, where kernels are fused."""
    return SUSTAINED["fused"] * A100.best_product()


def test_memory_time_by_hand():
    """85 % of 2039 GB/s: 80 GB in 46 ms."""
    expected = 80e9 / (0.85 * 2039e9)

    assert MEMORY_FRACTION == 0.85
    assert memory_time(80e9, A100) == pytest.approx(expected)


def test_one_wave_of_tiles_by_hand():
    """108 tiles of 128 x 256 on 108 multiprocessors: no waste but the prologue."""
    m, n, k = 128 * 9, 256 * 12, 4096
    expected = 2 * m * n * (k + PROLOGUE) / rate()

    assert matmul_time(m, n, k, KEPT_WHOLE) == pytest.approx(expected)


def test_one_tile_too_many_costs_a_second_wave():
    whole = matmul_time(128 * 9, 256 * 12, 4096, KEPT_WHOLE)
    more = matmul_time(128 * 9, 256 * 12 + 1, 4096, KEPT_WHOLE)

    assert more > 1.2 * whole


def test_a_thin_product_takes_as_long_as_its_bytes():
    """One row by 8192 x 8192: 134 MB of weights to read, 0.13 GFLOP to do."""
    size = 2 * (8192 + 8192 * 8192 + 8192)

    assert matmul_time(1, 8192, 8192, A100) == pytest.approx(memory_time(size, A100))


def test_a_batch_of_thin_products_takes_as_long_as_all_their_bytes():
    size = 64 * 2 * (8 + 8 * 4096 + 4096)

    seconds = matmul_time(1, 4096, 8, replace(A100, compute=1e30), batch=64)
    assert seconds == pytest.approx(memory_time(size, A100))


def test_a_batch_of_products_fills_waves_together():
    """108 products of the smallest tile are one wave, not 108."""
    alone = matmul_time(64, 128, 512, KEPT_WHOLE)

    assert matmul_time(64, 128, 512, KEPT_WHOLE, batch=108) == pytest.approx(alone)


def test_a_product_cut_eight_ways_takes_more_than_an_eighth():
    whole = matmul_time(4096, 8192, 8192, A100)

    assert matmul_time(4096, 8192 // 8, 8192, A100) > 1.02 * whole / 8


def test_products_of_a_llama_layer_by_hand():
    """q with k and v, o, gate with up, down: heads and widths cut eight ways."""
    by_hand = [(1280, 8192), (8192, 1024), (7168, 8192), (8192, 3584)]
    expected = sum(matmul_time(4096, n, k, A100) for n, k in by_hand)

    plan = replace(FUSED, tp=8)
    assert layer_matmul_time(LLAMA_70B, plan, A100) == pytest.approx(expected)


def test_experts_are_as_many_products_as_a_rank_owns():
    """Mixtral on 4 expert ranks: 2 experts, each 2/8 of the tokens of four ranks."""
    model = replace(MIXTRAL, seq=4096)
    plan = replace(FUSED, ep=4, dp=4, global_batch=4)
    attention = [(6144, 4096), (4096, 4096)]
    expert = [(2 * 14336, 4096), (4096, 14336)]

    expected = sum(matmul_time(4096, n, k, A100) for n, k in attention)
    expected += 2 * sum(matmul_time(4096, n, k, A100) for n, k in expert)
    assert layer_matmul_time(model, plan, A100) == pytest.approx(expected)


def test_layers_with_and_without_experts_are_averaged():
    """One dense layer in four; a shared expert is a product of all tokens."""
    dense = replace(MIXTRAL, seq=4096, layers=4, experts=1, top_k=1)
    sparse = replace(dense, experts=8, top_k=2, shared_experts=2, moe_ffn=1024)
    mixed = replace(sparse, dense_layers=1)
    routed = [(2 * 1024, 4096), (4096, 1024)]
    shared = [(2 * 2 * 1024, 4096), (4096, 2 * 1024)]
    attention = [(6144, 4096), (4096, 4096)]

    expected = sum(matmul_time(4096, n, k, A100) for n, k in attention + shared)
    expected += 8 * sum(matmul_time(1024, n, k, A100) for n, k in routed)
    assert layer_matmul_time(sparse, FUSED, A100) == pytest.approx(expected)
    quarter = layer_matmul_time(dense, FUSED, A100) / 4
    assert layer_matmul_time(mixed, FUSED, A100) == pytest.approx(
        quarter + 3 / 4 * expected
    )


def test_context_parallelism_leaves_a_rank_its_tokens_but_all_keys():
    """A quarter of 16384 tokens is the work of 4096; in attention, four times that."""
    long, part = replace(LLAMA_70B, seq=16384), Plan(cp=4, fused_attention=False)

    for question in (layer_matmul_time, attention_time):
        same, other = (
            question(LLAMA_70B, Plan(), A100),
            question(long, Plan(cp=4), A100),
        )
        assert other == pytest.approx((4 if question is attention_time else 1) * same)
    assert elementwise_bytes(long, part) == elementwise_bytes(LLAMA_70B, Plan())
    assert score_bytes(long, part) == 4 * 4096 * 16384 * 64


def test_fused_causal_attention_by_hand():
    """Two products of 2 * 64 * 4096^2 * 128 FLOP, half of each behind the mask."""
    seconds = 2 * 2 * 64 * 4096**2 * 128 / 2 / (USUAL_ATTENTION * A100.best_product())

    assert attention_time(LLAMA_70B, Plan(), A100) == pytest.approx(seconds)
    eighth = attention_time(LLAMA_70B, Plan(tp=4, cp=2), A100)
    assert eighth == pytest.approx(seconds / 8)
    measured = replace(A100, attention=100e12)
    seconds *= USUAL_ATTENTION * A100.best_product() / 100e12
    assert attention_time(LLAMA_70B, Plan(), measured) == pytest.approx(seconds)


def test_unfused_attention_computes_the_whole_square():
    """Twice the FLOP, and tiles that are hardly filled."""
    fused = attention_time(LLAMA_70B, FUSED, KEPT_WHOLE)
    plan = replace(FUSED, fused_attention=False)
    unfused = attention_time(LLAMA_70B, plan, KEPT_WHOLE)

    assert unfused > 2 * fused * USUAL_ATTENTION / SUSTAINED["fused"]


def test_bytes_of_a_gpt_layers_small_kernels_by_hand():
    """8h norms, 14h residuals and masks; 4 * 3h of q, k, v and 4 * 4h of the middle."""
    tokens, h = 2048, 6144
    plan = replace(FUSED, tp=8)

    whole, cut = 8 * h + 14 * h, 12 * h + 16 * h
    assert elementwise_bytes(GPT_22B, plan) == tokens * (whole + cut / 8)
    sliced = replace(plan, sequence_parallel=True)
    assert elementwise_bytes(GPT_22B, sliced) == tokens * (whole + cut) / 8


def test_bytes_of_a_llama_layers_small_kernels_by_hand():
    """20h without dropout; q, k, v read and written; gate and up read, one written."""
    values = 10 * 8192 + 2 * (8192 + 2 * 1024) + 3 * 28672

    assert elementwise_bytes(LLAMA_70B, FUSED) == 4096 * 2 * values
    sparse = replace(MIXTRAL, seq=4096, shared_experts=1)
    values = 10 * 4096 + 2 * 6144 + 3 * 3 * 14336
    assert elementwise_bytes(sparse, FUSED) == 4096 * 2 * values


def test_bytes_of_a_llama_layer_one_operation_at_a_time_by_hand():
    """q, k, v copied three times, the output once; silu, then the product with up."""
    values = 10 * 8192 + 6 * (8192 + 2 * 1024) + 2 * 8192 + (2 + 3) * 28672

    assert elementwise_bytes(LLAMA_70B, Plan()) == 4096 * 2 * values
    wide = Plan(precision=Precision(activations=4))
    assert elementwise_bytes(LLAMA_70B, wide) == 4096 * 4 * values


def test_bytes_of_the_scores_by_hand():
    """Nine bytes a score with dropout, four without, none where attention is fused.

    In fp32 17 and 8: a mask has a byte whatever it masks.
    """
    plan = Plan(tp=8, fused_attention=False)

    assert score_bytes(GPT_22B, plan) == 9 * 2048**2 * 64 / 8
    assert score_bytes(replace(GPT_22B, dropout=False), plan) == 4 * 2048**2 * 64 / 8
    assert score_bytes(GPT_22B, Plan(tp=8)) == 0
    wide = replace(plan, precision=Precision(activations=4))
    assert score_bytes(GPT_22B, wide) == 17 * 2048**2 * 64 / 8


@pytest.mark.parametrize(
    ("kernels", "size"),
    [
        ("fused", (2 + 4) + 4 + (4 + 4) + (4 + 4) + (4 + 2)),
        ("eager", (2 + 4) + 4 + 8 + 8 + 4 + 8 + 8 + 8 + (4 + 2)),
    ],
)
def test_the_loss_reads_and_writes_each_logit_a_few_times(kernels, size):
    plan = Plan(tp=8, fused_kernels=kernels == "fused")
    loss = logits_pass(LLAMA_70B, plan, A100)

    assert LOSS_BYTES[kernels] == size
    assert loss.elementwise == pytest.approx(memory_time(size * 4096 * 4000, A100))
    product = product_time(4096, 4000, 8192, A100, plan)
    assert loss.matmul == pytest.approx(3 * product)
    part = logits_pass(LLAMA_70B, replace(plan, cp=4), A100)
    assert part.elementwise == loss.elementwise / 4
    product = product_time(1024, 4000, 8192, A100, plan)
    assert part.matmul == pytest.approx(3 * product)


def test_arithmetic_sets_the_rate_and_the_width_of_a_product():
    """TF32: half the rate, twice the bytes."""
    card = replace(A100, tf32=125e12, fp32=15e12, product=250e12)
    tf32 = replace(FUSED, precision=Precision(activations=4, arithmetic="tf32"))
    fp32 = replace(FUSED, precision=Precision(activations=4, arithmetic="fp32"))

    best = {plan: product_rate(card, plan) for plan in (FUSED, tf32, fp32)}
    assert best[FUSED] == pytest.approx(SUSTAINED["fused"] * 250e12)
    assert best[tf32] == pytest.approx(best[FUSED] / 2)
    assert best[fp32] == pytest.approx(SUSTAINED["fused"] * 15e12)
    thin = product_time(1, 8192, 8192, replace(card, tf32=1e18), tf32)
    assert thin == pytest.approx(memory_time(4 * (8192 + 8192**2 + 8192), card))
    with pytest.raises(
        ValueError, match="'tf32' needs a rate that is not known of A100"
    ):
        product_rate(A100, tf32)


def test_adding_up_gradients_reads_two_and_writes_one():
    """Reads bf16, reads and writes fp32; nothing to add to, no whole sum, or fused."""
    kept = Precision(gradients=4)
    plan = Plan(dp=8, global_batch=32, precision=kept)

    size = (2 + 4 + 4) * LLAMA_70B.params
    assert accumulation_time(LLAMA_70B, plan, A100) == pytest.approx(
        memory_time(size, A100)
    )
    sharded = accumulation_time(LLAMA_70B, replace(plan, zero_stage=2), A100)
    assert sharded == pytest.approx(memory_time(size / 8, A100))
    for nothing in ({"global_batch": 8}, {"fused_kernels": True}):
        assert accumulation_time(LLAMA_70B, replace(plan, **nothing), A100) == 0


def test_the_host_launches_a_layer_in_milliseconds():
    """The sweep's floor: 4.5 ms whatever the layer holds, and none in a CUDA graph."""
    sliced = Plan(tp=8, sequence_parallel=True)

    assert host_time(sliced, 1) == pytest.approx(4.4e-3, rel=0.03)
    assert host_time(Plan(), 10) == pytest.approx(10 * LAUNCHES["eager"] * LAUNCH)
    again = host_time(replace(sliced, recompute="full"), 1)
    assert again == pytest.approx(1.5 * host_time(sliced, 1))
    assert host_time(replace(sliced, cuda_graphs=True), 1) == 0


def test_the_slowest_stage_is_the_last_unless_another_has_many_more_layers():
    plan = Plan(pp=4, global_batch=8)
    even = slowest_stage(LLAMA_70B, plan, A100)
    ends = slowest_stage(LLAMA_70B, replace(plan, stage_layers=(26, 26, 26, 2)), A100)

    assert (even.layers, even.other_layers) == (20, 20)
    assert even.logits.total > 0 == even.other_logits
    assert (ends.layers, ends.other_layers) == (26, 18)
    assert ends.logits.total == 0
    assert ends.other_logits == pytest.approx(even.logits.total / 3)


def test_a_fused_kernels_backward_computes_the_scores_again():
    """Five products for the forward's two."""
    forward = stage_forward(GPT_22B, Plan(tp=8), A100)

    again = backward_pass(Plan(tp=8), forward).attention
    assert again == pytest.approx(2.5 * forward.attention)


def test_backward_is_twice_forward_and_what_is_recomputed():
    plan = Plan(tp=8, fused_attention=False)
    forward = stage_forward(GPT_22B, plan, A100)
    core = forward.attention + forward.scores

    extra = {
        how: backward_pass(replace(plan, recompute=how), forward).total
        - 2 * forward.total
        for how in ("none", "selective", "full")
    }
    assert extra["none"] == pytest.approx(0, abs=1e-12)
    assert extra["selective"] == pytest.approx(core)
    assert extra["full"] == pytest.approx(forward.total)


@pytest.mark.parametrize(
    ("sequence_parallel", "milliseconds"), [(False, 7.7), (True, 7.2)]
)
def test_a_layer_forward_is_within_a_tenth_of_korthikanti_2022(
    sequence_parallel, milliseconds
):
    """Table 4: one 22B layer, 8 A100s, micro-batch 4, with its two all-reduces."""
    plan = Plan(tp=8, micro_batch=4, global_batch=4, fused_attention=False,
                sequence_parallel=sequence_parallel, fused_kernels=True)  # fmt: skip
    two_all_reduces = 2 * 2 * 7 / 8 * GPT_22B.activation(4) / 235e9

    forward = stage_forward(GPT_22B, plan, A100).total / 48 + two_all_reduces
    assert forward == pytest.approx(milliseconds * 1e-3, rel=0.1)


def test_recomputing_a_layers_core_costs_what_korthikanti_2022_measured():
    """Table 4: backward 13.2 ms instead of 11.9."""
    plan = Plan(tp=8, micro_batch=4, global_batch=4, fused_attention=False,
                fused_kernels=True)  # fmt: skip
    forward = stage_forward(GPT_22B, plan, A100)

    core = (forward.attention + forward.scores) / 48
    assert core == pytest.approx(1.3e-3, rel=0.15)


@given(m=dims, n=dims, k=dims)
def test_no_product_is_faster_than_its_flop_or_its_bytes(m, n, k):
    seconds = matmul_time(m, n, k, A100)

    assert seconds * rate() >= 2 * m * n * k * (1 - 1e-12)
    assert seconds >= memory_time(2 * (m * k + k * n + m * n), A100) * (1 - 1e-12)


@given(m=dims, n=dims, k=dims, factor=st.floats(1, 10))
def test_a_better_gpu_is_never_slower(m, n, k, factor):
    seconds = matmul_time(m, n, k, A100) * (1 + 1e-12)

    quick = replace(A100, compute=factor * A100.compute)
    wide = replace(A100, memory_bandwidth=factor * A100.memory_bandwidth)
    assert matmul_time(m, n, k, quick) <= seconds
    assert matmul_time(m, n, k, wide) <= seconds


@given(m=dims, n=dims, k=dims, more=st.integers(0, 500))
def test_a_larger_product_is_never_faster(m, n, k, more):
    seconds = matmul_time(m, n, k, A100) * (1 - 1e-12)

    assert matmul_time(m + more, n, k, A100) >= seconds
    assert matmul_time(m, n + more, k, A100) >= seconds
    assert matmul_time(m, n, k + more, A100) >= seconds
    assert matmul_time(m, n, k, A100, 1 + more) >= seconds


@given(m=dims, n=dims, k=dims, clock=st.floats(0.01, 100))
def test_a_faster_clock_makes_everything_faster_alike(m, n, k, clock):
    quick = replace(A100, compute=A100.compute * clock,
                    memory_bandwidth=A100.memory_bandwidth * clock)  # fmt: skip

    assert matmul_time(m, n, k, quick) * clock == pytest.approx(
        matmul_time(m, n, k, A100)
    )


@given(case=planned())
def test_every_kernel_of_a_legal_plan_takes_some_time(case):
    model, plan = case
    forward = stage_forward(model, plan, A100)

    assert min(forward.matmul, forward.attention, forward.elementwise) > 0
    assert (forward.scores > 0) == (not plan.fused_attention)
    assert backward_pass(plan, forward).total >= 2 * forward.total * (1 - 1e-12)
    assert elementwise_bytes(model, plan) > 0


def test_constants_are_fractions_and_tiles_no_faster_than_the_largest():
    assert 0 < SUSTAINED["eager"] < SUSTAINED["fused"] < 1
    assert all(0 < share <= 1 for *_, share in TILES)


@pytest.mark.parametrize("value", NOT_SIZES, ids=repr)
def test_what_is_not_a_size_is_refused(value):
    with pytest.raises(ValueError, match=r"^size="):
        memory_time(value, A100)
    for place, field in enumerate("mnk"):
        sizes = [64, 64, 64]
        sizes[place] = value
        with pytest.raises(ValueError, match=f"^{field}="):
            matmul_time(*sizes, A100)
    with pytest.raises(ValueError, match=r"^batch="):
        matmul_time(64, 64, 64, A100, value)
