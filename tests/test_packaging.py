"""What is declared of other libraries is what is tested with."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = ("dask", "storage", "plot", "io", "sdp")


def pinned(file: str) -> dict[str, str]:
    """Return the versions that a file of constraints pins, by name."""
    lines = [line for line in (ROOT / file).read_text().splitlines() if not line.startswith("#")]
    return {name.lower().replace("_", "-"): version for name, version in map(split, lines)}


def split(requirement: str) -> tuple[str, str]:
    name, version = re.split("[=>]=", requirement)
    return name.partition("[")[0], version


def declared() -> list[str]:
    groups = [PROJECT["dependencies"], *(PROJECT["optional-dependencies"][e] for e in EXTRAS)]
    return [requirement for group in groups for requirement in group]


@pytest.mark.parametrize("requirement", declared())
def test_the_lowest_version_declared_is_the_one_that_ci_tests(requirement: str) -> None:
    name, lowest = split(requirement)
    tested = pinned("constraints-lowest.txt")[name]
    assert tested.split(".")[: len(lowest.split("."))] == lowest.split(".")
    assert name in pinned("constraints.txt")


@pytest.mark.parametrize("extra", EXTRAS)
def test_ci_installs_each_extra_alone(extra: str) -> None:
    assert f"def {extra}()" in (ROOT / ".ci" / "extras.py").read_text()
    assert re.search(rf"for extra in .*\b{extra}\b", (ROOT / ".ci" / "run").read_text())
