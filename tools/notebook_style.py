"""Rules of style for the code cells of a notebook, and for what they draw."""

import ast
import re

WIDTH = 72  # columns: a wider line is cut off by the book's column
LENGTH = 15  # lines
DRAWS = {"plt", "charts"}  # a call on one of these draws
IGNORE = "nbval-ignore-output"


def drawing_names(tree):
    """Names that a cell imports from the modules that draw."""
    for node in ast.walk(tree):
        module = getattr(node, "module", None) or ""
        if module.split(".")[-1] in {"charts", "pyplot"}:
            yield from (alias.asname or alias.name for alias in node.names)


def calls(tree):
    """What a cell calls when it runs: not inside the functions it defines."""
    if isinstance(tree, ast.FunctionDef | ast.Lambda):
        return
    if isinstance(tree, ast.Call):
        target = tree.func
        while isinstance(target, ast.Attribute):
            target = target.value
        if isinstance(target, ast.Name):
            yield target.id
    for child in ast.iter_child_nodes(tree):
        yield from calls(child)


def alt(cell):
    """The words that stand for the cell's picture."""
    image = cell["metadata"].get("mystnb", {}).get("image", {})
    return str(image.get("alt", "")).strip()


def picture_faults(cell):
    """What a cell that draws lacks."""
    tags = cell["metadata"].get("tags", [])
    if not alt(cell) or alt(cell).endswith((".png", ".svg")):
        yield "draws, so its metadata needs mystnb: {image: {alt: what it shows}}"
    for tag in ("hide-input", IGNORE):
        if tag not in tags:
            yield f"draws, so it needs the tag {tag}"


def line_faults(source):
    """Faults of layout."""
    lines = source.splitlines()
    if len(lines) > LENGTH:
        yield f"has {len(lines)} lines, more than {LENGTH}"
    for number, line in enumerate(lines, start=1):
        if len(line) > WIDTH:
            yield f"line {number} has {len(line)} columns, more than {WIDTH}"
        if line.rstrip().endswith(";"):
            yield f"line {number} ends in a semicolon: write `_ = ...`"
        if not line.isascii():
            yield f"line {number} is not ASCII"


def code_faults(cell, drawing):
    """Faults of one code cell; `drawing` gathers the names that draw."""
    yield from line_faults(cell["source"])
    try:
        tree = ast.parse(cell["source"])
    except SyntaxError:
        yield "is not plain Python"
        return
    drawing.update(drawing_names(tree))
    if drawing & set(calls(tree)):
        yield from picture_faults(cell)
    ignored = IGNORE in cell["metadata"].get("tags", [])
    if cell["execution_count"] is None and not ignored:
        yield "has never run: `make notebooks`"
    if " at 0x" in str(cell["outputs"]):
        yield "prints an address, which changes from run to run"


def answer_faults(notebook):
    """Solutions that compute, but not in a cell whose id says so."""
    label, computes = None, False
    ids = {cell.get("id") for cell in notebook["cells"]}
    for cell in notebook["cells"]:
        start = re.search(r"{solution-start} (\S+)", cell["source"])
        if start:
            label, computes = start[1], False
        computes = computes or cell["cell_type"] == "code"
        if "{solution-end}" in cell["source"] and label:
            if computes and f"answer-{label}" not in ids:
                yield f"solution of {label} needs a cell with the id answer-{label}"
            label = None


def source_faults(notebook):
    """Faults that can be seen without running anything."""
    yield from answer_faults(notebook)
    drawing = set(DRAWS)
    for number, cell in enumerate(notebook["cells"]):
        faults = []
        if not cell["source"].strip():
            faults.append("is empty")
        if "TODO" in cell["source"]:
            faults.append("has a TODO")
        if cell["cell_type"] == "code":
            faults += code_faults(cell, drawing)
        yield from (f"cell {number}: {fault}" for fault in faults)


def output_faults(notebook):
    """Faults that only a run shows: its outputs before they are cleaned."""
    for number, cell in enumerate(notebook["cells"]):
        for output in cell.get("outputs", []):
            kinds = set(output.get("data", {}))
            faults = []
            if output.get("name") == "stderr":
                faults.append(f"warns: {output['text']}")
            if any(kind.startswith("image/") for kind in kinds):
                faults += picture_faults(cell)
            elif kinds - {"text/plain"} and IGNORE not in cell["metadata"].get(
                "tags", []
            ):
                faults.append(f"shows more than text, so it needs the tag {IGNORE}")
            yield from (f"cell {number}: {fault}" for fault in faults)
