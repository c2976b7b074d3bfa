"""Every output of the library, with a fault at every moment of its writing.

Whatever fails and whenever: each file is the old one or the new one, whole; nothing is left beside
it; a command says so in one line and its exit code; and the same command, once there is room,
does what it would have done.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from outweigh import RobustMean, save_model
from outweigh.cli import demo as demo_command
from outweigh.cli import experiments as experiments_command
from outweigh.cli import main
from outweigh.files import write_file
from tests.faults import FAULTS, Faults

EXPERIMENT = """
title = "A small one"
adversary = "constant_bias"
algorithms = ["oracle", "median"]
trials = 1
[fixed]
n_features = 6
n_nonzero = 2
contamination = 0.1
[grid]
n_samples = [20, 30]
"""
OLD = b"old"
ROOT = Path(__file__).parents[2]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with everything that a command reads, beside the folder that it writes to."""
    X = np.random.default_rng(0).standard_normal((60, 3))
    X[:6] += 8.0
    np.save(tmp_path / "rows.npy", X)
    save_model(RobustMean().fit(X), tmp_path / "model")
    (tmp_path / "small.toml").write_text(EXPERIMENT)
    monkeypatch.chdir(tmp_path)
    # What is drawn, and how long it took, is not what is looked at here.
    monkeypatch.setattr(experiments_command, "panel", lambda _: {"png": b"PNG", "svg": b"SVG"})
    monkeypatch.setattr(demo_command, "image", lambda _: b"PNG")
    monkeypatch.setattr(demo_command, "NAMES", ("oracle", demo_command.OURS))
    return tmp_path


def outputs(*names: str) -> list[str]:
    return [f"out/{name}" for name in names]


FIT = ["fit", "mean", "rows.npy", "--force"]
REPRODUCE = ["reproduce", "small.toml", "--out", "out", "--jobs", "1", "--report"]
FIGURES = outputs("summary.csv", "small.png", "small.svg", "report.html")
COMMANDS: dict[str, tuple[list[str], list[str]]] = {
    "estimate as CSV": ([*FIT, "--out", "out/a.csv"], outputs("a.csv")),
    "estimate as JSON": ([*FIT, "--out", "out/a.json"], outputs("a.json")),
    "weights": ([*FIT, "--weights", "out/w.csv"], outputs("w.csv")),
    "page": ([*FIT, "--report", "out/p.html"], outputs("p.html")),
    "model": ([*FIT, "--save", "out/m"], outputs("m")),
    "two files": ([*FIT, "--out", "out/a.csv", "--save", "out/m"], outputs("a.csv", "m")),
    "scores": (
        ["score", "model", "rows.npy", "--force", "--out", "out/s.csv"],
        outputs("s.csv"),
    ),
    "experiments": (REPRODUCE, FIGURES),
}


def moments(folder: Path, fault: str) -> Iterator[Faults]:
    """Give contexts with a fault at one moment after the other, until one is not reached."""
    at = 0
    while True:
        faults = Faults(folder, FAULTS[fault], at)
        yield faults
        if faults.count <= at:
            # Else nothing was tried.
            assert at > 10
            return
        at += 1


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("there", [True, False], ids=["a file", "nothing yet"])
def test_a_file_is_the_old_one_or_the_new_one(tmp_path: Path, fault: str, there: bool) -> None:
    for number, faults in enumerate(moments(tmp_path, fault)):
        path = tmp_path / str(number) / "file"
        if there:
            write_file(path, OLD)
        try:
            with faults:
                write_file(path, b"new and longer")
        except type(FAULTS[fault]):
            assert not path.exists() or path.read_bytes() in (OLD, b"new and longer")
        else:
            assert path.read_bytes() == b"new and longer"
        assert [p.name for p in path.parent.glob("*")] in ([], ["file"])
        assert path.exists() or not there


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_that_cannot_write_loses_nothing_and_says_so_in_one_line(
    place: Path, capsys: pytest.CaptureFixture[str], command: str, fault: str
) -> None:
    arguments, names = COMMANDS[command]
    # Undisturbed; of experiments all runs are stored from here on.
    assert main(arguments) == 0
    new = {name: (place / name).read_bytes() for name in names}
    for faults in moments(place / "out", fault):
        for name in names:
            (place / name).write_bytes(OLD)
        capsys.readouterr()
        with faults:
            code = main(arguments)
        if faults.count > faults.at:
            expect_one_line(capsys, code, fault)
        else:
            assert code == 0
            assert {name: (place / name).read_bytes() for name in names} == new
        left = {path.relative_to(place).as_posix() for path in (place / "out").rglob("*")}
        assert left - {"out/records.jsonl"} == set(names)
        assert all((place / name).read_bytes() in (OLD, new[name]) for name in names)


@pytest.mark.parametrize("fault", FAULTS)
def test_records_of_experiments_are_kept_and_the_same_command_goes_on(
    place: Path, capsys: pytest.CaptureFixture[str], fault: str
) -> None:
    for number, faults in enumerate(moments(place, fault)):
        arguments = [*REPRODUCE[:3], f"out{number}", *REPRODUCE[4:]]
        store = place / f"out{number}" / "records.jsonl"
        with faults:
            code = main(arguments)
        before = store.read_bytes() if store.exists() else b""
        if faults.count > faults.at:
            expect_one_line(capsys, code, fault)
        assert main(arguments) == 0
        lines = store.read_bytes()
        # Complete lines are never touched again.
        assert lines.startswith(before[: before.rfind(b"\n") + 1])
        keys = [json.loads(line)["key"] for line in lines.splitlines()[1:]]
        assert len(keys) == len(set(keys)) == 4
        capsys.readouterr()


def expect_one_line(capsys: pytest.CaptureFixture[str], code: int, fault: str) -> None:
    # A command that counts runs tells their number before.
    said = [line for line in capsys.readouterr().err.splitlines() if line and " runs, " not in line]
    assert len(said) == 1
    error = FAULTS[fault]
    if isinstance(error, OSError):
        assert code == 2
        assert re.match(rf"outweigh \w+: error: .*{error.strerror}", said[0])
    else:
        assert code == 130
        assert re.match("outweigh: .*interrupted", said[0])


def test_the_demo_says_that_there_is_no_room(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Faults(place, FAULTS["disk full"], 0):
        code = main(["demo"])
    expect_one_line(capsys, code, "disk full")
    assert not list(place.glob("*outweigh-*"))


KILLED = """
import os, signal, sys
from pathlib import Path
from outweigh.files.writing import write_file
from tests.faults import Faults

class Kill(Faults):
    def moment(self):
        if self.count == self.at:
            os.kill(os.getpid(), signal.SIGKILL)
        self.count += 1

folder = Path(sys.argv[1])
for at in range(100):
    path = folder / str(at)
    path.write_bytes(b"old")
    child = os.fork()
    if child == 0:
        with Kill(folder, None, at):
            write_file(path, b"new and longer")
        os._exit(0)
    if os.WIFEXITED(os.waitpid(child, 0)[1]):
        break
print(at)
"""


def test_a_file_is_the_old_one_or_the_new_one_after_a_kill_at_any_moment(tmp_path: Path) -> None:
    script = [sys.executable, "-c", KILLED, str(tmp_path)]
    done = subprocess.run(script, cwd=ROOT, check=True, capture_output=True, text=True)
    last = int(done.stdout)
    # Opening, permissions, writing, flushing, synchronising, renaming: before and after.
    assert last >= 12
    contents = [(tmp_path / str(at)).read_bytes() for at in range(last + 1)]
    assert set(contents[:-1]) == {OLD, b"new and longer"}
    assert contents[-1] == b"new and longer"
