"""Fits on a cluster: workers may die, the scheduler may vanish, and nothing is half done."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from outweigh import RobustSparseMean

distributed = pytest.importorskip("distributed")
import dask  # noqa: E402 - only where Dask is installed
import dask.array as da  # noqa: E402

# Clusters that come and go leave sockets behind, which is not the library's to mend.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(autouse=True)
def _pipes_of_workers_end_here() -> Iterator[None]:
    """Collect what a cluster leaves unclosed while its warnings are ignored, not later."""
    yield
    gc.collect()


Array = NDArray[np.float64]

N_CHUNKS, ROWS, D = 12, 500, 30
SLOW = 0.02
# The rows take 1.4 MB.
SOME_COLUMNS = {"outweigh.gathered-bytes": 1_000_000}


def chunk(number: int) -> Array:
    """Return rows made on a worker, slowly enough for something to happen meanwhile."""
    rng = np.random.default_rng([51, number])
    X = rng.standard_normal((ROWS, D))
    X[:, :3] += 1.0
    X[: ROWS // 10, 5:11] += 2.5
    time.sleep(SLOW)
    return X


def lazy_rows() -> da.Array:
    make = dask.delayed(chunk)
    return da.concatenate(
        [da.from_delayed(make(i), (ROWS, D), float) for i in range(N_CHUNKS)], axis=0
    )


def rows_in_memory() -> Array:
    return np.concatenate([chunk(i) for i in range(N_CHUNKS)])


@contextlib.contextmanager
def after(seconds: float, action: object) -> Iterator[None]:
    timer = threading.Timer(seconds, action)  # type: ignore[arg-type]
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


@pytest.fixture(scope="module")
def cluster():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, memory_limit="1GB", dashboard_address=None
        ) as cluster,
        distributed.Client(cluster),
    ):
        yield cluster


def test_a_cluster_gives_the_answer_of_memory(cluster: object) -> None:
    with dask.config.set(SOME_COLUMNS):
        est = RobustSparseMean(3).fit(lazy_rows())
    plain = RobustSparseMean(3).fit(rows_in_memory())
    np.testing.assert_allclose(est.location_, plain.location_, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(est.weights_, plain.weights_, rtol=1e-8, atol=1e-14)
    scores = est.score_samples(lazy_rows()).compute()
    np.testing.assert_allclose(scores, plain.score_samples(rows_in_memory()), rtol=1e-8)


def test_columns_stay_on_the_workers_where_they_do_not_fit(cluster: object) -> None:
    with dask.config.set({"outweigh.gathered-bytes": 8 * D * D}):
        est = RobustSparseMean(3, contamination=0.1).fit(lazy_rows())
    plain = RobustSparseMean(3, contamination=0.1).fit(rows_in_memory())
    np.testing.assert_allclose(est.location_, plain.location_, rtol=1e-8, atol=1e-12)


def test_a_worker_killed_in_the_middle_of_a_fit_changes_nothing(cluster) -> None:
    killed = []

    def kill() -> None:
        process = next(iter(cluster.workers.values())).pid
        os.kill(process, signal.SIGKILL)
        killed.append(process)

    with after(0.4, kill), dask.config.set(SOME_COLUMNS):
        est = RobustSparseMean(3).fit(lazy_rows())
    assert killed
    plain = RobustSparseMean(3).fit(rows_in_memory())
    np.testing.assert_allclose(est.location_, plain.location_, rtol=1e-8, atol=1e-12)


def test_a_lost_scheduler_is_said_and_nothing_is_half_fitted() -> None:
    scheduler = _start("distributed.cli.dask_scheduler", "--port", "0", "--no-dashboard")
    address = _address(scheduler)
    worker = _start("distributed.cli.dask_worker", address, "--no-dashboard", "--no-nanny")
    _drain(worker)
    try:
        with distributed.Client(address, timeout=60, set_as_default=True) as client:
            client.wait_for_workers(1, timeout=60)
            est = RobustSparseMean(3)
            with (
                after(0.3, scheduler.kill),
                pytest.raises(RuntimeError, match=r"scheduler was lost.*nothing was fitted"),
            ):
                est.fit(lazy_rows())
            assert not hasattr(est, "weights_")
    finally:
        for process in (worker, scheduler):
            process.kill()
            process.wait()


def _start(module: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", module, *arguments], stderr=subprocess.PIPE, text=True
    )


def _drain(process: subprocess.Popen[str]) -> None:
    """Read what the process says to its end, and close the pipe, beside the test."""
    threading.Thread(target=process.communicate, daemon=True).start()


def _address(scheduler: subprocess.Popen[str]) -> str:
    assert scheduler.stderr is not None
    for line in scheduler.stderr:
        if "Scheduler at:" in line:
            address = line.split()[-1]
            _drain(scheduler)
            return address
    raise AssertionError("the scheduler did not start")
