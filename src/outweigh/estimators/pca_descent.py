"""Components and weights for rows of white noise: residual descent, candidates, trimming.

A minimiser of the paper's objective trims the clean spike itself: dropping the tenth of a Gaussian
that lies farthest out takes its variance from 2 to 1.25. So the components are taken out of the
matrix before its norm is minimised, and the descent ends when the *residual* is at the level of
clean data. Which directions are components, and which belong to outliers, is decided by the
variance of the bulk of the rows along them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from outweigh.estimators.components import DenseReader, Reader, orthonormal
from outweigh.estimators.pca_cuts import PCAProblem, cut_outliers
from outweigh.estimators.pca_scatter import robust_variance
from outweigh.estimators.search import SearchOptions, find_weights, is_clean
from outweigh.estimators.weighting import AUTO_BOUND, bound_for
from outweigh.norms import KyFan, LargestEntries
from outweigh.norms.floor import NoiseFloor, noise_floor
from outweigh.objectives import MomentObjective
from outweigh.optimise import Backtracking, Constant, EntropicMirror, Polyak, ProjectedSubgradient
from outweigh.optimise import descend as run
from outweigh.optimise.capped_simplex import CappedSimplex
from outweigh.protocols import (
    Array,
    Callback,
    Norm,
    Result,
    Status,
    StepRule,
)
from outweigh.separation import Cut

__all__ = ["Descent", "PCAProblem", "Steps", "fit_plain", "fit_white"]

_SUPPORT_ROUNDS, _SUPPORT_LEVEL = 3, 0.7


@dataclass(frozen=True, slots=True)
class Steps:
    """Which steps a fit takes; for ablations."""

    choose: bool = True
    residual: bool = True
    cuts: bool = True
    support: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Descent:
    """Components (columns) and weights, and how they were found."""

    components: Array
    weights: Array
    bound: float
    result: Result
    objective: MomentObjective
    floor: NoiseFloor
    cuts: tuple[Cut, ...]


def fit_white(
    problem: PCAProblem,
    reader: Reader,
    contamination: float | None,
    options: SearchOptions,
    callback: Callback | None = None,
    steps: Steps = Steps(),  # noqa: B008 - frozen
) -> Descent:
    """Find components of the clean rows, and weights that leave nothing else above the noise.

    Parameters
    ----------
    problem : PCAProblem
    reader : DenseReader or SparseReader
    contamination : float or None
        None estimates it: descend under a loose bound, and again under the share it removed.
    options : SearchOptions
    callback : callable, optional
    steps : Steps

    Returns
    -------
    Descent
    """
    bound = AUTO_BOUND if contamination is None else contamination
    start = problem.domain(bound).reference()
    excess = problem.excess(start)
    if steps.choose:
        components = reader.initial(excess, problem.samples, problem.sample_weight)
    else:
        components = reader.plain(excess)
    result = None
    for _ in range(2 if steps.residual else 0):
        domain = problem.domain(bound)
        result = _descend_residual(problem, reader, components, domain, options, callback)
        components = reader.refined(problem.excess(result.weights), components)
        if contamination is None:
            bound = min(domain.total_variation(result.weights), AUTO_BOUND)
        elif _leaves_clean(problem, reader, components, domain, result, options):
            # Beside the better components too; another descent would end where this one did.
            break
    if contamination is None:
        bound = bound_for(bound) if bound > 0 else 0.0
    domain = problem.domain(bound)
    if result is None:
        objective = _residual(problem, reader, components)
        result = _unmoved(objective, domain)
    weights = domain.project(result.weights)
    cuts: tuple[Cut, ...] = ()
    if steps.cuts:
        weights, cuts = cut_outliers(problem, reader, domain, weights, components)
        if cuts:
            components = reader.refined(problem.excess(weights), components)
    if (
        steps.support
        and not isinstance(reader, DenseReader)
        and domain.total_variation(weights) > 0
    ):
        weights, components = _refit_support(problem, reader, domain, weights, components)
    objective = _residual(problem, reader, components)
    floor = _floor(problem, objective.norm, domain, weights, options.kurtosis)
    return Descent(components, weights, bound, result, objective, floor, cuts)


def fit_plain(
    problem: PCAProblem,
    reader: Reader,
    contamination: float | None,
    options: SearchOptions,
    callback: Callback | None = None,
) -> Descent:
    r"""Run the paper's algorithm: minimise the norm of the whole matrix, read the components off.

    Any weights with :math:`f(w) \le \rho + O(\delta)` suffice for the theorem. With
    ``options.stop_at_floor`` the descent ends there: :math:`\rho` by the robust variance along the
    candidates, :math:`\delta` the level of clean data.
    """
    bound = AUTO_BOUND if contamination is None else contamination
    objective = MomentObjective(problem.samples, reader.norm, problem.centred)
    domain = problem.domain(bound)
    start = domain.reference()
    spikes = _spikes(problem, reader, start)
    height = float(spikes.sum() if isinstance(reader, DenseReader) else np.linalg.norm(spikes))
    noise = _floor(problem, reader.residual_norm, domain, start, options.kurtosis)
    floor = NoiseFloor(height + noise.median, height + noise.upper)
    target = floor.median if options.stop_at_floor else 0.0

    def clean(value: float, weights: Array) -> bool:
        return value <= floor.median

    result = _run(objective, domain, options, target, clean, callback)
    if contamination is None:
        bound = min(domain.total_variation(result.weights), AUTO_BOUND)
        result = _run(objective, problem.domain(bound), options, target, clean, callback)
    components = reader.plain(problem.excess(result.weights))
    return Descent(components, result.weights, bound, result, objective, floor, ())


def _spikes(problem: PCAProblem, reader: Reader, start: Array) -> Array:
    found = reader.initial(problem.excess(start), problem.samples, problem.sample_weight)
    projected = problem.samples.project(found)
    variances = [robust_variance(column, problem.sample_weight) for column in projected.T]
    return np.maximum(np.asarray(variances) - 1.0, 0.0)


def _residual(problem: PCAProblem, reader: Reader, components: Array) -> MomentObjective:
    removed = orthonormal(components)
    # Components are read off the whole matrix at the weights that a descent verified last.
    remembered = getattr(problem.samples, "remembers_moments", False)
    return MomentObjective(
        problem.samples,
        reader.residual_norm,
        problem.centred,
        removed=removed,
        full_precision=remembered,
    )


def _floor(
    problem: PCAProblem,
    norm: Norm,
    domain: CappedSimplex,
    weights: Array,
    kurtosis: float,
) -> NoiseFloor:
    return noise_floor(norm, domain.n_effective(weights), problem.n_ambient, kurtosis)


def _descend_residual(
    problem: PCAProblem,
    reader: Reader,
    components: Array,
    domain: CappedSimplex,
    options: SearchOptions,
    callback: Callback | None,
) -> Result:
    objective = _residual(problem, reader, components)
    if not isinstance(reader, DenseReader):
        return find_weights(objective, domain, options, callback)
    start = domain.reference()
    floor = _floor(problem, objective.norm, domain, start, options.kurtosis)
    spread = replace(objective, norm=KyFan(1, level=floor.median))
    target = floor.median if options.stop_at_floor else 0.0

    def clean(value: float, weights: Array) -> bool:
        # The top eigenvalue has a narrow law; steps below its upper quantile chase noise.
        level = _floor(problem, objective.norm, domain, weights, options.kurtosis)
        return value <= level.upper

    return _run(spread, domain, options, target, clean, callback)


def _leaves_clean(
    problem: PCAProblem,
    reader: Reader,
    components: Array,
    domain: CappedSimplex,
    result: Result,
    options: SearchOptions,
) -> bool:
    """Whether beside these components, too, the weights of a descent are at the clean level."""
    if result.status is not Status.REACHED:
        return False
    objective = _residual(problem, reader, components)
    value = objective.verify(result.weights).value
    if isinstance(reader, DenseReader):
        level = _floor(problem, objective.norm, domain, result.weights, options.kurtosis)
        return value <= level.upper
    return is_clean(value, result.weights, objective, domain, options)


def _run(
    objective: MomentObjective,
    domain: CappedSimplex,
    options: SearchOptions,
    target: float,
    clean: Callable[[float, Array], bool],
    callback: Callback | None,
) -> Result:
    """Descend toward `target` until `clean`."""
    start = domain.reference()
    update = EntropicMirror(domain) if options.solver == "mirror" else ProjectedSubgradient(domain)
    return run(
        objective,
        update,
        _rule(objective, domain, options, target),
        start,
        max_iter=options.max_iter,
        reached=clean if options.stop_at_floor else None,
        callback=callback,
    )


def _rule(
    objective: MomentObjective, domain: CappedSimplex, options: SearchOptions, target: float
) -> StepRule:
    if options.solver == "backtracking":
        return Backtracking(tol=options.tol)
    if options.solver != "constant":
        return Polyak(target, tol=options.tol)
    # The convex bound R / (L sqrt(T)): D has radius sqrt(eps / n), a subgradient at most the
    # largest squared row in every entry.
    n = float(domain.metric.sum())
    slack = max(float(domain.caps.sum()) - 1.0, 0.0)
    largest = float(objective.samples.squared_distances(np.zeros(objective.n_features)).max())
    if largest <= 0.0:
        return Constant(0.0)
    radius = np.sqrt(slack / (1.0 + slack) / n)
    return Constant.convex(float(radius), float(np.sqrt(n)) * largest, options.max_iter)


def _unmoved(objective: MomentObjective, domain: CappedSimplex) -> Result:
    update = ProjectedSubgradient(domain)
    start = domain.reference()
    return replace(run(objective, update, Constant(0.0), start, max_iter=1), status=Status.STALLED)


def _refit_support(
    problem: PCAProblem,
    reader: Reader,
    domain: CappedSimplex,
    weights: Array,
    components: Array,
) -> tuple[Array, Array]:
    """Descend once more on the columns of the components alone, where noise is least."""
    for _ in range(_SUPPORT_ROUNDS):
        support = np.flatnonzero(components.any(axis=1))
        size = support.size
        restricted = MomentObjective(
            problem.samples.columns(support),
            LargestEntries(size * size),
            problem.centred,
            removed=orthonormal(components[support]),
        )
        target = _SUPPORT_LEVEL * float(np.sqrt(size * (size + 1) / domain.n_effective(weights)))
        update = ProjectedSubgradient(domain)
        found = run(restricted, update, Polyak(target), weights, max_iter=40)
        weights = found.weights
        before = components
        components = reader.refined(problem.excess(weights), components)
        if np.array_equal(before != 0, components != 0):
            break
    return weights, components
