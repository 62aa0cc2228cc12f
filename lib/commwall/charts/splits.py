"""Three ways to cut a model: what each cuts, and what crosses the cut."""

from collections.abc import Iterable, Mapping, Sequence

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from commwall.charts.style import COLOURS, INK

__all__ = ["block_split", "layer_split", "three_cuts"]

_NAMES = {"dp": "data", "tp": "tensor", "pp": "pipeline"}
_PALE = "#e4e4e4"  # what another GPU holds
_WIDTH = 4.4  # inches: letters stay readable when a phone shrinks it
_SEAMS = ("attention input", "attention output", "ffn input", "ffn output")
Share = tuple[str, float, float, float]  # label, columns, part of them, part of tokens


def three_cuts(
    crossings: Mapping[str, str], gpus: int = 4, ax: Axes | None = None
) -> Axes:
    """Batch and model, cut along each axis of `crossings`; one GPU's part in colour.

    The mapping gives the words under each panel: what crosses, and when.
    """
    ax = _canvas(ax, height=3.7)
    for panel, (axis, words) in enumerate(crossings.items()):
        left = panel * (gpus + 2.6)
        middle = left + gpus / 2
        ax.text(middle, -0.8, _NAMES[axis], ha="center", weight="bold",
                color=COLOURS[axis])  # fmt: skip
        _batch(ax, left, gpus, axis)
        _layers(ax, left, gpus, axis)
        ax.text(middle, 3.4 * gpus + 1.6, words, ha="center", va="top")
    for name, height in (("batch", gpus / 2), ("model", 2.4 * gpus)):
        ax.text(-0.5, height, name, ha="right", va="center")
    ax.set_xlim(-3.4, len(crossings) * (gpus + 2.6) - 1.6)
    ax.set_ylim(3.4 * gpus + 4.6, -2.0)
    return ax


def block_split(
    rows: Sequence[Sequence[Share]],
    calls: Iterable[tuple[str, str]],
    ranks: int,
    ax: Axes | None = None,
) -> Axes:
    """Tensors of a block from top to bottom, and the collectives between them.

    Five groups of rows with four seams: stream, attention, stream, feed-forward,
    stream. A call "forward ffn output" is written at the seam that it names.
    """
    marks: dict[str, list[tuple[str, str]]] = {seam: [] for seam in _SEAMS}
    for name, op in calls:
        direction, _, seam = name.partition(" ")
        marks.setdefault(seam, []).append((direction, op.replace("_", "-")))
    wide = max(share[1] for group in rows for share in group)
    ax = _canvas(ax, height=0.4 * sum(map(len, rows)) + 0.46 * len(_SEAMS))
    place = 0.0
    for group, seam in zip(rows, (*_SEAMS, ""), strict=True):
        for share in group:
            _tensor(ax, share, place, ranks, wide)
            place += 1
        if seam:
            _seam(ax, marks[seam], place, wide)
            place += 1.15
    ax.set_xlim(-0.56 * wide, 1.02 * wide)
    ax.set_ylim(place - 0.1, -0.1)
    return ax


def layer_split(
    stages: Sequence[int], links: Iterable[tuple[int, int]], ax: Axes | None = None
) -> Axes:
    """A column a stage, a stripe a layer, and an arc for every link that was used.

    `stages` holds the layers of each; a link goes from one stage to another.
    """
    floor = max(stages) - 0.3
    ax = _canvas(ax, height=0.13 * floor + 1.3)
    for stage, layers in enumerate(stages):
        for layer in range(layers):
            box = (stage - 0.35, layer), 0.7, 0.7
            ax.add_patch(Rectangle(*box, facecolor=COLOURS["pp"]))
        ax.text(stage, -0.3, stage, ha="center", va="bottom")
    for source, target in links:
        _hop(ax, source, target, -1.8 if target > source else floor + 0.3)
    for words, height, colour in (
        ("forward: activations", -4.1, COLOURS["pp"]),
        ("backward: their gradients", floor + 2.7, COLOURS["gradients"]),
    ):
        ax.text((len(stages) - 1) / 2, height, words, ha="center", va="center",
                color=colour)  # fmt: skip
    ax.set_xlim(-0.5, len(stages) - 0.5)
    ax.set_ylim(floor + 3.5, -5.0)
    return ax


