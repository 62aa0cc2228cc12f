"""Results to Axes: each function draws, labels and returns, and computes nothing.

Colours are one per parallel axis throughout the course (Okabe and Ito's palette, safe
for colour-blind readers); compute is grey, hidden traffic is hatched.
"""

from commwall.charts.accuracy_drawn import measured_scatter, rung_bars
from commwall.charts.bars import memory_bars, part_bars, step_bars
from commwall.charts.boxes_drawn import box_drawing, rig_scatter
from commwall.charts.degrees import bubble_lines, degree_lines, held_lines
from commwall.charts.gradients import batch_lines, bucket_timeline, scaling_lines
from commwall.charts.ladder import (
    bandwidth_ladder,
    network_roofline,
    ratio_lines,
    share_lines,
)
from commwall.charts.learning import loss_curves
from commwall.charts.links import lines_by_ranks, lines_by_size, ring_states
from commwall.charts.plans_drawn import plan_scatter, wire_lines
from commwall.charts.splits import block_split, layer_split, three_cuts
from commwall.charts.style import COLOURS, axes, si_axis
from commwall.charts.terms import term_grid
from commwall.charts.timeline import timeline, timelines
from commwall.charts.traffic import axis_bars, gain_lines, growth_lines
from commwall.charts.verdicts import verdict_bars

__all__ = [
    "COLOURS",
    "axes",
    "axis_bars",
    "bandwidth_ladder",
    "batch_lines",
    "block_split",
    "box_drawing",
    "bubble_lines",
    "bucket_timeline",
    "degree_lines",
    "gain_lines",
    "growth_lines",
    "held_lines",
    "layer_split",
    "lines_by_ranks",
    "lines_by_size",
    "loss_curves",
    "measured_scatter",
    "memory_bars",
    "network_roofline",
    "part_bars",
    "plan_scatter",
    "ratio_lines",
    "rig_scatter",
    "ring_states",
    "rung_bars",
    "scaling_lines",
    "share_lines",
    "si_axis",
    "step_bars",
    "term_grid",
    "three_cuts",
    "timeline",
    "timelines",
    "verdict_bars",
    "wire_lines",
]
