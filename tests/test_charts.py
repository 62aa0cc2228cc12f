"""Charts: results in, labelled Axes out, and the numbers drawn are those given."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.axes import Axes

from commwall import charts
from commwall.boxes import pcie_box
from commwall.buckets import bucketed
from commwall.charts import (
    COLOURS,
    axis_bars,
    memory_bars,
    part_bars,
    step_bars,
    timeline,
)
from commwall.collectives import all_reduce_time
from commwall.hardware import Link
from commwall.memory import memory
from commwall.pipeline import schedule
from commwall.plan import AXES, Plan
from commwall.rigs import rigs
from commwall.steptime import step_time
from commwall.topology import ring_all_reduce_flows, usage
from commwall.units import GIB
from commwall.volumes import volumes
from samples import LLAMA_70B, cluster

PLANS = {
    "tp 8": Plan(tp=8, global_batch=8),
    "pp 8": Plan(pp=8, global_batch=8),
    "dp 8": Plan(dp=8, global_batch=8, zero_stage=3),
}
STEPS = {name: step_time(LLAMA_70B, plan, cluster(8)) for name, plan in PLANS.items()}
KEPT = {name: memory(LLAMA_70B, plan) for name, plan in PLANS.items()}
SENT = {name: volumes(LLAMA_70B, plan) for name, plan in PLANS.items()}
LINK = Link(name="example", bandwidth=450e9, latency=2e-6, source="example")
BOX = pcie_box()
SIZES = [2.0**power for power in range(10, 31, 5)]
SECONDS = [all_reduce_time(size, 8, LINK) for size in SIZES]

DRAWINGS = {
    "axis_bars": lambda ax=None: axis_bars(SENT, ax=ax),
    "bandwidth_ladder": lambda ax=None: charts.bandwidth_ladder(
        {"NVLink 4": (450e9, 370e9), "PCIe 4.0": (31.5e9, 24.4e9)}, ax=ax
    ),
    "batch_lines": lambda ax=None: charts.batch_lines(
        [1e4, 1e6, 1e8], {"slow": [9.0, 4.0, 90.0]}, {"slow": (1e6, 4.0)}, 1e6, ax=ax
    ),
    "bubble_lines": lambda ax=None: charts.bubble_lines(
        [2, 4, 8], {"of the step": [0.1, 0.2, 0.3], "a line": [0.1, 0.2, 0.4]}, ax=ax
    ),
    "bucket_timeline": lambda ax=None: charts.bucket_timeline(
        2.0, {"a link": bucketed(4.0, 1.0, 2.0, lambda size: 0.6 * size)}, ax=ax
    ),
    "degree_lines": lambda ax=None: charts.degree_lines(
        [1, 8, 16],
        {"NVLink": [4e-2, 7e-3, 8e-3]},
        bare={"NVLink": [4e-2, 5e-3, 3e-3]},
        measured={"NVLink": {8: 7e-3}},
        node=8,
        ax=ax,
    ),
    "gain_lines": lambda ax=None: charts.gain_lines(
        [1, 2, 4], {"links": [1.0, 1.1, 1.2], "memory": [1.0, 1.3, 1.3]}, ax=ax
    ),
    "growth_lines": lambda ax=None: charts.growth_lines(
        [2, 4, 8], {"tp": [1.0, 2.0, 4.0], "another": [2.0, 3.0, 4.0]}, unit="B", ax=ax
    ),
    "held_lines": lambda ax=None: charts.held_lines(
        {"gpipe": [8.0, 8.0], "1f1b": [2.0, 1.0]}, ax=ax
    ),
    "lines_by_ranks": lambda ax=None: charts.lines_by_ranks(
        {"ring": ([2, 8, 64], [1e-5, 1e-4, 1e-3])}, "s", ax=ax
    ),
    "lines_by_size": lambda ax=None: charts.lines_by_size(
        {"ring": (SIZES, SECONDS)}, "s", ax=ax
    ),
    "loss_curves": lambda ax=None: charts.loss_curves(
        {"fp32": ([1e3, 1e4, 1e5], [2.0, 0.8, 0.3])}, "B", "sent by a rank", ax=ax
    ),
    "measured_scatter": lambda ax=None: charts.measured_scatter(
        {"one": ([0.5, 20.0], [0.4, 25.0]), "other": ([3.0], [3.0])}, "s", ax=ax
    ),
    "memory_bars": lambda ax=None: memory_bars(KEPT, limit=80 * GIB, ax=ax),
    "network_roofline": lambda ax=None: charts.network_roofline(
        [1e3, 1e4, 1e5], {"H100": [1e14, 5e14, 1e15]}, {"tp 8": 5e3}, ax=ax
    ),
    "part_bars": lambda ax=None: part_bars(
        {"a": {"tp": 1, "hidden dp": 2}}, "B", ax=ax
    ),
    "plan_scatter": lambda ax=None: charts.plan_scatter(
        {"dp": ([10e9, 30e9], [4e3, 9e3]), "tp": ([20e9], [2e3])}, 22 * GIB, ax=ax
    ),
    "ratio_lines": lambda ax=None: charts.ratio_lines(
        [2, 4, 8], {"H100": [9.0, 3.0, 1.0]}, marks=[1], ax=ax
    ),
    "ring_states": lambda ax=None: charts.ring_states(
        [np.array([[1, 1], [1, 1]]), np.array([[1, 2], [2, 1]])], ax=ax
    ),
    "rung_bars": lambda ax=None: charts.rung_bars(
        {
            "FLOP only": {"all": 0.1, "other": 0.2},
            "+ more": {"all": 0.05, "other": 0.1},
        },
        ax=ax,
    ),
    "scaling_lines": lambda ax=None: charts.scaling_lines(
        {"a": ([1, 2, 4], [1.0, 0.9, 0.8], [1.0, 0.95, 0.85])}, ax=ax
    ),
    "share_lines": lambda ax=None: charts.share_lines(
        SIZES, {"PCIe": [0.1, 0.2, 0.4, 0.6, 0.9]}, {"the article's": 1e6}, ax=ax
    ),
    "step_bars": lambda ax=None: step_bars(STEPS, ax=ax),
    "box_drawing": lambda ax=None: charts.box_drawing(
        BOX, usage(BOX, ring_all_reduce_flows(BOX)), ax=ax
    ),
    "rig_scatter": lambda ax=None: charts.rig_scatter(rigs().values(), ax=ax),
    "term_grid": lambda ax=None: charts.term_grid(
        {"tp 8": {"host": ("tp", 0.6), "NVLink": ("elementwise", 0.2)}}, ax=ax
    ),
    "three_cuts": lambda ax=None: charts.three_cuts(
        {"dp": "gradients", "tp": "activations", "pp": "boundaries"}, ax=ax
    ),
    "layer_split": lambda ax=None: charts.layer_split([2, 2], [(0, 1), (1, 0)], ax=ax),
    "block_split": lambda ax=None: charts.block_split(
        [
            [("x", 4, 4, 1)],
            [("q", 4, 2, 1)],
            [("y", 4, 4, 1)],
            [("g", 8, 4, 1)],
            [("z", 4, 4, 1)],
        ],
        [("forward ffn output", "all_reduce")],
        ranks=2,
        ax=ax,
    ),
    "verdict_bars": lambda ax=None: charts.verdict_bars(
        {"one": {"right": 2, "wrong": 0}, "two": {"right": 1, "wrong": 3}}, ax=ax
    ),
    "timeline": lambda ax=None: timeline(schedule("1f1b", 4, 8), ax=ax),
    "timelines": lambda ax=None: charts.timelines(
        {name: schedule(name, 4, 8) for name in ("gpipe", "zero_bubble")}, ax=ax
    ),
    "wire_lines": lambda ax=None: charts.wire_lines(
        [9e9, 18e9],
        {"stages": [0.4, 0.5], "ZeRO": [0.2, 0.4]},
        mark=0.35,
        shares=True,
        ax=ax,
    ),
}
every_drawing = pytest.mark.parametrize("draw", DRAWINGS.values(), ids=DRAWINGS)


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def widths(ax):
    """Length of every bar, by the label of its kind."""
    return {
        container.get_label(): [bar.get_width() for bar in container]
        for container in ax.containers
    }


def test_every_chart_is_drawn_here():
    palette = {"COLOURS", "axes", "si_axis"}

    assert DRAWINGS.keys() == set(charts.__all__) - palette


@every_drawing
def test_a_chart_is_axes_with_words_on_them(draw):
    ax = draw()
    ax.figure.canvas.draw()

    assert isinstance(ax, Axes)
    words = [ax.get_xlabel(), ax.get_ylabel(), *ax.get_legend_handles_labels()[1]]
    words += [label.get_text() for label in ax.get_yticklabels()]
    words += [text.get_text() for text in ax.texts]
    assert [word for word in words if word.strip()]
    assert not ax.get_title()


@every_drawing
def test_a_chart_is_drawn_where_it_is_told_and_opens_no_other_figure(draw):
    figure, mine = plt.subplots()

    assert draw(ax=mine) is mine
    assert plt.get_fignums() == [figure.number]


@every_drawing
def test_more_than_one_kind_of_mark_comes_with_a_legend(draw):
    ax = draw()
    labels = set(ax.get_legend_handles_labels()[1])

    assert len(labels) < 2 or ax.get_legend() is not None


@every_drawing
def test_a_chart_changes_nothing_that_it_is_given(draw):
    before = repr((STEPS, KEPT, SENT, SIZES, SECONDS))
    draw()

    assert repr((STEPS, KEPT, SENT, SIZES, SECONDS)) == before


def test_a_step_is_drawn_in_parts_that_sum_to_its_total():
    drawn = widths(step_bars(STEPS))

    for place, step in enumerate(STEPS.values()):
        assert sum(bars[place] for bars in drawn.values()) == pytest.approx(step.total)
    assert drawn["tensor-parallel traffic"][0] == pytest.approx(
        STEPS["tp 8"].exposed["tp"]
    )
    assert "context-parallel traffic" not in drawn  # no empty part in the legend


def test_memory_is_drawn_in_gib_with_a_line_where_the_card_ends():
    ax = memory_bars(KEPT, limit=80 * GIB)
    drawn = widths(ax)

    for place, kept in enumerate(KEPT.values()):
        total = sum(bars[place] for bars in drawn.values())
        assert total == pytest.approx(kept.total / GIB)
    assert [line.get_xdata()[0] for line in ax.lines] == [80]
    assert "80 GiB card" in ax.get_legend_handles_labels()[1]
    assert "GiB" in ax.get_xlabel()


def test_bars_stand_end_to_end():
    ax = part_bars({"a": {"tp": 1.0, "dp": 2.0}, "b": {"dp": 4.0}}, "B")
    edges = [[(bar.get_x(), bar.get_width()) for bar in c] for c in ax.containers]

    assert edges == [[(0, 1), (0, 0)], [(1, 2), (0, 4)]]


def test_hidden_traffic_is_hatched_and_parts_keep_their_colour():
    ax = part_bars({"a": {"tp": 1.0, "hidden tp": 2.0}}, "s")
    shown, hidden = (container[0] for container in ax.containers)

    assert hidden.get_hatch()
    assert not shown.get_hatch()
    assert plt.matplotlib.colors.same_color(shown.get_facecolor(), COLOURS["tp"])
    assert plt.matplotlib.colors.same_color(hidden.get_edgecolor(), COLOURS["tp"])


def test_nothing_to_show_is_an_empty_chart_and_no_error():
    assert part_bars({"a": {"tp": 0}}, "s").get_legend() is None


def test_a_timeline_has_a_box_for_every_task_and_a_row_for_every_stage():
    tasks = schedule("1f1b", 4, 8)
    ax = timeline(tasks)
    bars = [bar for container in ax.containers for bar in container]
    boxes = [bar for bar in bars if bar.get_facecolor()[:3] != (1, 1, 1)]

    drawn = {(bar.get_x(), bar.get_width()) for bar in boxes if bar.get_width()}
    assert drawn == {(task.start, task.end - task.start) for task in tasks}
    rows = [label.get_text() for label in ax.get_yticklabels()]
    assert rows == [f"stage {stage}" for stage in range(4)]


def test_every_axis_has_a_colour_of_its_own():
    palette = [COLOURS[axis] for axis in AXES]

    assert len(set(palette)) == len(AXES)
    assert len({*palette, COLOURS["compute"], COLOURS["bubble"]}) == len(AXES) + 2


def test_every_name_of_the_package_is_there():
    assert all(getattr(charts, name) for name in charts.__all__)
