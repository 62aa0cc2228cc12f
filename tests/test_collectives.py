"""Seconds and bytes of collectives: by hand, by their symmetries, by measured busbw."""

from dataclasses import replace
from itertools import pairwise
from math import inf, isfinite

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commwall.collectives import (
    algbw,
    all_gather_bytes,
    all_gather_time,
    all_reduce_bytes,
    all_reduce_time,
    all_to_all_bytes,
    all_to_all_time,
    broadcast_bytes,
    broadcast_time,
    bus_factor,
    busbw,
    half_bandwidth_payload,
    hierarchical_all_reduce_time,
    reduce_scatter_bytes,
    reduce_scatter_time,
    send_bytes,
    send_time,
)
from commwall.hardware import Link
from samples import NOT_COUNTS, NOT_SIZES, faster, links

LINK = Link(name="example", bandwidth=450e9, latency=2e-6, source="example")
SWITCH = replace(LINK, in_network=275e9)
payloads = st.floats(min_value=0, max_value=1e12)
rank_counts = st.integers(min_value=1, max_value=2048)

TIMES = [
    (all_reduce_time, "ring"),
    (all_reduce_time, "tree"),
    (all_gather_time, "ring"),
    (reduce_scatter_time, "ring"),
    (all_to_all_time, "ring"),
    (broadcast_time, "ring"),
    (broadcast_time, "tree"),
    (send_time, "ring"),
]
BYTES = [
    (all_reduce_time, all_reduce_bytes),
    (all_gather_time, all_gather_bytes),
    (reduce_scatter_time, reduce_scatter_bytes),
    (all_to_all_time, all_to_all_bytes),
    (broadcast_time, broadcast_bytes),
]
every_collective = pytest.mark.parametrize(("time", "algorithm"), TIMES)


def test_all_reduce_matches_a_hand_calculation():
    """4 ranks, 9 GB, 450 GB/s: 2 * 3 * (2e-6 + 9e9 / (4 * 450e9)) = 30.012 ms."""
    assert all_reduce_time(9e9, 4, LINK) == pytest.approx(30.012e-3, rel=1e-9)


def test_a_gradient_in_a_flat_ring_of_256_pays_510_hops():
    """510 hops of 10 us are 5.1 ms, where a tree pays 16."""
    slow = replace(LINK, latency=10e-6)

    assert all_reduce_time(0, 256, slow) == pytest.approx(5.1e-3)
    assert all_reduce_time(0, 256, slow, algorithm="tree") == pytest.approx(16 * 10e-6)


def test_the_payload_is_the_whole_buffer_of_every_collective():
    """8 ranks, 8 GB at 450 GB/s and seven hops: each but the all-reduce sends 7 GB."""
    one_way = 7 * 2e-6 + 7e9 / 450e9

    for time in (all_gather_time, reduce_scatter_time, all_to_all_time):
        assert time(8e9, 8, LINK) == pytest.approx(one_way, rel=1e-12)
    assert all_reduce_time(8e9, 8, LINK) == pytest.approx(2 * one_way, rel=1e-12)


def test_a_broadcast_and_a_send_by_hand():
    """A chain of 8 pipelines 9 GB, so 20 ms; a binomial tree takes three times that."""
    assert broadcast_time(9e9, 8, LINK) == pytest.approx(7 * 2e-6 + 0.02)
    assert broadcast_time(9e9, 8, LINK, "tree") == pytest.approx(3 * (2e-6 + 0.02))
    assert send_time(9e9, 2, LINK) == pytest.approx(2e-6 + 0.02)
    assert send_time(9e9, 4, LINK) == pytest.approx(3 * (2e-6 + 0.02))


def test_a_switch_that_adds_takes_one_payload_and_two_hops():
    expected = 2 * 2e-6 + 9e9 / 275e9

    assert all_reduce_time(9e9, 8, SWITCH, "in_network") == pytest.approx(expected)
    assert all_reduce_time(9e9, 72, SWITCH, "in_network") == pytest.approx(expected)
    with pytest.raises(ValueError, match="example has in_network=None"):
        all_reduce_time(9e9, 8, LINK, "in_network")


def test_a_hierarchical_all_reduce_by_hand():
    """8 GB, 8 x 100 GB/s inside, 4 nodes at 10: 2 * 7/8 * 80 ms and 2 * 3/4 of 1 GB."""
    fast = Link(name="in", bandwidth=100e9, latency=1e-6, source="example")
    slow = Link(name="out", bandwidth=10e9, latency=5e-6, source="example")
    inside, outside = 14 * 1e-6 + 0.14, 6 * 5e-6 + 0.15

    time = hierarchical_all_reduce_time(8e9, [(8, fast), (4, slow)])
    assert time == pytest.approx(inside + outside, rel=1e-12)


@pytest.mark.parametrize("ranks", [2, 4, 8, 16, 256])
def test_bytes_of_an_all_reduce_match_patarasuk_2009(ranks):
    """2 (n-1)/n of the payload: 1, 1.5, 1.75, 1.875, 1.992; more ranks, more bytes."""
    assert all_reduce_bytes(1e9, ranks) == pytest.approx(2e9 * (ranks - 1) / ranks)


