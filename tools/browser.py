"""Prepare what the what-ifs load in a browser: the library, imported, as a snapshot.

usage: python tools/browser.py FOLDER

Zips the pure-Python part of `lib/commwall` and lets node import it into Pyodide; the
memory that results is what a reader's browser loads. Does nothing if all is in place.
"""

import gzip
import hashlib
import io
import subprocess
import sys
import zipfile
from pathlib import Path

from vendor import find_node

ROOT = Path(__file__).resolve().parents[1]
LIBRARY = ROOT / "lib" / "commwall"
SNAPSHOT = ROOT / "tools" / "snapshot.mjs"
LEFT_OUT = ("charts", "simulators", "article", "labs", "published", "data/published")


def sources():
    """The files that the browser needs, in a fixed order."""
    for path in sorted(LIBRARY.rglob("*")):
        name = path.relative_to(LIBRARY).as_posix()
        skipped = any(f"{name}/".startswith(f"{each}/") for each in LEFT_OUT)
        if path.is_file() and not skipped and "__pycache__" not in path.parts:
            yield path


def archive():
    """The library as a zip whose bytes depend on the sources alone."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as packed:
        for path in sources():
            name = path.relative_to(LIBRARY.parent).as_posix()
            packed.writestr(zipfile.ZipInfo(name), path.read_bytes())
    return buffer.getvalue()


def version():
    """What the snapshot is made of, as a short hash."""
    made_of = [
        archive(),
        SNAPSHOT.read_bytes(),
        (ROOT / "package-lock.json").read_bytes(),
    ]
    return hashlib.sha256(b"".join(made_of)).hexdigest()[:12]


def prepare(folder):
    """Write the snapshot and its version, unless they are there."""
    wanted, mark = version(), folder / "version.txt"
    if mark.exists() and mark.read_text() == wanted:
        return
    folder.mkdir(parents=True, exist_ok=True)
    packed, taken = folder / "library.zip", folder / "library.bin"
    packed.write_bytes(archive())
    subprocess.run([find_node(), SNAPSHOT, packed, taken], check=True, cwd=ROOT)
    with gzip.GzipFile(folder / "library.snap", "wb", 9, mtime=0) as out:
        out.write(taken.read_bytes())
    packed.unlink()
    taken.unlink()
    mark.write_text(wanted)
    print(f"The library for the browser: {folder / 'library.snap'}")


if __name__ == "__main__":
    prepare(Path(sys.argv[1]))
