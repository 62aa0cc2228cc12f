"""The article's claims: each computed figure against a value worked out by hand.

A figure's derivation is arithmetic on plain numbers, read without the library: what it
gives is the stated value, and what the library computes must agree with that.
"""

import ast
import inspect
import json
import math
import operator
import re
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import pytest
from pybtex.database import parse_file

from commwall import article
from commwall.article.claims import UNITS, VERDICTS, claims, concepts, figures
from commwall.article.words import (
    claim_markdown,
    concepts_markdown,
    counts,
    lines,
    section_markdown,
)
from toc import page_names

ROOT = Path(__file__).resolve().parents[1]
KEYS = set(parse_file(str(ROOT / "book" / "references.bib")).entries)
PAGES = set(page_names())
IDS = [f"C{number:02d}" for number in range(1, 68)]

# Pages that are still to come; a page that is there must be right, listed or not.
AWAITED: set[str] = set()
# Ids of concepts that a page which is there does not name yet.
UNNAMED: set[str] = set()

_OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.Gt: operator.gt,
}
_FUNCTIONS = {"ceil": math.ceil, "floor": math.floor, "log2": math.log2,
              "log10": math.log10}  # fmt: skip


def arithmetic(text):
    """The value of a sum written out; anything but arithmetic is an error."""
    return _value(ast.parse(text, mode="eval").body)


def _value(node):
    match node:
        case ast.Constant(value=int() | float() as number):
            return number
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand)
        case ast.BinOp(left=left, op=op, right=right):
            return _OPERATORS[type(op)](_value(left), _value(right))
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return _OPERATORS[type(op)](_value(left), _value(right))
        case ast.Call(func=ast.Name(id=name), args=[argument]):
            return _FUNCTIONS[name](_value(argument))
    raise ValueError(f"{ast.dump(node)} is no arithmetic")


def near(value, wanted, tolerance):
    """Within a relative tolerance, an absolute one where the wanted value is 0."""
    return abs(value - wanted) <= tolerance * (abs(wanted) or 1) + 1e-12


def name(figure):
    """A short name for a test's case."""
    return f"{figure.of}-{figure.function}-{figure.what[:24]}"


every_figure = pytest.mark.parametrize("figure", figures(), ids=name)
every_claim = pytest.mark.parametrize("claim", claims(), ids=lambda claim: claim.id)
every_concept = pytest.mark.parametrize("concept", concepts(), ids=lambda c: c.id)


def test_every_claim_is_there_once_and_no_other():
    assert [claim.id for claim in claims()] == IDS


def test_every_figure_belongs_to_a_claim_or_a_concept():
    known = {*IDS, *(concept.id for concept in concepts())}

    assert {figure.of for figure in figures()} <= known


@every_figure
def test_the_stated_value_is_what_its_derivation_gives(figure):
    assert near(figure.value, arithmetic(figure.derivation), 5e-5)


@every_figure
def test_the_library_computes_the_stated_value(figure):
    assert near(figure.compute(), figure.value, figure.tolerance)


@every_figure
def test_a_tolerance_is_small_and_a_unit_is_known(figure):
    counted = re.fullmatch(r"[a-z-]*(?: of ten| layer)?|yes/no", figure.unit)

    assert figure.tolerance <= 0.25
    assert figure.unit in UNITS or counted


def test_derivations_call_nothing_but_arithmetic():
    for text in ("open(1)", "(1).real", "x", "'a' * 2"):
        with pytest.raises((ValueError, KeyError)):
            arithmetic(text)


@every_claim
def test_a_claim_is_decided_by_what_is_computed(claim):
    assert any(figure.role == "holds" for figure in claim.figures)


@every_claim
def test_what_is_claimed_comes_out_the_article_s_way_or_under_the_assumption(claim):
    if claim.claimed is None:
        return
    shown = [figure for figure in claim.figures if figure.role in ("said", "if")]
    for figure in shown:
        assert figure.unit == claim.unit
        assert near(figure.compute(), claim.claimed, claim.tolerance)


@every_claim
def test_right_under_an_assumption_names_it_and_computes_the_claim_under_it(claim):
    under = [figure for figure in claim.figures if figure.role == "if"]
    if claim.verdict != "right if":
        return
    assert claim.assumption
    assert under
    if claim.claimed is None:
        assert all(f.unit == "yes/no" and f.compute() == 1 for f in under)


@every_claim
def test_a_right_claim_holds_as_printed(claim):
    if claim.verdict != "right" or claim.claimed is None:
        return
    holds = next(figure for figure in claim.figures if figure.role == "holds")
    assert near(holds.compute(), claim.claimed, claim.tolerance)


