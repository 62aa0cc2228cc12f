"""The article's claims, each with the number that decides it, computed by the library.

A module for each section of the article holds a small function for each figure, named
by what comes back, in SI. `claims` reads the tables that hold words, verdicts and
values worked out by hand; `words` turns a claim into text for a page.

Leaves out: the article's three lost tables.
"""

from commwall.article.claims import (
    SECTIONS,
    VERDICTS,
    Claim,
    Concept,
    Figure,
    claims,
    concepts,
)
from commwall.article.words import (
    claim_markdown,
    concepts_markdown,
    corrections_markdown,
    counts,
    lines,
    pages_of,
    section_markdown,
)

__all__ = [
    "SECTIONS",
    "VERDICTS",
    "Claim",
    "Concept",
    "Figure",
    "claim_markdown",
    "claims",
    "concepts",
    "concepts_markdown",
    "corrections_markdown",
    "counts",
    "lines",
    "pages_of",
    "section_markdown",
]
