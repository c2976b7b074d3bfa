"""What many different fits answer: saved, and compared after a change of the library.

``save FILE`` fits the study and writes what came out; ``compare FILE`` fits it again, counts the
fits that are as they were, and shows those that are not. Only public names of the library are
used, so that the same study runs before and after a change of what is inside.

python -m benchmarks freeze save FILE [--only PATTERN]
python -m benchmarks freeze compare FILE [--only PATTERN] [--rtol X]
"""

from __future__ import annotations

import contextlib
import fnmatch
import json
import math
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from benchmarks import WHITE
from benchmarks.options import asked
from benchmarks.tables import format_lines
from outweigh import RobustMean, RobustPCA, RobustSparseMean, RobustSparsePCA
from outweigh.adversaries import MEAN_ADVERSARIES, make

# Neither the seeds of the tests nor those of the other studies.
FIRST_SEED = 5000
# What a chunked fit may bring home: everything, about half of the columns, next to nothing.
ALL, HALF, LITTLE = 2**30, 400_000, 50_000

Array = np.ndarray


@dataclass(frozen=True)
class Problem:
    """Rows, what a fit of them should find, and what one that sees through the attack finds.

    `units` divides the features of a mean before errors are measured; no truth, no errors.
    """

    X: Any
    truth: Array | None = None
    oracle: Array | None = None
    units: float | Array = 1.0
    sample_weight: Array | None = None


@dataclass(frozen=True)
class Case:
    """A fit of the study; with a `budget` its rows are a Dask array."""

    name: str
    estimator: Any
    draw: Callable[[], Problem]
    budget: int | None = None


@dataclass(frozen=True)
class Record:
    """What a fit answered, or the text of the error that it raised."""

    answer: Array = field(default_factory=lambda: np.empty(0))
    weights: Array = field(default_factory=lambda: np.empty(0))
    # All that is one number or word: see `observe`.
    facts: dict[str, Any] = field(default_factory=dict)
    # How far apart two answers are is told in this unit.
    unit: float = 1.0
    units: Array = field(default_factory=lambda: np.ones(1))
    seconds: float = 0.0

    @property
    def ratio(self) -> float:
        """Error over that of the oracle; NaN without a truth."""
        error = self.facts.get("error")
        return math.nan if error is None else error / self.unit


# Problems


def mean_problem(
    attack: str,
    n: int = 800,
    d: int = 80,
    k: int = 5,
    eps: float = 0.1,
    *,
    seed: int = FIRST_SEED,
    dense: bool = False,
    units: float | Array = 1.0,
    weighted: bool = False,
    mixing: Array | None = None,
    **options: Any,
) -> Problem:
    """Return an attacked sample; the oracle is the mean of its clean rows, k entries or all.

    `units` multiplies the features, `weighted` draws integer weights, `mixing` is a root of the
    covariance that the noise gets instead of the identity.
    """
    sample = make(attack, n, d, k, eps, random_state=seed, **options)
    X = sample.X if mixing is None else sample.truth + (sample.X - sample.truth) @ mixing
    sample_weight = integers(n, seed) if weighted else None
    kept = sample.inliers
    oracle = np.average(
        X[kept], axis=0, weights=None if sample_weight is None else sample_weight[kept]
    )
    if not dense:
        oracle = largest(oracle, k)
    return Problem(X * units, sample.truth * units, oracle * units, units, sample_weight)


