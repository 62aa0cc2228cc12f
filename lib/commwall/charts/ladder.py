"""Bandwidths on a ladder, and what their balance with compute allows."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator

from commwall.charts.style import COLOURS, INK, axes, legend_above, si_axis
from commwall.units import Bytes, BytesPerSecond, FlopPerSecond, format_si

__all__ = ["bandwidth_ladder", "network_roofline", "ratio_lines", "share_lines"]

_LINES = ["#d55e00", "#e69f00", "#cc79a7", "#0072b2", "#009e73", "#000000", "#56b4e9"]


def _note(ax: Axes, words: str, point: tuple, offset: tuple, **style) -> None:
    """Small words beside a point of the chart."""
    ax.annotate(words, point, xytext=offset, textcoords="offset points", fontsize=9,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5},
                **style)  # fmt: skip


def bandwidth_ladder(
    rungs: Mapping[str, tuple[BytesPerSecond, BytesPerSecond]], ax: Axes | None = None
) -> Axes:
    """One pair of bars per name: on the data sheet, achieved. Logarithmic."""
    ax = axes(ax, height=1.0 + 0.42 * len(rungs))
    rows = range(len(rungs))
    sheet, achieved = zip(*rungs.values(), strict=True)
    ax.barh([y - 0.19 for y in rows], sheet, height=0.36, color="white",
            edgecolor=INK, hatch="///", label="data sheet, one direction")  # fmt: skip
    ax.barh([y + 0.19 for y in rows], achieved, height=0.36, color=COLOURS["tp"],
            label="achieved")  # fmt: skip
    for y, (wire, real) in enumerate(rungs.values()):
        words = f"{format_si(real, 'B/s')} of {format_si(wire, 'B/s')}"
        _note(ax, words, (max(wire, real), y), (5, 0), va="center")
    ax.set_xscale("log")
    ax.set_xlim(min(achieved) / 2, max(sheet) * 12)
    ax.set_yticks(rows, list(rungs))
    ax.invert_yaxis()
    ax.grid(axis="y", visible=False)
    ax.xaxis.set_major_locator(LogLocator(base=100))
    si_axis(ax.xaxis, "B/s")
    legend_above(ax, centre=0.4)
    return ax


def ratio_lines(
    ranks: Sequence[int],
    ratios: Mapping[str, Sequence[float]],
    marks: Sequence[float] = (),
    ax: Axes | None = None,
) -> Axes:
    """Compute over communication against the size of the group; lines at `marks`."""
    ax = axes(ax, height=4.2)
    for (name, line), colour in zip(ratios.items(), _LINES, strict=False):
        ax.plot(ranks, line, marker="o", markersize=4, color=colour, label=name)
    for mark in marks:
        ax.axhline(mark, color=INK, linestyle="--", linewidth=1.0)
        _note(ax, f"{mark:g} : 1", (ranks[-1], mark), (6, 3))
    ax.set_yscale("log")
    ax.yaxis.set_major_formatter("{x:g}")
    ax.set_xticks(list(ranks))
    ax.set_xlim(ranks[0] - 0.2, ranks[-1] + 0.7)
    ax.set_xlabel("GPUs that share each layer, n")
    ax.set_ylabel("compute : communication")
    legend_above(ax)
    return ax


def network_roofline(
    intensities: Sequence[float],
    rates: Mapping[str, Sequence[FlopPerSecond]],
    plans: Mapping[str, float],
    serial: Mapping[str, Sequence[FlopPerSecond]] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """A rate per machine against FLOP per byte sent; `plans` are upright lines.

    `serial` is the same without overlap, dotted.
    """
    ax = axes(ax, height=4.4)
    for (name, line), colour in zip(rates.items(), _LINES[::3], strict=False):
        ax.plot(intensities, line, color=colour, linewidth=2, label=name)
        if serial:
            ax.plot(intensities, serial[name], color=colour, linestyle=":")
    ax.set_xscale("log")
    ax.set_yscale("log")
    low, high = ax.get_ylim()
    for number, (name, intensity) in enumerate(plans.items()):
        ax.axvline(intensity, color=INK, linestyle="--", linewidth=1.0)
        side = {"ha": "left" if number else "right", "rotation": 90}
        _note(ax, name, (intensity, low), (3 if number else -3, 6), **side)
    ax.set_ylim(low, high)
    ax.set_xlabel("FLOP per byte sent")
    ax.xaxis.set_major_formatter(lambda x, _: format_si(x, "").strip())
    si_axis(ax.yaxis, "FLOP/s")
    legend_above(ax, 3)
    return ax


def share_lines(
    payloads: Sequence[Bytes],
    shares: Mapping[str, Sequence[float]],
    marks: Mapping[str, Bytes],
    ax: Axes | None = None,
) -> Axes:
    """Share of communication against the payload; `marks` are upright lines.

    Their names stand above 100 %, clear of the curves.
    """
    ax = axes(ax, height=4.8)
    for (name, line), colour in zip(shares.items(), _LINES, strict=False):
        ax.plot(payloads, line, color=colour, linewidth=2, label=name)
    for name, payload in marks.items():
        ax.axvline(payload, color=INK, linestyle="--", linewidth=1.0)
        _note(ax, name, (payload, 1.03), (3, 0), rotation=90, va="bottom")
    ax.set_xscale("log")
    ax.set_xlim(payloads[0], payloads[-1])
    ax.set_ylim(0, 1.4)
    ax.set_yticks([0, 0.2, 0.4, 0.6, 0.8, 1])
    si_axis(ax.xaxis, "B")
    ax.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    ax.set_xlabel("payload beside a millisecond of computing")
    legend_above(ax)
    return ax
