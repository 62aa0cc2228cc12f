"""The page of notation names only what exists.

Every table there with a column headed `code` is read. Each row names in that column,
between backquotes, at least one of

- `Plan.tp`: a field or property of a class of the library;
- `collectives.all_reduce_time`: a name of one of its modules;
- `collectives.all_reduce_time(payload)`: a parameter of a function.
"""

import dataclasses
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

import commwall

PAGE = Path(__file__).resolve().parents[1] / "book" / "notation.md"
NAME = re.compile(r"(\w+)\.(\w+)(?:\((\w+)\))?")
FIRST_PARTY = [
    module.name
    for module in pkgutil.iter_modules(commwall.__path__)
    if module.name != "labs"
]


def cells(line):
    """The cells of one line of a table."""
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def rows():
    """Code cells of the page's tables, as (line number, text)."""
    column = None
    for number, line in enumerate(PAGE.read_text("utf-8").splitlines(), start=1):
        if not line.lstrip().startswith("|"):
            column = None
        elif column is None:
            header = [cell.lower() for cell in cells(line)]
            column = header.index("code") if "code" in header else -1
        elif column >= 0 and not set(line) <= set("|-: "):
            yield number, cells(line)[column]


ROWS = list(rows())


def owner(name):
    """The module, or else the class, that a dotted name starts with."""
    if name in FIRST_PARTY:
        return importlib.import_module(f"commwall.{name}")
    modules = [importlib.import_module(f"commwall.{module}") for module in FIRST_PARTY]
    owners = [vars(module)[name] for module in modules if name in vars(module)]
    assert owners, f"no module or class {name}"
    return owners[0]


def has(thing, name):
    """Whether a module or class has the name; a field need not have a default."""
    fields = dataclasses.fields(thing) if dataclasses.is_dataclass(thing) else ()
    return hasattr(thing, name) or name in {field.name for field in fields}


def test_the_page_has_tables_of_names():
    assert len(ROWS) > 10


@pytest.mark.parametrize(("line", "text"), ROWS, ids=[f"line {n}" for n, _ in ROWS])
def test_every_name_exists(line, text):
    spans = re.findall(r"`([^`]+)`", text)
    assert spans, f"line {line} names no code"
    for span in spans:
        match = NAME.fullmatch(span)
        assert match, (
            f"{span}: write Class.field, module.name or module.name(parameter)"
        )
        thing, name, parameter = match.groups()
        assert has(owner(thing), name), f"{thing} has no {name}"
        if parameter:
            function = getattr(owner(thing), name)
            assert parameter in inspect.signature(function).parameters
