"""Whatever the book or the library cites is in the bibliography, and is complete.

A module cites by a key such as `patarasuk2009`, or `nccl-1603` for a page or a thread;
a table of data cites by a key, by an address, or by a sum that is written out.
"""

import csv
import json
import re
from pathlib import Path

import pytest
from pybtex.database import parse_file

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "book" / "references.bib"
ENTRIES = parse_file(str(FILE)).entries

PAPER = re.compile(r"\b[a-z]+(?:19|20)\d\d[a-z]*\b")
PAGE = re.compile(r"\b(?:azure|nccl|nccltests|nvidia)-[a-z0-9][a-z0-9-]*\b")
PROGRAMS = {"nccl-tests", "nvidia-smi"}  # written like a page's key
CITE = re.compile(r"\{cite(?::\w+)?\}`([^`]+)`")
VENUES = ("url", "doi", "journal", "booktitle", "howpublished", "publisher")


def keys_in(text):
    """Words that look like a key; an address is none."""
    text = re.sub(r"https?://\S+", " ", text)
    return {*PAPER.findall(text), *PAGE.findall(text)} - PROGRAMS


def prose(path):
    """The Markdown of a page or of a notebook."""
    text = path.read_text("utf-8")
    if path.suffix == ".md":
        return text
    cells = json.loads(text)["cells"]
    return "\n".join("".join(c["source"]) for c in cells if c["cell_type"] != "code")


def files(*patterns):
    """Files under the root, without those that a build made."""
    made = {"_build", ".ipynb_checkpoints", "vendor", "node_modules"}
    found = (path for pattern in patterns for path in ROOT.glob(pattern))
    return sorted(path for path in found if not made & set(path.parts))


def sources(path):
    """Parts of the cells of a table's columns of sources."""
    with path.open(encoding="utf-8", newline="") as table:
        for row in csv.DictReader(table):
            for column, cell in row.items():
                if column == "source" or column.endswith("_source"):
                    yield from filter(None, map(str.strip, (cell or "").split(";")))


def names(paths):
    """Short names for the cases of a test."""
    return [path.relative_to(ROOT).as_posix() for path in paths]


MODULES = files("lib/commwall/**/*.py")
TABLES = files("lib/commwall/data/**/*.csv")
PAGES = files("book/**/*.md", "notebooks/**/*.md", "notebooks/**/*.ipynb")


@pytest.mark.parametrize("path", MODULES, ids=names(MODULES))
def test_every_key_in_a_module_is_in_the_bibliography(path):
    assert not keys_in(path.read_text("utf-8")) - set(ENTRIES)


@pytest.mark.parametrize("path", TABLES, ids=names(TABLES))
def test_a_table_cites_keys_addresses_or_a_sum(path):
    parts = {part for part in sources(path) if not part.startswith("http")}
    named = {re.split(r"[\s,]", part)[0] for part in parts if "=" not in part}

    assert not named - set(ENTRIES)


@pytest.mark.parametrize("path", PAGES, ids=names(PAGES))
def test_every_citation_of_a_page_is_in_the_bibliography(path):
    groups = CITE.findall(prose(path))
    cited = {key.strip() for group in groups for key in group.split(",")}

    assert not cited - set(ENTRIES)


@pytest.mark.parametrize("key", list(ENTRIES))
def test_an_entry_says_who_what_when_and_where(key):
    entry = ENTRIES[key]

    assert entry.persons.get("author") or entry.fields.get("organization")
    assert entry.fields.get("title")
    assert entry.fields.get("year") or entry.fields.get("urldate")
    assert any(entry.fields.get(field) for field in VENUES)


def test_no_key_stands_twice():
    keys = re.findall(r"^@\w+\{([^,\s]+),", FILE.read_text("utf-8"), re.MULTILINE)

    assert len(keys) == len({key.lower() for key in keys}) == len(ENTRIES)


def test_keys_are_lower_case_and_carry_the_year_of_the_entry():
    for key, entry in ENTRIES.items():
        assert re.fullmatch(r"[a-z0-9-]+", key)
        year = re.match(r"[a-z]+((?:19|20)\d\d)", key)
        assert year is None or year[1] == entry.fields["year"], key


def test_a_preprint_has_the_same_number_in_its_address():
    preprints = [entry for entry in ENTRIES.values() if "eprint" in entry.fields]

    assert preprints
    for entry in preprints:
        assert entry.fields["url"].endswith("/" + entry.fields["eprint"]), entry.key
