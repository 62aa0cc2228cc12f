"""The front doors agree: `pyproject.toml`, `environment.yml` and the locks."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
CONDA = yaml.safe_load((ROOT / "environment.yml").read_text("utf-8"))
LOCKS = ["requirements.lock", "tools/node.lock", "package-lock.json"]


def name_of(requirement):
    """The package's name, as the lock spells it."""
    return re.match(r"[\w.-]+", requirement)[0].lower().replace("_", "-")


def required():
    """What the package needs to run and to be tested."""
    return PROJECT["dependencies"] + PROJECT["optional-dependencies"]["test"]


def test_conda_installs_what_the_package_requires():
    """Plus the package itself, and nothing else."""
    [pip] = [entry["pip"] for entry in CONDA["dependencies"] if isinstance(entry, dict)]

    assert pip == [*required(), "-e ."]


def test_conda_takes_the_pythons_that_the_package_takes():
    assert f"python{PROJECT['requires-python']}" in CONDA["dependencies"]


def test_every_requirement_is_locked():
    locked = re.findall(r"^([\w.-]+)==", (ROOT / LOCKS[0]).read_text("utf-8"), re.M)

    assert {name_of(requirement) for requirement in required()} <= set(locked)


@pytest.mark.parametrize("name", LOCKS)
def test_locks_hold_hashes_and_no_address(name):
    """Whoever installs chooses where from; the hash says what."""
    text = (ROOT / name).read_text("utf-8")

    assert re.search(r"--hash=sha256:|\"integrity\": \"sha512-", text)
    assert not re.search(
        r"https?:|--(extra-)?index-url|--find-links|\"resolved\"", text
    )
