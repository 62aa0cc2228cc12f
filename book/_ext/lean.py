"""Send less: the theme brings far more than a page shows.

On pages that nobody touches three things were more than half of what
was sent:

- a script that draws 2,000 icons, of which the pages use fifteen; the
  theme's style sheet shows the same ones as characters of a font;
- that font, whole: here it holds the characters that are used;
- figures of flat colours, saved as if they were photographs.
"""

import re
from pathlib import Path

from fontTools import subset
from fontTools.ttLib import TTFont
from PIL import Image

SCRIPT = r"\s*<script[^>]*scripts/fontawesome\.js[^>]*></script>"
USED = re.compile(r'class="[^"]*\b(?:fas|fa-solid) +fa-([a-z-]+)')
RULE = re.compile(r'((?:\.fa-[\w-]+:+before,?)+)\{content:"\\(\w+)"')
PRIVATE = re.compile("[\ue000-\uf8ff]")  # where icon fonts live
OWN = re.compile(r'content: *"\\(f\w{3})"')
COLOURS = 256


def characters(static, pages):
    """Characters of the icon font that pages and style sheets show."""
    names = {name for page in pages for name in USED.findall(page)}
    wanted = set()
    for path in static.glob("styles/*.css"):
        style = path.read_text("utf-8")
        wanted.update(f"{ord(c):x}" for c in PRIVATE.findall(style))
        for selectors, code in RULE.findall(style):
            if names & set(re.findall(r"\.fa-([\w-]+)", selectors)):
                wanted.add(code)
    for path in static.glob("*.css"):
        wanted.update(OWN.findall(path.read_text("utf-8")))
    return {int(code, 16) for code in wanted}


def shrink_font(static, wanted):
    """Keep only these characters, and let style sheets ask for them."""
    fonts = static / "vendor" / "fontawesome" / "webfonts"
    font = TTFont(fonts / "fa-solid-900.ttf")
    options = subset.Options(flavor="woff")
    cutter = subset.Subsetter(options)
    cutter.populate(unicodes=wanted)
    cutter.subset(font)
    subset.save_font(font, fonts / "fa-solid-900.woff", options)
    for path in static.glob("styles/*.css"):
        style = path.read_text("utf-8")
        whole = 'fa-solid-900.woff2) format("woff2")'
        part = 'fa-solid-900.woff) format("woff")'
        path.write_text(style.replace(whole, part), "utf-8")


def flatten(folder):
    """Save figures with as many colours as one can tell apart."""
    for path in folder.glob("*.png"):
        with Image.open(path) as image:
            if image.mode == "P":
                continue
            flat = image.convert("RGB").quantize(COLOURS, dither=0)
            flat.save(path, optimize=True)


def shrink(app, exception):
    """Lighten a build that succeeded; a second time adds nothing."""
    if exception or app.builder.format != "html":
        return
    out = Path(app.outdir)
    paths = list(out.rglob("*.html"))
    pages = {path: path.read_text("utf-8") for path in paths}
    wanted = characters(out / "_static", pages.values())
    shrink_font(out / "_static", wanted)
    for path, page in pages.items():
        path.write_text(re.sub(SCRIPT, "", page), encoding="utf-8")
    flatten(out / "_images")


def setup(app):
    """Sphinx calls this when it loads the extension."""
    app.connect("build-finished", shrink, priority=900)
    return {"parallel_read_safe": True}