def component_problem(
    attack: str,
    n: int = 800,
    d: int = 60,
    k: int = 5,
    eps: float = 0.1,
    *,
    seed: int = FIRST_SEED,
    dense: bool = False,
    scales: float | Array = 1.0,
    noise: Array | None = None,
    shift: float = 0.0,
    weighted: bool = False,
    **options: Any,
) -> Problem:
    """Return an attacked sample; the oracle reads the covariance of its clean rows.

    With `scales` the noise is not white: the features are multiplied by them, and the truth is the
    leading eigenvectors of the covariance that follows. `noise` is a covariance that the noise has
    and that is known: the truth is the eigenvectors of what the clean rows have beyond it. `shift`
    is added to every entry.
    """
    sample = make(attack, n, d, k, eps, random_state=seed, **options)
    spikes = (sample.truth.T * np.asarray(sample.spikes)) @ sample.truth
    factor = np.diag(np.broadcast_to(scales, d)) if noise is None else root(noise)
    known = np.zeros((d, d)) if noise is None else noise
    covariance = factor @ (np.eye(d) + spikes) @ factor - known
    read = partial(leading, count=len(sample.truth), k=None if dense else k)
    X = sample.X @ factor + shift
    sample_weight = integers(n, seed) if weighted else None
    kept = sample.inliers
    clean = np.cov(X[kept].T, aweights=None if sample_weight is None else sample_weight[kept])
    return Problem(X, read(covariance), read(clean - known), sample_weight=sample_weight)


def integers(n: int, seed: int) -> Array:
    """Return a sample weight for each row: 1, 2, 3 or 4."""
    return np.random.default_rng(seed).integers(1, 5, n).astype(float)


