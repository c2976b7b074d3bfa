from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from outweigh.cli import main

ROOT = Path(__file__).resolve().parents[2]
EXPERIMENT = """
title = "To be killed"
adversary = "constant_bias"
algorithms = ["oracle", "trimmed", "ransac", "median"]
trials = 16
[fixed]
n_features = 8
n_nonzero = 2
contamination = 0.1
[grid]
n_samples = [30, 60, 90]
"""
N_RUNS = 4 * 16 * 3

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name != "posix", reason="needs signals and fork"),
]


def python(*arguments: str) -> subprocess.Popen[str]:
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    return subprocess.Popen(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": paths},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def records(folder: Path) -> list[dict[str, object]]:
    lines = (folder / "records.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines[1:]]


def table(folder: Path) -> list[list[str]]:
    """The final table without what is measured anew each time."""
    rows = [line.split(",") for line in (folder / "summary.csv").read_text().splitlines()]
    drop = {rows[0].index("seconds"), rows[0].index("peak_memory_mb")}
    return [[cell for i, cell in enumerate(row) if i not in drop] for row in rows]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "killed.toml"
    path.write_text(EXPERIMENT)
    return path


def test_fifty_kills_lose_no_record_and_double_none_and_change_no_result(
    file: Path, tmp_path: Path
) -> None:
    killed, calm = tmp_path / "killed", tmp_path / "calm"
    script = ROOT / "tests" / "experiments" / "kill_nine.py"
    process = python(str(script), str(file), str(killed), "50", "20220")
    seen: set[object] = set()
    while process.poll() is None:  # whatever was once complete on disk must still be there
        if (killed / "records.jsonl").exists():
            complete = (killed / "records.jsonl").read_bytes().rpartition(b"\n")[0]
            keys = {json.loads(line).get("key") for line in complete.splitlines()[1:]}
            assert seen <= keys
            seen = keys
        time.sleep(0.02)
    out, error = process.communicate()
    assert process.returncode == 0, error
    assert int(out) == 50, "some children were done before they were killed"
    assert 10 < len(seen) < N_RUNS

    assert main(["reproduce", str(file), "--out", str(killed), "--jobs", "1"]) == 0
    assert main(["reproduce", str(file), "--out", str(calm), "--jobs", "1"]) == 0
    keys = [record["key"] for record in records(killed)]
    assert len(keys) == len(set(keys)) == N_RUNS
    assert seen <= set(keys)
    assert table(killed) == table(calm)


def test_killing_a_command_with_two_jobs_loses_nothing_and_leaves_no_writer(
    file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    code = "import sys; from outweigh.cli import main; sys.exit(main())"
    deadline = time.monotonic() + 120
    store = out / "records.jsonl"
    with python("-c", code, "reproduce", str(file), "--out", str(out), "--jobs", "2") as process:
        while not (store.exists() and store.read_bytes().count(b"\n") > 20):
            assert process.poll() is None, process.communicate()[1]
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    before = store.read_bytes()
    assert main(["reproduce", str(file), "--out", str(out), "--jobs", "1"]) == 0
    assert store.read_bytes().startswith(before[: before.rfind(b"\n") + 1])
    keys = [record["key"] for record in records(out)]
    assert len(keys) == len(set(keys)) == N_RUNS
