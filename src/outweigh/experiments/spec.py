"""What an experiment is, and the runs it consists of.

An experiment draws samples from one adversary, changes one parameter along a grid, and fits
several algorithms to each sample. The runs are enumerated by a pure generator. The seed of a
sample is a hash of the experiment, the point of the grid and the trial: all algorithms see the
same samples, and neither order nor parallelism can change a result.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from outweigh.adversaries import MEAN_ADVERSARIES

SCHEMA = 2
"""Version of what a record means. Raise it when keys, seeds or fields change their meaning."""

Record = dict[str, Any]
"""Plain data about one run; see :func:`outweigh.experiments.runs.execute`."""

DIMENSIONS = ("n_samples", "n_features", "n_nonzero", "contamination")


@dataclass(frozen=True)
class Point:
    """One place on the grid: the shape of the data and the options of the adversary.

    Attributes
    ----------
    x : float
        The value of the parameter that the grid changes.
    n_samples, n_features : int
    n_nonzero : int or None
        None for a dense problem, in which the truth uses all features.
    contamination : float
    options : mapping
        Keyword options of the adversary.
    """

    x: float
    n_samples: int
    n_features: int
    n_nonzero: int | None
    contamination: float
    options: Mapping[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return the parameters as plain data, in a fixed order."""
        shape = {name: getattr(self, name) for name in DIMENSIONS}
        return {**shape, **{name: self.options[name] for name in sorted(self.options)}}


# The rates that the paper names, with constant one: what the best method can reach in the worst
# case, and what methods pay that look at one row at a time.
GUIDES: Mapping[str, tuple[str, Callable[[Point], float]]] = {
    "worst_case": (
        "ε √log(1/ε)",
        lambda point: point.contamination * math.sqrt(math.log(1.0 / point.contamination)),
    ),
    "one_row_at_a_time": (
        "ε √k",
        lambda point: point.contamination * math.sqrt(point.n_nonzero or point.n_features),
    ),
}


@dataclass(frozen=True)
class Run:
    """One fit: an algorithm on one sample.

    Attributes
    ----------
    key : str
        Identifies the run in a store: a hash of everything that decides its result.
    seed : int
        Seed of the sample; depends on experiment, point and trial only.
    """

    experiment: str
    adversary: str
    point: Point
    algorithm: str
    trial: int
    seed: int
    key: str


@dataclass(frozen=True)
class Experiment:
    """An experiment, as a TOML file describes it.

    Attributes
    ----------
    name : str
    title : str
        One line for the head of a figure.
    adversary : str
        A key of :data:`outweigh.adversaries.ADVERSARIES`.
    algorithms : sequence of str
        Keys of :data:`outweigh.experiments.algorithms.ALGORITHMS`.
    trials : int
    grid : mapping
        The parameter that changes, a dimension or an option of the adversary, and its values.
    fixed : mapping
        The other dimensions.
    options : mapping
        Fixed options of the adversary.
    axes : mapping
        Of its figure: ``log_x``, whether the axis of the parameter is logarithmic (that of errors
        is); ``label``, what the parameter is called, in place of the usual name; ``guide``, a key
        of :data:`GUIDES`, the rate that is shown as a line.
    about : str
        What the panel shows, in a sentence or two.
    source : str
        Which figure or table this is of, if any.
    seed : int
        Base of all seeds.
    quick : Experiment or None
        The same with fewer points, trials or algorithms, if there is such.
    """

    name: str
    title: str
    adversary: str
    algorithms: Sequence[str]
    trials: int
    grid: Mapping[str, Sequence[float]]
    fixed: Mapping[str, Any]
    options: Mapping[str, Any] = field(default_factory=dict)
    axes: Mapping[str, Any] = field(default_factory=dict)
    about: str = ""
    source: str = ""
    seed: int = 0
    quick: Experiment | None = None

    @property
    def parameter(self) -> str:
        """The parameter that the grid changes."""
        return next(iter(self.grid))

    @property
    def task(self) -> str:
        """What is estimated: "mean" or "components"."""
        return "mean" if self.adversary in MEAN_ADVERSARIES else "components"

    def quickly(self) -> Experiment:
        """Return the same experiment with fewer points and trials.

        Its runs are runs of the full experiment, so that they need not be done again, as long as
        the quick values and algorithms are among the full ones.
        """
        return self.quick or self

    def points(self) -> Iterator[Point]:
        """Yield the points of the grid in order."""
        for value in self.grid[self.parameter]:
            shape = {**dict.fromkeys(DIMENSIONS), **self.fixed}
            options = dict(self.options)
            (shape if self.parameter in DIMENSIONS else options)[self.parameter] = value
            yield Point(float(value), options=options, **shape)

    def runs(self) -> Iterator[Run]:
        """Yield the runs; all of the first trial come first, so that a figure fills evenly."""
        for trial in range(self.trials):
            for point in self.points():
                for algorithm in self.algorithms:
                    yield self.run(point, algorithm, trial)

    def run(self, point: Point, algorithm: str, trial: int) -> Run:
        """Return one run with its seed and key."""
        where = (self.name, self.adversary, point.as_dict(), trial)
        seed = derive_seed(self.seed, *where)
        key = digest(SCHEMA, *where, algorithm, seed)[:20]
        return Run(self.name, self.adversary, point, algorithm, trial, seed, key)


def derive_seed(*names: object) -> int:
    """Hash names into a seed between 0 and 2^32 - 1, the same on every machine.

    Examples
    --------
    >>> derive_seed(0, "linear-hiding-n", {"n_samples": 1000}, 3)
    302503213
    """
    return int(digest(*names)[:8], 16)


def digest(*names: object) -> str:
    """Return the SHA-256 of names in canonical JSON."""
    text = json.dumps(names, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()
