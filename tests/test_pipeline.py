"""The bubble by hand, by paper, and as the simulated schedules show it."""

from math import inf, nan

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from commwall.pipeline import (
    SCHEDULES,
    bubble_fraction,
    bubble_overhead,
    bubble_time,
    busy,
    critical_sends,
    idle_fraction,
    idle_overhead,
    in_flight,
    makespan,
    overhead_to_fraction,
    peak_in_flight,
    schedule,
)

stages = st.integers(1, 7)
micro_batch_counts = st.integers(1, 18)
seconds = st.integers(1, 20)  # whole, so that sums are exact

# p, m, T_F, T_B, T_W, T_comm in ms, then bubble rates of 1F1B and ZB-H1
QI2024_TABLES_9_AND_5 = [
    (8, 24, 18.522, 18.086, 9.337, 0.601, 0.2431, 0.1585),
    (8, 32, 18.513, 18.086, 9.331, 0.626, 0.1985, 0.1242),
    (8, 64, 18.546, 18.097, 9.321, 0.762, 0.1240, 0.0674),
    (8, 24, 29.718, 29.444, 19.927, 0.527, 0.2347, 0.1323),
    (8, 32, 29.802, 29.428, 19.530, 0.577, 0.1898, 0.1045),
    (8, 64, 29.935, 29.621, 19.388, 0.535, 0.1091, 0.0554),
    (16, 48, 11.347, 11.248, 8.132, 0.377, 0.2552, 0.1397),
    (16, 64, 11.307, 11.254, 8.101, 0.379, 0.2082, 0.1088),
    (16, 128, 11.325, 11.308, 8.109, 0.378, 0.1251, 0.0576),
    (32, 96, 10.419, 10.207, 7.715, 0.408, 0.2646, 0.1421),
    (32, 128, 10.408, 10.204, 7.703, 0.408, 0.2168, 0.1106),
    (32, 256, 10.402, 10.248, 7.698, 0.460, 0.1352, 0.0594),
]


@st.composite
def plans(draw):
    """(name, pp, micro_batches, vpp) of any legal schedule."""
    name, pp = draw(st.sampled_from(SCHEDULES)), draw(stages)
    vpp = draw(st.integers(1, 4)) if name == "1f1b" and pp > 1 else 1
    if vpp > 1:
        return name, pp, pp * draw(st.integers(1, 3)), vpp
    return name, pp, draw(micro_batch_counts), vpp


@pytest.mark.parametrize(
    ("micro_batches", "vpp", "overhead", "fraction"),
    [(16, 1, 7 / 16, 7 / 23), (8, 1, 7 / 8, 7 / 15), (8, 2, 7 / 16, 7 / 23)],
)
def test_eight_stages_by_hand(micro_batches, vpp, overhead, fraction):
    """43.75 % and 30.43 % at m = 16; 46.67 % at m = 8, and 30.43 % with v = 2."""
    assert bubble_overhead(8, micro_batches, vpp) == pytest.approx(overhead, rel=1e-12)
    assert bubble_fraction(8, micro_batches, vpp) == pytest.approx(fraction, rel=1e-12)


@pytest.mark.parametrize("formula", [bubble_overhead, bubble_fraction])
def test_micro_batches_may_be_an_array(formula):
    counts = np.array([8, 16, 64])

    assert formula(8, counts).tolist() == [formula(8, int(m)) for m in counts]
    assert formula(8, counts[1], 2) == formula(8, 16, 2)


@given(pp=stages, micro_batches=micro_batch_counts, vpp=st.integers(1, 4))
def test_the_two_definitions_differ_and_convert(pp, micro_batches, vpp):
    overhead = bubble_overhead(pp, micro_batches, vpp)
    fraction = bubble_fraction(pp, micro_batches, vpp)

    assert overhead_to_fraction(overhead) == pytest.approx(fraction)
    assert fraction < overhead or pp == 1


@given(
    name=st.sampled_from(["gpipe", "1f1b"]),
    pp=stages,
    micro_batches=micro_batch_counts,
    forward=seconds,
    backward=seconds,
)
@settings(max_examples=80, deadline=None)
def test_gpipe_and_1f1b_have_the_bubble_of_the_formula(
    name, pp, micro_batches, forward, backward
):
    tasks = schedule(name, pp, micro_batches, forward=forward, backward=backward)

    assert makespan(tasks) == (micro_batches + pp - 1) * (forward + backward)
    assert idle_fraction(tasks) == pytest.approx(bubble_fraction(pp, micro_batches))
    assert idle_overhead(tasks) == pytest.approx(bubble_overhead(pp, micro_batches))


