"""A box of GPUs as a tree with its busiest wires; measured boxes beside the model."""

from collections.abc import Collection, Iterable, Mapping

from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.ticker import FixedLocator, NullLocator

from commwall.boxes import positions
from commwall.charts.style import INK, axes, si_axis
from commwall.rigs import Rig
from commwall.topology import Topology, Use
from commwall.units import GB_PER_S

__all__ = ["box_drawing", "rig_scatter"]

_IDLE, _BUSY, _SLOWEST = "#d0d0d0", "#0072b2", "#d55e00"
_SHADES = LinearSegmentedColormap.from_list("busy", [_IDLE, "#56b4e9", _BUSY])
_FACES = {
    "gpu": "#ffffff",
    "switch": "#f3ecd0",
    "socket": "#e3e9f2",
    "memory": "#dcefe6",
}
_FULL = 0.999  # of the slowest: several wires may tie
_TICKS = (2, 5, 20, 50, 200)  # GB/s: as many as stand side by side


def box_drawing(
    topology: Topology, uses: Iterable[Use], ax: Axes | None = None
) -> Axes:
    """Each wire as wide and as blue as it is busy, in the busier direction.

    Wires and memories that are busy as long as the slowest are orange.
    """
    places = positions(topology)
    height = 1.3 + 0.95 * (1 - min(y for _, y in places.values()))
    ax = axes(ax, height=height)
    for ends, busy in _both_ways(uses).items():
        _wire(ax, [places[end] for end in ends], busy)
    for name, place in places.items():
        _node(ax, name, place)
    across = [x for x, _ in places.values()]
    ax.set_xlim(min(across) - 0.6, max(across) + 0.6)
    ax.margins(y=0.12)
    ax.axis("off")
    return ax


def _both_ways(uses: Iterable[Use]) -> dict[tuple[str, ...], float]:
    busiest: dict[tuple[str, ...], float] = {}
    for use in uses:
        ends = tuple(sorted(use.ends))
        busiest[ends] = max(busiest.get(ends, 0.0), use.utilisation)
    return busiest


def _wire(ax: Axes, ends: list[tuple[float, float]], busy: float) -> None:
    slowest = busy >= _FULL
    colour = _SLOWEST if slowest else _SHADES(busy)
    (x0, y0), (x1, y1) = ends
    ax.plot([x0, x1], [y0, y1], color=colour, linewidth=1.2 + 5 * busy,
            solid_capstyle="round", zorder=1 + busy)  # fmt: skip
    place = 0.6 * x0 + 0.4 * x1, 0.6 * y0 + 0.4 * y1  # where wires have spread
    ax.text(*place, f"{busy:.0%}", ha="center", va="center",
            fontsize=9, color=_SLOWEST if slowest else INK, zorder=4,
            fontweight="bold" if slowest else "normal",
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8})  # fmt: skip


def _node(ax: Axes, name: str, place: tuple[float, float]) -> None:
    kind = next(kind for kind in ("memory", *_FACES) if name.startswith(kind))
    label = "memory" if kind == "memory" else name.replace(kind, f"{kind}\n" if
            kind == "gpu" else f"{kind} ")  # fmt: skip
    ax.text(*place, label, ha="center", va="center", fontsize=12, zorder=5,
            bbox={"boxstyle": "round,pad=0.35", "facecolor": _FACES[kind],
                  "edgecolor": INK})  # fmt: skip


def rig_scatter(
    rigs: Iterable[Rig],
    wrong: Collection[str] = (),
    factor: float = 1.4,
    labels: Mapping[str, str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Predicted against measured, one dot a box; a diagonal and a band of `factor`.

    Those whose id is in `wrong` are crosses; `labels` names some, by their id.
    """
    rigs = list(rigs)
    ax = axes(ax, height=5.2)
    ends = [1.5 * GB_PER_S, 320 * GB_PER_S]
    band = [end / factor for end in ends], [end * factor for end in ends]
    ax.fill_between(ends, *band, color="#e8f1f8", label=f"within a factor {factor:g}")
    ax.plot(ends, ends, color=INK, linewidth=1, label="predicted = measured")
    _dots(ax, [rig for rig in rigs if rig.id not in wrong], "o", _BUSY, "within")
    _dots(ax, [rig for rig in rigs if rig.id in wrong], "X", _SLOWEST, "outside")
    for rig in rigs:
        place = rig.measured, rig.predicted
        ax.annotate((labels or {}).get(rig.id, ""), place, xytext=(-6, -16),
                    textcoords="offset points", color=_SLOWEST)  # fmt: skip
    _log_log(ax, ends)
    ax.legend(loc="upper left")
    return ax


def _dots(ax: Axes, rigs: list[Rig], marker: str, colour: str, label: str) -> None:
    places = [rig.measured for rig in rigs], [rig.predicted for rig in rigs]
    ax.scatter(*places, s=60, marker=marker, color=colour, edgecolor="white",
               linewidth=0.6, zorder=3, label=label)  # fmt: skip


def _log_log(ax: Axes, ends: list[float]) -> None:
    ax.set(xscale="log", yscale="log", xlim=ends, ylim=ends)
    ax.set(xlabel="measured", ylabel="predicted")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(FixedLocator([n * GB_PER_S for n in _TICKS]))
        axis.set_minor_locator(NullLocator())
        si_axis(axis, "B/s")
