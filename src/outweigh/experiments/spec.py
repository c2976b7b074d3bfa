"""What an experiment is, and the runs it consists of.

An experiment draws samples from one adversary, changes one parameter along a grid, and fits
several algorithms to each sample. The runs are enumerated by a pure generator. The seed of a
sample is a hash of the experiment, the point of the grid and the trial: all algorithms see the
same samples, and neither order nor parallelism can change a result.

It is described by a TOML file, that of the package or of a user. In this one everything under
``quick``, and all that has a default, may be left out::

    title = "Constant bias: more samples"
    adversary = "constant_bias"  # outweigh list adversaries
    algorithms = ["oracle", "outweigh"]  # outweigh list algorithms
    trials = 10
    seed = 0  # the default

    [fixed]  # dimensions that stay the same
    n_features = 300
    n_nonzero = 10  # leave it out for a dense problem
    contamination = 0.1

    [options]  # options of the adversary
    bias = -2.0

    [grid]  # the one parameter that changes
    n_samples = [30, 105, 330]

    [axes]
    log_x = true
    guide = "worst_case"  # or "one_row_at_a_time": a rate of the paper as a line

    [quick]  # what --quick leaves
    values = [30, 105]
    trials = 2
    algorithms = ["oracle", "outweigh"]
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from importlib import resources
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from outweigh.adversaries import ADVERSARIES, MEAN_ADVERSARIES, options_of
from outweigh.constraints import COUNT, SHARE, Number, StrOptions, check
from outweigh.experiments.algorithms import ALGORITHMS
from outweigh.experiments.errors import ExperimentError, unknown

SCHEMA = 2
"""Version of what a record means. Raise it when keys, seeds or fields change their meaning."""

Record = dict[str, Any]
"""Plain data about one run; see :func:`outweigh.experiments.runs.execute`."""

DIMENSIONS = ("n_samples", "n_features", "n_nonzero", "contamination")


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

_SPECS = resources.files("outweigh.experiments").joinpath("specs")

_TABLES = ("fixed", "options", "grid", "axes", "quick")
# What a key may be, in whichever table it stands.
_MAY_BE: dict[str, list[Any]] = {
    **{key: [str] for key in ("name", "title", "about", "source", "label", "adversary")},
    **{key: [dict] for key in _TABLES},
    "algorithms": [list],
    "values": [list],
    "trials": [COUNT],
    "seed": [Number(Integral, 0, None, closed="left")],
    "log_x": [bool],
    "guide": [StrOptions({"", *GUIDES})],
    "n_samples": [Number(Integral, 2, None, closed="left")],
    "n_features": [COUNT],
    "n_nonzero": [COUNT, None],
    "contamination": SHARE,
}
_FINITE = Number(Real, None, None, closed="neither")


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


@cache
def _builtin() -> dict[str, Experiment]:
    """Return the experiments that come with the package by name, in the order of their source."""
    files = [file for file in _SPECS.iterdir() if file.name.endswith(".toml")]
    found = [parse(f.read_text("utf-8"), f.name.removesuffix(".toml"), f.name) for f in files]
    return {e.name: e for e in sorted(found, key=lambda e: (e.source, e.name))}


def builtin_names() -> tuple[str, ...]:
    """Return the names of the experiments that come with the package, in the order of their source.

    Examples
    --------
    >>> "linear-hiding-n" in builtin_names()
    True
    """
    return tuple(_builtin())


def load_builtin(name: str) -> Experiment:
    """Return an experiment that comes with the package.

    Examples
    --------
    >>> load_builtin("linear-hiding-n").adversary
    'linear_hiding'
    """
    if name not in _builtin():
        choices = unknown("figure", name, _builtin())
        raise ExperimentError(f"{choices}, or give the path of a TOML file")
    return _builtin()[name]


def load(name_or_path: str) -> Experiment:
    """Return the experiment in a TOML file, or the one of that name in the package."""
    if not name_or_path.endswith(".toml"):
        return load_builtin(name_or_path)
    path = Path(name_or_path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise ExperimentError(f"{path}: cannot be read: {reason}") from error
    return parse(text, path.stem, str(path))


def parse(text: str, name: str, file: str) -> Experiment:
    """Build an experiment from the text of a TOML file and check all of it.

    Parameters
    ----------
    text : str
    name : str
        The experiment's name, unless the text gives one.
    file : str
        How messages call the file.

    Raises
    ------
    ExperimentError
        One line that names the file, the key, the value and what is allowed.
    """
    try:
        table = tomllib.loads(text)
        experiment = _experiment(table, name)
        quick = _checked(table.get("quick", {}), "quick", ("values", "trials", "algorithms"))
        if "values" in quick:
            quick["grid"] = {experiment.parameter: quick.pop("values")}
        return replace(experiment, quick=_experiment({**table, **quick}, name))
    except tomllib.TOMLDecodeError as error:
        raise ExperimentError(f"{file}: not valid TOML: {error}") from error
    except ValueError as error:
        raise ExperimentError(f"{file}: {error}") from error


def _experiment(table: dict[str, Any], name: str) -> Experiment:
    """Return the full experiment that a file describes, checked."""
    empty: dict[str, Any] = {"fixed": {}, "options": {}, "axes": {}}
    table = {"name": name, "title": table.get("name", name), **empty, **table}
    needed = ("adversary", "algorithms", "trials", "grid")
    _checked(table, "", [key.name for key in fields(Experiment)], needed)
    own = options_of(_known("adversary", table["adversary"], ADVERSARIES))
    grid = _checked(table["grid"], "grid", (*DIMENSIONS, *own))
    if len(grid) != 1:
        raise ValueError(f"grid: must change one parameter, got {', '.join(grid) or 'none'}")
    [(parameter, values)] = grid.items()
    _check_list(f"grid.{parameter}", values)
    if not all(_FINITE.is_satisfied_by(value) for value in values):
        raise ValueError(f"grid.{parameter}: must be a list of finite numbers, got {values!r}")
    # Without n_nonzero the problem is dense; all else is needed, and what changes is not fixed.
    free = [d for d in DIMENSIONS if d != parameter]
    _checked(table["fixed"], "fixed", free, [d for d in free if d != "n_nonzero"])
    _checked(table["options"], "options", [option for option in own if option != parameter])
    if table["options"].get("n_components", 1) != 1:
        raise ValueError("options.n_components: algorithms are compared on one component")
    _checked(table["axes"], "axes", ("log_x", "label", "guide"))
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}", table["name"]):
        raise ValueError(
            f"name: must be letters, digits, '-', '_' and '.' only, got {table['name']!r}"
        )
    _check_list("algorithms", table["algorithms"])
    experiment = Experiment(**{key: table[key] for key in table if key != "quick"})
    suited = [a.name for a in ALGORITHMS.values() if a.task == experiment.task]
    for algorithm in experiment.algorithms:
        _known("algorithms", algorithm, suited)
    # What no algorithm could be run on.
    for point in experiment.points():
        where = f"at {parameter} = {point.x:g}"
        check(f"the experiment {where}", _MAY_BE, {d: getattr(point, d) for d in DIMENSIONS})
        if point.n_nonzero is not None and point.n_nonzero > point.n_features:
            raise ValueError(f"n_nonzero: must be at most n_features = {point.n_features} {where}")
        for algorithm in experiment.algorithms:
            limit = ALGORITHMS[algorithm].max_features
            if limit is not None and point.n_features > limit:
                raise ValueError(
                    f"algorithms: {algorithm!r} takes at most {limit} features, {where}"
                )
    return experiment


def _checked(
    values: dict[str, Any], where: str, allowed: Iterable[str], needed: Iterable[str] = ()
) -> dict[str, Any]:
    """Return a table of a file, or all of it, with what is needed and nothing that is unknown."""
    prefix = f"{where}." if where else ""
    for key in values:
        if key not in allowed:
            raise ValueError(f"{prefix}{key}: {unknown('key', key, allowed)}")
    for key in needed:
        if key not in values:
            raise ValueError(f"{prefix}{key}: is missing")
    if where != "grid":
        check(f"the table {where}" if where else "the file", _MAY_BE, values)
    return dict(values)


def _check_list(key: str, values: Any) -> None:
    if not isinstance(values, list) or not values or len({*map(repr, values)}) < len(values):
        raise ValueError(f"{key}: must be a list of values, none of them twice, got {values!r}")


def _known(key: str, value: Any, choices: Iterable[str]) -> str:
    if value not in choices:
        raise ValueError(f"{key}: {unknown(key, value, choices)}")
    return str(value)