@given(
    pp=st.integers(2, 6),
    rounds=st.integers(1, 4),
    vpp=st.integers(2, 4),
    forward=seconds,
    backward=seconds,
)
@settings(max_examples=60, deadline=None)
def test_interleaving_divides_the_bubble_by_the_chunks(
    pp, rounds, vpp, forward, backward
):
    tasks = schedule("1f1b", pp, rounds * pp, vpp, forward=forward, backward=backward)

    expected = bubble_fraction(pp, rounds * pp, vpp)
    assert idle_fraction(tasks) == pytest.approx(expected)


@given(plan=plans(), forward=seconds, parts=st.tuples(seconds, seconds))
@settings(max_examples=150, deadline=None)
def test_bubble_time_is_what_the_slowest_stage_waits(plan, forward, parts):
    times = {"forward": forward, "backward": sum(parts), "weights": parts[1]}

    tasks = schedule(*plan, **times)

    waits = makespan(tasks) - max(busy(tasks))
    assert bubble_time(*plan, **times) == pytest.approx(waits, abs=1e-9)


@given(plan=plans(), parts=st.tuples(seconds, seconds, seconds), extra=seconds)
@settings(max_examples=150, deadline=None)
def test_a_slower_last_stage_leaves_the_bubble_of_the_ordinary_ones(plan, parts, extra):
    """Logits sit in the last chunk: the step is m times that stage, plus the bubble."""
    name, pp, _, vpp = plan
    forward, first, later = parts
    ordinary = {"forward": forward, "backward": first + later, "weights": later}
    chunks = {field: [time] * (pp * vpp) for field, time in ordinary.items()}
    for times in chunks.values():
        times[-1] += extra
    chunks["backward"][-1] += extra

    tasks = schedule(*plan, **chunks)

    waits = makespan(tasks) - max(busy(tasks))
    whole = {field: time * vpp for field, time in ordinary.items()}
    if name == "zero_bubble":
        assert waits <= bubble_time(*plan, **whole)
    else:
        assert waits == pytest.approx(bubble_time(*plan, **whole))


@given(plan=plans())
@settings(max_examples=100, deadline=None)
def test_in_flight_is_the_peak_of_the_simulation(plan):
    peaks = peak_in_flight(schedule(*plan))

    assert peaks == tuple(in_flight(*plan, stage=stage) for stage in range(plan[1]))
    assert in_flight(*plan) == max(peaks)


@given(plan=plans(), forward=seconds, parts=st.tuples(seconds, seconds), send=seconds)
@settings(max_examples=150, deadline=None)
def test_critical_sends_lengthen_the_step(plan, forward, parts, send):
    name, pp, _, vpp = plan
    times = {"forward": forward, "backward": sum(parts), "weights": parts[1]}
    if vpp > 1:
        assume(send * vpp <= min(forward, sum(parts)))
    if name == "zero_bubble":
        assume(2 * send <= parts[1] <= min(forward, parts[0]))

    sent = makespan(schedule(*plan, **times, send=send if pp > 1 else 0))

    free = makespan(schedule(*plan, **times))
    assert sent == pytest.approx(free + critical_sends(*plan) * send)


@given(plan=plans(), send=st.integers(1, 100), extra=seconds)
@settings(max_examples=100, deadline=None)
def test_long_sends_and_a_slow_last_stage_bound_the_exposed_sends(plan, send, extra):
    """Long sends never cost less than counted; a slow last stage never makes more."""
    _, pp, _, vpp = plan
    chunks = pp * vpp
    slow = {"forward": [6.0] * chunks, "backward": [12.0] * chunks}
    slow["forward"][-1] += extra
    short = 1.0

    long = makespan(schedule(*plan, send=send)) - makespan(schedule(*plan))
    hidden = makespan(schedule(*plan, **slow, send=short))
    exposed = hidden - makespan(schedule(*plan, **slow))

    assert long >= critical_sends(*plan) * send - 1e-9
    assert exposed <= critical_sends(*plan) * short + 1e-9


def test_bubble_rates_of_zero_bubble_match_qi_2024():
    """Table 5's rates of 1F1B and ZB-H1 from table 9's profiled times, all 24."""
    for pp, m, forward, first, later, send, *published in QI2024_TABLES_9_AND_5:
        times = {"forward": forward, "backward": first + later, "weights": later}
        ideal = m * (forward + first + later)
        for name, rate in zip(("1f1b", "zero_bubble"), published, strict=True):
            exposed = critical_sends(name, pp, m) * send
            lost = bubble_time(name, pp, m, **times) + exposed
            assert lost / (ideal + lost) == pytest.approx(rate, abs=6e-5)


