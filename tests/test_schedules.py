"""Orders by hand, and the rules that every timed schedule has to keep."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commwall.schedules import SCHEDULES, schedule

times = st.integers(min_value=1, max_value=9)


@st.composite
def cases(draw):
    """Any legal schedule with unequal chunks; whole seconds keep the sums exact."""
    name = draw(st.sampled_from(SCHEDULES))
    pp = draw(st.integers(1, 5))
    vpp = draw(st.integers(1, 3)) if name == "1f1b" and pp > 1 else 1
    unit = pp if vpp > 1 else 1
    micro_batches = unit * draw(st.integers(1, 12 // unit))
    chunks = {"min_size": pp * vpp, "max_size": pp * vpp}
    weights = draw(st.lists(times, **chunks))
    seconds = {
        "forward": draw(st.lists(times, **chunks)),
        "backward": [w + draw(times) for w in weights],
        "weights": weights,
        "send": draw(st.integers(0, 20)),
    }
    return (name, pp, micro_batches, vpp), seconds


def order(tasks, stage):
    """One stage as "F0 F1 B0 ...", with the chunk's letter where vpp is above 1."""
    letters = {"forward": "F", "backward": "B", "weights": "W"}
    mine = [task for task in tasks if task.stage == stage]
    several = any(task.chunk for task in tasks)
    return " ".join(
        letters[task.kind] + str(task.micro_batch) + "ab"[task.chunk] * several
        for task in mine
    )


def test_gpipe_runs_every_forward_before_the_first_backward():
    tasks = schedule("gpipe", 2, 3)

    assert order(tasks, 0) == "F0 F1 F2 B0 B1 B2"
    assert order(tasks, 1) == "F0 F1 F2 B0 B1 B2"


def test_1f1b_warms_up_one_forward_less_on_each_later_stage():
    """narayanan2021, fig. 4, top: four devices, eight micro-batches."""
    tasks = schedule("1f1b", 4, 8)

    assert order(tasks, 0) == "F0 F1 F2 F3 B0 F4 B1 F5 B2 F6 B3 F7 B4 B5 B6 B7"
    assert order(tasks, 2) == "F0 F1 B0 F2 B1 F3 B2 F4 B3 F5 B4 F6 B5 F7 B6 B7"
    assert order(tasks, 3) == "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5 F6 B6 F7 B7"


def test_interleaved_sends_pp_micro_batches_through_a_chunk_before_the_next_chunk():
    """Megatron-LM, 2 stages of 2 chunks: 2 * (2 - 1 - stage) + 2 warm-up forwards."""
    tasks = schedule("1f1b", 2, 4, 2)

    assert order(tasks, 0) == (
        "F0a F1a F0b F1b F2a B0b F3a B1b F2b B0a F3b B1a B2b B3b B2a B3a"
    )
    assert order(tasks, 1) == (
        "F0a F1a F0b B0b F1b B1b F2a B0a F3a B1a F2b B2b F3b B3b B2a B3a"
    )


def test_zero_bubble_delays_weight_gradients_by_the_number_of_the_stage():
    tasks = schedule("zero_bubble", 3, 4)

    assert order(tasks, 0) == "F0 F1 F2 B0 W0 F3 B1 W1 B2 W2 B3 W3"
    assert order(tasks, 1) == "F0 F1 B0 F2 B1 W0 F3 B2 W1 B3 W2 W3"
    assert order(tasks, 2) == "F0 B0 F1 B1 F2 B2 W0 F3 B3 W1 W2 W3"


def test_two_stages_by_hand():
    """f = 1, b = 2, send = 10: forward 0-1, 11-12; backward 12-14, 24-26."""
    tasks = schedule("1f1b", 2, 1, send=10.0)

    assert [(task.stage, task.kind, task.start, task.end) for task in tasks] == [
        (0, "forward", 0.0, 1.0),
        (1, "forward", 11.0, 12.0),
        (1, "backward", 12.0, 14.0),
        (0, "backward", 24.0, 26.0),
    ]


@given(cases())
@settings(max_examples=60, deadline=None)
def test_every_chunk_sees_every_micro_batch_once_each_way(case):
    (name, pp, micro_batches, vpp), seconds = case

    tasks = schedule(name, pp, micro_batches, vpp, **seconds)
    seen = Counter((t.kind, t.micro_batch, t.chunk * pp + t.stage) for t in tasks)

    kinds = 3 if name == "zero_bubble" else 2
    assert len(seen) == len(tasks) == kinds * micro_batches * pp * vpp


