"""The documentation runs, and shows what the studies measured."""

from __future__ import annotations

import pydoc
import re
import runpy
import shlex
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

from benchmarks import pages
from outweigh.cli import main
from outweigh.cli.arguments import build_parser

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
    # But for how long it took.
    printed, *shown = (re.sub(r"\(\d+\.\d s\)", "", text) for text in (printed, *shown))
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


# The pages that show what an example prints.
SHOWN = {
    "from_a_file": "files",
    "sparse_mean": "guide",
    "verdicts": "guide",
    "sample_then_all": "dask",
}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_runs_and_prints_what_its_page_shows(path, tmp_path, monkeypatch, capsys):
    skip_without_storage(path)
    figure = tmp_path / "figure.png"
    draws = "savefig" in path.read_text()
    monkeypatch.setattr(sys, "argv", [str(path), *([str(figure)] if draws else [])])
    runpy.run_path(str(path), run_name="__main__")
    assert figure.exists() == draws
    printed = capsys.readouterr().out
    assert draws or printed
    if path.stem in SHOWN:
        texts = blocks(f"docs/{SHOWN[path.stem]}.md", "text")
        assert_shown(printed, [block for block in texts if words(block) == words(printed)])


@pytest.mark.parametrize("page", pages.PAGES, ids=lambda page: page.name)
def test_the_tables_of_a_page_are_those_of_the_results(page):
    assert pages.filled(page.read_text()) == page.read_text()


def test_the_picture_of_the_readme_is_small():
    assert (ROOT / "docs" / "figures" / "readme.png").stat().st_size < 100_000


def test_the_three_ways_in_of_the_home_page_run(tmp_path, monkeypatch, capsys):
    da = pytest.importorskip("dask.array")
    pytest.importorskip("zarr")
    monkeypatch.chdir(tmp_path)
    rows = np.random.default_rng(0).standard_normal((200, 6))
    rows[:10] += 8.0
    lines = [",".join("abcdef"), *(",".join(map(str, row)) for row in rows)]
    Path("measurements.csv").write_text("\n".join(lines))
    np.save("spectra.npy", rows)
    da.from_array(rows, chunks=(100, -1)).to_zarr("rows.zarr")
    ways = blocks("docs/index.md", "python")
    for way in ways:
        exec(compile(way, "docs/index.md", "exec"), {})
    assert len(ways) == 3
    assert "10 rows are distrusted" in capsys.readouterr().out


PAGES = [
    "README.md",
    *(str(page.relative_to(ROOT)) for page in sorted((ROOT / "docs").glob("*.md"))),
]
COMMANDS = [
    (page, line.removeprefix("$ ").split(" #")[0].split(" && ")[0].strip())
    for page in PAGES
    for block in blocks(page, "console", "")
    for line in block.replace("\\\n", " ").splitlines()
    if line.startswith("$ outweigh ")
]


@pytest.mark.parametrize(("page", "command"), COMMANDS)
def test_every_command_of_a_page_is_one_that_the_command_line_takes(page, command):
    build_parser().parse_args(shlex.split(command)[1:])


@pytest.mark.parametrize(
    "command", [command for _, command in COMMANDS if command.startswith("outweigh plan")]
)
def test_a_page_shows_what_a_plan_prints(command, capsys):
    assert main(shlex.split(command)[1:]) == 0
    printed = capsys.readouterr().out
    if "0.3" in command:
        assert printed in blocks("docs/theory.md", "text")


MAP = (ROOT / "docs" / "paper.md").read_text()


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`(outweigh(?:\.\w+)+)`", MAP))))
def test_what_the_map_of_the_paper_names_is_in_the_library(name):
    assert pydoc.locate(name) is not None


@pytest.mark.parametrize("test", sorted(set(re.findall(r"`(tests/[\w/]+\.py(?:::\w+)?)`", MAP))))
def test_what_the_map_of_the_paper_names_is_tested(test):
    path, _, function = test.partition("::")
    assert f"def {function}" in (ROOT / path).read_text()


def test_the_map_has_every_statement_of_the_paper():
    named = " ".join(line.split("|")[1] for line in MAP.splitlines() if line.startswith("|"))
    missing = [
        number
        for number in [
            "1.1",
            "1.2",
            "1.3",
            "2.1",
            "2.2",
            "2.3",
            "3.1",
            "3.2",
            "3.3",
            "3.4",
            "3.5",
            "3.6",
            "3.7",
            "4.1",
            "4.2",
            "B.1",
            "C.1",
            "C.2",
            "C.3",
            "C.4",
            "C.5",
            "C.6",
            "D.1",
            "D.2",
            "D.3",
            "E.1",
            "E.2",
        ]
        if not re.search(rf"\b{re.escape(number)}\b", named)
    ]
    assert not missing
    assert all(f"Algorithm {k}" in named for k in (1, 2))
    assert all(f"Figure {k}" in named for k in (1, 2, 3))


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_version_is_the_same_wherever_it_is_said():
    assert f"\nversion: {PROJECT['version']}\n" in (ROOT / "CITATION.cff").read_text()
    newest = re.search(r"^## (\S+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest is not None
    assert newest[1] == PROJECT["version"]


def test_the_conda_recipe_needs_what_the_package_needs():
    recipe = (ROOT / "conda" / "meta.yaml").read_text()
    needed = recipe.split("  run:\n")[1].split("  run_constrained:\n")[0]
    listed = {line.strip(" -").replace(" ", "") for line in needed.splitlines()}
    python = f"python{PROJECT['requires-python']}"
    assert listed == {python, *PROJECT["dependencies"]}
