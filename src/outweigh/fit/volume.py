"""Weights for rows whose noise is not white: no reference, no floor, only the shape of the bulk.

Spectra, images and expression profiles have no level of clean noise to descend to. What clean rows
share is that they fill little volume: the weights minimise log det S_w on the leading directions
over the same capped simplex. Its gradient is each row's squared Mahalanobis distance and it is
concave in S_w, so moving to the vertex that is best for the linear model (the concentration step
of the minimum covariance determinant) never raises it. Rows outside the leading directions are then
judged by their distance from the subspace.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from outweigh.fit.beyond import in_features
from outweigh.fit.certificate import certified
from outweigh.fit.columns import weighted_quantile
from outweigh.fit.distances import DistanceScore, distances_for
from outweigh.fit.noise import Noise
from outweigh.fit.problem import Problem
from outweigh.fit.readers import SparseReader, effective_entries, fix_signs, is_white
from outweigh.fit.result import Fit
from outweigh.fit.search import Found, Weights
from outweigh.fit.task import Settings, Task
from outweigh.fit.workspace import coordinates
from outweigh.norms import KyFan
from outweigh.objectives import MomentObjective
from outweigh.optimise.capped_simplex import CappedSimplex
from outweigh.optimise.descent import Iterate
from outweigh.protocols import Array, Samples, Status
from outweigh.samples.matrices import as_array

__all__ = [
    "LeastVolume",
    "fit_by_volume",
    "least_volume",
    "looks_white",
    "n_leading",
    "share_beyond",
]

# With ten rows for each direction all are used; else the leading ones, at five rows for each.
_ROWS_FOR_ALL, _ROWS_PER_DIRECTION = 10, 5
_MAX_DIRECTIONS = 8
_MAX_DIAGONALS = 12
_VARIANCE_SHARE = 0.999
_FIRST_STEPS, _FINALISTS, _LAST_STEPS = 2, 8, 50
_POLISH_STEPS = 10
_SINGULAR = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class LeastVolume:
    """Weights of least volume, and the directions that rows are judged in.

    ``leading`` spans the components and, for a shape that has more, the directions next to them;
    its columns are orthonormal.
    """

    weights: Array
    leading: Array
    n_iter: int


def looks_white(noise: Noise, task: Task, settings: Settings) -> bool:
    """Tell whether the noise beside the components could be white."""
    _, samples = coordinates(noise, replace(task, n_nonzero=None))
    pooled = as_array(samples.moment(noise.untouched, centred=task.centred))
    n, d = float(noise.sample_weight.sum()), noise.samples.n_features
    return is_white(pooled, n, d, task.n_components, settings.tuning.white_excess)


def fit_by_volume(noise: Noise, task: Task, settings: Settings) -> Fit:
    """Fit components to rows whose noise is not white: the weights of least volume."""
    part, samples = coordinates(noise, replace(task, n_nonzero=None))
    r = min(task.n_components, samples.n_features)
    objective = MomentObjective(samples, KyFan(r), task.centred, 0.0)
    problem = Problem(
        objective, noise.sample_weight, noise.pruned, 3.0, samples.n_features, settings.tuning
    )
    bound = settings.bound
    if settings.contamination is None:
        bound = max(settings.tuning.volume_bound, problem.removed(problem.untouched))
    least = least_volume(problem, r, bound)
    if settings.contamination is None:
        bound = min(max(share_beyond(problem, least), problem.removed(problem.untouched)), bound)
        least = least_volume(problem, r, bound)
    leading = part.lift(least.leading)
    components = leading[:, :r]
    if task.n_nonzero is not None and settings.covariance is None:
        components = _sparse_components(noise, components, least.weights, task)
    elif settings.covariance is not None:
        counts = tuple(effective_entries(column) for column in components.T)
        components = in_features(noise, least.weights, components, task, counts)
    distances = distances_for(noise.samples, least.weights, leading, task.centred, noise.kept)
    score = DistanceScore(noise.standardizer, distances)
    evaluation = objective.evaluate(least.weights)
    weights = Weights.untouched(least.weights, noise.samples.n_features)
    trace = tuple(Iterate(i, evaluation.value, 0.0, True) for i in range(least.n_iter))
    found = Found(weights, evaluation.value, evaluation.form, Status.STATIONARY, trace)
    certificate = certified(problem, found, bound, "other")
    scores = noise.rows.map(score)
    return Fit(noise, problem, found, certificate, score, scores, components)


def least_volume(problem: Problem, n_components: int, bound: float) -> LeastVolume:
    """Find the weights of least volume among those that remove at most a share.

    Parameters
    ----------
    problem : Problem
        Its samples in an orthonormal basis, of moderately many columns.
    n_components : int
    bound : float
    """
    samples, centred = problem.samples, problem.objective.centred
    domain = problem.domain(bound)
    weights, n_iter = problem.untouched, 0
    values, vectors = _spectrum(samples, weights, centred)
    q = n_leading(float(domain.metric.sum()), n_components, np.maximum(values, 0.0))
    if bound > 0.0:
        spread = np.sqrt(np.where(values[:q] > 0.0, values[:q], 1.0))
        rows = samples.project(vectors[:, :q]) / spread
        weights, n_iter = _from_many_starts(rows, domain, centred)
    for _ in range(_POLISH_STEPS if bound > 0.0 else 0):
        leading = _spectrum(samples, weights, centred)[1][:, :q]
        found = distances_for(samples, weights, leading, centred)
        moved = domain.minimize_linear(found.combined(samples))
        n_iter += 1
        if np.abs(moved - weights).sum() <= 1e-9:
            break
        weights = moved
    values, vectors = _spectrum(samples, weights, centred)
    # Directions in which rows that are kept do not vary are not told from each other.
    rank = max(int(np.count_nonzero(values > _SINGULAR * values[0])), 1)
    return LeastVolume(weights, vectors[:, : min(max(q, n_components), rank)], n_iter)


def share_beyond(problem: Problem, found: LeastVolume) -> float:
    """Return the share of rows beyond the cut-offs of their distances from the bulk."""
    samples, weight = problem.samples, problem.sample_weight
    centred = problem.objective.centred
    # The samples of pruned rows hold zeros, which say nothing of a typical distance.
    kept = weight.copy()
    kept[problem.pruned] = 0.0
    distances = distances_for(samples, found.weights, found.leading, centred, kept)
    beyond = distances.beyond(samples, problem.n_effective(found.weights))
    beyond[problem.pruned] = True
    return float(weight[beyond].sum() / weight.sum())


def n_leading(n_samples: float, n_components: int, values: Array) -> int:
    """Return how many leading directions the volume is measured in.

    Parameters
    ----------
    n_samples : float
    n_components : int
    values : ndarray
        Variances in decreasing order.
    """
    rank = int(np.count_nonzero(values > _SINGULAR * values[0]))
    if _ROWS_FOR_ALL * rank <= n_samples:
        return max(rank, 1)
    share = np.cumsum(values) / values.sum()
    wanted = int(np.searchsorted(share, _VARIANCE_SHARE)) + 1
    allowed = max(int(n_samples / _ROWS_PER_DIRECTION), 1)
    return max(1, min(max(wanted, n_components + 1), allowed, _MAX_DIRECTIONS, rank))


def _from_many_starts(rows: Array, domain: CappedSimplex, centred: bool) -> tuple[Array, int]:
    """Minimise log det of the weighted covariance of whitened rows, from many starts."""
    reference = domain.reference()
    tried = [_concentrate(rows, domain, reference, centred, _FIRST_STEPS)]
    for direction in _directions(rows.shape[1]):
        weights = domain.minimize_linear(_away(rows @ direction, reference))
        tried.append(_concentrate(rows, domain, weights, centred, _FIRST_STEPS))
    tried.sort(key=_volume)
    best = min(
        (_concentrate(rows, domain, pair[0], centred, _LAST_STEPS) for pair in tried[:_FINALISTS]),
        key=_volume,
    )
    return best[0], _FIRST_STEPS * len(tried)


def _volume(found: tuple[Array, float]) -> float:
    """Return a volume but for rounding: of starts that end alike the first is taken."""
    return round(found[1], 8)


def _directions(q: int) -> list[Array]:
    """Return the axes and the diagonals between them: a set that no order of rows changes."""
    axes = np.eye(q)
    pairs = [(i, j) for i in range(min(q, _MAX_DIAGONALS)) for j in range(i)]
    return [*axes, *(axes[i] + s * axes[j] for i, j in pairs for s in (1.0, -1.0))]


def _away(values: Array, weights: Array) -> Array:
    return np.asarray(np.abs(values - weighted_quantile(values, weights, [0.5])[0]))


def _concentrate(
    rows: Array, domain: CappedSimplex, weights: Array, centred: bool, steps: int
) -> tuple[Array, float]:
    volume = np.inf
    for _ in range(steps):
        centre = weights @ rows if centred else np.zeros(rows.shape[1])
        away = rows - centre
        values, vectors = np.linalg.eigh((away * weights[:, None]).T @ away)
        # Rows are whitened, so one is their typical variance; kept rows that coincide have none.
        values = np.maximum(values, _SINGULAR * max(float(values[-1]), 1.0))
        reached = float(np.log(values).sum())
        if reached >= volume - 1e-9:
            break
        volume = reached
        distance = np.square(away @ (vectors / np.sqrt(values))).sum(axis=1)
        weights = domain.minimize_linear(distance)
    return weights, volume


def _spectrum(samples: Samples, weights: Array, centred: bool) -> tuple[Array, Array]:
    """Return eigenvalues and eigenvectors of the weighted second moments, largest first."""
    matrix = samples.moment(weights, centred=centred)
    values, vectors = np.linalg.eigh(matrix.restrict(np.arange(matrix.n_features)))
    # Eigenvectors have no sign of their own, and starts along them must not depend on it.
    return values[::-1], fix_signs(vectors[:, ::-1].T).T


def _sparse_components(noise: Noise, dense: Array, weights: Array, task: Task) -> Array:
    """Return sparse components of the weighted covariance, started from the dense ones."""
    part, samples = coordinates(noise, task)
    counts = task.n_nonzero or tuple(effective_entries(column) for column in dense.T)
    counts = tuple(min(k, samples.n_features) for k in counts)
    array = as_array(samples.moment(weights, centred=task.centred))
    # Scaled to a top eigenvalue of one: the shift of the power iteration is then small beside it.
    scale = max(float(np.abs(np.diagonal(array)).max()), np.finfo(float).tiny)
    return part.lift(SparseReader(counts).best(array / scale))
