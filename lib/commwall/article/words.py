"""Claims as text: Markdown for the built page, and lines for a terminal.

Leaves out: pictures (see `charts`).
"""

import re
from collections.abc import Collection, Iterator

from commwall.article.claims import SECTIONS, VERDICTS, Claim, Figure, claims, concepts

__all__ = ["claim_markdown", "concepts_markdown", "corrections_markdown", "counts",
           "lines", "number", "pages_of", "section_markdown"]  # fmt: skip

_BEFORE = {"said": "The article's way: ", "if": "If so: ", "holds": "", "also": ""}
_LONG = {"right if": "right under an assumption"}


def pages_of(contents: str) -> frozenset[str]:
    """Names of the pages in the text of a table of contents, `_toc.yml`.

    >>> sorted(pages_of("root: book/index\\n  - file: notebooks/balance"))
    ['book/index', 'notebooks/balance']
    """
    return frozenset(re.findall(r"(?:root|file): *(\S+)", contents))


def counts() -> dict[str, dict[str, int]]:
    """Claims of each section, by verdict."""
    table = {name: dict.fromkeys(VERDICTS, 0) for name in SECTIONS.values()}
    for claim in claims():
        table[SECTIONS[claim.section]][claim.verdict] += 1
    return table


def number(value: float, unit: str) -> str:
    """A value with its unit, in four digits or as a whole number.

    >>> number(2238.8, "tokens"), number(1, "yes/no"), number(0.03355, "GB")
    ('2,239 tokens', 'yes', '0.03355 GB')
    """
    if unit == "yes/no":
        return "yes" if value else "no"
    digits = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return f"{digits} {unit}".strip()


def _sentence(figure: Figure) -> str:
    words = _BEFORE[figure.role] + figure.what
    return words[0].upper() + words[1:]


def _computed(figure: Figure) -> str:
    return number(figure.compute(), figure.unit)


def lines(section: str) -> Iterator[str]:
    """Every figure of a section: the claim, our value, and what it is."""
    for claim in (claim for claim in claims() if claim.section == section):
        said = "" if claim.claimed is None else number(claim.claimed, claim.unit)
        yield f"{claim.id}  {claim.verdict}" + (f", claimed {said}" if said else "")
        for figure in claim.figures:
            yield f"     {_computed(figure):>20}  {_sentence(figure)}"


def section_markdown(section: str, pages: Collection[str] = ()) -> str:
    """All claims of one section; `pages` are those that may be linked to."""
    mine = (claim for claim in claims() if claim.section == section)
    return "\n\n".join(claim_markdown(claim, pages) for claim in mine)


def claim_markdown(claim: Claim, pages: Collection[str] = ()) -> str:
    """One claim as a block of MyST Markdown, narrow enough for a phone."""
    kind = claim.verdict.replace(" ", "-")
    parts = [
        f":::{{div}} claim claim-{kind}",
        f"**{claim.id} &middot; {_LONG.get(claim.verdict, claim.verdict)}.** "
        f"{claim.english}.",
        f'<span lang="zh-Hans" class="zh">{_escaped(claim.chinese)}</span>',
        f"**What holds:** {claim.holds}",
        _table(claim),
    ]
    if claim.assumption:
        parts.append(f"**What makes it come out:** {claim.assumption}")
    if claim.corrected:
        parts.append(f"*Corrected.* {claim.corrected}")
    return "\n\n".join([*parts, _origin(claim, pages), ":::"])


def _escaped(text: str) -> str:
    """Text in which Markdown finds nothing to do."""
    return re.sub(r"([\\`*_{}\[\]<>$#])", r"\\\1", text)


def _table(claim: Claim) -> str:
    rows = ["| figure | value |", "|---|---:|"]
    if claim.claimed is not None:
        rows.append(f"| *Claimed* | *{number(claim.claimed, claim.unit)}* |")
    for figure in claim.figures:
        value = _computed(figure)
        shown = value if figure.role == "also" else f"**{value}**"
        rows.append(f"| {_sentence(figure)} | {shown} |")
    return "\n".join(rows)


def _origin(claim: Claim, pages: Collection[str]) -> str:
    keys = ",".join(key for key in claim.sources if not key.startswith("http"))
    links = " ".join(f"<{key}>" for key in claim.sources if key.startswith("http"))
    sources = f"Sources: {{cite}}`{keys}` {links}".strip()
    return f"{_page(claim.page, pages)}{sources}"


def _page(name: str, pages: Collection[str]) -> str:
    return f"More in {{doc}}`/{name}`. " if name in pages else ""


def corrections_markdown() -> str:
    """Where this page departs from an earlier reading of ours."""
    corrected = (claim for claim in claims() if claim.corrected)
    return "\n".join(f"- **{claim.id}**: {claim.corrected}" for claim in corrected)


def concepts_markdown(pages: Collection[str] = ()) -> str:
    """What the article omits: where it is treated, with a number if it has one."""
    return "\n".join(
        f"- **{concept.name}.** "
        + "".join(f"{_sentence(f)}: {_computed(f)}. " for f in concept.figures)
        + (_page(concept.page, pages) or "(The page is still to come.)")
        for concept in concepts()
    )
