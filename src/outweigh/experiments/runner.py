"""Do what is missing: a generator of records, each stored before it is handed on."""

from __future__ import annotations

import signal
import warnings
from collections.abc import Generator, Iterable, Iterator
from contextlib import ExitStack

from joblib import Parallel, delayed

from outweigh.experiments.measure import execute
from outweigh.experiments.spec import Record, Run
from outweigh.experiments.store import Store


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
        A record; see :func:`outweigh.experiments.measure.execute`.
    """
    with ExitStack() as stack:
        records: Iterable[Record] = map(execute, runs)
        if jobs > 1:
            parallel = Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)
            started = parallel(delayed(_execute_undisturbed)(run) for run in runs)
            stack.callback(_leave, started)
            records = started
        for record in records:
            store.append(record)
            yield record


def _leave(records: Generator[Record]) -> None:
    """End what the workers still do, of which joblib warns: the reason is told elsewhere."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        records.close()


def _execute_undisturbed(run: Run) -> Record:
    """Do a run in a worker; an interrupt is for the process that started it to handle."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return execute(run)