def test_zero_bubble_has_a_third_of_the_bubble_and_the_peak_of_1f1b():
    """qi2024, sec. 2.1, with F = B = W."""
    assert bubble_time("zero_bubble", 8, 16) == bubble_time("1f1b", 8, 16) / 3
    assert in_flight("zero_bubble", 8, 16) == in_flight("1f1b", 8, 16)
    assert min(peak_in_flight(schedule("zero_bubble", 8, 16))) == 8
    assert min(peak_in_flight(schedule("1f1b", 8, 16))) == 1


@pytest.mark.parametrize("vpp", [2, 3, 6])
def test_interleaving_costs_the_memory_of_korthikanti_2022(vpp):
    """Sec. 4.2.3: (1 + (p-1)/(p v)) times the activations of 1F1B."""
    ratio = in_flight("1f1b", 8, 64, vpp) / in_flight("1f1b", 8, 64)

    assert ratio == pytest.approx(1 + 7 / (8 * vpp))


def test_unequal_stages_wait_for_the_slowest():
    """Two stages of 1 + 2 s and 2 + 4 s, m = 4: 3 + 4 * 6 = 27 s, 36 of 54 worked."""
    tasks = schedule("1f1b", 2, 4, forward=[1.0, 2.0], backward=[2.0, 4.0])

    assert makespan(tasks) == 27
    assert busy(tasks) == (12, 24)
    assert idle_fraction(tasks) == pytest.approx(18 / 54)
    assert idle_overhead(tasks) == pytest.approx(18 / 36)


def test_reading_does_not_depend_on_the_order_of_the_tasks():
    tasks = schedule("1f1b", 3, 6, 2)
    backwards = tasks[::-1]

    assert peak_in_flight(backwards) == peak_in_flight(tasks)
    assert idle_fraction(backwards) == pytest.approx(idle_fraction(tasks))


@pytest.mark.parametrize("formula", [bubble_overhead, bubble_fraction])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 8), "pp=0 must be a whole number of at least 1; nearest legal value: 1"),
        ((8, 0), "micro_batches=0 must be a whole number"),
        ((8, 7.6), "micro_batches=7.6 must be .*; nearest legal value: 8"),
        ((8, nan), "micro_batches=nan must be a whole number"),
        ((8, "16"), "micro_batches='16' must be a whole number"),
        ((8, np.array([16, 0])), "micro_batches=0 must be a whole number"),
        ((8, 16, 1.5), "vpp=1.5 must be a whole number"),
        ((True, 16), "pp=True must be a whole number"),
    ],
)
def test_counts_must_be_whole(formula, arguments, message):
    with pytest.raises(ValueError, match=message):
        formula(*arguments)


@pytest.mark.parametrize("formula", [bubble_time, critical_sends, in_flight])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("1F1", 8, 16), "schedule='1F1' must be one of .* did you mean '1f1b'"),
        (("1f1b", 8, -1), "micro_batches=-1 must be a whole number of at least 1"),
        (("1f1b", 8, 20, 2), "micro_batches=20 is not a multiple of pp=8; .*: 16, 24"),
        (("gpipe", 8, 16, 2), "vpp=2 needs schedule='1f1b'"),
    ],
)
def test_closed_forms_refuse_what_the_simulation_refuses(formula, arguments, message):
    with pytest.raises(ValueError, match=message):
        formula(*arguments)


@pytest.mark.parametrize(
    ("times", "message"),
    [
        ({"forward": -1.0}, "forward=-1.0 must be a finite number of at least 0"),
        ({"backward": inf}, "backward=inf must be a finite number"),
        ({"weights": 2.5}, "weights=2.5 must be at most backward=2.0; .*: 2.0"),
    ],
)
def test_bubble_time_refuses_impossible_times(times, message):
    with pytest.raises(ValueError, match=message):
        bubble_time("1f1b", 8, 16, **times)


def test_in_flight_refuses_a_stage_beyond_the_last():
    with pytest.raises(ValueError, match=r"stage=8 must be below pp=8; .*: 7"):
        in_flight("1f1b", 8, 16, stage=8)


def test_overhead_cannot_be_negative():
    with pytest.raises(ValueError, match=r"overhead=-0.1 must be a finite number"):
        overhead_to_fraction(-0.1)
