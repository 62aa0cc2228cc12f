"""Make the built book complete in itself, and never stale.

Jupyter Book 1.0.4 needs four repairs:

- kernels must find `lib` (see `tools/kernels.py`);
- executed notebooks are cached by their own code alone: a change in
  `lib` would leave old numbers in a green build. Here `lib` names the
  cache too;
- Thebe is loaded on every page, twice, which is an error, and it comes
  from another host: here it is not loaded at all;
- without a default for its colour mode every page logs an error.

What-ifs show themselves as elements of the page, and the script that
brings them to life learns which snapshot of the library is theirs.
"""

import hashlib
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import kernels  # noqa: E402


def library_hash(root):
    """Hash of all that a notebook may compute with."""
    sources = [
        path
        for path in root.glob("lib/commwall/**/*")
        if path.is_file()
    ]
    digest = hashlib.sha256()
    for path in [*sorted(sources), root / "requirements.lock"]:
        if "__pycache__" not in path.parts:
            digest.update(
                path.relative_to(root).as_posix().encode() + b"\0"
            )
            digest.update(path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def prepare_execution(app, config):
    """Prepare the kernels, and name the cache by what `lib` holds."""
    kernels.prepare()
    os.environ["COMMWALL_STILL"] = "1"
    cache = f".jupyter_cache-{library_hash(ROOT)}"
    config.nb_execution_cache_path = str(
        Path(app.outdir).parent / cache
    )


def drop_thebe(app, config):
    """Disconnect sphinx-thebe, which Jupyter Book always loads."""
    for listeners in app.events.listeners.values():
        for listener in list(listeners):
            if listener.handler.__module__ == "sphinx_thebe":
                app.disconnect(listener.id)
    styles = app.registry.css_files
    styles[:] = [
        style for style in styles if style[0] != "sphinx-thebe.css"
    ]


def set_colour_mode(app, pagename, templatename, context, doctree):
    """Follow the reader's system unless the reader chooses."""
    context.setdefault("default_mode", "auto")


def add_what_ifs(app):
    """The script of the what-ifs, with the version of its library."""
    folder = ROOT / "book" / "_static" / "vendor" / "whatif"
    version = (folder / "version.txt").read_text(encoding="utf-8")
    attributes = {"defer": "defer", "data-version": version}
    app.add_js_file("whatif.js", **attributes)


def setup(app):
    """Sphinx calls this when it loads the extension."""
    app.connect("config-inited", prepare_execution, priority=1)
    app.connect("config-inited", drop_thebe, priority=1)
    app.connect("html-page-context", set_colour_mode)
    app.connect("builder-inited", add_what_ifs)
    own_text = hashlib.sha256(Path(__file__).read_bytes()).digest()
    version = int.from_bytes(own_text[:4], "big")
    return {"parallel_read_safe": True, "env_version": version}
