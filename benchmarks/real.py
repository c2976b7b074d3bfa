"""Real tables: who is quiet where nothing is wrong, and sure where something is.

Kinds of samples: ordinary tables as they come; classical tables with documented outliers; one class
planted in another; clusters, point masses and gross cells planted in real and Gaussian rows; clean
Gaussian rows with the covariances of real tables. Tables are divided by a hash of their name: rules
may be chosen on one half, the other is only ever reported. Every estimator is at its defaults.

What was measured is kept in benchmarks/results/real-runs.json and not measured again until the
package it is by changes, or, for this library, its source. Figures of R's rrcov are read from
real-rrcov.json. Tables and picture are written only by a run of everything.
"""

from __future__ import annotations

import contextlib
import fnmatch
import json
import logging
import math
import signal
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import f1_score, roc_auc_score
from threadpoolctl import threadpool_limits

from benchmarks.options import asked
from benchmarks.pairing import RESULTS
from benchmarks.real_cases import Case, cases
from benchmarks.real_peers import ESTIMATORS, YARDSTICK, Found
from benchmarks.real_report import report
from benchmarks.real_tables import collect

RUNS, RRCOV = RESULTS / "real-runs.json", RESULTS / "real-rrcov.json"
# Seconds of the processor for one fit.
LIMIT = 10.0
# Seconds after which what was measured is written, so that a run that is stopped can be resumed.
SAVE_EVERY = 20.0
QUICK = ("*iris*", "*hbk*", "*wood*", "*stackloss*", "*swiss*", "*skulls*")

# Of one fit: what it measured by name, or only "failed" and why.
Record = dict[str, Any]
Runs = dict[str, dict[str, Any]]


# One fit


