"""Medians of paired ratios with bootstrap intervals, shown as a table and saved."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

RESULTS = Path("benchmarks") / "results"
# Seeds on which nothing was ever tuned.
FIRST_SEED = 1000


@dataclass(frozen=True)
class Row:
    """One line of a study: the ratio of two errors on the same data."""

    case: str
    compared: str
    median: float
    low: float
    high: float
    target: float | None
    n_seeds: int

    @property
    def met(self) -> bool:
        return self.target is None or self.median <= self.target


def paired_ratio(
    case: str, compared: str, ours: Sequence[float], theirs: Sequence[float], target: float | None
) -> Row:
    """Return the median of ours / theirs with a 95 % bootstrap interval."""
    ratios = np.asarray(ours, dtype=float) / np.maximum(np.asarray(theirs, dtype=float), 1e-300)
    rng = np.random.default_rng(0)
    draws = np.median(rng.choice(ratios, (2000, ratios.size)), axis=1)
    low, high = np.quantile(draws, [0.025, 0.975])
    return Row(
        case, compared, float(np.median(ratios)), float(low), float(high), target, ratios.size
    )


def format_table(rows: Iterable[Row]) -> str:
    """Return the rows as a Markdown table."""
    lines = [
        "| case | ratio | median | 95 % interval | target | met |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        target = "" if row.target is None else f"{row.target:.2f}"
        met = "" if row.target is None else ("yes" if row.met else "NO")
        lines.append(
            f"| {row.case} | {row.compared} | {row.median:.3f} | {row.low:.3f} to {row.high:.3f} "
            f"| {target} | {met} |"
        )
    return "\n".join(lines)


def save(name: str, rows: list[Row]) -> Path:
    """Write the rows as JSON beside the other results and return the path."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")
    return path


def best_of(repeats: int, call: Callable[[], object]) -> float:
    """Return the least processor time of several calls.

    With one thread it is the wall time of a machine that does nothing else, and other work on the
    machine disturbs it far less.
    """
    times = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times)
