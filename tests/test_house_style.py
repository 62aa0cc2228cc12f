"""The rules of CONTRIBUTING that a machine can read, read over our own files."""

import ast
import json
import re
from pathlib import Path

import pytest

from toc import page_names

ROOT = Path(__file__).resolve().parents[1]
LIBRARY = sorted((ROOT / "lib" / "commwall").rglob("*.py"))
FOLDERS = ["lib", "tests", "tools", "book/_ext", ".ci"]
MODULE_LINES = 250
FUNCTION_LINES = 20
VAGUE = {"utils", "helpers", "common", "core"}

# A quantity of operations is a FLOP and a rate a FLOP/s: a plural s is read as either.
PLURAL = re.compile(r"(?<![a-z])[kmgtpez]?flop" r"s(?![a-z])", re.IGNORECASE)
MACHINE_PATH = re.compile(r"/(root|home|Users|work)/")
REGISTRY = re.compile(r"https?://\S*(pypi|pythonhosted|npmjs|registry|anaconda)", re.I)


def sources():
    """Our own files of text: Python, pages, notebooks, settings."""
    endings = {".py", ".sh", ".md", ".ipynb", ".yml", ".toml", ".cff", ".css", ".bib"}
    made = {"_build", "node_modules", "vendor", "__pycache__"}
    for folder in [*FOLDERS, "book", "notebooks"]:
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in endings and not made & set(path.parts):
                yield path
    yield from (path for path in ROOT.iterdir() if path.suffix in endings)
    yield ROOT / "Makefile"


def cells(path, kind):
    """Texts of a notebook's cells of one kind."""
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        if cell["cell_type"] == kind:
            yield "".join(cell["source"])


def own_lines(path):
    """Numbered lines of a file that are our words, not a quotation's.

    A quotation is a line of Markdown that starts with `>`; the titles in a
    bibliography are quotations too.
    """
    text = path.read_text("utf-8")
    if path.suffix == ".bib":
        return
    if path.suffix == ".ipynb":
        text = "\n".join([*cells(path, "markdown"), *cells(path, "code")])
    for number, line in enumerate(text.splitlines(), start=1):
        if path.suffix == ".py" or not line.lstrip().startswith(">"):
            yield number, line


def body_lines(function):
    """Lines of a function's body, its docstring left out."""
    body = function.body
    if ast.get_docstring(function) is not None:
        body = body[1:]
    return body[-1].end_lineno - body[0].lineno + 1 if body else 0


def found(pattern):
    """Where a pattern stands in our own words."""
    return [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in sources()
        for number, line in own_lines(path)
        if pattern.search(line)
    ]


def test_modules_are_short():
    lengths = {path.name: len(path.read_text("utf-8").splitlines()) for path in LIBRARY}

    assert not {name: n for name, n in lengths.items() if n > MODULE_LINES}


def test_functions_are_short():
    long = [
        f"{path.name}: {node.name} has {body_lines(node)} lines"
        for path in LIBRARY
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef) and body_lines(node) > FUNCTION_LINES
    ]

    assert not long


def test_no_module_is_a_drawer_for_everything():
    assert not VAGUE & {path.stem for path in sources() if path.suffix == ".py"}


def test_operations_and_rates_are_told_apart():
    assert not found(PLURAL)


def test_no_file_knows_the_machine_it_was_written_on():
    assert not found(MACHINE_PATH)


def test_no_file_names_a_registry():
    assert not found(REGISTRY)


def test_code_is_ascii():
    """Greek belongs to formulas, in LaTeX."""
    modules = [path for path in sources() if path.suffix == ".py"]

    assert not [path for path in modules if not path.read_text("utf-8").isascii()]


@pytest.mark.parametrize("name", page_names())
def test_every_page_of_the_contents_exists_once(name):
    endings = [end for end in ("md", "ipynb") if (ROOT / f"{name}.{end}").exists()]

    assert len(endings) == 1, f"{name}: {endings or 'no file'}"


def test_every_notebook_is_in_the_contents():
    folders = [ROOT / "book", ROOT / "notebooks"]
    names = {
        path.relative_to(ROOT).with_suffix("").as_posix()
        for folder in folders
        for path in folder.rglob("*.ipynb")
        if ".ipynb_checkpoints" not in path.parts
    }

    assert names <= set(page_names())
