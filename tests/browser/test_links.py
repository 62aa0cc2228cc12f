"""Every link inside the book leads to a page, and every anchor to a place on it."""

from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from toc import page_names

SITE = Path(__file__).resolve().parents[2] / "_build" / "html"
LINKS = {"href", "src"}


class Page(HTMLParser):
    """The links of a page and the places on it."""

    def __init__(self, path):
        """Read the page."""
        super().__init__()
        self.links, self.places = set(), {""}
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        """Note what one tag links to and which place it marks."""
        for key, text in attributes:
            if key in LINKS:
                self.links.add(text)
            if key == "id" or (tag == "a" and key == "name"):
                self.places.add(text)


@cache
def read(path):
    """A page, read once."""
    return Page(path)


def is_broken(link, path):
    """Whether a link on the page at `path` leads nowhere in the book."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return False
    target = path
    if parts.path:
        target = (path.parent / unquote(parts.path)).resolve()
    if not target.is_file():
        return True
    return (
        target.suffix == ".html" and unquote(parts.fragment) not in read(target).places
    )


@pytest.mark.usefixtures("site")
@pytest.mark.parametrize("name", page_names())
def test_every_link_of_a_page_leads_somewhere(name):
    path = SITE / f"{name}.html"

    assert not [link for link in read(path).links if is_broken(link, path)]
