"""Kill a run of an experiment again and again; what `test_kill_nine.py` starts.

Arguments: the experiment's file, the folder for its results, the number of kills, a seed. Each
time a child process does `outweigh reproduce` until it is killed at a random moment: as it begins,
or a little after it has written one or two records.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from pathlib import Path

import outweigh.cli.experiments  # noqa: F401  (here, so that no child spends its short life on it)
from outweigh.cli import main
from outweigh.experiments.runs import _warm_up
from outweigh.experiments.spec import load


def kill_again_and_again(file: str, out: str, kills: int, seed: int) -> int:
    """Return how many children were killed while they were working."""
    rng = random.Random(seed)
    for name in load(file).algorithms:
        _warm_up(name)
    store = Path(out) / "records.jsonl"
    hits = 0
    for _ in range(kills):
        enough = lines(store) + rng.randrange(3)
        child = os.fork()
        if child == 0:
            silence = os.open(os.devnull, os.O_WRONLY)
            os.dup2(silence, 1)
            os.dup2(silence, 2)
            os._exit(main(["reproduce", file, "--out", out, "--jobs", "1"]))
        deadline = time.monotonic() + 60.0
        while lines(store) < enough and time.monotonic() < deadline:
            time.sleep(0.001)
        time.sleep(rng.uniform(0.0, 0.02))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        hits += os.WIFSIGNALED(status)
    return hits


def lines(store: Path) -> int:
    """Return the number of complete lines."""
    return store.read_bytes().count(b"\n") if store.exists() else 0


if __name__ == "__main__":
    sys.stdout.write(
        str(kill_again_and_again(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
    )