@every_claim
def test_a_wrong_claim_does_not_hold_as_printed(claim):
    if claim.verdict != "wrong" or claim.claimed is None:
        return
    holds = next(figure for figure in claim.figures if figure.role == "holds")
    assert holds.unit == claim.unit
    assert not near(holds.compute(), claim.claimed, 2 * claim.tolerance)


@every_claim
def test_a_verdict_has_sources(claim):
    keys = {key for key in claim.sources if not key.startswith("https://")}

    assert claim.sources
    assert not keys - KEYS


@every_claim
def test_a_claim_has_both_languages_and_says_what_holds(claim):
    assert claim.english
    assert claim.english[-1] not in ".?!"
    assert claim.chinese
    assert len(claim.chinese) < 80
    assert claim.holds


def test_words_hold_no_number_that_the_library_computes():
    """Sizes of models, cards and formulas are names; a result is a figure's."""
    percent = re.compile(r"\d[\d.,]*\s*(?:%|GB|MB|TFLOP|ms)")
    inputs = {number for claim in claims() for number in percent.findall(claim.english)}
    inputs |= {"400 GB", "80 GB", "1.8 GB"}  # an H800, an A100, an assumed payload
    found = {
        (claim.id, number)
        for claim in claims()
        for number in percent.findall(claim.holds + claim.assumption)
        if number not in inputs
    }

    assert not found


def modules():
    """The modules that hold figures."""
    names = {module.name for module in iter_modules(article.__path__)}
    return sorted(names - {"claims", "words"})


def test_every_function_of_a_figure_says_what_comes_back():
    for figure in figures():
        assert inspect.getdoc(figure.call())


def test_the_functions_of_figures_stand_in_the_modules_of_the_article():
    for figure in figures():
        home = figure.function.split(".")[0]
        assert home in modules()
        assert figure.call().__module__ == f"commwall.article.{home}"


def test_no_function_is_left_over():
    """Each public function is some figure's, or is called by another."""
    texts = {name: inspect.getsource(_module(name)) for name in modules()}
    used = {figure.function for figure in figures()}
    for home, text in texts.items():
        for function in re.findall(r"^def ([a-z]\w*)\(", text, re.MULTILINE):
            calls = sum(len(re.findall(rf"\b{function}\b", t)) for t in texts.values())
            assert f"{home}.{function}" in used or calls > 1, function


def _module(name):
    return import_module(f"commwall.article.{name}")


def test_verdicts_sum_to_the_claims():
    assert sum(sum(row.values()) for row in counts().values()) == len(IDS)
    assert all(tuple(row) == VERDICTS for row in counts().values())


def test_a_page_is_linked_only_where_the_contents_have_it():
    claim = claims()[0]

    assert "{doc}" not in claim_markdown(claim)
    assert f"{{doc}}`/{claim.page}`" in claim_markdown(claim, {claim.page})
    assert "still to come" in concepts_markdown()


def test_every_claim_is_in_words_and_in_lines():
    written = "".join(section_markdown(section) for section in article.SECTIONS)
    printed = "\n".join("\n".join(lines(section)) for section in article.SECTIONS)
    for claim in claims():
        assert f"**{claim.id} " in written
        assert f"\n{claim.id}  " in "\n" + printed


def source(page):
    """The text of a page, in lower case."""
    notebook = ROOT / f"{page}.ipynb"
    if not notebook.exists():
        return (ROOT / f"{page}.md").read_text("utf-8").lower()
    cells = json.loads(notebook.read_text("utf-8"))["cells"]
    return "\n".join("".join(cell["source"]) for cell in cells).lower()


@every_claim
def test_the_page_of_a_claim_is_there_or_awaited(claim):
    assert claim.page in PAGES | AWAITED


def test_there_are_twenty_eight_concepts():
    ids = [concept.id for concept in concepts()]

    assert len(ids) == len(set(ids)) == 28


@every_concept
def test_the_page_of_a_concept_names_it(concept):
    if concept.page not in PAGES:
        assert concept.page in AWAITED
        return
    found = concept.keyword in source(concept.page)
    assert found or concept.id in UNNAMED, f"{concept.page}: {concept.keyword!r}"


def test_what_is_awaited_is_printed(capsys):
    """`pytest -rP tests/test_article.py` shows the list, which is to become empty."""
    awaited = [f"{c.page}: {c.name}" for c in concepts() if c.page not in PAGES]
    with capsys.disabled():
        for line in awaited:
            print("\nawaited:", line, end="")

    assert {line.split(":")[0] for line in awaited} <= AWAITED