@given(cases())
@settings(max_examples=60, deadline=None)
def test_a_stage_does_one_thing_at_a_time_and_each_takes_its_time(case):
    (name, pp, micro_batches, vpp), seconds = case
    lengths = dict(seconds)
    if name == "zero_bubble":
        pairs = zip(seconds["backward"], seconds["weights"], strict=True)
        lengths["backward"] = [b - w for b, w in pairs]

    tasks = schedule(name, pp, micro_batches, vpp, **seconds)

    free = [0.0] * pp
    for task in tasks:
        assert task.start >= free[task.stage]
        free[task.stage] = task.end
        length = lengths[task.kind][task.chunk * pp + task.stage]
        assert task.end - task.start == length


@given(cases())
@settings(max_examples=60, deadline=None)
def test_nothing_starts_before_its_input_has_arrived(case):
    (name, pp, micro_batches, vpp), seconds = case
    send = seconds["send"] if pp > 1 else 0

    tasks = schedule(name, pp, micro_batches, vpp, **seconds)
    at = {(t.kind, t.micro_batch, t.chunk * pp + t.stage): t for t in tasks}

    for (kind, micro_batch, position), task in at.items():
        forward = at["forward", micro_batch, position]
        before = at.get(("forward", micro_batch, position - 1))
        after = at.get(("backward", micro_batch, position + 1))
        if kind == "forward" and before:
            assert task.start >= before.end + send
        if kind == "backward":
            assert task.start >= forward.end
            assert after is None or task.start >= after.end + send
        if kind == "weights":
            assert task.start >= at["backward", micro_batch, position].end


@given(cases())
@settings(max_examples=30, deadline=None)
def test_time_does_not_depend_on_the_unit_seconds_are_counted_in(case):
    arguments, seconds = case
    slower = {
        field: 4 * value if field == "send" else [4 * each for each in value]
        for field, value in seconds.items()
    }

    assert [task.end for task in schedule(*arguments, **slower)] == [
        4 * task.end for task in schedule(*arguments, **seconds)
    ]


def test_one_time_per_stage_is_shared_by_its_chunks():
    by_stage = schedule("1f1b", 2, 4, 2, forward=[2.0, 4.0], backward=[6.0, 8.0])
    by_chunk = schedule(
        "1f1b", 2, 4, 2, forward=[1.0, 2.0, 1.0, 2.0], backward=[3.0, 4.0, 3.0, 4.0]
    )

    assert by_stage == by_chunk


@pytest.mark.parametrize(
    ("arguments", "seconds", "message"),
    [
        (("1f2b", 4, 8), {}, "schedule='1f2b' must be one of gpipe, 1f1b, zero_bubble"),
        (("1f1b", 0, 8), {}, "pp=0 must be a whole number of at least 1"),
        (("1f1b", 4, 2.5), {}, "micro_batches=2.5 must be a whole number"),
        (("1f1b", 4, 8, -1), {}, "vpp=-1 must be a whole number of at least 1"),
        (("1f1b", 4, 6, 2), {}, "micro_batches=6 is not a multiple of pp=4; .*: 4, 8"),
        (("1f1b", 1, 6, 2), {}, "vpp=2 needs .* pp=1; nearest legal value: vpp=1"),
        (("gpipe", 4, 8, 2), {}, "vpp=2 needs .* schedule='gpipe' .*: vpp=1"),
        (("zero_bubble", 4, 8, 2), {}, "vpp=2 needs .* schedule='zero_bubble' "),
        (("1f1b", 4, 8), {"forward": -1.0}, "forward=-1.0 must be a finite number"),
        (("1f1b", 4, 8), {"backward": float("nan")}, "backward=nan must be a finite"),
        (("1f1b", 4, 8), {"send": float("inf")}, "send=inf must be a finite number"),
        (("1f1b", 4, 8), {"forward": [1, 2, 3]}, "forward has 3 values, .* 4"),
        (("1f1b", 2, 8), {"forward": [1.0, "x"]}, "forward='x' is not a number"),
        (("1f1b", 2, 8), {"weights": -1.0}, "weights=-1.0 must be a finite number"),
        (("zero_bubble", 2, 8), {"weights": 3.0}, "weights=3.0 must be at most .*2.0"),
        (("1f1b", 2, 8), {"forward": 0, "backward": 0}, "forward . backward=0"),
    ],
)
def test_an_impossible_schedule_is_refused_with_the_nearest_possible_one(
    arguments, seconds, message
):
    with pytest.raises(ValueError, match=message):
        schedule(*arguments, **seconds)
