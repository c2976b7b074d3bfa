"""A fit of more rows than a client can hold weights of: 5e7 of them, made as they are read.

Nothing is stored: a block of rows is drawn from its own seed each time it is looked at, which
takes as long as reading a fast disk. Resident memory is added up as in `benchmarks.larger`.
"""

from __future__ import annotations

import tempfile
import time
from typing import Any

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

from benchmarks import WHITE
from benchmarks.larger import CONTAMINATION, watched_memory
from benchmarks.options import asked
from benchmarks.tables import FIRST_SEED, show
from outweigh import RobustMean

ROWS_AT_A_TIME = 250_000
SHIFT = 2.0


def drawn(first: int, last: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of mean one of which some are shifted, and which are."""
    rng = np.random.default_rng([FIRST_SEED, first])
    rows = rng.standard_normal((last - first, d))
    rows += 1.0
    wrong = rng.random(len(rows)) < CONTAMINATION
    rows[wrong] += SHIFT
    return rows, wrong


def _rows(d: int, block_info: Any = None) -> np.ndarray:
    return drawn(*block_info[None]["array-location"][0], d)[0]


def _clean_sums(d: int, sizes: tuple[int, ...], block_info: Any = None) -> np.ndarray:
    number = block_info[None]["chunk-location"][0]
    first = sum(sizes[:number])
    rows, wrong = drawn(first, first + sizes[number], d)
    return np.append(rows[~wrong].sum(axis=0), np.count_nonzero(~wrong))[None, :]


def lazy_rows(n: int, d: int) -> tuple[da.Array, da.Array]:
    """Return the rows, and the mean of the clean ones among them, neither computed."""
    sizes = tuple(min(ROWS_AT_A_TIME, n - start) for start in range(0, n, ROWS_AT_A_TIME))
    X = da.map_blocks(_rows, d, chunks=(sizes, (d,)), dtype=np.float64)
    ones, width = (1,) * len(sizes), (d + 1,)
    sums = da.map_blocks(_clean_sums, d, sizes, chunks=(ones, width), dtype=np.float64).sum(axis=0)
    return X, sums[:-1] / sums[-1]


def run(n: int, d: int, subsample: int, workers: int, limit: str) -> dict[str, Any]:
    """Return what a fit took and how good it was."""
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            memory_limit=limit,
            dashboard_address=None,
            local_directory=folder,
        ) as cluster,
        Client(cluster),
    ):
        X, clean_mean = lazy_rows(n, d)
        estimator = RobustMean(contamination=CONTAMINATION, subsample=subsample, **WHITE)
        with watched_memory() as memory:
            began = time.perf_counter()
            estimator.fit(X)
            seconds = time.perf_counter() - began
        heaviest = float(estimator.weights_.max().compute())
        oracle = clean_mean.compute()
    error = float(np.linalg.norm(estimator.location_ - 1.0))
    return {
        "n": n,
        "d": d,
        "gigabytes, if they were stored": 8 * n * d / 2**30,
        "subsample": subsample,
        "workers": workers,
        "limit of each": limit,
        "seconds": seconds,
        "passes": estimator.n_passes_,
        "error": f"{error:.2g}",
        "error / oracle": error / float(np.linalg.norm(oracle - 1.0)),
        "share removed": estimator.contamination_,
        "largest weight times n": heaviest * n,
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
        rows=50_000_000,
        features=20,
        subsample=1_000_000,
        workers=2,
        limit="1.5GB",
    )
    row = run(
        arguments.rows,
        arguments.features,
        arguments.subsample,
        arguments.workers,
        arguments.limit,
    )
    show("huge", [{"what": key, "measured": value} for key, value in row.items()])


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
