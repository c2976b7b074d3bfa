"""Experiments from TOML files: the ones that come with the package, and the user's own.

A file looks like this; everything under ``quick``, and all that has a default, may be left out::

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

import re
import tomllib
from collections.abc import Iterable
from dataclasses import replace
from importlib import resources
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from outweigh.adversaries import ADVERSARIES, options_of
from outweigh.constraints import COUNT, SHARE, Number, StrOptions, check
from outweigh.experiments.algorithms import ALGORITHMS
from outweigh.experiments.errors import ExperimentError, unknown
from outweigh.experiments.spec import DIMENSIONS, GUIDES, Experiment

_SPECS = resources.files("outweigh.experiments").joinpath("specs")

_KEYS = ("name", "title", "about", "source", "adversary", "algorithms", "trials", "seed")
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


def builtin_names() -> tuple[str, ...]:
    """Return the names of the experiments that come with the package, in the order of their source.

    Examples
    --------
    >>> "linear-hiding-n" in builtin_names()
    True
    """
    sources = {
        file.name.removesuffix(".toml"): str(tomllib.loads(file.read_text("utf-8")).get("source"))
        for file in _SPECS.iterdir()
        if file.name.endswith(".toml")
    }
    return tuple(sorted(sources, key=lambda name: (sources[name], name)))


def load_builtin(name: str) -> Experiment:
    """Return an experiment that comes with the package.

    Examples
    --------
    >>> load_builtin("linear-hiding-n").adversary
    'linear_hiding'
    """
    names = builtin_names()
    if name not in names:
        raise ExperimentError(unknown("figure", name, names) + ", or give the path of a TOML file")
    return parse(_SPECS.joinpath(f"{name}.toml").read_text("utf-8"), name, f"{name}.toml")


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
        quick = _table(table, "quick", ("values", "trials", "algorithms"))
        if "values" in quick:
            quick["grid"] = {experiment.parameter: quick.pop("values")}
        return replace(experiment, quick=_experiment({**table, **quick}, name))
    except tomllib.TOMLDecodeError as error:
        raise ExperimentError(f"{file}: not valid TOML: {error}") from error
    except ValueError as error:
        raise ExperimentError(f"{file}: {error}") from error


def _experiment(table: dict[str, Any], name: str) -> Experiment:
    """Return what a file says, but for what --quick leaves of it."""
    name = table.get("name", name)
    table = {"name": name, "title": name, "fixed": {}, **table}
    _check("", table, (*_KEYS, *_TABLES), needed=("adversary", "algorithms", "trials", "grid"))
    own = options_of(_known("adversary", table["adversary"], ADVERSARIES))
    grid = _table(table, "grid", (*DIMENSIONS, *own))
    if len(grid) != 1:
        raise ValueError(f"grid: must change one parameter, got {', '.join(grid) or 'none'}")
    [(parameter, values)] = grid.items()
    _check_list(f"grid.{parameter}", values)
    if not all(_FINITE.is_satisfied_by(value) for value in values):
        raise ValueError(f"grid.{parameter}: must be a list of finite numbers, got {values!r}")
    # Without n_nonzero the problem is dense; all else is needed, and what changes is not fixed.
    needed = [d for d in DIMENSIONS if d not in ("n_nonzero", parameter)]
    _table(table, "fixed", [d for d in DIMENSIONS if d != parameter], needed)
    options = _table(table, "options", [option for option in own if option != parameter])
    if options.get("n_components", 1) != 1:
        raise ValueError("options.n_components: algorithms are compared on one component")
    _table(table, "axes", ("log_x", "label", "guide"))
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}", name):
        raise ValueError(f"name: must be letters, digits, '-', '_' and '.' only, got {name!r}")
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


def _table(
    table: dict[str, Any], key: str, allowed: Iterable[str], needed: Iterable[str] = ()
) -> dict[str, Any]:
    """Return a table of a file with all that is needed and nothing that is not allowed."""
    values: dict[str, Any] = dict(table.get(key, {}))
    _check(f"{key}.", values, allowed, needed)
    return values


def _check(
    prefix: str, values: dict[str, Any], allowed: Iterable[str], needed: Iterable[str]
) -> None:
    for key in values:
        if key not in allowed:
            raise ValueError(f"{prefix}{key}: {unknown('key', key, allowed)}")
    for key in needed:
        if key not in values:
            raise ValueError(f"{prefix}{key}: is missing")
    if prefix != "grid.":
        check(f"the table {prefix[:-1]}" if prefix else "the file", _MAY_BE, values)


def _check_list(key: str, values: Any) -> None:
    if not isinstance(values, list) or not values or len({*map(repr, values)}) < len(values):
        raise ValueError(f"{key}: must be a list of values, none of them twice, got {values!r}")


def _known(key: str, value: Any, choices: Iterable[str]) -> str:
    if value not in choices:
        raise ValueError(f"{key}: {unknown(key, value, choices)}")
    return str(value)