def zeros_problem(k: int | None = None) -> Problem:
    """Return sparse rows, nine entries of ten zero, of which a tenth is wrong."""
    n, d = 800, 60
    rng = np.random.default_rng(FIRST_SEED)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.1) * math.sqrt(10.0)
    X[: n // 10, 20:25] += 2.0
    mean = X[n // 10 :].mean(axis=0)
    return Problem(sp.csr_matrix(X), np.zeros(d), mean if k is None else largest(mean, k))


def clean_rows(n: int = 800, d: int = 80, k: int | None = None) -> Problem:
    """Return Gaussian rows of mean zero; without `k` the oracle is their mean."""
    X = np.random.default_rng(FIRST_SEED).standard_normal((n, d))
    mean = X.mean(axis=0)
    return Problem(X, np.zeros(d), mean if k is None else largest(mean, k))


def tiny(n: int = 20, d: int = 3) -> Problem:
    """Return a table of which two rows are wrong."""
    X = np.random.default_rng(FIRST_SEED).standard_normal((n, d))
    X[:2] += 8.0
    return Problem(X, np.zeros(d), X[2:].mean(axis=0))


def tiny_component(n: int = 20, d: int = 3) -> Problem:
    """Return a table with one clear component of which two rows are wrong."""
    X = np.random.default_rng(FIRST_SEED).standard_normal((n, d))
    X[:, 0] *= 4.0
    X[:2, 2] += 15.0
    truth = np.eye(d)[:1]
    return Problem(X, truth, leading(np.cov(X[2:].T), 1, None))


def far(problem: Problem, distance: float = 1e6) -> Problem:
    """Return the rows with five of them put far away, in as many directions."""
    X = np.array(problem.X)
    X[:5] += distance * np.random.default_rng(FIRST_SEED).standard_normal((5, X.shape[1]))
    return replace(problem, X=X)


def as_sparse(problem: Problem) -> Problem:
    return replace(problem, X=sp.csr_matrix(problem.X))


def autoregressive(d: int, correlation: float = 0.6) -> Array:
    """Return the correlations of neighbours, of theirs, and so on."""
    return correlation ** np.abs(np.subtract.outer(np.arange(d), np.arange(d)))


def root(covariance: Array) -> Array:
    """Return the symmetric square root."""
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray((vectors * np.sqrt(values)) @ vectors.T)


def largest(vector: Array, k: int) -> Array:
    """Return the vector with all but its k largest entries set to zero."""
    kept = np.zeros_like(vector)
    chosen = np.argsort(-np.abs(vector), kind="stable")[:k]
    kept[chosen] = vector[chosen]
    return kept


def leading(covariance: Array, count: int, k: int | None) -> Array:
    """Return leading eigenvectors as rows; with k each of its k largest entries, one by one."""
    if k is None:
        return np.linalg.eigh(covariance)[1][:, : -count - 1 : -1].T
    found = np.zeros((count, len(covariance)))
    rest = covariance.copy()
    for row in found:
        support = np.flatnonzero(largest(np.linalg.eigh(rest)[1][:, -1], k))
        row[support] = np.linalg.eigh(rest[np.ix_(support, support)])[1][:, -1]
        outside = np.eye(len(rest)) - np.outer(row, row)
        rest = outside @ rest @ outside
    return found


# The study


def dense_mean(**options: Any) -> RobustMean:
    """Return the mean of unit, uncorrelated noise, unless told otherwise."""
    return RobustMean(**{**WHITE, **options})


def sparse_mean(*n_nonzero: int, **options: Any) -> RobustSparseMean:
    """Return the sparse mean of the same."""
    return RobustSparseMean(*n_nonzero, **{**WHITE, **options})


def study() -> Iterator[Case]:
    """Yield all cases."""
    yield from means_under_attack()
    yield from means_otherwise()
    yield from components_under_attack()
    yield from components_otherwise()
    yield from larger()
    yield from chunked()


def means_under_attack() -> Iterator[Case]:
    """Yield both means under every attack, the share known, and under some unknown."""
    for attack in MEAN_ADVERSARIES:
        yield Case(
            f"sparse mean/{attack}",
            sparse_mean(5, contamination=0.1),
            partial(mean_problem, attack),
        )
        yield Case(
            f"mean/{attack}",
            dense_mean(contamination=0.1),
            partial(mean_problem, attack, d=40, dense=True),
        )
    for attack in ("linear_hiding", "constant_bias", "tight_cluster", "multi_direction"):
        yield Case(
            f"sparse mean/auto, {attack}",
            sparse_mean(5),
            partial(mean_problem, attack, n=1500, d=200),
        )
        yield Case(
            f"mean/auto, {attack}",
            dense_mean(),
            partial(mean_problem, attack, n=1500, d=100, dense=True),
        )


def means_otherwise() -> Iterator[Case]:
    """Yield means of other units, shapes, knowledge and rows."""
    attack = "wrong_support"
    scaled = partial(mean_problem, attack, units=np.logspace(-1, 2, 80))
    for label, options in (
        ("auto", {"scale": "auto"}),
        ("mad", {"scale": "mad"}),
        ("none", {"scale": None}),
    ):
        draw = partial(mean_problem, attack) if label == "none" else scaled
        yield Case(f"sparse mean/scale {label}", sparse_mean(5, contamination=0.1, **options), draw)
        yield Case(
            f"mean/scale {label}",
            dense_mean(contamination=0.1, **options),
            partial(draw, dense=True),
        )
    for solver in ("backtracking", "mirror"):
        yield Case(
            f"sparse mean/{solver}",
            sparse_mean(5, contamination=0.1, solver=solver, max_iter=100),
            partial(mean_problem, attack),
        )
        yield Case(
            f"mean/{solver}",
            dense_mean(contamination=0.1, solver=solver, max_iter=100),
            partial(mean_problem, attack, d=40, dense=True),
        )
    correlations = autoregressive(60)
    coloured = partial(mean_problem, attack, d=60, mixing=root(correlations))
    yield Case(
        "sparse mean/covariance given",
        sparse_mean(5, contamination=0.1, covariance=correlations),
        coloured,
    )
    yield Case(
        "mean/covariance given", dense_mean(covariance=correlations), partial(coloured, dense=True)
    )
    yield Case("sparse mean/n_nonzero unknown", sparse_mean(), partial(mean_problem, attack))
    yield Case(
        "sparse mean/n_nonzero unknown, hiding",
        sparse_mean(contamination=0.1),
        partial(mean_problem, "linear_hiding", d=200),
    )
    weighted = partial(mean_problem, attack, weighted=True)
    yield Case("sparse mean/sample weights", sparse_mean(5, contamination=0.1), weighted)
    yield Case("mean/sample weights", dense_mean(), partial(weighted, dense=True))
    yield Case("sparse mean/clean", sparse_mean(5), partial(clean_rows, k=5))
    yield Case("mean/clean", dense_mean(), clean_rows)
    yield Case("mean/clean, a tenth said wrong", dense_mean(contamination=0.1), clean_rows)
    yield Case(
        "sparse mean/n < d",
        sparse_mean(5, contamination=0.1),
        partial(mean_problem, "constant_bias", n=150, d=300),
    )
    yield Case(
        "mean/n < d", dense_mean(), partial(mean_problem, "constant_bias", n=100, d=150, dense=True)
    )
    yield Case("sparse mean/tiny", sparse_mean(1), tiny)
    yield Case("mean/tiny", dense_mean(), tiny)
    yield Case("sparse mean/far rows", sparse_mean(5), lambda: far(mean_problem("constant_bias")))
    yield Case(
        "mean/far rows", dense_mean(), lambda: far(mean_problem("constant_bias", dense=True))
    )
    yield Case(
        "sparse mean/sparse rows, full",
        sparse_mean(5, contamination=0.1),
        lambda: as_sparse(mean_problem(attack)),
    )
    yield Case("sparse mean/sparse rows", sparse_mean(5, scale="auto"), partial(zeros_problem, k=5))
    yield Case("mean/sparse rows", dense_mean(scale="auto"), zeros_problem)
    large = partial(mean_problem, attack, n=8000, d=40)
    yield Case(
        "sparse mean/subsample",
        sparse_mean(5, contamination=0.1, subsample=1000, random_state=0),
        large,
    )
    yield Case(
        "mean/subsample", dense_mean(subsample=1000, random_state=0), partial(large, dense=True)
    )
    yield Case(
        "mean/a third wrong",
        dense_mean(contamination=0.33),
        partial(mean_problem, attack, eps=0.33, dense=True),
    )


def components_under_attack() -> Iterator[Case]:
    """Yield both kinds of components under every attack, the share known and unknown."""
    unit: dict[str, Any] = {"outlier_norm": "unit"}
    for label, attack, options in (
        ("spike of 40", "spiked_mixture", {}),
        ("spike of 2", "spiked_mixture", {**unit, "outlier_spike": 2.0}),
        ("two spikes", "two_outlier_spikes", {}),
        ("cluster", "spike_and_cluster", {}),
    ):
        draw = partial(component_problem, attack, n=1000, d=100, **options)
        yield Case(f"sparse pca/{label}", RobustSparsePCA(1, 5, contamination=0.1), draw)
        yield Case(f"sparse pca/auto, {label}", RobustSparsePCA(1, 5), draw)
    for d in (30, 100):
        draw = partial(component_problem, "dense_spike", n=1500, d=d, k=d, dense=True)
        yield Case(f"pca/dense spike, d={d}", RobustPCA(1, contamination=0.1), draw)
        yield Case(f"pca/auto, dense spike, d={d}", RobustPCA(1), draw)
    yield Case(
        "pca/cluster", RobustPCA(1), partial(component_problem, "spike_and_cluster", dense=True)
    )
    two: dict[str, Any] = {**unit, "spike": (2.0, 1.5), "n_components": 2}
    draw = partial(component_problem, "spiked_mixture", n=1500, **two)
    yield Case("sparse pca/two components", RobustSparsePCA(2, 5, contamination=0.1), draw)
    yield Case(
        "sparse pca/two that overlap", RobustSparsePCA(2, 5), partial(draw, overlapping=True)
    )
    yield Case("pca/two components", RobustPCA(2), partial(draw, dense=True))


def components_otherwise() -> Iterator[Case]:
    """Yield components of noise that is not white, and of other shapes, knowledge and rows."""
    unit: dict[str, Any] = {"outlier_norm": "unit"}
    decaying = np.logspace(0, -1.5, 40)
    coloured = partial(
        component_problem, "spiked_mixture", d=40, scales=decaying, spike=20.0, outlier_spike=40.0
    )
    yield Case("pca/coloured", RobustPCA(1, contamination=0.1), partial(coloured, dense=True))
    yield Case("pca/coloured, auto", RobustPCA(1), partial(coloured, dense=True))
    yield Case("sparse pca/coloured", RobustSparsePCA(1, 5, contamination=0.1), coloured)
    yield Case("sparse pca/coloured, auto", RobustSparsePCA(1, 5), coloured)
    yield Case("pca/coloured, weights", RobustPCA(1), partial(coloured, dense=True, weighted=True))
    shifted = partial(component_problem, "spiked_mixture", shift=3.0, **unit)
    yield Case("sparse pca/mean not zero", RobustSparsePCA(1, 5), shifted)
    yield Case("pca/mean not zero", RobustPCA(1), partial(shifted, dense=True))
    plain = partial(component_problem, "spiked_mixture", **unit)
    yield Case(
        "pca/assume centered", RobustPCA(1, assume_centered=True), partial(plain, dense=True)
    )
    yield Case("sparse pca/n_nonzero unknown", RobustSparsePCA(1), plain)
    yield Case("sparse pca/sample weights", RobustSparsePCA(1, 5), partial(plain, weighted=True))
    yield Case("pca/scale mad", RobustPCA(1, scale="mad"), partial(coloured, dense=True))
    yield Case("sparse pca/scale mad", RobustSparsePCA(1, 5, scale="mad"), plain)
    noise = autoregressive(60)
    correlated = partial(plain, noise=noise, spike=3.0)
    yield Case(
        "pca/covariance given", RobustPCA(1, covariance=noise), partial(correlated, dense=True)
    )
    yield Case("sparse pca/covariance given", RobustSparsePCA(1, 5, covariance=noise), correlated)
    for solver in ("backtracking", "mirror"):
        yield Case(
            f"sparse pca/{solver}",
            RobustSparsePCA(1, 5, contamination=0.1, solver=solver, max_iter=100),
            plain,
        )
    yield Case(
        "pca/backtracking",
        RobustPCA(1, solver="backtracking", max_iter=100),
        partial(plain, dense=True),
    )
    narrow = partial(component_problem, "spiked_mixture", n=150, d=250, spike=6.0, **unit)
    yield Case("sparse pca/n < d", RobustSparsePCA(1, 5), narrow)
    yield Case("pca/n < d", RobustPCA(1), partial(narrow, d=200, dense=True))
    yield Case("pca/tiny", RobustPCA(1), tiny_component)
    yield Case("sparse pca/tiny", RobustSparsePCA(1, 1), tiny_component)
    yield Case("pca/far rows", RobustPCA(1), lambda: far(plain(dense=True)))
    yield Case("sparse pca/far rows", RobustSparsePCA(1, 5), lambda: far(plain()))
    yield Case("pca/clean", RobustPCA(1), partial(plain, eps=0.0, dense=True))
    yield Case("sparse pca/clean", RobustSparsePCA(1, 5), partial(plain, eps=0.0))
    # Components do not take them, and the error says what to do.
    yield Case("pca/sparse rows", RobustPCA(1), lambda: as_sparse(plain()))
    yield Case(
        "sparse pca/subsample",
        RobustSparsePCA(1, 5, subsample=1000, random_state=0),
        partial(plain, n=8000, d=40),
    )


def larger() -> Iterator[Case]:
    """Yield sizes at which the ways around large matrices are taken."""
    seed = FIRST_SEED + 1
    for attack in ("linear_hiding", "wrong_support", "multi_direction", "tail_flipping"):
        draw = partial(mean_problem, attack, n=3000, d=800, k=20, seed=seed)
        yield Case(f"larger/sparse mean, {attack}", sparse_mean(20, contamination=0.1), draw)
        yield Case(f"larger/sparse mean, auto, {attack}", sparse_mean(20), draw)
        dense = partial(draw, d=400, dense=True)
        yield Case(f"larger/mean, {attack}", dense_mean(contamination=0.1), dense)
        yield Case(f"larger/mean, auto, {attack}", dense_mean(), dense)
    for attack in ("spiked_mixture", "two_outlier_spikes", "spike_and_cluster"):
        draw = partial(component_problem, attack, n=2000, d=300, k=8, seed=seed)
        yield Case(f"larger/sparse pca, {attack}", RobustSparsePCA(1, 8), draw)
        yield Case(f"larger/pca, {attack}", RobustPCA(1), partial(draw, dense=True))


def chunked() -> Iterator[Case]:
    """Yield Dask rows, with budgets that hold all of them, half of the columns, and little."""
    problem = partial(mean_problem, "wrong_support", n=2000, d=60)
    scaled = partial(problem, units=np.logspace(0, 2, 60))
    spike = partial(component_problem, "spiked_mixture", n=2000, outlier_norm="unit")
    decaying = partial(spike, scales=np.logspace(0, -1.5, 60), spike=20.0, outlier_spike=40.0)
    known: dict[str, Any] = {"contamination": 0.1}
    for label, budget in (("all", ALL), ("half", HALF), ("little", LITTLE)):
        yield Case(f"dask/sparse mean, {label}", sparse_mean(5, **known), problem, budget=budget)
        yield Case(
            f"dask/sparse pca, {label}", RobustSparsePCA(1, 5, **known), spike, budget=budget
        )
    for label, estimator, draw in (
        ("mean", dense_mean(**known), partial(problem, dense=True)),
        ("mean, auto", dense_mean(), partial(problem, dense=True)),
        ("sparse mean, auto, scaled", sparse_mean(5, scale="auto"), scaled),
        ("sparse mean, n_nonzero unknown", sparse_mean(), problem),
        ("pca", RobustPCA(1), partial(spike, dense=True)),
        ("pca, coloured", RobustPCA(1), partial(decaying, dense=True)),
        (
            "mean, subsample",
            dense_mean(subsample=500, random_state=0),
            partial(problem, dense=True),
        ),
    ):
        yield Case(f"dask/{label}", estimator, draw, budget=HALF)


# Fitting


def observe(case: Case) -> Record:
    """Return what the fit of a case answers."""
    problem = case.draw()
    start = time.perf_counter()
    try:
        with contextlib.ExitStack() as stack:
            stack.enter_context(warnings.catch_warnings())
            warnings.simplefilter("ignore")
            X = problem.X
            if case.budget is not None:
                X = stack.enter_context(lazily(X, case.budget))
            fitted = case.estimator.fit(X, sample_weight=problem.sample_weight)
            answer = np.asarray(getattr(fitted, "location_", None))
            if answer.ndim == 0:
                answer = np.asarray(fitted.components_)
            weights = np.asarray(fitted.weights_)
    # Whatever a fit raises is part of what is compared.
    except Exception as error:
        return Record(facts={"raised": f"{type(error).__name__}: {error}"})
    seconds = time.perf_counter() - start
    units = np.broadcast_to(np.asarray(problem.units, float), answer.shape[-1:])
    facts: dict[str, Any] = {
        name: getattr(fitted, name, None)
        for name in ("contamination_", "contamination_bound_", "n_iter_", "n_passes_", "objective_")
    }
    facts["status"] = fitted.certificate_.status.name
    unit = float(np.linalg.norm(answer / units))
    if problem.truth is not None and problem.oracle is not None:
        facts["error"] = distance(answer, problem.truth, units)
        # An oracle may be right to the last digit.
        unit = distance(problem.oracle, problem.truth, units) or unit
    return Record(answer, weights, facts, unit, units, seconds)


@contextlib.contextmanager
def lazily(X: Array, budget: int) -> Iterator[Any]:
    """Hand out the rows as five chunks, of which a fit may hold as many bytes."""
    import dask
    import dask.array as da

    with dask.config.set({"outweigh.gathered-bytes": budget}, scheduler="synchronous"):
        yield da.from_array(X, chunks=(len(X) // 5, -1))


def distance(answer: Array, truth: Array, units: Array) -> float:
    """Return |answer - truth| of means in their units, of components that of the projectors."""
    if answer.ndim == 1:
        return float(np.linalg.norm((answer - truth) / units))
    ours, theirs = (np.linalg.qr(rows.T)[0] for rows in (answer, truth))
    return float(np.linalg.norm(ours @ ours.T - theirs @ theirs.T))


def run(only: str | None) -> dict[str, Record]:
    """Return what every chosen case answers."""
    chosen = [case for case in study() if matches(case.name, only)]
    names = [case.name for case in chosen]
    assert len(set(names)) == len(names), "two cases have one name"
    with threadpool_limits(1):
        return {case.name: observe(case) for case in chosen}


def matches(name: str, only: str | None) -> bool:
    return only is None or fnmatch.fnmatch(name, f"*{only}*")


# Files


def write(path: Path, records: dict[str, Record]) -> None:
    """Write the arrays and, as one JSON text, the rest."""
    arrays = {}
    for number, record in enumerate(records.values()):
        for name in ("answer", "weights", "units"):
            arrays[f"{number}.{name}"] = getattr(record, name)
    rest = [
        {"name": name, "facts": record.facts, "unit": record.unit, "seconds": record.seconds}
        for name, record in records.items()
    ]
    # A file object: to a path NumPy would append its suffix.
    with path.open("wb") as file:
        np.savez_compressed(
            file, rest=np.array(json.dumps(rest, default=lambda value: value.item())), **arrays
        )


def read(path: Path) -> dict[str, Record]:
    """Return what `write` wrote."""
    with np.load(path) as arrays:
        return {
            entry.pop("name"): Record(
                answer=arrays[f"{number}.answer"],
                weights=arrays[f"{number}.weights"],
                units=arrays[f"{number}.units"],
                **entry,
            )
            for number, entry in enumerate(json.loads(str(arrays["rest"])))
        }


# Comparing


def moved(before: Record, after: Record) -> float:
    """Return how far the answer moved, in units of the oracle's error or of its own length."""
    if before.answer.shape != after.answer.shape:
        return math.inf
    difference = after.answer - before.answer
    if before.answer.ndim == 2:
        # A component and its negative are the same.
        signs = np.where(np.sum(after.answer * before.answer, axis=1) < 0.0, -1.0, 1.0)
        difference = signs[:, None] * after.answer - before.answer
    return float(np.linalg.norm(difference / before.units)) / before.unit


def unchanged(before: Record, after: Record, rtol: float) -> bool:
    """Return whether all that was recorded is the same, to the last bit without `rtol`.

    With it: whether the answer in its unit, the weights in units of their length and the share
    removed differ by at most as much, and the status and the error raised do not.
    """
    if rtol == 0.0:
        return (
            np.array_equal(before.answer, after.answer)
            and np.array_equal(before.weights, after.weights)
            and before.facts == after.facts
        )
    if before.weights.shape != after.weights.shape:
        return False
    length = float(np.linalg.norm(before.weights))
    removed = [record.facts.get("contamination_", 0.0) for record in (before, after)]
    return (
        moved(before, after) <= rtol
        and float(np.linalg.norm(after.weights - before.weights)) <= rtol * length
        and abs(removed[1] - removed[0]) <= rtol
        and all(before.facts.get(key) == after.facts.get(key) for key in ("status", "raised"))
    )


def line(name: str, before: Record, after: Record) -> dict[str, str]:
    """Return the line of a case that moved."""

    def change(key: str, show: Callable[[Any], str] = str) -> str:
        values = [record.facts.get(key) for record in (before, after)]
        return arrow(*("-" if value is None else show(value) for value in values))

    def percent(share: float) -> str:
        return f"{100.0 * share:.2f} %"

    return {
        "fit": name,
        "moved": f"{moved(before, after):.2g}",
        "error / oracle": arrow(f"{before.ratio:.3f}", f"{after.ratio:.3f}"),
        "removed": change("contamination_", percent),
        "bound": change("contamination_bound_", percent),
        "objective": change("objective_", lambda value: f"{value:.5g}"),
        "n_iter": change("n_iter_"),
        "passes": change("n_passes_"),
        "status": change("status"),
        "raised": change("raised"),
    }


def arrow(before: str, after: str) -> str:
    return before if before == after else f"{before} -> {after}"


def compare(before: dict[str, Record], after: dict[str, Record], rtol: float) -> str:
    """Return the table of what moved and its summary."""
    common = [name for name in after if name in before]
    changed = [name for name in common if not unchanged(before[name], after[name], rtol)]
    same = "bitwise equal" if rtol == 0.0 else f"equal within {rtol:g}"
    parts = [f"{len(common) - len(changed)} of {len(common)} fits {same}"]
    absent = [name for name in after if name not in before]
    if absent:
        parts.append(f"not in the file: {', '.join(absent)}")
    if changed:
        parts.append(format_lines([line(name, before[name], after[name]) for name in changed]))
    seconds = [sum(records[name].seconds for name in common) for records in (before, after)]
    parts.append(f"seconds in fits: {seconds[0]:.1f} -> {seconds[1]:.1f}")
    parts.append(summary({name: (before[name], after[name]) for name in common}))
    return "\n\n".join(parts)


def summary(pairs: dict[str, tuple[Record, Record]]) -> str:
    """Return the geometric mean of error after / error before, and where it is largest."""
    ratios = {
        name: after.facts["error"] / before.facts["error"]
        for name, (before, after) in pairs.items()
        if before.facts.get("error") and after.facts.get("error") is not None
    }
    if not ratios:
        return "no fit with a truth on both sides"
    # A fit that has become exact would make the mean zero.
    mean = math.exp(float(np.mean([math.log(max(ratio, 1e-12)) for ratio in ratios.values()])))
    worst, best = max(ratios, key=ratios.__getitem__), min(ratios, key=ratios.__getitem__)
    return (
        f"error after / before: geometric mean {mean:.5f} over {len(ratios)} fits; "
        f"worst {ratios[worst]:.3f} ({worst}), best {ratios[best]:.3f} ({best})"
    )


def main(argv: list[str]) -> None:
    """Save the study, or compare it with one that was saved."""
    arguments = asked(
        __name__,
        __doc__,
        argv,
        "what",
        "file",
        what={"choices": ("save", "compare")},
        file={"type": Path},
        only={"metavar": "PATTERN", "help": "fits whose names contain it; * matches"},
        rtol=(0.0, "smaller moves are not shown"),
    )
    start = time.perf_counter()
    # Read first: a file that is missing should not cost the time of a study.
    before = read(arguments.file) if arguments.what == "compare" else {}
    after = run(arguments.only)
    if not after:
        sys.exit(f"--only {arguments.only!r} matches no fit")
    if arguments.what == "compare":
        print(compare(before, after, arguments.rtol))
        return
    write(arguments.file, after)
    for name, record in after.items():
        if "raised" in record.facts:
            print(f"{name} raised {record.facts['raised']}")
    print(f"{len(after)} fits, {time.perf_counter() - start:.0f} s, saved {arguments.file}")
