"""A wire delivers copies, counts them, and tells `after` from `at the same time`."""

import numpy as np
import pytest

from commwall.simulators.wire import Wire, each_rank


def test_what_arrives_is_a_copy():
    wire, sent = Wire(2), np.zeros(3)

    arrived = wire.step({(0, 1): sent})
    sent += 1

    assert np.array_equal(arrived[0, 1], np.zeros(3))


def test_one_after_another_adds_steps_and_at_once_does_not():
    first, second = Wire(3), Wire(3)
    first.step({(0, 1): np.ones(2)})
    second.step({(1, 0): np.ones(3)})

    after, meanwhile = first + second, first | second

    assert (after.steps, meanwhile.steps) == (2, 1)
    assert after.values_sent == meanwhile.values_sent == [2, 3, 0]
    assert [message.step for message in after.log] == [0, 1]


def test_a_link_carries_one_array_a_step():
    first, second = Wire(2), Wire(2)
    first.step({(0, 1): np.ones(1)})
    second.step({(0, 1): np.ones(1)})

    with pytest.raises(ValueError, match="link 0 -> 1 is busy in step 0"):
        first | second


def test_every_array_sent_is_in_the_log_with_its_size():
    wire = Wire(2)

    wire.step({(0, 1): np.ones((2, 3), np.float16)})
    wire.step({(1, 0): np.ones(5), (0, 1): np.ones(0)})

    assert wire.log == [(0, 0, 1, 6, 12), (1, 1, 0, 5, 40), (1, 0, 1, 0, 0)]
    assert (wire.steps, wire.messages, wire.busiest) == (2, 3, 40)
    assert (wire.sent, wire.received) == ([12, 40], [40, 12])


def test_totals_leave_out_whoever_is_not_a_rank():
    wire = Wire(2)

    wire.step({(0, 2): np.ones(1), (2, 1): np.ones(9)})

    assert (wire.values_sent, wire.received) == ([1, 0], [0, 72])


def test_inside_and_across_share_out_the_messages_and_keep_only_their_steps():
    wire = Wire(4)
    wire.step({(0, 1): np.ones(1), (2, 3): np.ones(2)})
    wire.step({(1, 2): np.ones(3), (3, 2): np.ones(4)})
    wire.step({(3, 0): np.ones(5)})

    inside, across = wire.inside(2), wire.across(2)

    assert (inside.values_sent, inside.steps) == ([1, 0, 2, 4], 2)
    assert (across.values_sent, across.steps) == ([0, 3, 0, 5], 2)


def test_traffic_among_a_group_is_filed_under_its_names_in_the_world():
    wire = Wire(2)
    wire.step({(0, 1): np.ones(4)})

    assert wire.among([5, 2], ranks=6).values_sent == [0, 0, 0, 0, 0, 4]


def test_every_rank_computes_from_its_own_entries_only():
    assert each_rank(pow, [2, 3], [3, 2]) == [8, 9]
    with pytest.raises(ValueError, match="shorter"):
        each_rank(pow, [2, 3], [3])


def test_what_no_wire_can_do_is_refused():
    with pytest.raises(ValueError, match="ranks=0 is not at least 1"):
        Wire(0)
    with pytest.raises(ValueError, match="rank 1 sends to itself"):
        Wire(2).step({(1, 1): np.ones(1)})