def _canvas(ax: Axes | None, height: float) -> Axes:
    if ax is None:
        ax = plt.subplots(figsize=(_WIDTH, height))[1]
    ax.axis("off")
    return ax


def _batch(ax: Axes, left: float, gpus: int, axis: str) -> None:
    """A line a sequence, those of GPU 0 in colour."""
    for sequence in range(gpus):
        mine = axis != "dp" or sequence == 0
        box = (left, sequence), gpus, 0.7
        ax.add_patch(Rectangle(*box, color=COLOURS[axis] if mine else _PALE))


def _layers(ax: Axes, left: float, gpus: int, axis: str) -> None:
    """Two layers a GPU, as wide as there are GPUs, the part of GPU 0 in colour."""
    for copy in reversed(range(1, gpus if axis == "dp" else 1)):
        box = (left + 0.3 * copy, gpus + 1.2 - 0.3 * copy), gpus, 2.4 * gpus
        ax.add_patch(Rectangle(*box, facecolor=_PALE, edgecolor="white"))
    for layer in range(2 * gpus):
        for part in range(gpus):
            holder = {"dp": 0, "tp": part, "pp": layer // 2}[axis]
            wide = 0.86 if axis == "tp" else 1.01
            box = (left + part, gpus + 1.2 + 1.2 * layer), wide, 1.0
            colour = COLOURS[axis] if holder == 0 else _PALE
            ax.add_patch(Rectangle(*box, facecolor=colour))


def _tensor(ax: Axes, share: Share, place: float, ranks: int, wide: float) -> None:
    """All of a tensor, cut into columns or into tokens, and GPU 0's part of it."""
    label, columns, part, tokens = share
    ax.text(-0.03 * wide, place + 0.4, label, ha="right", va="center")
    ax.add_patch(Rectangle((0, place), columns, 0.8, color=_PALE))
    ax.add_patch(Rectangle((0, place), part, 0.8 * tokens, color=COLOURS["tp"]))
    for cut in (n / ranks for n in range(1, ranks)):
        if part < columns:
            ax.plot([columns * cut] * 2, [place, place + 0.8], "w", linewidth=1)
        if tokens < 1:
            ax.plot([0, columns], [place + 0.8 * cut] * 2, "w", linewidth=0.6)


def _seam(
    ax: Axes, marks: Sequence[tuple[str, str]], place: float, wide: float
) -> None:
    """A dashed line, and what is sent across it: forward left, backward right."""
    ax.plot([-0.5 * wide, wide], [place + 0.45] * 2, "--", color=INK, linewidth=0.8)
    for direction, op in marks:
        down = direction == "forward"
        x = (-0.46 if down else 0.32) * wide
        ends = [(x, place + 0.95), (x, place - 0.05)]
        colour = COLOURS["tp" if down else "gradients"]
        arrow = {"arrowstyle": "-|>", "color": colour, "linewidth": 1.8}
        ax.annotate("", *(ends if down else ends[::-1]), arrowprops=arrow)
        ax.text(x + 0.04 * wide, place + 0.45, f"{direction}: {op}", va="center",
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 1})  # fmt: skip


def _hop(ax: Axes, start: float, end: float, height: float) -> None:
    """An arc over the layers if it goes forward, and under them if back."""
    arrow = {
        "arrowstyle": "-|>",
        "connectionstyle": "arc3,rad=-0.45",
        "color": COLOURS["pp" if end > start else "gradients"],
        "shrinkA": 1,
        "shrinkB": 1,
    }
    ax.annotate("", (end, height), (start, height), arrowprops=arrow)
