"""The pages of the book, in the order of `_toc.yml`, which alone knows it."""

from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]


def names(entry):
    """Names under one entry of the table of contents, depth first."""
    if "file" in entry:
        yield entry["file"]
    for key in ("parts", "chapters", "sections"):
        for child in entry.get(key, []):
            yield from names(child)


def page_names():
    """Every page, such as `book/notation`, without its ending."""
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    return [toc["root"], *names(toc)]


def notebooks():
    """Paths of those pages that are notebooks."""
    paths = [ROOT / f"{name}.ipynb" for name in page_names()]
    return [path for path in paths if path.exists()]
