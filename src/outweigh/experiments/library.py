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

import tomllib
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

from outweigh.adversaries import ADVERSARIES, MEAN_ADVERSARIES, options_of
from outweigh.experiments.algorithms import ALGORITHMS
from outweigh.experiments.errors import ExperimentError, unknown
from outweigh.experiments.fields import Fields
from outweigh.experiments.spec import DIMENSIONS, GUIDES, Experiment, Point

_KEYS = ("name", "title", "about", "source", "adversary", "algorithms", "trials", "seed")
_TABLES = ("fixed", "options", "grid", "axes", "quick")

_SPECS = resources.files("outweigh.experiments").joinpath("specs")


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
    except tomllib.TOMLDecodeError as error:
        raise ExperimentError(f"{file}: not valid TOML: {error}") from error
    fields = Fields(table, file, allowed=(*_KEYS, *_TABLES))

    adversary = fields.choice("adversary", ADVERSARIES)
    task = "mean" if adversary in MEAN_ADVERSARIES else "components"
    parameter, values = _grid(fields, adversary)
    axes = fields.table("axes", allowed=("log_x", "label", "guide"))
    experiment = Experiment(
        name=fields.name("name", default=name),
        title=fields.text("title", default=name),
        about=fields.text("about", default=""),
        source=fields.text("source", default=""),
        adversary=adversary,
        task=task,
        parameter=parameter,
        values=values,
        fixed=_fixed(fields, parameter),
        options=_options(fields, adversary, parameter),
        algorithms=_algorithms(fields, task),
        trials=fields.count("trials"),
        seed=fields.count("seed", default=0, least=0),
        log_x=axes.flag("log_x", default=False),
        label=axes.text("label", default=""),
        guide=axes.choice("guide", ("", *GUIDES), default=""),
        quick=_quick(fields, task, parameter),
    )
    for variant in (experiment, experiment.quickly()):
        for point in variant.points():
            _check_point(fields, experiment, point)
    return experiment


def _grid(fields: Fields, adversary: str) -> tuple[str, tuple[float, ...]]:
    choices = (*DIMENSIONS, *options_of(adversary))
    grid = fields.table("grid", allowed=choices, required=True)
    names = list(grid.values)
    if len(names) != 1:
        fields.fail("grid", f"must change exactly one parameter, got {', '.join(names) or 'none'}")
    return names[0], grid.numbers(names[0], whole=_is_count(names[0]))


def _fixed(fields: Fields, parameter: str) -> dict[str, Any]:
    fixed = fields.table("fixed", allowed=DIMENSIONS)
    _refuse_twice(fixed, parameter)
    # Without n_nonzero the problem is dense; all else is needed.
    needed = [d for d in DIMENSIONS if d != parameter and (d != "n_nonzero" or d in fixed.values)]
    return {name: fixed.count(name) if _is_count(name) else fixed.number(name) for name in needed}


def _options(fields: Fields, adversary: str, parameter: str) -> dict[str, Any]:
    options = fields.table("options", allowed=options_of(adversary))
    _refuse_twice(options, parameter)
    if options.values.get("n_components", 1) != 1:
        options.fail("n_components", "the algorithms are compared on one component; leave it out")
    return dict(options.values)


def _refuse_twice(fields: Fields, parameter: str) -> None:
    if parameter in fields.values:
        fields.fail(parameter, "is also in grid; leave it out here")


def _algorithms(fields: Fields, task: str) -> tuple[str, ...]:
    suited = [a.name for a in ALGORITHMS.values() if a.task == task]
    return fields.choices("algorithms", suited, what=f"algorithm for {task}")


def _quick(fields: Fields, task: str, parameter: str) -> dict[str, Any]:
    quick = fields.table("quick", allowed=("values", "trials", "algorithms"))
    readers: dict[str, Callable[[], Any]] = {
        "values": lambda: quick.numbers("values", whole=_is_count(parameter)),
        "trials": lambda: quick.count("trials"),
        "algorithms": lambda: _algorithms(quick, task),
    }
    return {key: read() for key, read in readers.items() if key in quick.values}


def _check_point(fields: Fields, experiment: Experiment, point: Point) -> None:
    """Refuse a point that no data can have, before anything runs."""
    where = f"at {experiment.parameter} = {point.x:g}"
    n_features, n_nonzero = point.n_features, point.n_nonzero
    for name, least in (("n_samples", 2), ("n_features", 1), ("n_nonzero", 1)):
        count = getattr(point, name)
        if count is not None and count < least:
            fields.fail(name, f"must be at least {least}, got {count} {where}")
    if n_nonzero is not None and n_nonzero > n_features:
        wanted = f"must be at most n_features = {n_features}"
        fields.fail("n_nonzero", f"{wanted}, got {n_nonzero} {where}")
    if not 0.0 <= point.contamination < 0.5:
        fields.fail("contamination", f"must be in [0, 0.5), got {point.contamination:g} {where}")
    for name in experiment.algorithms:
        limit = ALGORITHMS[name].max_features
        if limit is not None and n_features > limit:
            wanted = f"{name!r} takes at most {limit} features"
            fields.fail("algorithms", f"{wanted}, got n_features = {n_features} {where}")


def _is_count(parameter: str) -> bool:
    return parameter.startswith("n_") or parameter == "outlier_nonzero"
