"""The documentation runs, and shows what the studies measured."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import pages

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def blocks(page: str, *kinds: str) -> list[str]:
    """Return the fenced blocks of a page that are marked as one of the kinds."""
    fences = re.findall(
        r"^```([^\n]*)\n(.*?)^```$", (ROOT / page).read_text(), re.DOTALL | re.MULTILINE
    )
    return [body for kind, body in fences if kind in kinds]


NUMBER = r"[-+]?\d[\d.e-]*"


def words(text: str) -> str:
    """Return the text without its numbers, which rounding may change, and without its spacing."""
    return " ".join(re.sub(NUMBER, "#", text).split())


def assert_shown(printed: str, shown: list[str]) -> None:
    """Some block shows the same words, and numbers that rounding may have changed, no more."""
    found = next((block for block in shown if words(block) in words(printed)), None)
    assert found is not None
    numbers = [float(number.rstrip(".-e")) for number in re.findall(NUMBER, printed)]
    expected = [float(number.rstrip(".-e")) for number in re.findall(NUMBER, found)]
    np.testing.assert_allclose(numbers[len(numbers) - len(expected) :], expected, rtol=0.02)


def skip_without_storage(example: Path) -> None:
    """Leave an example out where an optional library that it imports is not installed."""
    for library in re.findall(r"^import (dask|h5py)", example.read_text(), re.MULTILINE):
        pytest.importorskip(library)


def test_the_python_of_the_readme_runs_and_prints_the_verdict_shown(capsys):
    block = blocks("README.md", "python")[-1]
    exec(compile(block, "README.md", "exec"), {})
    # The verdict is the last that is printed.
    assert_shown(capsys.readouterr().out, blocks("README.md", ""))


def test_the_frame_of_the_readme_is_explained_as_it_says(capsys):
    block = blocks("README.md", "python")[0]
    exec(compile(block, "README.md", "exec"), {})
    printed = capsys.readouterr().out
    assert "1 row is distrusted:\n  7: length (" in printed


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_runs(path, tmp_path, monkeypatch, capsys):
    skip_without_storage(path)
    figure = tmp_path / "figure.png"
    draws = "savefig" in path.read_text()
    monkeypatch.setattr(sys, "argv", [str(path), *([str(figure)] if draws else [])])
    runpy.run_path(str(path), run_name="__main__")
    assert figure.exists() == draws
    assert draws or capsys.readouterr().out


@pytest.mark.parametrize(
    ("page", "name"),
    [("guide", "sparse_mean"), ("guide", "verdicts"), ("dask", "sample_then_all")],
)
def test_a_page_shows_what_its_examples_print(page, name, monkeypatch, capsys):
    path = ROOT / "examples" / f"{name}.py"
    skip_without_storage(path)
    monkeypatch.setattr(sys, "argv", [name])
    runpy.run_path(str(path), run_name="__main__")
    printed = capsys.readouterr().out
    shown = [block for block in blocks(f"docs/{page}.md", "text") if words(block) == words(printed)]
    assert_shown(printed, shown)


@pytest.mark.parametrize("page", pages.PAGES, ids=lambda page: page.name)
def test_the_tables_of_a_page_are_those_of_the_results(page):
    assert pages.filled(page.read_text()) == page.read_text()


def test_the_picture_of_the_readme_is_small():
    assert (ROOT / "docs" / "figures" / "readme.png").stat().st_size < 100_000
