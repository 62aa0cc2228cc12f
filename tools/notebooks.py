"""Refresh, clean and check the notebooks by the one policy for their outputs.

usage: python tools/notebooks.py [--check | --clean] [NOTEBOOK ...]

Without an option the notebooks are executed in place, in the order of the book, and
then cleaned; `--clean` only cleans; `--check` only says what cleaning would change, and
what breaks a rule of style. Without names: all of them.

The policy: a notebook keeps what its cells print, with an execution count of 1, so that
`pytest --nbval` compares it; it keeps no picture, HTML, widget, time or error. A cell
tagged `nbval-ignore-output` keeps nothing.
"""

import argparse
import hashlib
import json
import sys
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

import kernels
import notebook_style
from toc import ROOT, notebooks

IGNORE = "nbval-ignore-output"
METADATA = {
    "kernelspec": {
        "display_name": "Python 3",
        "language": "python",
        "name": "python3",
    },
    "language_info": {"name": "python"},
}
CELL_METADATA = ("tags", "mystnb")


def is_ignored(cell):
    """Whether the cell's output is neither kept nor compared."""
    return IGNORE in cell["metadata"].get("tags", [])


def printed(outputs):
    """The outputs that are text alone, as they are kept."""
    kept = []
    for output in outputs:
        kind = output["output_type"]
        previous = kept[-1] if kept else {}
        if kind == "stream" and previous.get("name") == output["name"]:
            previous["text"] += output["text"]
        elif kind == "stream":
            kept.append(dict(output))
        elif set(output.get("data", {})) == {"text/plain"}:
            kept.append({**output, "metadata": {}})
            if kind == "execute_result":
                kept[-1]["execution_count"] = 1
    return kept


def new_id(cell, taken):
    """An id for a cell that has none: from its text, so that it stays the same."""
    text = "".join(cell["source"])
    number = 0
    while True:
        name = hashlib.sha256(f"{number}{text}".encode()).hexdigest()[:8]
        if name not in taken:
            return name
        number += 1


def clean_cell(cell, taken):
    """Make one cell follow the policy, in place."""
    if not cell.get("id") or cell["id"] in taken:
        cell["id"] = new_id(cell, taken)
    taken.add(cell["id"])
    metadata = cell["metadata"]
    cell["metadata"] = {key: metadata[key] for key in CELL_METADATA if key in metadata}
    if cell["cell_type"] == "code":
        ignored = is_ignored(cell)
        cell["outputs"] = [] if ignored else printed(cell["outputs"])
        ran = cell["execution_count"] is not None
        cell["execution_count"] = 1 if ran and not ignored else None


def clean(notebook):
    """Make a notebook follow the policy, in place."""
    taken = set()
    for cell in notebook["cells"]:
        clean_cell(cell, taken)
    notebook["metadata"] = METADATA
    notebook["nbformat_minor"] = 5


def read(path):
    """A notebook as plain text makes it, without ids made up on the way."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        cell["source"] = "".join(cell["source"])
        for output in cell.get("outputs", []):
            if "text" in output:
                output["text"] = "".join(output["text"])
            data = output.get("data", {})
            for kind, text in data.items():
                data[kind] = "".join(text) if isinstance(text, list) else text
    return nbformat.from_dict(notebook)


def written(notebook):
    """The text of a notebook's file."""
    return nbformat.writes(nbformat.from_dict(notebook), version=4) + "\n"


def clean_text(path):
    """The text that a notebook's file should hold."""
    notebook = read(path)
    clean(notebook)
    return written(notebook)


def execute(path):
    """Run a notebook in a new kernel and return it with all outputs."""
    kernels.prepare()
    notebook = read(path)
    clean(notebook)
    resources = {"metadata": {"path": str(path.parent)}}
    client = NotebookClient(
        notebook, timeout=120, record_timing=False, resources=resources
    )
    return client.execute()


def refresh(path):
    """Execute and clean one notebook in place; return what is wrong with it."""
    start = time.monotonic()
    print(f"{path.relative_to(ROOT)} ...", end=" ", flush=True)
    try:
        notebook = execute(path)
    except CellExecutionError as error:
        print("failed")
        return [f"{path.relative_to(ROOT)}: {error}"]
    faults = list(notebook_style.output_faults(notebook))
    clean(notebook)
    text = written(notebook)
    changed = text != path.read_text(encoding="utf-8")
    path.write_text(text, encoding="utf-8")
    print("changed" if changed else "as before", f"({time.monotonic() - start:.1f} s)")
    return [f"{path.relative_to(ROOT)}, {fault}" for fault in faults]


def clean_in_place(path):
    """Clean one notebook in place, without executing it."""
    path.write_text(clean_text(path), encoding="utf-8")
    return []


def changed_cells(path):
    """The cells that cleaning would change, each with its place."""
    before, after = read(path), json.loads(clean_text(path))
    for number, (old, new) in enumerate(
        zip(before["cells"], after["cells"], strict=True)
    ):
        new["source"] = "".join(new["source"])
        same = json.loads(written({**before, "cells": [old]}))["cells"][0]
        same["source"] = "".join(same["source"])
        if same != new:
            yield f"cell {number}: not as `make notebooks` leaves it"


def check(path):
    """What cleaning would change, and which rules of style are broken."""
    faults = list(notebook_style.source_faults(read(path)))
    text = path.read_text(encoding="utf-8")
    if text != clean_text(path):
        faults += list(changed_cells(path)) or ["its metadata: run `make notebooks`"]
    return [f"{path.relative_to(ROOT)}, {fault}" for fault in faults]


def main():
    """Do what the command line asks; 1 if anything is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_const", const=check, dest="act")
    parser.add_argument(
        "--clean", action="store_const", const=clean_in_place, dest="act"
    )
    parser.add_argument("paths", nargs="*", type=Path)
    options = parser.parse_args()
    paths = [path.resolve() for path in options.paths] or notebooks()
    act = options.act or refresh
    faults = [fault for path in paths for fault in act(path)]
    for fault in faults:
        print(fault, file=sys.stderr)
    print(f"{len(paths)} notebooks, {len(faults)} faults")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