class OutOfTimeError(Exception):
    """A fit took more of the processor than it may."""


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise where what is inside takes longer; not counted is what other processes take."""

    def stop(number: int, frame: object) -> None:
        raise OutOfTimeError(f"more than {seconds:g} s")

    earlier = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, earlier)


def measure(name: str, case: Case, limit: float = LIMIT) -> Record:
    """Return the measurements of one fit, or why it failed."""
    start = time.process_time()
    try:
        with time_limit(limit):
            found = ESTIMATORS[name].fit(case.X)
        record = judge(found, case)
    # Whatever a peer raises on a table is a result of the study.
    except Exception as error:
        return {"failed": f"{type(error).__name__}: {error}"[:80]}
    return {**record, "seconds": rounded(time.process_time() - start)}


def judge(found: Found, case: Case) -> Record:
    """Return the measurements of what was found."""
    if not (np.isfinite(found.location).all() and np.isfinite(found.scores).all()):
        return {"failed": "not finite"}
    record: Record = {"flagged": rounded(found.flagged.mean())}
    if case.wrong is None or case.truth is None:
        return record
    clean = ~case.wrong
    error = case.truth.distance(found.location)
    # What the mean of as many clean rows is off by on average, in this norm.
    usual = math.sqrt(case.truth.whitening.shape[1] / clean.sum())
    record["error/oracle"] = rounded(error / usual)
    record["clean flagged"] = rounded(found.flagged[clean].mean())
    record["error/mean"] = rounded(error / case.truth.distance(case.X.mean(axis=0)))
    if case.wrong.any():
        record["auc"] = rounded(roc_auc_score(case.wrong, found.scores))
        record["f1"] = rounded(f1_score(case.wrong, found.flagged, zero_division=0.0))
    if found.clean is not None:
        record["said clean"] = bool(found.clean)
    return record


def rounded(value: float) -> float:
    """Return a number with four digits: more would only fill the files."""
    return float(f"{float(value):.4g}")


# What is kept


def load(path: Path, fingerprints: dict[str, str]) -> Runs:
    """Return the stored runs that are still of the same samples, by the same packages."""
    if not path.exists():
        return {}
    stored = json.loads(path.read_text())
    runs: Runs = {}
    for name, run in stored["runs"].items():
        now = ESTIMATORS[name].made_by() if name in ESTIMATORS else None
        # A package that is not installed now was when its figures were stored.
        if now in (None, run["made by"]):
            records = {
                key: record
                for key, record in run["records"].items()
                if stored["samples"].get(key) == fingerprints.get(key)
            }
            runs[name] = {"made by": run["made by"], "records": records}
    return runs


def save(path: Path, runs: Runs, fingerprints: dict[str, str]) -> None:
    """Write the runs, an estimator and a sample a line."""
    lines = []
    for name, run in runs.items():
        records = ",\n".join(
            f"{json.dumps(key)}:{json.dumps(record, separators=(',', ':'))}"
            for key, record in run["records"].items()
        )
        made_by = json.dumps(run["made by"])
        lines.append(f'{json.dumps(name)}:{{"made by":{made_by},"records":{{\n{records}}}}}')
    body = ",\n".join(lines)
    samples = json.dumps(fingerprints, separators=(",\n", ":"))
    partial = path.with_suffix(".partial")
    partial.write_text(f'{{"samples":{samples},\n"runs":{{\n{body}\n}}}}\n')
    partial.replace(path)


# The study


def run(selected: Sequence[Case], names: Sequence[str], runs: Runs, keep: Any) -> None:
    """Measure what is not there yet; `keep` is called now and then."""
    saved = time.monotonic()
    for number, case in enumerate(selected):
        todo = [name for name in names if case.key not in runs[name]["records"]]
        if not todo:
            continue
        # Times are compared only within one run: the yardstick is measured beside all others.
        beside = measure(YARDSTICK, case)
        for name in todo:
            record = beside if name == YARDSTICK else measure(name, case)
            if "seconds" in beside:
                record["beside"] = beside["seconds"]
            runs[name]["records"][case.key] = record
        if time.monotonic() - saved > SAVE_EVERY:
            keep()
            saved = time.monotonic()
            print(f"{number + 1} of {len(selected)}: {case.key}", flush=True)


def main(argv: list[str]) -> None:
    """Run the study, print its tables, and write them if it was run whole."""
    arguments = asked(
        __name__,
        __doc__,
        argv,
        quick=(False, "a few tables; nothing is kept"),
        half={"choices": ("chosen", "apart"), "help": "only this half of the tables"},
        only={"metavar": "PATTERN", "help": "samples whose name matches, such as *iris*"},
        estimators={"nargs": "+", "metavar": "NAME", "help": "those with this in their name"},
        again=(False, "measure also what is kept"),
    )
    tables = collect()
    everything = list(cases(tables))
    fingerprints = {case.key: case.fingerprint() for case in everything}
    patterns = QUICK if arguments.quick else (arguments.only or "*",)
    selected = [
        case
        for case in everything
        if arguments.half in (None, case.half)
        and any(fnmatch.fnmatch(case.key, pattern) for pattern in patterns)
    ]
    known = [name for name, estimator in ESTIMATORS.items() if estimator.made_by()]
    names = [
        name
        for name in known
        if not arguments.estimators or any(part in name for part in arguments.estimators)
    ]
    runs = {} if arguments.quick else load(RUNS, fingerprints)
    if arguments.again:
        for name in names:
            runs.pop(name, None)
    for name in names:
        runs.setdefault(name, {"made by": ESTIMATORS[name].made_by(), "records": {}})

    def keep() -> None:
        if not arguments.quick:
            save(RUNS, {name: runs[name] for name in ESTIMATORS if name in runs}, fingerprints)

    # robpy logs what it does.
    logging.disable(logging.WARNING)
    with threadpool_limits(1), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        run(selected, names, runs, keep)
    keep()
    complete = len(selected) == len(everything) and set(names) == set(known)
    shown = {name: runs[name] for name in ESTIMATORS if name in runs}
    shown |= load(RRCOV, fingerprints)
    absent = ", ".join(tables.absent) or "none"
    print(f"{len(selected)} of {len(everything)} samples; packages not installed: {absent}")
    report(selected, {name: run["records"] for name, run in shown.items()}, write=complete)
