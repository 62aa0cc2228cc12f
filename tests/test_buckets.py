"""Buckets on one link: by hand, by bounds, and beside the step's closed form."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commwall.buckets import bucketed, exposed

sizes = st.floats(1e3, 1e9)
times = st.floats(1e-3, 10)
rates = st.floats(1e6, 1e12)


def link(latency, bandwidth):
    """Seconds of a message, in the alpha-beta model."""
    return lambda size: latency + size / bandwidth


def test_a_fast_link_shows_the_last_bucket_alone():
    """100 B made in 10 s, in fours: ready at 2.5, 5, 7.5, 10; 25 B take 1 s."""
    buckets = bucketed(100, 25, 10, link(0, 25))

    assert [b.start for b in buckets] == [2.5, 5, 7.5, 10]
    assert exposed(buckets, 10) == 1


def test_a_slow_link_is_busy_from_the_first_bucket_on():
    """25 B take 5 s: from 2.5 s on, four of them, until 22.5."""
    assert exposed(bucketed(100, 25, 10, link(0, 5)), 10) == 12.5


def test_one_bucket_hides_nothing():
    assert exposed(bucketed(100, 1000, 10, link(1, 50)), 10) == 3


def test_the_last_bucket_may_be_smaller():
    assert [b.payload for b in bucketed(100, 40, 1, link(0, 1))] == [40, 40, 20]


@given(gradients=sizes, part=st.floats(0.01, 2), backward=times, bandwidth=rates)
def test_bounds_of_what_shows(gradients, part, backward, bandwidth):
    """At least the last bucket, at most all of it; whole bytes are sent once."""
    send = link(1e-6, bandwidth)
    buckets = bucketed(gradients, part * gradients, backward, send)
    shown, all_of_it = exposed(buckets, backward), sum(send(b.payload) for b in buckets)

    assert sum(b.payload for b in buckets) == pytest.approx(gradients)
    assert shown >= 0.999 * send(buckets[-1].payload) - 1e-12
    assert shown <= all_of_it * 1.001
    assert buckets[-1].end >= 0.999 * all_of_it


@given(gradients=sizes, backward=times)
def test_a_faster_link_never_shows_more(gradients, backward):
    shown = [
        exposed(bucketed(gradients, gradients / 7, backward, link(0, rate)), backward)
        for rate in (gradients, 2 * gradients, 4 * gradients)
    ]

    assert shown == sorted(shown, reverse=True)


def test_sizes_that_are_nothing_are_refused():
    for gradients, size in ((0, 1), (1, 0), (1, -1)):
        with pytest.raises(ValueError, match="must be"):
            bucketed(gradients, size, 1, link(0, 1))
