"""Context parallelism equals whole attention, and moves what the textbook says."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commwall.simulators.attention import attention, attention_gradients
from commwall.simulators.context import (
    RunningSoftmax,
    blocks,
    ring_attention,
    ring_attention_gradients,
    ulysses_attention,
    ulysses_attention_gradients,
)

BATCH, HEADS, KV_HEADS, SEQ, HEAD_DIM = 2, 8, 4, 16, 4


def tensors(seq=SEQ, seed=0, heads=HEADS, kv_heads=KV_HEADS):
    """Queries, keys, values and a gradient of the output."""
    rng = np.random.default_rng(seed)
    shapes = [(BATCH, n, seq, HEAD_DIM) for n in (heads, kv_heads, kv_heads, heads)]
    return [rng.normal(size=shape) for shape in shapes]


def whole(q, k, v, dout, causal):
    out, weights = attention(q, k, v, causal)
    return [out, *attention_gradients(dout, q, k, v, weights)]


def by_ring(q, k, v, dout, causal, ranks):
    q, k, v, dout = (blocks(each, ranks) for each in (q, k, v, dout))
    out, log_mass, there = ring_attention(q, k, v, causal)
    gradients, back = ring_attention_gradients(dout, q, k, v, out, log_mass, causal)
    return [out, gradients.q, gradients.k, gradients.v], there, back


def by_ulysses(q, k, v, dout, causal, ranks):
    q, k, v, dout = (blocks(each, ranks) for each in (q, k, v, dout))
    out, saved, there = ulysses_attention(q, k, v, causal)
    gradients, back = ulysses_attention_gradients(dout, saved)
    return [out, gradients.q, gradients.k, gradients.v], there, back


def assert_joined_equal(parts, expected):
    for blocks_of_one, reference in zip(parts, expected, strict=True):
        joined = np.concatenate(blocks_of_one, axis=-2)
        assert np.allclose(joined, reference, rtol=0, atol=1e-12)


@settings(max_examples=60, deadline=None)
@given(cuts=st.sets(st.integers(1, 15)), scale=st.floats(0.1, 300))
def test_a_running_softmax_forgets_in_how_many_blocks_it_met_the_keys(cuts, scale):
    rng = np.random.default_rng(0)
    logits, values = scale * rng.normal(size=(5, 16)), rng.normal(size=(16, 3))
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    expected = weights @ values / weights.sum(axis=-1, keepdims=True)

    softmax = RunningSoftmax()
    places = sorted(cuts)
    parts = zip(np.split(logits, places, axis=1), np.split(values, places), strict=True)
    for some_logits, some_values in parts:
        softmax.meet(some_logits, some_values)

    assert np.allclose(softmax.output, expected, rtol=0, atol=1e-12)


@settings(max_examples=60, deadline=None)
@given(
    ranks=st.integers(1, 9),
    seq=st.integers(9, 21),
    causal=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_ring_attention_equals_the_whole_forward_and_backward(ranks, seq, causal, seed):
    """Also where the sequence does not divide by the ranks."""
    given_to_it = tensors(seq, seed)

    parts, _, _ = by_ring(*given_to_it, causal, ranks)

    assert_joined_equal(parts, whole(*given_to_it, causal))


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.parametrize("seq", [16, 18])
def test_ulysses_equals_the_whole_forward_and_backward(ranks, seq, causal):
    given_to_it = tensors(seq)

    parts, _, _ = by_ulysses(*given_to_it, causal, ranks)

    assert_joined_equal(parts, whole(*given_to_it, causal))


@pytest.mark.parametrize("ranks", [1, 2, 4, 8])
@pytest.mark.parametrize("causal", [True, False])
def test_a_ring_sends_keys_and_values_forward_and_twice_that_backward(ranks, causal):
    """(cp-1) blocks of K and V; then the same again, and their gradients."""
    block_of_kv = 2 * BATCH * KV_HEADS * (SEQ // ranks) * HEAD_DIM

    _, there, back = by_ring(*tensors(), causal, ranks)

    assert there.values_sent == [(ranks - 1) * block_of_kv] * ranks
    assert back.values_sent == [2 * (ranks - 1) * block_of_kv] * ranks
    assert (there.steps, back.steps) == (ranks - 1, 2 * (ranks - 1))


def test_four_ranks_of_a_ring_by_hand():
    """4 kv heads, 16 tokens, width 4, batch 2: K is 512 numbers, a block of it 128.

    Forward 3 hops of 2 blocks are 768 numbers, backward 3 hops of 4 are 1536.
    """
    _, there, back = by_ring(*tensors(), True, ranks=4)

    assert there.sent == [768 * 8] * 4
    assert back.sent == [1536 * 8] * 4


def test_sharing_keys_among_heads_makes_a_ring_cheaper_and_queries_never_move():
    _, own, _ = by_ring(*tensors(kv_heads=8), True, ranks=4)
    _, shared, _ = by_ring(*tensors(kv_heads=1), True, ranks=4)

    assert own.busiest == 8 * shared.busiest


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_ulysses_sends_all_but_one_nth_of_queries_keys_values_and_output(ranks):
    """Each rank holds 1/cp of each and keeps 1/cp of that; backward is the mirror."""
    held = BATCH * (SEQ // ranks) * HEAD_DIM * (HEADS + 2 * KV_HEADS + HEADS)

    _, there, back = by_ulysses(*tensors(), True, ranks)

    assert there.values_sent == [held * (ranks - 1) / ranks] * ranks
    assert back.values_sent == there.values_sent
    assert there.steps == back.steps == 4 * (ranks - 1)


def test_ulysses_needs_a_key_value_head_for_every_rank():
    with pytest.raises(ValueError, match="kv_heads=4 is not a multiple of the 8 ranks"):
        by_ulysses(*tensors(), True, ranks=8)
