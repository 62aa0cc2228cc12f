"""The claims, their figures and what the article omits, read from `data/`.

`data/claims.csv` has one row a claim: its words, our verdict, and the number that the
article prints, if any. `data/claim_figures.csv` has one row a figure: the function of
this package that computes it, the value worked out by hand, and how far the two may lie
apart. `data/concepts.csv` has what a reader needs and the article leaves out.
"""

from ast import literal_eval
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

from commwall.catalog.tables import rows
from commwall.rules import choice
from commwall.units import GB, GIB, MB, MICROSECOND, MILLISECOND, TB, TFLOP

__all__ = ["ROLES", "SECTIONS", "UNITS", "VERDICTS", "Claim", "Concept", "Figure",
           "claims", "concepts", "figures"]  # fmt: skip

VERDICTS = ("right", "right if", "ambiguous", "wrong")
ROLES = ("said", "if", "holds", "also")
"""What a figure is: the article's number by the article's own way; the claim under the
assumption that makes it come out; what holds; and what is worth knowing besides."""

SECTIONS = {
    "0": "Title and introduction",
    "1": "Section 1: what training has to send",
    "2": "Section 2: PCIe and NVLink",
    "3.1": "Section 3.1: tensor parallelism",
    "3.2": "Section 3.2: the pipeline's bubble",
    "3.3": "Section 3.3: gradient sync",
    "4.1": "Section 4.1: the RTX 3090",
    "4.2": "Section 4.2: sending less",
    "4.3": "Section 4.3: new hardware",
    "5": "Section 5: design of a system",
}

UNITS = {
    "GB": GB, "MB": MB, "GiB": GIB, "GB/s": GB, "TB/s": TB, "TFLOP/s": TFLOP,
    "GFLOP/s": 1e9, "billion": 1e9, "GHz": 1e9, "kW": 1e3, "%": 0.01, "B/kFLOP": 1e-3,
    "ms": MILLISECOND, "us": MICROSECOND,
    "B": 1, "s": 1, "FLOP": 1, "FLOP/B": 1, "tokens/s": 1, "times": 1,
}  # fmt: skip
"""SI of one unit; what is counted, such as cards, counts as itself."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Figure:
    """One computed number of a claim or of a concept."""

    of: str
    role: str
    what: str
    function: str  # module.name in this package
    arguments: Mapping[str, Any]
    unit: str
    value: float  # worked out by hand, in that unit
    tolerance: float  # relative; absolute where the value is 0
    derivation: str

    def compute(self) -> float:
        """What the library says, in the figure's unit."""
        return float(self.call()(**self.arguments)) / UNITS.get(self.unit, 1)

    def call(self) -> Callable[..., float]:
        """The function that computes it, in SI."""
        module, name = self.function.split(".")
        return getattr(import_module(f"commwall.article.{module}"), name)


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """One claim of the article, and what we found."""

    id: str
    section: str
    english: str
    chinese: str  # the article's own words
    verdict: str
    claimed: float | None  # as printed, in `unit`
    unit: str
    tolerance: float  # relative: how exact the article's number is meant to be
    holds: str
    assumption: str
    corrected: str  # what an earlier reading of ours had wrong
    sources: tuple[str, ...]  # bibliography keys and addresses
    page: str  # of this book
    figures: tuple[Figure, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Concept:
    """Something that the article omits, the page that has it, a word to find it by."""

    id: str
    name: str
    keyword: str
    page: str
    figures: tuple[Figure, ...]


def _arguments(cell: str) -> dict[str, Any]:
    """The arguments of "a=1; b='x'"."""
    pairs = (part.split("=", 1) for part in cell.split(";") if part.strip())
    return {name.strip(): literal_eval(value.strip()) for name, value in pairs}


@cache
def figures() -> tuple[Figure, ...]:
    """All figures, in the order of the table."""
    numbers = ("value", "tolerance")
    return tuple(
        Figure(
            **row
            | {"arguments": _arguments(row["arguments"])}
            | {name: float(row[name]) for name in numbers}
            | {"role": choice("role", row["role"], ROLES)}
        )
        for row in rows("claim_figures")
    )


def _figures_of(id: str) -> tuple[Figure, ...]:
    mine = [figure for figure in figures() if figure.of == id]
    return tuple(sorted(mine, key=lambda figure: ROLES.index(figure.role)))


@cache
def claims() -> tuple[Claim, ...]:
    """All claims, in the order of the article."""
    return tuple(_claim(row) for row in rows("claims"))


def _claim(row: dict[str, str]) -> Claim:
    return Claim(
        id=row["id"],
        section=choice("section", row["section"], SECTIONS),
        english=row["claim_en"],
        chinese=row["claim_zh"],
        verdict=choice("verdict", row["verdict"], VERDICTS),
        claimed=float(row["claimed"]) if row["claimed"] else None,
        unit=row["unit"],
        tolerance=float(row["tolerance"] or 0),
        holds=row["holds"],
        assumption=row["assumption"],
        corrected=row["corrected"],
        sources=tuple(part.strip() for part in row["source"].split(";")),
        page=row["page"],
        figures=_figures_of(row["id"]),
    )


@cache
def concepts() -> tuple[Concept, ...]:
    """All that the article omits, in the order of the table."""
    return tuple(
        Concept(
            id=row["id"],
            name=row["concept"],
            keyword=row["keyword"],
            page=row["page"],
            figures=_figures_of(row["id"]),
        )
        for row in rows("concepts")
    )