@pytest.mark.parametrize(
    ("op", "eight"),
    [
        ("all_reduce", 1.75),
        ("all_gather", 0.875),
        ("reduce_scatter", 0.875),
        ("all_to_all", 0.875),
        ("broadcast", 1),
        ("send", 1),
    ],
)
def test_bus_factors_are_those_of_nccl_tests(op, eight):
    assert bus_factor(op, 8) == eight
    assert bus_factor(op, 1) == 0


def test_bus_bandwidth_by_hand():
    """H100, 8 ranks: busbw 370 GB/s is algbw 211, as each byte is sent 1.75 times."""
    seconds = 1e9 / 211.43e9

    assert algbw(1e9, seconds) == pytest.approx(211.43e9)
    assert busbw(1e9, seconds, 8) == pytest.approx(370e9, rel=1e-4)


@given(payload=payloads, ranks=rank_counts, link=links)
def test_all_reduce_is_reduce_scatter_and_all_gather(payload, ranks, link):
    scatter, gather = (
        time(payload, ranks, link) for time in (reduce_scatter_time, all_gather_time)
    )

    assert all_reduce_time(payload, ranks, link) == pytest.approx(scatter + gather)
    assert all_reduce_bytes(payload, ranks) == pytest.approx(
        reduce_scatter_bytes(payload, ranks) + all_gather_bytes(payload, ranks)
    )


@every_collective
@given(payload=payloads, ranks=rank_counts, link=links, scale=st.floats(1e-3, 1e3))
def test_time_does_not_depend_on_the_unit_bytes_are_counted_in(
    time, algorithm, payload, ranks, link, scale
):
    """A dimension check with no units library: rescale every byte, seconds stay put."""
    rescaled = faster(link, scale)

    assert time(payload * scale, ranks, rescaled, algorithm) == pytest.approx(
        time(payload, ranks, link, algorithm)
    )


@every_collective
@given(payload=payloads, ranks=rank_counts, link=links, scale=st.floats(1e-3, 1e3))
def test_time_scales_with_the_unit_it_is_counted_in(
    time, algorithm, payload, ranks, link, scale
):
    clock = replace(
        link, bandwidth=link.bandwidth / scale, latency=link.latency * scale
    )

    assert time(payload, ranks, clock, algorithm) == pytest.approx(
        scale * time(payload, ranks, link, algorithm)
    )


@every_collective
@given(payload=payloads, ranks=rank_counts, link=links, factor=st.floats(1, 1e6))
def test_less_payload_more_bandwidth_or_less_latency_never_take_longer(
    time, algorithm, payload, ranks, link, factor
):
    seconds = time(payload, ranks, link, algorithm)
    almost = seconds * (1 + 1e-12)

    assert isfinite(seconds)
    assert 0 <= time(payload / factor, ranks, link, algorithm) <= almost
    assert 0 <= time(payload, ranks, faster(link, factor), algorithm) <= almost
    sooner = replace(link, latency=link.latency / factor)
    assert 0 <= time(payload, ranks, sooner, algorithm) <= almost


@every_collective
@given(payload=payloads, link=links)
def test_one_rank_alone_costs_nothing(time, algorithm, payload, link):
    assert time(payload, 1, link, algorithm) == 0


@pytest.mark.parametrize(("time", "sent"), BYTES)
@given(payload=payloads, ranks=rank_counts, link=links)
def test_without_latency_seconds_are_bytes_over_bandwidth(
    time, sent, payload, ranks, link
):
    free = replace(link, latency=0)

    assert time(payload, ranks, free) * free.bandwidth == pytest.approx(
        sent(payload, ranks)
    )


@every_collective
@given(payload=payloads, ranks=rank_counts)
def test_at_infinite_bandwidth_only_hops_are_left(time, algorithm, payload, ranks):
    limit = replace(LINK, bandwidth=inf)

    seconds = time(payload, ranks, limit, algorithm)
    assert seconds == time(0, ranks, LINK, algorithm)
    assert time(payload, ranks, replace(limit, latency=0), algorithm) == 0


@every_collective
def test_sizes_may_be_an_array(time, algorithm):
    sizes = np.array([0, 1e3, 1e6, 1e9])

    for ranks in (1, 2, 8):
        each = [time(float(size), ranks, LINK, algorithm) for size in sizes]
        assert time(sizes, ranks, LINK, algorithm).tolist() == each


@pytest.mark.parametrize(("time", "sent"), BYTES)
def test_bytes_may_be_an_array(time, sent):
    assert sent(np.array([0.0, 8.0]), 8).tolist() == [sent(0, 8), sent(8, 8)]
    assert send_bytes(np.array([5, 6])).tolist() == [5, 6]
    assert send_bytes(np.array([5, 6]), ranks=1).tolist() == [0, 0]


