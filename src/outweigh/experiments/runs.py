"""Errors, and runs: draw the sample, fit, compare with the truth, say what it took, store that.

Time is the wall time of ``fit`` alone, with linear algebra on one thread, after a warm-up on a
tiny sample that pays for imports. Peak memory is by how much the resident memory of the process
rose above where it stood before ``fit``, from the high-water mark that the Linux kernel keeps: it
costs nothing, so it cannot distort the time, and it does not count the data. Elsewhere it is
null. It is a lower bound where ``fit`` reuses memory that the allocator already held.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import re
import signal
import sys
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from pathlib import Path
from textwrap import shorten
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed
from scipy.linalg import orth
from threadpoolctl import threadpool_limits

from outweigh.adversaries import Sample, make
from outweigh.experiments.algorithms import ALGORITHMS, Algorithm
from outweigh.experiments.spec import DIMENSIONS, Record, Run, derive_seed
from outweigh.experiments.store import Store
from outweigh.libraries import versions
from outweigh.protocols import Array

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def l2(estimate: Array, truth: Array) -> float:
    """Euclidean distance of two vectors.

    Examples
    --------
    >>> l2(np.array([3.0, 0.0]), np.array([0.0, 4.0]))
    5.0
    """
    return float(np.linalg.norm(estimate - truth))


def projector(estimate: Array, truth: Array) -> float:
    """Frobenius distance of the projections onto the spans of the rows, ||UU' - VV'||_F.

    For unit vectors u and v it is sqrt(2 (1 - (u'v)^2)): 0 when they agree up to sign, sqrt(2)
    when they are orthogonal.

    Examples
    --------
    >>> projector(np.array([[1.0, 0.0]]), np.array([[-1.0, 0.0]]))
    0.0
    >>> round(projector(np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])), 4)
    1.4142
    """
    found, true = orth(np.atleast_2d(estimate).T), orth(np.atleast_2d(truth).T)
    overlap = float(np.sum((found.T @ true) ** 2))
    return float(np.sqrt(max(0.0, found.shape[1] + true.shape[1] - 2.0 * overlap)))


ERRORS: Mapping[str, tuple[str, Callable[[Array, Array], float]]] = MappingProxyType(
    {
        "mean": (r"Error $\|\hat{\mu} - \mu\|_2$", l2),
        "components": (r"Error $\|\hat{u}\hat{u}^T - vv^T\|_F$", projector),
    }
)
"""For each task what an axis calls the error, and ``distance(estimate, truth)``."""


def execute(run: Run) -> Record:
    """Do a run and return its record; a run that fails gives a record that says so.

    Parameters
    ----------
    run : Run

    Returns
    -------
    dict
        Plain data. ``status`` is "ok" or "failed"; a failed one has ``failure`` instead of
        ``error``.
    """
    point = run.point
    about = {"point": point.as_dict(), "x": point.x, "versions": dict(versions())}
    record: Record = {**vars(run), **about}
    algorithm = ALGORITHMS[run.algorithm]
    with threadpool_limits(limits=1), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            _warm_up(algorithm.name)
            n, d, k, eps = (getattr(point, name) for name in DIMENSIONS)
            seed, options = run.seed, point.options
            sample = make(run.adversary, n, d, k or d, eps, random_state=seed, **options)
            estimator = algorithm.build(k, eps, derive_seed(seed, run.algorithm))
            seconds, peak = timed_fit(algorithm, estimator, sample)
            record |= outcome(algorithm, estimator, sample)
            record |= {"status": "ok", "seconds": seconds, "peak_memory_mb": peak}
        except Exception as error:  # any failure of an algorithm is a result of the experiment
            record |= {"status": "failed", "failure": _one_line(f"{type(error).__name__}: {error}")}
    if caught:
        record["warnings"] = sorted(
            {_one_line(f"{w.category.__name__}: {w.message}") for w in caught}
        )
    return record


def missing_runs(runs: Iterable[Run], store: Store, retry_failed: bool = False) -> list[Run]:
    """Return the runs without a record, in order and each once.

    Parameters
    ----------
    runs : iterable of Run
    store : Store
    retry_failed : bool, default=False
        Whether a run that failed counts as missing.
    """
    missing: dict[str, Run] = {}
    for run in runs:
        record = store.records.get(run.key)
        if record is None or (retry_failed and record["status"] == "failed"):
            missing[run.key] = run
    return list(missing.values())


def do_runs(runs: Iterable[Run], store: Store, jobs: int = 1) -> Iterator[Record]:
    """Do runs and yield their records as they come; each is on disk before it is yielded.

    Parameters
    ----------
    runs : iterable of Run
        What to do, see :func:`missing_runs`.
    store : Store
        Open for writing.
    jobs : int, default=1
        Number of processes. Each computes on one thread, so that they do not fight for cores.

    Yields
    ------
    dict
        A record; see :func:`execute`.
    """
    records: Generator[Record] = (execute(run) for run in runs)
    if jobs > 1:
        parallel = Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)
        records = parallel(delayed(_execute_undisturbed)(run) for run in runs)
    try:
        for record in records:
            store.append(record)
            yield record
    finally:
        with warnings.catch_warnings():
            # Of joblib, that runs are not done: whoever left them says why.
            warnings.simplefilter("ignore", UserWarning)
            records.close()


def _execute_undisturbed(run: Run) -> Record:
    """Do a run in a worker; an interrupt is for the process that started it to handle."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return execute(run)


def flagged_rows(estimator: Any, X: Array) -> npt.NDArray[np.bool_] | None:
    """Return which rows a fitted estimator holds to be outliers, or None if it does not say.

    Those that it did not keep; else those that it predicts to be outliers; else those that
    count less than half of what an average row counts.
    """
    if hasattr(estimator, "inliers_"):
        return ~np.asarray(estimator.inliers_, dtype=np.bool_)
    if hasattr(estimator, "predict"):
        return np.asarray(estimator.predict(X) == -1, dtype=np.bool_)
    if hasattr(estimator, "weights_"):
        weights = np.asarray(estimator.weights_, dtype=np.float64)
        return np.asarray(weights < 0.5 * weights.mean(), dtype=np.bool_)
    return None


def timed_fit(algorithm: Algorithm, estimator: Any, sample: Sample) -> tuple[float, float | None]:
    """Fit, and return the seconds that took and by how many MB memory rose, if that is known."""
    truth = _truth_for(algorithm, sample)
    before = _restart_high_water_mark()
    start = time.perf_counter()
    estimator.fit(sample.X, **truth)
    seconds = time.perf_counter() - start
    after = _high_water_mark()
    peak = None if before is None or after is None else round(max(0.0, after - before), 2)
    return round(seconds, 6), peak


def outcome(algorithm: Algorithm, estimator: Any, sample: Sample) -> Record:
    """Return how far a fitted estimator is from the truth, and what it says of the rows."""
    found = estimator.location_ if algorithm.task == "mean" else estimator.components_
    estimate = np.asarray(found, dtype=np.float64)
    if not np.all(np.isfinite(estimate)):
        raise FloatingPointError("the estimate is not finite")
    n_iter = getattr(estimator, "n_iter_", None)
    verdict = getattr(getattr(estimator, "certificate_", None), "verdict", None)
    flagged = flagged_rows(estimator, sample.X)
    return {
        "error": ERRORS[algorithm.task][1](estimate, sample.truth),
        "n_iter": None if n_iter is None else int(n_iter),
        "verdict": None if verdict is None else _one_line(str(verdict)),
        "n_flagged": None if flagged is None else int(flagged.sum()),
        "n_flagged_outliers": None if flagged is None else int((flagged & ~sample.inliers).sum()),
    }


@functools.cache
def _warm_up(name: str) -> None:
    """Fit a tiny sample once in each process: the first fit of all pays for imports."""
    algorithm = ALGORITHMS[name]
    adversary = "constant_bias" if algorithm.task == "mean" else "spiked_mixture"
    sample = make(adversary, 60, 8, 2, 0.1, random_state=0)
    # The run itself will fail in the same way and say so.
    with contextlib.suppress(Exception):
        algorithm.build(2, 0.1, 0).fit(sample.X, **_truth_for(algorithm, sample))


def _truth_for(algorithm: Algorithm, sample: Sample) -> dict[str, Any]:
    """Return what ``fit`` is told of the truth: the mask of genuine rows, if it is an oracle's."""
    return {"inliers": sample.inliers} if algorithm.needs_inliers else {}


def _restart_high_water_mark() -> float | None:
    """Set the peak of resident memory to what is resident now, and return that in MB."""
    if sys.platform != "linux":
        return None
    # Free memory goes back to the system, where the C library can do that, so that its reuse shows.
    getattr(ctypes.CDLL(None), "malloc_trim", abs)(0)
    try:
        _CLEAR.write_text("5")
    except OSError:
        return None
    return _high_water_mark()


def _high_water_mark() -> float | None:
    """Return the peak of resident memory in MB, or None where the system does not tell."""
    try:
        peak = re.search(r"^VmHWM:\s*(\d+) kB", _STATUS.read_text(), re.MULTILINE)
    except OSError:
        return None
    return int(peak[1]) / 1024.0 if peak else None


def _one_line(text: str) -> str:
    return shorten(text, 300, placeholder="...")
