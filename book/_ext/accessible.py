"""Names and landmarks that the theme leaves out.

They are written into the built pages. Each repair is one fault that
axe-core reported; the browser tests run it over every page, and so tell
when the theme mends one of them or adds another.
"""

import re
from pathlib import Path

LOGO = r'(\s*<a class="navbar-brand logo".*?</a>)\s*'
REPAIRS = [
    # The spoken name of a button must contain the words seen on it.
    (
        r'(<button class="btn search-button-field[^>]*?)'
        r' aria-label="Search"',
        r"\1",
    ),
    (r'(<i class="theme-switch [^>]*?)\s+title="[^"]*"', r"\1"),
    (r'<summary aria-label="Toggle hidden content">', "<summary>"),
    # The arrow that unfolds a chapter in the side bar has no name.
    (
        r'<summary>(<span class="toctree-toggle")',
        r'<summary aria-label="Pages of this chapter">\1',
    ),
    # The book's title stands outside every landmark.
    (
        rf'<div class="sidebar-primary-item">{LOGO}</div>',
        r'<nav class="sidebar-primary-item" aria-label="Home">\1</nav>',
    ),
    # A list must hold items, and this role is withdrawn.
    (r'role="doc-biblioentry"', 'role="listitem"'),
]


def repair(html):
    """The page with all repairs made; a second time adds nothing."""
    for pattern, replacement in REPAIRS:
        html = re.sub(pattern, replacement, html, flags=re.DOTALL)
    return html


def repair_pages(app, exception):
    """Rewrite the pages of a build that succeeded."""
    if exception or app.builder.format != "html":
        return
    for path in Path(app.outdir).rglob("*.html"):
        html = path.read_text(encoding="utf-8")
        path.write_text(repair(html), encoding="utf-8")


def setup(app):
    """Sphinx calls this when it loads the extension."""
    app.connect("build-finished", repair_pages)
    return {"parallel_read_safe": True}
