"""The strokes of an SVG: text, areas, lines."""

from collections.abc import Sequence
from html import escape

from commwall.palette import COLOURS

__all__ = ["box", "dot", "face", "ink", "number", "path", "rule", "text"]

GRID = 'stroke="currentColor" stroke-opacity="0.18"'
AXIS = 'stroke="currentColor" stroke-opacity="0.6"'


def number(value: float) -> str:
    """A place in pixels, short."""
    return f"{value:.1f}".removesuffix(".0")


def ink(colour: str) -> str:
    """Black becomes the ink of the page, which is light on dark pages."""
    return "currentColor" if colour == COLOURS["optimizer"] else colour


def text(x: float, y: float, words: str, anchor: str = "start", *, size: int = 12,
         halo: bool = False, colour: str = "currentColor") -> str:  # fmt: skip
    """Words at a place; a halo keeps them legible over lines."""
    extra = ' class="halo"' if halo else ""
    return (
        f'<text x="{number(x)}" y="{number(y)}" text-anchor="{anchor}" '
        f'font-size="{size}" fill="{colour}"{extra}>{escape(words)}</text>'
    )


def box(x: float, y: float, width: float, height: float, style: str) -> str:
    """A rectangle."""
    return (
        f'<rect x="{number(x)}" y="{number(y)}" width="{number(max(width, 0))}" '
        f'height="{number(height)}" {style}/>'
    )


def rule(x0: float, y0: float, x1: float, y1: float, style: str = GRID) -> str:
    """A straight line."""
    ends = f'x1="{number(x0)}" y1="{number(y0)}" x2="{number(x1)}" y2="{number(y1)}"'
    return f"<line {ends} {style}/>"


def dot(x: float, y: float, style: str) -> str:
    """A round spot."""
    return f'<circle cx="{number(x)}" cy="{number(y)}" r="4.5" {style}/>'


def path(points: Sequence[tuple[float, float]], colour: str,
         dashes: Sequence[float]) -> str:  # fmt: skip
    """A line through points."""
    through = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dash = f' stroke-dasharray="{" ".join(map(str, dashes))}"' if dashes else ""
    return (
        f'<polyline points="{through}" fill="none" stroke="{colour}" '
        f'stroke-width="2.2" stroke-linejoin="round"{dash}/>'
    )


def face(colour: str, pale: bool = False) -> str:
    """How an area is filled: pale, with a dashed edge, where it costs nothing."""
    if pale:
        edge = f'stroke="{ink(colour)}" stroke-dasharray="3 2"'
        return f'fill="{ink(colour)}" fill-opacity="0.2" {edge}'
    return f'fill="{ink(colour)}" stroke="#fff" stroke-width="0.7"'
