"""Collectives that move real arrays: results exact, bytes and steps by the textbook."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commwall.simulators.counting import (
    all_to_all,
    at_once,
    exchange,
    hierarchical_all_reduce,
    in_network_all_reduce,
    ring_all_gather,
    ring_all_reduce,
    ring_broadcast,
    ring_reduce_scatter,
    send,
)

rank_counts = st.integers(min_value=1, max_value=24)
sizes = st.integers(min_value=0, max_value=60)
seeds = st.integers(min_value=0, max_value=2**32 - 1)


def buffers(ranks, size, seed=0, dtype=np.float64):
    """Whole numbers, so that sums are exact in any order."""
    rng = np.random.default_rng(seed)
    return [rng.integers(-99, 100, size).astype(dtype) for _ in range(ranks)]


def all_equal(results, expected):
    return all(np.array_equal(result, expected) for result in results)


@settings(max_examples=60, deadline=None)
@given(ranks=rank_counts, size=sizes, seed=seeds)
def test_a_ring_all_reduce_gives_the_sum_to_every_rank(ranks, size, seed):
    given_to_it = buffers(ranks, size, seed)
    kept = [buffer.copy() for buffer in given_to_it]

    sums, _ = ring_all_reduce(given_to_it)

    assert all_equal(sums, np.sum(kept, axis=0))
    assert np.array_equal(given_to_it, kept)


@settings(max_examples=60, deadline=None)
@given(ranks=rank_counts, size=sizes, seed=seeds)
def test_a_reduce_scatter_leaves_piece_r_of_the_sum_at_rank_r(ranks, size, seed):
    given_to_it = buffers(ranks, size, seed)
    expected = np.array_split(np.sum(given_to_it, axis=0), ranks)

    pieces, wire = ring_reduce_scatter(given_to_it)

    assert all(map(np.array_equal, pieces, expected))
    assert wire.steps == ranks - 1


@settings(max_examples=60, deadline=None)
@given(ranks=rank_counts, size=sizes, seed=seeds)
def test_an_all_gather_joins_the_pieces_in_order_at_every_rank(ranks, size, seed):
    whole = buffers(1, size, seed)[0]

    gathered, wire = ring_all_gather(np.array_split(whole, ranks))

    assert all_equal(gathered, whole)
    assert wire.steps == ranks - 1


@pytest.mark.parametrize(
    ("ranks", "share", "steps"),
    [
        (2, 1.0, 2),  # 2 * 1/2, 2 * 1
        (4, 1.5, 6),  # 2 * 3/4, 2 * 3
        (8, 1.75, 14),  # 2 * 7/8, 2 * 7
        (16, 1.875, 30),  # 2 * 15/16, 2 * 15
        (256, 1.9921875, 510),  # 2 * 255/256, 2 * 255
    ],
)
def test_every_rank_of_a_ring_sends_and_receives_the_textbook_share(
    ranks, share, steps
):
    payload = 512  # numbers

    _, wire = ring_all_reduce(buffers(ranks, payload))

    assert wire.values_sent == [share * payload] * ranks
    assert wire.sent == wire.received == [share * payload * 8] * ranks
    assert wire.steps == steps
    assert wire.messages == steps * ranks


@settings(max_examples=60, deadline=None)
@given(ranks=rank_counts, size=sizes)
def test_where_the_payload_does_not_divide_no_rank_sends_twice_its_own_piece(
    ranks, size
):
    """Rank r sends S - piece r, then S - piece r+1; the longer pieces come first."""
    pieces = [size // ranks + (rank < size % ranks) for rank in range(ranks)]

    _, wire = ring_all_reduce(buffers(ranks, size))

    expected = [
        2 * size - pieces[rank] - pieces[(rank + 1) % ranks] for rank in range(ranks)
    ]
    assert wire.values_sent == expected
    assert sum(wire.values_sent) == 2 * (ranks - 1) * size


@settings(max_examples=60, deadline=None)
@given(ranks=st.integers(min_value=2, max_value=24), size=sizes)
def test_the_busiest_rank_of_a_ring_is_within_one_number_a_phase_of_the_formula(
    ranks, size
):
    _, wire = ring_all_reduce(buffers(ranks, size))

    formula = 2 * (ranks - 1) / ranks * size
    assert formula <= max(wire.values_sent) < formula + 2
    assert max(wire.values_sent) <= 2 * (size - size // ranks)


def test_bytes_follow_the_type_of_the_numbers_and_values_do_not():
    _, wide = ring_all_reduce(buffers(4, 8, dtype=np.float64))
    _, narrow = ring_all_reduce(buffers(4, 8, dtype=np.float16))

    assert wide.values_sent == narrow.values_sent == [12] * 4
    assert (wide.busiest, narrow.busiest) == (96, 24)


@settings(max_examples=60, deadline=None)
@given(ranks=rank_counts, seed=seeds)
def test_collectives_keep_the_shape_of_what_they_are_given(ranks, seed):
    matrices = [buffer.reshape(3, 2, 5) for buffer in buffers(ranks, 30, seed)]
    expected = np.sum(matrices, axis=0)

    assert all_equal(ring_all_reduce(matrices)[0], expected)
    assert all_equal(in_network_all_reduce(matrices)[0], expected)
    assert all_equal(ring_broadcast(matrices, chunks=4)[0], matrices[0])


@settings(max_examples=60, deadline=None)
@given(ranks=rank_counts, axis=st.sampled_from([0, 1, 2]))
def test_reduce_scatter_and_all_gather_along_an_axis_undo_each_other(ranks, axis):
    shape = (5, 6, 7)
    tensors = [buffer.reshape(shape) for buffer in buffers(ranks, 210)]

    pieces, _ = ring_reduce_scatter(tensors, axis=axis)
    gathered, _ = ring_all_gather(pieces, axis=axis)

    assert all_equal(gathered, np.sum(tensors, axis=0))


@settings(max_examples=60, deadline=None)
@given(ranks=rank_counts, size=sizes, seed=seeds, data=st.data())
def test_a_broadcast_reaches_every_rank_in_a_pipelined_chain(ranks, size, seed, data):
    """n - 2 + chunks steps, and all but the last of the chain send S once."""
    root = data.draw(st.integers(0, ranks - 1))
    chunks = data.draw(st.integers(1, 9))
    given_to_it = buffers(ranks, size, seed)

    results, wire = ring_broadcast(given_to_it, root, chunks)

    last = (root - 1) % ranks
    expected = [size if rank != last else 0 for rank in range(ranks)]
    assert all_equal(results, given_to_it[root])
    assert wire.values_sent == expected
    assert wire.steps == (ranks - 2 + chunks if ranks > 1 else 0)


def test_a_send_is_one_message_to_one_rank():
    given_to_it = buffers(3, 5)

    results, wire = send(given_to_it, source=2, target=0)

    assert np.array_equal(results[0], given_to_it[2])
    assert np.array_equal(results[1], given_to_it[1])
    assert (wire.steps, wire.messages, wire.values_sent) == (1, 1, [0, 0, 5])


@settings(max_examples=60, deadline=None)
@given(ranks=rank_counts, share=st.integers(min_value=0, max_value=5), seed=seeds)
def test_an_all_to_all_is_a_transpose_and_keeps_one_nth_at_home(ranks, share, seed):
    given_to_it = buffers(ranks, ranks * share, seed)
    table = np.array(given_to_it).reshape(ranks, ranks, share)

    results, wire = all_to_all(given_to_it)

    assert np.array_equal(results, table.swapaxes(0, 1).reshape(ranks, -1))
    assert wire.values_sent == [(ranks - 1) * share] * ranks  # (n-1)/n of S
    assert wire.steps == ranks - 1


@settings(max_examples=60, deadline=None)
@given(ranks=rank_counts, heads=st.integers(1, 9), tokens=st.integers(1, 9))
def test_an_all_to_all_that_splits_one_axis_and_joins_another_is_undone_by_its_mirror(
    ranks, heads, tokens
):
    whole = np.arange(heads * tokens * ranks * ranks).reshape(heads * ranks, -1)
    by_token = np.array_split(whole, ranks, axis=1)

    by_head, there = all_to_all(by_token, split=0, join=1)
    again, back = all_to_all(by_head, split=1, join=0)

    assert all(map(np.array_equal, by_head, np.array_split(whole, ranks, axis=0)))
    assert all(map(np.array_equal, again, by_token))
    assert there.sent == back.sent


def test_an_exchange_of_unequal_pieces_delivers_each_to_its_address():
    pieces = [[np.full(s + 2 * t, 10 * s + t) for t in range(3)] for s in range(3)]

    received, wire = exchange(pieces)

    assert all(
        np.array_equal(received[t][s], pieces[s][t]) for s in range(3) for t in range(3)
    )
    assert wire.values_sent == [2 + 4, 1 + 5, 2 + 4]


@pytest.mark.parametrize("ranks", [2, 8, 256])
def test_a_switch_that_adds_needs_two_steps_and_one_payload_from_each_rank(ranks):
    given_to_it = buffers(ranks, 10)

    sums, wire = in_network_all_reduce(given_to_it)

    assert all_equal(sums, np.sum(given_to_it, axis=0))
    assert wire.steps == 2
    assert wire.values_sent == [10] * ranks
    assert wire.received == [80] * ranks


@settings(max_examples=60, deadline=None)
@given(nodes=st.integers(1, 6), gpus=st.integers(1, 6), size=sizes, seed=seeds)
def test_a_hierarchical_all_reduce_gives_the_sum_to_every_rank(nodes, gpus, size, seed):
    given_to_it = buffers(nodes * gpus, size, seed)

    sums, wire = hierarchical_all_reduce(given_to_it, gpus)

    assert all_equal(sums, np.sum(given_to_it, axis=0))
    assert wire.steps == 2 * (gpus - 1) + 2 * (nodes - 1)


def test_a_hierarchical_all_reduce_sends_one_eighth_across_nodes_of_eight():
    """32 nodes of 8, S = 512: 2 * 7/8 * S inside, 2 * 31/32 * S/8 across."""
    _, wire = hierarchical_all_reduce(buffers(256, 512), gpus_per_node=8)

    inside, across = wire.inside(8), wire.across(8)
    assert inside.values_sent == [896] * 256
    assert across.values_sent == [124] * 256
    assert (inside.steps, across.steps, wire.steps) == (14, 62, 76)


def test_a_flat_ring_crosses_between_nodes_at_one_rank_in_eight_with_all_it_sends():
    """Seven send only inside; the eighth sends everything over the network."""
    _, wire = ring_all_reduce(buffers(16, 64))

    across = [120 if rank % 8 == 7 else 0 for rank in range(16)]  # 2 * 15/16 * 64
    assert wire.across(8).values_sent == across
    assert wire.inside(8).steps == wire.across(8).steps == 30


def test_one_rank_alone_sends_nothing():
    alone = buffers(1, 6)
    collectives = (
        ring_reduce_scatter,
        ring_all_gather,
        ring_all_reduce,
        ring_broadcast,
        all_to_all,
        in_network_all_reduce,
    )

    for collective in collectives:
        results, wire = collective(alone)
        assert np.array_equal(results[0], alone[0])
        assert (wire.steps, wire.messages, wire.busiest) == (0, 0, 0)


def test_groups_that_share_ranks_and_links_are_refused():
    with pytest.raises(ValueError, match="is busy in step 0"):
        at_once([[0, 1], [0, 1]], ring_all_reduce, buffers(2, 4))


def test_a_world_that_is_not_whole_nodes_is_refused():
    with pytest.raises(ValueError, match="6 ranks are not a multiple of gpus_per_node"):
        hierarchical_all_reduce(buffers(6, 4), 4)


@settings(max_examples=60, deadline=None)
@given(ranks=st.integers(2, 24), chunks=st.integers(1, 24))
def test_in_a_step_every_rank_of_a_ring_sends_to_one_and_hears_from_one(ranks, chunks):
    _, reduced = ring_all_reduce(buffers(ranks, 5))
    _, chain = ring_broadcast(buffers(ranks, 5), chunks=chunks)

    for wire in (reduced, chain):
        senders = {(message.step, message.source) for message in wire.log}
        hearers = {(message.step, message.target) for message in wire.log}
        assert len(senders) == len(hearers) == wire.messages


def test_rounding_differs_between_orders_of_addition_but_not_between_ranks():
    """Every rank gets the same bits: each piece was added up once, then copied."""
    rng = np.random.default_rng(0)
    given_to_it = [rng.normal(size=7) for _ in range(5)]

    sums, _ = ring_all_reduce(given_to_it)

    assert all_equal(sums, sums[0])
    assert np.allclose(sums[0], np.sum(given_to_it, axis=0), rtol=0, atol=1e-14)
