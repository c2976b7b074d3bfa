"""Weights for rows whose noise is not white: no reference, no floor, only the shape of the bulk.

Spectra, images and expression profiles have no level of clean noise to descend to. What clean rows
share is that they fill little volume: the weights minimise log det S_w on the leading directions
over the same capped simplex. Its gradient is each row's squared Mahalanobis distance and it is
concave in S_w, so moving to the vertex that is best for the linear model (the concentration step
of the minimum covariance determinant) never raises it. Rows are then judged by their distance from
the bulk in the leading directions and from these, whatever the number of components asked for.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from outweigh.fit.beyond import in_features
from outweigh.fit.certificate import certified
from outweigh.fit.columns import weighted_quantile
from outweigh.fit.distances import DistanceScore, distances_for
from outweigh.fit.elliptical import judge_rows
from outweigh.fit.held_out import at_most, beyond_limits, folds_of, leading_directions
from outweigh.fit.noise import Noise
from outweigh.fit.problem import Problem
from outweigh.fit.readers import SparseReader, effective_entries, is_white
from outweigh.fit.result import Fit
from outweigh.fit.search import Found, Weights
from outweigh.fit.task import Settings, Task
from outweigh.fit.workspace import coordinates
from outweigh.norms import KyFan
from outweigh.objectives import MomentObjective
from outweigh.optimise.capped_simplex import CappedSimplex
from outweigh.optimise.descent import Iterate
from outweigh.protocols import Array, Status
from outweigh.samples.matrices import as_array

__all__ = [
    "LeastVolume",
    "fit_by_volume",
    "least_volume",
    "looks_white",
    "n_leading",
]

# With ten rows for each direction all are used; else the leading ones, at five rows for each.
_ROWS_FOR_ALL, _ROWS_PER_DIRECTION = 10, 5
_MAX_DIRECTIONS = 8
_MAX_DIAGONALS = 12
_VARIANCE_SHARE = 0.999
_FIRST_STEPS, _FINALISTS, _LAST_STEPS = 2, 8, 50
_POLISH_STEPS = 10
_SINGULAR = 1e-12
# From the weights of least volume rows are judged twice: at first by too few rows, then by all that
# were not beyond. Once more and a group of outliers is taken back row by row.
_LOOKS = 2
# With so many rows for each column a fit is no closer to its own rows than to others.
_ROWS_FOR_NO_FOLDS = 100
# The cloud is looked at where it has so many rows, and no more values than this.
_ROWS_TO_JUDGE, _VALUES_TO_JUDGE = 20, 20_000_000


@dataclass(frozen=True, slots=True, eq=False)
class LeastVolume:
    """Weights of least volume, and the directions that rows are judged in.

    ``leading`` spans as many leading directions as the rows can tell, whatever the number of
    components; its columns are orthonormal.
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
    """Fit components to rows whose noise is not white.

    The weights of least volume, where the share of wrong rows is known. Else they are where rows
    are judged from for the first time; all rows that are not beyond the limits then count alike.
    """
    part, samples = coordinates(noise, replace(task, n_nonzero=None))
    r = min(task.n_components, samples.n_features)
    centred = task.centred
    objective = MomentObjective(samples, KyFan(r), centred, 0.0)
    problem = Problem(
        objective, noise.sample_weight, noise.pruned, 3.0, samples.n_features, settings.tuning
    )
    known = settings.contamination is not None
    pruned_share = problem.removed(problem.untouched)
    bound = settings.bound if known else max(settings.tuning.volume_bound, pruned_share)
    start = _without_apart(problem, r, settings.bound)
    least = least_volume(start, r, max(bound, start.removed(start.untouched)))
    weights, q = least.weights, least.leading.shape[1]
    if known:
        # The weights have trimmed clean rows too, so that distances are measured by all rows.
        distances = distances_for(samples, weights, least.leading, centred, noise.kept)
        if problem.removed(weights) > bound:
            weights = problem.domain(bound).minimize_linear(distances.combined(samples))
    else:
        many = float(noise.kept.sum()) >= _ROWS_FOR_NO_FOLDS * samples.n_features
        folds = None if many else folds_of(noise.keys)
        for _ in range(_LOOKS):
            distances = beyond_limits(samples, weights, noise.kept, folds, q, centred)
            distances = at_most(distances, samples, noise.kept, settings.bound)
            trusted = np.where(distances.combined(samples) > 1.0, 0.0, noise.kept)
            weights = trusted / trusted.sum()
        bound = problem.removed(weights)
    components = part.lift(leading_directions(samples, weights, centred)[1][:, :r])
    if task.n_nonzero is not None and settings.covariance is None:
        components = _sparse_components(noise, components, weights, task)
    elif settings.covariance is not None:
        counts = tuple(effective_entries(column) for column in components.T)
        components = in_features(noise, weights, components, task, counts)
    lifted = replace(
        distances, centre=part.lift(distances.centre), components=part.lift(distances.components)
    )
    score = DistanceScore(noise.standardizer, lifted)
    evaluation = objective.evaluate(weights)
    trace = tuple(Iterate(i, evaluation.value, 0.0, True) for i in range(least.n_iter))
    found = Found(
        Weights.untouched(weights, noise.samples.n_features),
        evaluation.value,
        evaluation.form,
        Status.STATIONARY,
        trace,
    )
    certificate = certified(problem, found, bound, "other")
    scores = noise.rows.map(score)
    return Fit(noise, problem, found, certificate, score, scores, components)


