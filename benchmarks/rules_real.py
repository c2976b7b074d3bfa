"""Which number earns its keep on real tables: each switched off in turn, both estimators.

python -m benchmarks rules_real [--only FIELD ...]

Tables and classes are those of the study ``real`` that rules may be chosen on. Made-up attacks, for
which ``rules`` is, say little of the numbers that keep a fit quiet on ordinary tables. A fit that
does not read a number is not made again. Needs the extra ``bench``.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Sequence
from dataclasses import fields

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.house import listening
from benchmarks.options import asked
from benchmarks.real import Record, measure
from benchmarks.real_cases import Case, cases
from benchmarks.real_tables import collect
from benchmarks.tables import Line, show
from outweigh.fit.tuning import Tuning, tuned

ESTIMATORS = {"mean": "**RobustMean**", "components": "**RobustPCA(2)**"}
KINDS = ("ordinary", "documented", "class", "low", "high", "point", "cells")
# An error this far below that of the plain mean is as good as none.
NO_ERROR = 0.01

Records = dict[str, Record]


def usual(name: str, chosen: Sequence[Case]) -> tuple[Records, dict[str, set[str]]]:
    """Return what the fits of an estimator measure, and the numbers that each reads."""
    records, read = {}, {}
    for case in chosen:
        with listening() as names:
            records[case.key] = measure(name, case)
        read[case.key] = set(names)
    return records, read


def summary(records: Records) -> dict[str, float]:
    """Return how quiet and how sure an estimator is."""

    def of(kind: str, what: Callable[[Record], float]) -> list[float]:
        # A fit that failed flags everything and finds nothing.
        return [what(record) for key, record in records.items() if key.startswith(kind)]

    def log_error(record: Record) -> float:
        return float(np.log(max(record.get("error/mean", 1.0), NO_ERROR)))

    planted = [error for kind in KINDS[3:] for error in of(kind, log_error)]
    return {
        "quiet": sum(of("ordinary", lambda record: record.get("flagged", 1.0) <= 0.1)),
        "F1": float(np.mean(of("documented", lambda record: record.get("f1", 0.0)))),
        "classes": float(np.exp(np.mean(of("class", log_error)))),
        "planted": float(np.exp(np.mean(planted))),
    }


def main(argv: list[str]) -> None:
    """Run the study and print its table."""
    arguments = asked(
        __name__, __doc__, argv, only={"nargs": "*", "help": "fields of Tuning; all by default"}
    )
    chosen = [
        case for case in cases(collect()) if case.half == "chosen" and case.kind.startswith(KINDS)
    ]
    rules = [rule for rule in fields(Tuning) if rule.name in (arguments.only or [rule.name])]
    lines: list[Line] = []
    logging.disable(logging.WARNING)
    with threadpool_limits(1), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        before = {what: usual(name, chosen) for what, name in ESTIMATORS.items()}
        shown = {what: summary(records) for what, (records, _) in before.items()}
        lines.append(line_of("as it is", "", shown))
        for rule in rules:
            shown, count = {}, 0
            for what, name in ESTIMATORS.items():
                records, read = before[what]
                again = [case for case in chosen if rule.name in read[case.key]]
                count += len(again)
                with tuned(**{rule.name: rule.metadata["off"]}):
                    shown[what] = summary(
                        records | {case.key: measure(name, case) for case in again}
                    )
            lines.append(line_of(rule.name, f"{count} of {2 * len(chosen)}", shown))
            print(lines[-1], flush=True)
    show("rules-real", lines)


def line_of(rule: str, read: str, shown: dict[str, dict[str, float]]) -> Line:
    """Return a line of the table: what is measured, for both estimators."""
    figures = {f"{name}, {what}": x for what, each in shown.items() for name, x in each.items()}
    return {"rule": rule, "read by": read, **figures}
