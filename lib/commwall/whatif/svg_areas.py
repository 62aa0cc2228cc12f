"""Bars and timelines as SVG."""

from commwall.palette import COLOURS
from commwall.whatif.marks import AXIS, box, face, number, rule, text
from commwall.whatif.pictures import Axis, Bar, Bars, Spans
from commwall.whatif.ticks import limits, place, ticks

__all__ = ["bars_svg", "spans_svg"]

BAR, ROW = 40, 22  # pixels of a bar with its label, and of a row of a timeline
MARGIN = 10


def bars_svg(picture: Bars, width: int) -> tuple[float, list[str]]:
    """Height and strokes: a label, and under it the bar."""
    sums = [sum(p.size for p in bar.parts) for bar in picture.bars]
    limit = [picture.limit[1] * 1.05] if picture.limit else []
    ends = limits(picture.axis, [0.0, *sums, *limit])
    wide = width - 2 * MARGIN

    def across(value: float) -> float:
        return MARGIN + wide * place(picture.axis, ends, value)

    bottom = 8 + BAR * len(picture.bars) + (16 if picture.limit else 0)
    body = _grid(picture.axis, ends, across, bottom, width)
    for index, bar in enumerate(picture.bars):
        body += _bar(bar, across, 6 + BAR * index, width)
    if picture.limit:
        words, value = picture.limit
        style = 'stroke="currentColor" stroke-width="1.6" stroke-dasharray="6 4"'
        body.append(rule(across(value), 4, across(value), bottom, style))
        anchor = "end" if across(value) > width / 2 else "start"
        away = -5 if anchor == "end" else 5
        body.append(text(across(value) + away, bottom - 5, words, anchor, halo=True))
    return bottom + 38, body


def _grid(axis: Axis, ends, across, bottom: float, width: int) -> list[str]:
    """Upright lines, their values, and the name of the axis."""
    body = []
    for tick in ticks(axis, ends, max(3, width // 110)):
        x = across(tick)
        body.append(rule(x, 2, x, bottom))
        anchor = "start" if x < 20 else "end" if x > width - 30 else "middle"
        body.append(text(x, bottom + 15, axis.text(tick), anchor))
    body.append(rule(across(ends[0]), bottom, across(ends[1]), bottom, AXIS))
    body.append(text(width / 2, bottom + 32, axis.label, "middle"))
    return body


def _bar(bar: Bar, across, top: float, width: int) -> list[str]:
    words = f"{bar.label}: {bar.note}" if bar.note else bar.label
    body = [text(MARGIN, top + 11, words, halo=True)]
    left = 0.0
    for piece in bar.parts:
        if piece.size <= 0:
            continue
        x0, x1 = across(left), across(left + piece.size)
        body.append(box(x0, top + 15, x1 - x0, 17, face(piece.colour, piece.pale)))
        left += piece.size
    return body


def spans_svg(picture: Spans, width: int) -> tuple[float, list[str]]:
    """Height and strokes: a row of boxes a stage, pale grey where nothing runs."""
    ends = limits(picture.axis, [0.0, *(span.end for span in picture.spans)])
    left = 14 + 6.6 * max(map(len, picture.rows))

    def across(value: float) -> float:
        return left + (width - left - MARGIN) * place(picture.axis, ends, value)

    bottom = 6 + ROW * len(picture.rows)
    body = _grid(picture.axis, ends, across, bottom, width)
    for row, name in enumerate(picture.rows):
        y = 6 + ROW * row
        body.append(text(left - 6, y + 14, name, "end"))
        if picture.idle:
            wide = across(ends[1]) - across(ends[0])
            pale = 'fill="#999999" fill-opacity="0.2"'
            body.append(box(across(ends[0]), y + 2, wide, ROW - 4, pale))
    body += [_span(span, across) for span in picture.spans]
    return bottom + 38, body


def _span(span, across) -> str:
    x0, x1 = across(span.start), across(span.end)
    y, style = 8 + ROW * span.row, face(COLOURS[span.kind])
    drawn = box(x0, y, x1 - x0, ROW - 4, style)
    if span.faded:
        drawn += box(x0, y, x1 - x0, ROW - 4, 'fill="#fff" fill-opacity="0.45"')
    if x1 - x0 > 6 * len(span.text) + 2 and span.text:
        middle = number((x0 + x1) / 2)
        drawn += (f'<text x="{middle}" y="{y + 13}" text-anchor="middle" '
                  f'font-size="10" fill="#000">{span.text}</text>')  # fmt: skip
    return drawn