def _without_apart(problem: Problem, n_components: int, bound: float) -> Problem:
    """Return the problem without the rows that are far or apart by the shape of the cloud.

    A clump of outliers has no volume, so the least volume holds it; in the cloud that rows form in
    the leading directions it stands apart. Only where these rows are no more than the bound allows,
    but for some that are single outliers.
    """
    kept = problem.sample_weight * (problem.untouched > 0.0)
    samples, centred, tuning = problem.samples, problem.objective.centred, problem.tuning
    values, vectors = leading_directions(samples, problem.untouched, centred)
    q = n_leading(float(kept.sum()), n_components, np.maximum(values, 0.0))
    counted = np.flatnonzero(kept)
    few = float(kept.sum()) < _ROWS_TO_JUDGE
    if bound == 0.0 or few or counted.size * q > _VALUES_TO_JUDGE:
        return problem
    rows = samples.project(vectors[:, :q])[counted]
    judged = judge_rows(rows, kept[counted], tuning.loose_bound, tuning)
    pruned = np.union1d(problem.pruned, counted[judged.clean < 0.5])
    n = float(problem.sample_weight.sum())
    if problem.sample_weight[pruned].sum() > bound * n + max(0.02 * n, tuning.few_far):
        return problem
    objective = replace(problem.objective, samples=samples.without(pruned))
    return replace(problem, objective=objective, pruned=pruned)


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
    values, vectors = leading_directions(samples, weights, centred)
    q = n_leading(float(domain.metric.sum()), n_components, np.maximum(values, 0.0))
    if bound > 0.0:
        spread = np.sqrt(np.where(values[:q] > 0.0, values[:q], 1.0))
        rows = samples.project(vectors[:, :q]) / spread
        weights, n_iter = _from_many_starts(rows, domain, centred)
    for _ in range(_POLISH_STEPS if bound > 0.0 else 0):
        leading = leading_directions(samples, weights, centred)[1][:, :q]
        found = distances_for(samples, weights, leading, centred)
        moved = domain.minimize_linear(found.combined(samples))
        n_iter += 1
        if np.abs(moved - weights).sum() <= 1e-9:
            break
        weights = moved
    values, vectors = leading_directions(samples, weights, centred)
    # Directions in which rows that are kept do not vary are not told from each other.
    rank = max(int(np.count_nonzero(values > _SINGULAR * values[0])), 1)
    return LeastVolume(weights, vectors[:, : min(q, rank)], n_iter)


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


def _sparse_components(noise: Noise, dense: Array, weights: Array, task: Task) -> Array:
    """Return sparse components of the weighted covariance, started from the dense ones."""
    part, samples = coordinates(noise, task)
    counts = task.n_nonzero or tuple(effective_entries(column) for column in dense.T)
    counts = tuple(min(k, samples.n_features) for k in counts)
    array = as_array(samples.moment(weights, centred=task.centred))
    # Scaled to a top eigenvalue of one: the shift of the power iteration is then small beside it.
    scale = max(float(np.abs(np.diagonal(array)).max()), np.finfo(float).tiny)
    return part.lift(SparseReader(counts).best(array / scale))
