"""Lines over two axes, and drawings of a box with its wires, as SVG."""

from math import isfinite

from commwall.palette import LINES
from commwall.whatif.marks import AXIS, box, dot, path, rule, text
from commwall.whatif.pictures import Line, Lines, Tree
from commwall.whatif.ticks import limits, place, ticks

__all__ = ["lines_svg", "tree_svg"]

LEFT, RIGHT, TOP, BOTTOM = 62, 14, 26, 42  # pixels round the plot


def lines_svg(picture: Lines, width: int) -> tuple[float, list[str]]:
    """Height and strokes."""
    height = 330 if width > 500 else 300
    ys = [y for line in picture.lines for y in line.ys]
    x_ends = limits(picture.x, [x for line in picture.lines for x in line.xs])
    y_ends = limits(picture.y, ys if picture.y.log else [0.0, *ys])
    wide, high = width - LEFT - RIGHT, height - TOP - BOTTOM

    def at(x: float, y: float) -> tuple[float, float]:
        down = min(max(1 - place(picture.y, y_ends, y), -1.0), 2.0)
        return wide * place(picture.x, x_ends, x), high * down

    body = _frame(picture, (x_ends, y_ends), at, (width, height))
    body.append(f'<svg x="{LEFT}" y="{TOP}" width="{wide}" height="{high}">')
    for line, (colour, dashes) in zip(picture.lines, LINES, strict=False):
        body += _line(line, at, colour, dashes)
    body.append("</svg>")
    for words, value in picture.rules:
        body += _rule(words, LEFT + at(value, y_ends[0])[0], width, height - BOTTOM)
    for mark in picture.marks:
        body += _mark(mark.label, *at(mark.x, mark.y), width)
    return height, body


def _rule(words: str, x: float, width: int, bottom: float) -> list[str]:
    """An upright line with a word on the side that has room."""
    side, anchor = (-1, "end") if x > width * 0.6 else (1, "start")
    label = text(x + 4 * side, TOP + 12, words, anchor, halo=True)
    return [rule(x, TOP, x, bottom, f'{AXIS} stroke-dasharray="4 3"'), label]


def _frame(picture: Lines, ends, at, size) -> list[str]:
    """Grid, ticks and names of the axes."""
    (x_ends, y_ends), (width, height) = ends, size
    body = [text(4, 14, picture.y.label)]
    for tick in ticks(picture.y, y_ends, 6):
        y = TOP + at(x_ends[0], tick)[1]
        body.append(rule(LEFT, y, width - RIGHT, y))
        body.append(text(LEFT - 6, y + 4, picture.y.text(tick), "end"))
    for tick in ticks(picture.x, x_ends, 6 if width > 500 else 4):
        x = LEFT + at(tick, y_ends[0])[0]
        body.append(rule(x, TOP, x, height - BOTTOM))
        anchor = "end" if x > width - 30 else "middle"
        body.append(text(x, height - BOTTOM + 16, picture.x.text(tick), anchor))
    body.append(rule(LEFT, height - BOTTOM, width - RIGHT, height - BOTTOM, AXIS))
    body.append(rule(LEFT, TOP, LEFT, height - BOTTOM, AXIS))
    body.append(text((LEFT + width) / 2, height - 6, picture.x.label, "middle"))
    return body


def _line(line: Line, at, colour: str, dashes) -> list[str]:
    pairs = zip(line.xs, line.ys, strict=True)
    points = [at(x, y) for x, y in pairs if isfinite(x) and isfinite(y)]
    if not line.dots:
        return [path(points, colour, dashes)]
    return [dot(x, y, f'fill="{colour}" stroke="#fff"') for x, y in points]


def _mark(words: str, x: float, y: float, width: int) -> list[str]:
    ring = 'fill="none" stroke="currentColor" stroke-width="1.8"'
    anchor = "end" if LEFT + x > width * 0.7 else "start"
    away = -8 if anchor == "end" else 8
    label = text(LEFT + x + away, TOP + y - 8, words, anchor, halo=True)
    return [dot(LEFT + x, TOP + y, ring), label]


def tree_svg(picture: Tree, width: int) -> tuple[float, list[str]]:
    """Height and strokes: a wire is as wide and as blue as it is busy."""
    rows = len({node.y for node in picture.nodes})
    margin, height = 34, 56 + 74 * (rows - 1)

    def at(x: float, y: float) -> tuple[float, float]:
        return margin + (width - 2 * margin) * x, 26 + (height - 52) * y

    body = []
    for wire in sorted(picture.wires, key=lambda wire: wire.busy):
        body += _wire([at(*end) for end in wire.ends], wire.busy)
    for node in picture.nodes:
        body += _node(node.label, *at(node.x, node.y))
    return height, body


def _wire(ends, busy: float) -> list[str]:
    slowest = busy > 0.999
    colour = "#d55e00" if slowest else "#0072b2"
    style = (f'stroke="{colour if busy else "#999999"}" '
             f'stroke-width="{1.2 + 5 * busy:.1f}" stroke-linecap="round" '
             f'stroke-opacity="{0.35 + 0.65 * busy:.2f}"')  # fmt: skip
    (x0, y0), (x1, y1) = ends
    x, y = 0.3 * x0 + 0.7 * x1, 0.3 * y0 + 0.7 * y1  # where wires have spread
    label = text(x, y + 4, f"{busy:.0%}", "middle", size=11, halo=True)
    return [rule(x0, y0, x1, y1, style), label]


def _node(label: str, x: float, y: float) -> list[str]:
    half = 5 + 3.6 * len(label)
    face = 'stroke="currentColor" class="node"'
    drawn = box(x - half, y - 12, 2 * half, 24, f'rx="5" {face}')
    return [drawn, text(x, y + 4, label, "middle")]
