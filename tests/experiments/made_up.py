"""Stores with made-up records, for what reads them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from outweigh.experiments.spec import Experiment, Run
from outweigh.experiments.store import Store

VERSIONS = {"python": "3.x", "outweigh": "1.0"}


def record_of(run: Run, **outcome: Any) -> dict[str, Any]:
    """A record of a run: of a success with ``error=``, of a failure with ``failure=``."""
    common = {
        "key": run.key,
        "experiment": run.experiment,
        "x": run.point.x,
        "algorithm": run.algorithm,
        "trial": run.trial,
        "seed": run.seed,
        "versions": VERSIONS,
    }
    if "failure" in outcome:
        return {**common, "status": "failed", **outcome}
    return {**common, "status": "ok", "seconds": 0.5, "peak_memory_mb": None, **outcome}


def store_of(
    path: Path, experiment: Experiment, outcome: Callable[[Run], dict[str, Any] | None]
) -> Store:
    """A store with the outcome of each run; None leaves the run out."""
    store = Store(path, "1.0")
    with store:
        for run in experiment.runs():
            found = outcome(run)
            if found is not None:
                store.append(record_of(run, **found))
    return store
