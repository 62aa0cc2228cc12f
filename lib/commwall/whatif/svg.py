"""Pictures as SVG, drawn for a width in pixels; the page's text colour is the ink.

The same strings are made when the book is built and in the reader's browser.
"""

from html import escape

from commwall.whatif.marks import box, dot, face, path
from commwall.whatif.pictures import Bars, Key, Lines, Picture, Spans
from commwall.whatif.svg_areas import bars_svg, spans_svg
from commwall.whatif.svg_lines import lines_svg, tree_svg

__all__ = ["WIDTHS", "legend_html", "picture_svg"]

WIDTHS = (640, 340)  # pixels: a column of the book, and a phone


def picture_svg(picture: Picture, width: int, alt: str) -> str:
    """One `<svg>` of that width; `alt` says what it shows."""
    drawings = {Lines: lines_svg, Bars: bars_svg, Spans: spans_svg}
    height, body = drawings.get(type(picture), tree_svg)(picture, width)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height:.0f}" '
        f'width="{width}" height="{height:.0f}" role="img" aria-label="{escape(alt)}">'
        f"{''.join(body)}</svg>"
    )


def legend_html(picture: Picture) -> str:
    """A list of colours and words that wraps like text."""
    items = "".join(
        f"<li>{_swatch(key)} {escape(key.label)}</li>" for key in picture.legend()
    )
    return f'<ul class="whatif-legend">{items}</ul>' if items else ""


def _swatch(key: Key) -> str:
    if key.dots:
        drawn = dot(13, 6, face(key.colour))
    elif key.dashes is not None:
        drawn = path([(0, 6), (26, 6)], key.colour, key.dashes)
    else:
        drawn = box(0.5, 1, 25, 10, face(key.colour, key.pale))
    return (
        '<svg class="whatif-key" viewBox="0 0 26 12" width="26" height="12" '
        f'aria-hidden="true">{drawn}</svg>'
    )
