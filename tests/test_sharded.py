"""A block split over ranks equals the whole block, and sends four times, not more."""

import numpy as np
import pytest

from commwall.simulators.block import block, block_gradients, random_weights
from commwall.simulators.sharded import NORMS, shard, tensor_parallel, unshard

BATCH, SEQ, HIDDEN, HEAD_DIM = 2, 16, 24, 4
SHAPE = {"hidden": HIDDEN, "heads": 16, "kv_heads": 8, "head_dim": HEAD_DIM, "ffn": 40}
STREAM = BATCH * SEQ * HIDDEN  # numbers: b * s * h


def example(seed=0):
    """Weights, an input and a gradient of the output."""
    rng = np.random.default_rng(seed)
    weights = random_weights(rng, **SHAPE)
    return weights, *rng.normal(size=(2, BATCH, SEQ, HIDDEN))


def whole(weights, x, dout):
    out, saved = block(x, weights, HEAD_DIM)
    return out, *block_gradients(dout, weights, saved)


def split(ranks, sequence_parallel=False):
    weights, x, dout = example()
    return tensor_parallel(x, dout, weights, HEAD_DIM, ranks, sequence_parallel)


def close(a, b):
    return np.allclose(a, b, rtol=0, atol=1e-12)


@pytest.mark.parametrize("ranks", [1, 2, 4, 8])
def test_tensor_parallel_equals_the_whole_on_every_rank(ranks):
    out, dx, gradients = whole(*example())

    sharded = split(ranks)

    assert all(close(each, out) for each in sharded.outputs)
    assert all(close(each, dx) for each in sharded.input_gradients)
    joined = unshard(sharded.weight_gradients)
    assert joined.keys() == gradients.keys()
    assert all(close(joined[name], gradients[name]) for name in gradients)


@pytest.mark.parametrize("ranks", [1, 2, 4, 8])
def test_sequence_parallel_equals_the_whole_token_by_token(ranks):
    out, dx, gradients = whole(*example())

    sharded = split(ranks, sequence_parallel=True)

    assert close(np.concatenate(sharded.outputs, axis=1), out)
    assert close(np.concatenate(sharded.input_gradients, axis=1), dx)
    joined = unshard(sharded.weight_gradients)
    assert all(close(joined[name], gradients[name]) for name in gradients)


def test_sequence_parallel_holds_where_tokens_do_not_divide():
    rng = np.random.default_rng(0)
    weights = random_weights(rng, **SHAPE)
    x, dout = rng.normal(size=(2, BATCH, 13, HIDDEN))
    out, dx, _ = whole(weights, x, dout)

    sharded = tensor_parallel(x, dout, weights, HEAD_DIM, 8, sequence_parallel=True)

    assert close(np.concatenate(sharded.outputs, axis=1), out)
    assert close(np.concatenate(sharded.input_gradients, axis=1), dx)


def test_four_all_reduces_of_b_s_h_and_nothing_else():
    """Nothing on queries, keys, values, the feed-forward middle or any gradient."""
    calls = split(8).calls

    assert [(call.name, call.op, call.payload) for call in calls] == [
        ("forward attention output", "all_reduce", STREAM * 8),
        ("forward ffn output", "all_reduce", STREAM * 8),
        ("backward ffn input", "all_reduce", STREAM * 8),
        ("backward attention input", "all_reduce", STREAM * 8),
    ]


@pytest.mark.parametrize("ranks", [1, 2, 4, 8])
def test_a_layer_sends_eight_b_s_h_times_all_but_one_nth(ranks):
    """4 all-reduces of 2(t-1)/t b s h numbers each, at every rank."""
    calls = split(ranks).calls

    sent = np.sum([call.wire.values_sent for call in calls], axis=0)
    assert sent.tolist() == [8 * STREAM * (ranks - 1) / ranks] * ranks


def test_sequence_parallel_gathers_what_enters_and_scatters_what_leaves():
    calls = split(8, sequence_parallel=True).calls

    assert [(call.name, call.op) for call in calls] == [
        ("forward attention input", "all_gather"),
        ("forward attention output", "reduce_scatter"),
        ("forward ffn input", "all_gather"),
        ("forward ffn output", "reduce_scatter"),
        ("backward ffn output", "all_gather"),
        ("backward ffn input", "reduce_scatter"),
        ("backward attention output", "all_gather"),
        ("backward attention input", "reduce_scatter"),
        ("backward norm gains", "all_reduce"),
    ]
    *stream, norms = calls
    assert {call.payload for call in stream} == {STREAM * 8}
    assert norms.payload == 2 * HIDDEN * 8


@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_sequence_parallel_sends_the_same_bytes_but_for_the_norms(ranks):
    *stream, norms = split(ranks, sequence_parallel=True).calls
    plain = split(ranks).calls

    def sent(calls):
        return np.sum([call.wire.sent for call in calls], axis=0).tolist()

    assert sent(stream) == sent(plain)
    assert norms.wire.values_sent == [2 * 2 * HIDDEN * (ranks - 1) / ranks] * ranks


def test_the_norms_agree_bit_for_bit_on_all_ranks_without_being_sent():
    gradients = split(8).weight_gradients

    for norm in NORMS:
        assert all(np.array_equal(each[norm], gradients[0][norm]) for each in gradients)


def test_a_rank_holds_its_share_of_every_matrix_and_all_of_both_norms():
    weights, _, _ = example()

    for mine in shard(weights, 8, HEAD_DIM):
        for name, whole_one in weights.items():
            share = 1 if name in NORMS else 8
            assert mine[name].size * share == whole_one.size


def test_shards_put_together_are_the_whole():
    weights, _, _ = example()

    again = unshard(shard(weights, 4, HEAD_DIM))

    assert all(np.array_equal(again[name], weights[name]) for name in weights)


def test_a_key_value_head_is_not_cut():
    with pytest.raises(ValueError, match="kv_heads=8 is not a multiple of ranks=16"):
        split(16)