@given(payload=payloads, ranks=rank_counts, link=links)
def test_more_ranks_never_send_less_and_never_more_than_twice(payload, ranks, link):
    assert all_reduce_bytes(payload, ranks) <= all_reduce_bytes(payload, ranks + 1)
    assert all_reduce_bytes(payload, ranks) <= 2 * payload


@given(payload=st.floats(1, 1e12), link=links)
def test_a_tree_wins_where_hops_count_and_never_by_its_bytes(payload, link):
    for few, many in pairwise([2, 3, 4, 8, 64, 512]):
        assert all_reduce_time(0, few, LINK, "tree") < all_reduce_time(0, many, LINK)
    free = replace(link, latency=0)
    for ranks in (2, 3, 8, 512):
        ring = all_reduce_time(payload, ranks, free)
        assert all_reduce_time(payload, ranks, free, "tree") >= ring * (1 - 1e-12)


@given(payload=payloads, inner=st.integers(1, 16), outer=st.integers(1, 64), link=links)
def test_tiers_of_one_link_send_what_a_flat_ring_does(payload, inner, outer, link):
    """2(g-1)/g S + 2(k-1)/k S/g = 2(gk-1)/(gk) S: a hierarchy saves hops, not bytes."""
    free = replace(link, latency=0)
    tiers = [(inner, free), (outer, free)]

    flat = all_reduce_time(payload, inner * outer, free)
    assert hierarchical_all_reduce_time(payload, tiers) == pytest.approx(flat)
    assert hierarchical_all_reduce_time(payload, [(inner, link)]) == all_reduce_time(
        payload, inner, link
    )


@given(ranks=st.integers(2, 1024), link=links)
def test_at_the_half_bandwidth_payload_latency_and_bandwidth_cost_the_same(ranks, link):
    payload = half_bandwidth_payload(ranks, link)

    twice_the_hops = 2 * all_reduce_time(0, ranks, link)
    assert all_reduce_time(payload, ranks, link) == pytest.approx(twice_the_hops)


def test_without_latency_there_is_no_half_bandwidth_payload():
    free = replace(LINK, latency=0, bandwidth=inf)

    assert half_bandwidth_payload(8, free) == 0


@given(
    seconds=st.floats(1e-9, 1e3), payload=st.floats(1, 1e12), ranks=st.integers(2, 64)
)
def test_bus_bandwidth_of_a_predicted_time_is_the_links(seconds, payload, ranks):
    free = replace(LINK, latency=0)
    time = all_reduce_time(payload, ranks, free)

    assert busbw(payload, time, ranks) == pytest.approx(free.bandwidth)
    assert algbw(payload, seconds) * seconds == pytest.approx(payload)


@every_collective
@pytest.mark.parametrize("value", NOT_SIZES, ids=repr)
def test_what_is_not_a_payload_is_refused(time, algorithm, value):
    for ranks in (1, 2, 8):
        with pytest.raises(ValueError, match=r"^payload="):
            time(value, ranks, LINK, algorithm)


@every_collective
@pytest.mark.parametrize("value", NOT_COUNTS, ids=repr)
def test_what_is_not_a_number_of_ranks_is_refused(time, algorithm, value):
    with pytest.raises(ValueError, match=r"^ranks="):
        time(1e9, value, LINK, algorithm)


@pytest.mark.parametrize("value", NOT_SIZES, ids=repr)
@pytest.mark.parametrize(("time", "sent"), BYTES)
def test_what_is_not_a_payload_has_no_bytes(time, sent, value):
    with pytest.raises(ValueError, match=r"^payload="):
        sent(value, 8)


@every_collective
def test_an_unknown_algorithm_is_refused_by_name(time, algorithm):
    for wrong in ("Ring", "rabenseifner", "", None, 1):
        with pytest.raises(ValueError, match=r"^algorithm=.* must be one of ring"):
            time(1e9, 8, LINK, wrong)


@every_collective
def test_the_name_of_a_link_is_not_a_link(time, algorithm):
    with pytest.raises(ValueError, match="link='NVLink 4' must be a Link"):
        time(1e9, 8, "NVLink 4", algorithm)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: hierarchical_all_reduce_time(1e9, []), "must name at least one"),
        (lambda: hierarchical_all_reduce_time(1e9, [(0, LINK), (2, LINK)]), "^ranks=0"),
        (
            lambda: hierarchical_all_reduce_time(-1, [(8, LINK), (2, LINK)]),
            "^payload=-1",
        ),
        (lambda: bus_factor("allreduce", 8), "op='allreduce' .* mean 'all_reduce'"),
        (lambda: bus_factor("all_reduce", 0), "^ranks=0 must be a whole number"),
        (lambda: busbw(1e9, 0, 8), "^seconds=0 must be a number above 0"),
        (lambda: busbw(1e9, 1, 8, "sum"), "^op='sum' must be one of"),
        (lambda: algbw("1 GB", 1), "^payload='1 GB' is not a number"),
        (lambda: half_bandwidth_payload(0, LINK), "^ranks=0"),
        (lambda: half_bandwidth_payload(8, None), "link=None must be a Link"),
    ],
)
def test_questions_without_an_answer_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
