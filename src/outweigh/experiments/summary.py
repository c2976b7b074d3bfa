"""What the records of an experiment say: medians, quartiles, failures, and who does better."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from outweigh.experiments.algorithms import ALGORITHMS
from outweigh.experiments.spec import Experiment, Record
from outweigh.experiments.store import Store


@dataclass(frozen=True)
class Cell:
    """All trials of one algorithm at one point of the grid.

    Attributes
    ----------
    x : float
    algorithm : str
    n_done, n_failed, n_missing : int
        Runs that succeeded, that failed, and that have no record yet.
    median, lower, upper : float
        Median and quartiles of the error; NaN without a successful run.
    seconds, peak_memory_mb : float
        Medians; NaN if unknown.
    """

    x: float
    algorithm: str
    n_done: int
    n_failed: int
    n_missing: int
    median: float
    lower: float
    upper: float
    seconds: float
    peak_memory_mb: float

    def beats(self, other: Cell) -> bool:
        """Tell whether the median is below another; within one per cent they count as level."""
        return self.median < 0.99 * other.median

    def outside(self, other: Cell) -> bool:
        """Tell whether the median is even below the lower quartile of another."""
        return self.median < other.lower


@dataclass(frozen=True)
class Summary:
    """An experiment with what is known of it.

    Attributes
    ----------
    experiment : Experiment
    cells : tuple of Cell
        In the order of the grid, and of the algorithms at each point.
    failures : tuple of dict
        The records of the runs that failed.
    n_missing : int
        Number of runs without a record.
    versions : tuple of dict
        The different sets of versions among the records; one, unless something was upgraded.
    warned : dict
        For each algorithm that warned, the number of its runs that did.
    """

    experiment: Experiment
    cells: tuple[Cell, ...]
    failures: tuple[Record, ...]
    n_missing: int
    versions: tuple[dict[str, str], ...]
    warned: dict[str, int]

    def curve(self, algorithm: str) -> list[Cell]:
        """Return the cells of an algorithm that have a value."""
        return [cell for cell in self.cells if cell.algorithm == algorithm and cell.n_done]

    def cell(self, x: float, algorithm: str) -> Cell:
        """Return the cell of an algorithm at a point."""
        return next(c for c in self.cells if c.x == x and c.algorithm == algorithm)

    @property
    def ours(self) -> str | None:
        """The first algorithm of this library that the experiment lists, if there is one."""
        return next((name for name in self.experiment.algorithms if ALGORITHMS[name].ours), None)

    @property
    def rivals(self) -> list[str]:
        """The algorithms of others that are told no more than ours."""
        compared = [ALGORITHMS[name] for name in self.experiment.algorithms]
        return [a.name for a in compared if not a.ours and not a.needs_inliers]

    @property
    def xs(self) -> list[float]:
        """The points of the grid at which anything is known."""
        return list(dict.fromkeys(cell.x for cell in self.cells if cell.n_done or cell.n_failed))


def summarise(experiment: Experiment, store: Store) -> Summary:
    """Collect the records of an experiment from a store.

    Records of the store that are not runs of the experiment as it is described now are left out.
    """
    cells, failures, n_missing = [], [], 0
    versions: list[dict[str, str]] = []
    warned = Counter[str]()
    for point in experiment.points():
        for algorithm in experiment.algorithms:
            keys = [experiment.run(point, algorithm, t).key for t in range(experiment.trials)]
            records = [record for record in map(store.records.get, keys) if record is not None]
            failed = [record for record in records if record["status"] == "failed"]
            failures += failed
            n_missing += len(keys) - len(records)
            for record in records:
                if record["versions"] not in versions:
                    versions.append(record["versions"])
                warned[algorithm] += "warnings" in record
            cells.append(_cell(point.x, algorithm, records, len(keys)))
    return Summary(experiment, tuple(cells), tuple(failures), n_missing, tuple(versions), +warned)


def defeats(summary: Summary) -> Iterator[tuple[Cell, Cell]]:
    """Yield our cell and a rival's where one that is told no more beats ours."""
    for mine in summary.curve(summary.ours) if summary.ours else ():
        for rival in summary.rivals:
            theirs = summary.cell(mine.x, rival)
            if theirs.n_done and theirs.beats(mine):
                yield mine, theirs


def _cell(x: float, algorithm: str, records: list[Record], n_runs: int) -> Cell:
    done = [record for record in records if record["status"] == "ok"]
    lower, median, upper = _quantiles(done, "error", 0.25, 0.5, 0.75)
    counts = (len(done), len(records) - len(done), n_runs - len(records))
    costs = (_quantiles(done, field, 0.5)[0] for field in ("seconds", "peak_memory_mb"))
    return Cell(x, algorithm, *counts, median, lower, upper, *costs)


def _quantiles(records: list[Record], field: str, *levels: float) -> list[float]:
    """Return quantiles of a field over the records that have a value; NaN if none has."""
    values = [record[field] for record in records if record[field] is not None]
    return [float(q) for q in np.quantile(values or [np.nan], levels)]
