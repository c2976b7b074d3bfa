"""What chunks cost: a chunked fit against one in memory, and the constants of the cost model."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import dask
import dask.array as da
import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks import WHITE
from benchmarks.options import asked
from benchmarks.pairing import FIRST_SEED
from benchmarks.tables import show
from outweigh import RobustMean, RobustSparseMean
from outweigh.samples.chunks import Pass, SlicedChunks
from outweigh.samples.dask_chunks import DaskChunks
from outweigh.samples.dense import DenseSamples
from outweigh.samples.kernels import added, moment_sums, on_samples

CONTAMINATION = 0.1
# The rows of the comparison take 160 MB: room for the columns of a working set, not for all.
BUDGET = 120_000_000
SIZES = (1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12)
MODEL_FEATURES = 500
PASSES = 4
# Rows for the origin lie in all chunks, which are read once more for them.
READS = PASSES + 1
# Second moments that are added up: with the distances, after the descent, after the polish.
MOMENTS = 3
CHUNK_BYTES = 64e6


def make_rows(n: int, d: int, k: int, seed: int) -> np.ndarray:
    """Return rows of which a tenth is shifted by 2 on 2k features."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X[:, :k] += 1.0
    X[: n // 10, k // 2 : k // 2 + 2 * k] += 2.0
    return X


def best_wall(repeats: int, call: Callable[[], object]) -> float:
    """Return the least wall time of several calls, since chunks run on several threads."""
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return min(times)


def overhead(repeats: int) -> list[dict[str, Any]]:
    """Return how much longer a chunked fit takes than one in memory, on one thread each."""
    X = make_rows(100_000, 200, 10, FIRST_SEED)
    rows = []
    for name, make in {
        "sparse mean, share known": lambda: RobustSparseMean(
            10, contamination=CONTAMINATION, **WHITE
        ),
        "sparse mean, share unknown": lambda: RobustSparseMean(10, **WHITE),
        "mean, share known": lambda: RobustMean(contamination=CONTAMINATION, **WHITE),
    }.items():
        plain = best_wall(repeats, lambda make=make: make().fit(X))
        for n_chunks in (2, 10, 50):
            chunked = da.from_array(X, chunks=(-(-len(X) // n_chunks), -1))
            with dask.config.set({"scheduler": "synchronous", "outweigh.gathered-bytes": BUDGET}):
                took = best_wall(repeats, lambda make=make, chunked=chunked: make().fit(chunked))
                passes = make().fit(chunked).n_passes_
            ratio = took / plain
            rows.append(
                {"fit": name, "chunks": n_chunks, "chunked / memory": ratio, "passes": passes}
            )
    return rows


def constants(repeats: int) -> dict[str, float]:
    """Return bytes and multiplications a second, and the cost of a task."""
    X = make_rows(100_000, MODEL_FEATURES, 10, FIRST_SEED)
    n, d = X.shape
    whole = SlicedChunks.of(X, sizes=(n,))
    weights = np.full(n, 1.0 / n)
    own = [((None, None), weights)]
    mean, moments = (added, None, (DenseSamples.mean,)), (moment_sums, None, (8 * d * d,))
    reading = best_wall(repeats, lambda: whole.scan(Pass(on_samples, mean, own, "a mean")))
    multiplying = best_wall(repeats, lambda: whole.scan(Pass(on_samples, moments, own, "moments")))
    fitted = RobustSparseMean(10, contamination=CONTAMINATION, **WHITE).fit(X[:10_000])
    scoring = best_wall(repeats, lambda: fitted.reweighted_mean(X))
    small = DaskChunks.of(da.zeros((1000, 2), chunks=(1, 2)))
    tiny = [((None, None), np.ones(1)) for _ in range(1000)]
    with dask.config.set(scheduler="threads"):
        tasks = best_wall(repeats, lambda: small.scan(Pass(on_samples, mean, tiny, "nothing")))
    return {
        "bytes a second": X.nbytes / reading,
        "multiplications a second": n * d * d / (multiplying - reading),
        "bytes scored a second": X.nbytes / scoring,
        "seconds a chunk and pass": tasks / 1000,
    }


def model(measured: dict[str, float], size: float) -> dict[str, float]:
    """Return what a sparse mean of known share costs on so many values, and a pass of scores."""
    n_bytes = 8 * size
    n_chunks = float(np.ceil(n_bytes / CHUNK_BYTES))
    multiplications = MOMENTS * size * MODEL_FEATURES
    seconds = (
        READS * n_bytes / measured["bytes a second"]
        + multiplications / measured["multiplications a second"]
        + READS * n_chunks * measured["seconds a chunk and pass"]
    )
    after_sample = (
        n_bytes / measured["bytes scored a second"]
        + n_chunks * measured["seconds a chunk and pass"]
    )
    return {
        "values": size,
        "rows": size / MODEL_FEATURES,
        "GB read": READS * n_bytes / 1e9,
        "multiplications": multiplications,
        "messages": READS * n_chunks,
        "core seconds": seconds,
        "GB read, sample": n_bytes / 1e9,
        "core seconds, sample": after_sample,
    }


def main(argv: list[str]) -> None:
    """Measure, print and save."""
    repeats = asked(__name__, __doc__, argv, repeats=3).repeats
    with threadpool_limits(1):
        table = overhead(repeats)
        measured = constants(repeats)
    show("chunks", table)
    show("chunks-constants", [{"constant": k, "measured": written(v)} for k, v in measured.items()])
    show(
        "chunks-model",
        [{k: written(v) for k, v in model(measured, size).items()} for size in SIZES],
    )


def written(value: float) -> str:
    """Return a number of any size with two digits.

    >>> written(0.0412), written(966.3), written(1e12)
    ('0.041', '970', '1e12')
    """
    rounded = float(f"{value:.2g}")
    if rounded < 1e5:
        return f"{rounded:,g}"
    mantissa, _, power = f"{rounded:.1e}".partition("e+")
    return f"{mantissa.removesuffix('.0')}e{int(power)}"
