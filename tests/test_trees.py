"""The double binary tree: few steps, and nobody sends more than twice the payload."""

from math import ceil, log2

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commwall.simulators.counting import ring_all_reduce
from commwall.simulators.trees import depth, double_tree, tree_all_reduce

rank_counts = st.integers(min_value=1, max_value=300)
many_ranks = st.integers(min_value=4, max_value=300)


def buffers(ranks, size, seed=0):
    """Whole numbers, so that sums are exact in any order."""
    rng = np.random.default_rng(seed)
    return [rng.integers(-99, 100, size).astype(np.float64) for _ in range(ranks)]


@settings(max_examples=60, deadline=None)
@given(ranks=rank_counts, size=st.integers(0, 20), seed=st.integers(0, 2**32 - 1))
def test_a_tree_all_reduce_gives_the_sum_to_every_rank(ranks, size, seed):
    given_to_it = buffers(ranks, size, seed)

    sums, _ = tree_all_reduce(given_to_it)

    assert all(np.array_equal(each, np.sum(given_to_it, axis=0)) for each in sums)


@pytest.mark.parametrize(
    ("ranks", "ring", "tree"), [(2, 2, 2), (8, 14, 6), (16, 30, 8), (256, 510, 16)]
)
def test_a_tree_takes_steps_as_the_logarithm_and_a_ring_as_the_number(
    ranks, ring, tree
):
    given_to_it = buffers(ranks, 4)

    assert ring_all_reduce(given_to_it)[1].steps == ring
    assert tree_all_reduce(given_to_it)[1].steps == tree


@settings(max_examples=60, deadline=None)
@given(ranks=rank_counts)
def test_the_steps_are_twice_the_logarithm_rounded_up_for_every_number(ranks):
    _, wire = tree_all_reduce(buffers(ranks, 2))

    assert wire.steps == 2 * ceil(log2(ranks))


@pytest.mark.parametrize(("ranks", "payloads"), [(1, 0), (2, 1), (3, 1.5), (4, 2)])
def test_two_and_three_ranks_send_less_than_twice_the_payload(ranks, payloads):
    _, wire = tree_all_reduce(buffers(ranks, 10))

    assert max(wire.values_sent) == payloads * 10


@settings(max_examples=60, deadline=None)
@given(ranks=many_ranks)
def test_from_four_ranks_on_the_busiest_sends_exactly_twice_the_payload(ranks):
    """The formula's 2S; the mean over the ranks is 2(n-1)/n S, as with the ring."""
    _, wire = tree_all_reduce(buffers(ranks, 10))

    assert max(wire.values_sent) == max(wire.received) / 8 == 20
    assert sum(wire.values_sent) == 2 * (ranks - 1) * 10


@settings(max_examples=60, deadline=None)
@given(ranks=many_ranks)
def test_an_odd_payload_costs_the_busiest_rank_at_most_one_number_more(ranks):
    _, wire = tree_all_reduce(buffers(ranks, 11))

    assert 22 <= max(wire.values_sent) <= 23


@settings(max_examples=60, deadline=None)
@given(ranks=many_ranks)
def test_a_rank_inside_one_tree_is_a_leaf_of_the_other(ranks):
    first, second = (set(tree.values()) for tree in double_tree(ranks))

    assert first & second == (set() if ranks % 2 == 0 else {0})


@settings(max_examples=60, deadline=None)
@given(ranks=many_ranks)
def test_both_trees_span_all_ranks_and_nobody_has_more_than_two_children(ranks):
    for tree in double_tree(ranks):
        (root,) = set(range(ranks)) - set(tree)
        children = [list(tree.values()).count(rank) for rank in range(ranks)]

        assert max(children) == 2
        assert children[root] == 1
        assert max(depth(rank, tree) for rank in tree) == ceil(log2(ranks))


def test_the_trees_of_fourteen_ranks_are_those_drawn_in_nccl():
    first, second = double_tree(14)

    assert first == {
        8: 0, 4: 8, 12: 8, 2: 4, 6: 4, 10: 12, 13: 12,
        1: 2, 3: 2, 5: 6, 7: 6, 9: 10, 11: 10,
    }  # fmt: skip
    assert second == {13 - child: 13 - parent for child, parent in first.items()}


def test_an_odd_number_of_ranks_shifts_the_second_tree_by_one():
    first, second = double_tree(5)

    assert first == {4: 0, 2: 4, 1: 2, 3: 2}
    assert second == {0: 1, 3: 0, 2: 3, 4: 3}
