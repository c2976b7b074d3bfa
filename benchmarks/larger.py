"""A fit on data larger than the memory it is given: 4 GB on disk, two workers of 1.5 GB each.

Everything runs in processes of its own, so that resident memory can be added up: the client, the
scheduler inside it, the workers and their nannies. The file is made a part at a time and removed.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from distributed import Client, LocalCluster

from benchmarks import WHITE
from benchmarks.options import asked
from benchmarks.pairing import FIRST_SEED
from benchmarks.tables import show
from outweigh import RobustSparseMean
from outweigh.files.parts import open_table
from outweigh.norms.entrywise import hard_threshold

CONTAMINATION = 0.1
ROWS_AT_A_TIME = 20_000
PERIOD = 0.05


def write_data(path: Path, n: int, d: int, k: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Write outliers shifted by 2 on 2k features among clean rows; return truth and oracle."""
    stored = np.lib.format.open_memmap(path, "w+", np.float64, (n, d))
    truth = np.zeros(d)
    truth[:k] = 1.0
    total, count = np.zeros(d), 0
    for part, start in enumerate(range(0, n, ROWS_AT_A_TIME)):
        rng = np.random.default_rng([seed, part])
        rows = rng.standard_normal((min(ROWS_AT_A_TIME, n - start), d)) + truth
        wrong = rng.random(len(rows)) < CONTAMINATION
        rows[np.ix_(wrong, np.arange(k // 2, k // 2 + 2 * k))] += 2.0
        total, count = total + rows[~wrong].sum(axis=0), count + int((~wrong).sum())
        stored[start : start + len(rows)] = rows
        stored.flush()
    return truth, hard_threshold(total / count, k)


@contextmanager
def watched_memory() -> Iterator[dict[str, float]]:
    """Record the largest sum of resident memory over this process and all it started."""
    found = {"total": 0.0, "client": 0.0}
    done = threading.Event()
    me = psutil.Process()

    def watch() -> None:
        while not done.wait(PERIOD):
            total = client = me.memory_info().rss
            for child in me.children(recursive=True):
                try:
                    total += child.memory_info().rss
                except psutil.Error:
                    continue
            found["total"] = max(found["total"], total / 2**30)
            found["client"] = max(found["client"], client / 2**30)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        done.set()
        thread.join()


def run(n: int, d: int, k: int, workers: int, limit: str, folder: Path) -> dict[str, Any]:
    """Return what a fit on disk took and how good it was."""
    path = folder / "rows.npy"
    truth, oracle = write_data(path, n, d, k, FIRST_SEED)
    size = path.stat().st_size / 2**30
    with (
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            memory_limit=limit,
            dashboard_address=None,
            local_directory=str(folder),
        ) as cluster,
        Client(cluster),
        watched_memory() as memory,
    ):
        X = open_table(str(path)).values
        estimator = RobustSparseMean(k, contamination=CONTAMINATION, **WHITE)
        began = time.perf_counter()
        estimator.fit(X)
        seconds = time.perf_counter() - began
    error = float(np.linalg.norm(estimator.location_ - truth))
    return {
        "n": n,
        "d": d,
        "k": k,
        "gigabytes on disk": size,
        "workers": workers,
        "limit of each": limit,
        "seconds": seconds,
        "passes": estimator.n_passes_,
        "error": error,
        "error / oracle": error / float(np.linalg.norm(oracle - truth)),
        "peak gigabytes, client and workers": memory["total"],
        "peak gigabytes, client": memory["client"],
        "verdict": estimator.certificate_.verdict,
    }


def main(argv: list[str]) -> None:
    """Run, print and save."""
    arguments = asked(
        __name__,
        __doc__,
        argv,
        rows=1_000_000,
        features=500,
        nonzero=10,
        workers=2,
        limit="1.5GB",
        folder={"help": "where the data may be written; a temporary folder"},
    )
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        row = run(
            arguments.rows,
            arguments.features,
            arguments.nonzero,
            arguments.workers,
            arguments.limit,
            Path(folder),
        )
    show("larger", [{"what": key, "measured": value} for key, value in row.items()])


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
