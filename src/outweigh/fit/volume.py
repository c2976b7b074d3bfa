"""Weights for rows whose noise is not white: no reference, no floor, only the shape of the bulk.

Spectra, images and expression profiles have no level of clean noise to descend to. What clean rows
share is that they fill little volume: the weights minimise log det S_w on the leading directions
over the same capped simplex. Its gradient is each row's squared Mahalanobis distance and it is
concave in S_w, so moving to the vertex that is best for the linear model (the concentration step
of the minimum covariance determinant) never raises it. Rows are then judged by their distance from
the bulk in the leading directions and from these, whatever the number of components asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from outweigh.fit.beyond import in_features
from outweigh.fit.certificate import certified
from outweigh.fit.columns import weighted_quantile
from outweigh.fit.distances import (
    DistanceScore,
    beyond_limits,
    fitted_distances,
    folds_of,
    leading_directions,
    rank_of,
)
from outweigh.fit.elliptical import Cloud, judge_rows
from outweigh.fit.marginals import Reach, judged_columns, marginals
from outweigh.fit.mixture import Group, Groups
from outweigh.fit.noise import TOO_LARGE, Noise, Standardizer, spread_places
from outweigh.fit.problem import Problem
from outweigh.fit.radial import radial_law
from outweigh.fit.readers import SparseReader, effective_entries, is_white, too_few_for_white
from outweigh.fit.result import Fit
from outweigh.fit.scatter import Scatter
from outweigh.fit.score import EllipticalScore
from outweigh.fit.search import Found, Weights
from outweigh.fit.task import Settings, Task
from outweigh.fit.tuning import TUNING
from outweigh.fit.whiteness import MOST_ROWS
from outweigh.fit.workspace import coordinates
from outweigh.norms import KyFan
from outweigh.objectives import MomentObjective
from outweigh.optimise.capped_simplex import CappedSimplex
from outweigh.optimise.descent import Iterate
from outweigh.protocols import Array, Indices, Samples, Status
from outweigh.samples import DenseSamples
from outweigh.samples.dense import INFINITE
from outweigh.samples.matrices import as_array

# Two steps tell the starts that are worth fifty; axes beyond the twelfth are no starts.
_FIRST_STEPS, _FINALISTS, _STEPS, _STARTS_ALONG = 2, 8, 50, 12
# From here variances, known to 1e-16, tell volumes to the digits that these are compared by.
_SINGULAR = 1e-8
# With so many rows for each column a fit is no closer to its own rows than to others, and none need
# be held out: five times as quick.
_ROWS_FOR_NO_FOLDS = 100
# Groups are looked for where there are no more values than this.
_VALUES_TO_JUDGE = 20_000_000


def looks_white(noise: Noise, task: Task) -> bool:
    """Tell whether the noise beside the components could be white."""
    _, samples = coordinates(noise, replace(task, n_nonzero=None))
    pooled = as_array(samples.moment(noise.untouched, centred=task.centred))
    n, d = float(noise.sample_weight.sum()), noise.samples.n_features
    return is_white(pooled, n, d, task.n_components, TUNING.white_excess)


def fit_by_volume(noise: Noise, task: Task, settings: Settings, *, again: int = 2) -> Fit:
    """Fit components to rows whose noise is not white.

    The weights of least volume, where the share of wrong rows is known. Else they are where rows
    are judged from for the first time; all rows that are not beyond the limits then count alike.
    Rows that were pruned at the first look, and are no farther out by these distances than rows
    that are trusted, are taken back: so often the fit may be made again.
    """
    part, samples = coordinates(noise, replace(task, n_nonzero=None))
    r = min(task.n_components, samples.n_features)
    objective = MomentObjective(samples, KyFan(r), task.centred, 0.0)
    problem = Problem(objective, noise.sample_weight, noise.pruned, 3.0, samples.n_features)
    known = settings.contamination is not None
    bound = problem.in_whole_rows(settings.bound if known else TUNING.volume_bound)
    judged, bent = _judged_columns(noise, samples)
    told = judged.size > 0
    seen, standardizer = samples, noise.standardizer
    if told and judged.size < samples.n_features:
        seen = samples.columns(judged)
        columns, origin, scale = standardizer.columns, standardizer.origin, standardizer.scale
        standardizer = Standardizer(columns[judged], origin[judged], scale[judged])
    on_judged = replace(objective, samples=seen)
    values, vectors = leading_directions(on_judged, problem.untouched)
    q = n_leading(float(noise.kept.sum()), values)
    start, clumps = _without_apart(
        problem.with_objective(on_judged), vectors[:, :q], settings.bound
    )
    bound_of_start = max(bound, start.removed(start.untouched))
    weights = least_volume(start, vectors[:, :q], bound_of_start)
    straight = None
    if known:
        # The weights have trimmed clean rows too, so that distances are measured by all rows.
        distances = fitted_distances(on_judged, weights, q).at_median(seen, noise.kept)
        distances = replace(distances.calibrated(seen, noise.kept), groups=clumps)
        # By these, as rows are flagged: of the weights so many as asked for.
        weights = problem.domain(bound).minimize_linear(distances.combined(seen))
    else:
        allowed = settings.bound if told else 0.0
        many = float(noise.kept.sum()) >= _ROWS_FOR_NO_FOLDS * samples.n_features
        folds = None if many else folds_of(noise.keys)
        # At first by too few rows, then by all that were not beyond. Once more, and a group of
        # outliers is taken back row by row.
        for price in (-np.inf, 1.5 * float(np.log(noise.kept.sum()))):
            distances = beyond_limits(on_judged, weights, noise.kept, folds, q, clumps, price)
            beyond = distances.combined(seen) > 1.0
            if bent and beyond.any():
                straight = _straight(noise, standardizer, ~beyond & (noise.kept > 0.0))
            if straight is not None:
                unusual = noise.rows.map(EllipticalScore(standardizer, straight)) < -1.0
                beyond &= unusual | (distances.apart(seen) > 0.5)
            if noise.kept[beyond].sum() > allowed * noise.kept.sum():
                # Then they are no outliers but the shape of the rows.
                distances, straight = distances.reaching(seen, noise.kept), None
                beyond = np.zeros_like(beyond)
            trusted = np.where(beyond, 0.0, noise.kept)
            weights = trusted / trusted.sum()
        bound = problem.removed(weights)
    score = DistanceScore(standardizer, distances.lifted(part.lift), straight)
    scores = noise.rows.map(score)
    # As far out as a trusted row, but for rounding; infinitely far out are any such rows.
    lowest = (1.0 + 1e-9) * float(scores[weights > 0.0].min())
    lowest = max(lowest, np.nextafter(-INFINITE, 0.0))
    back = scores[noise.pruned] >= lowest
    if noise.far is not None:
        # Of rows too far out for second moments a column that is not judged may be to blame.
        back &= noise.far[noise.pruned] <= TOO_LARGE**2
    if again and back.any():
        return fit_by_volume(noise.without(noise.pruned[~back]), task, settings, again=again - 1)
    dense = components = part.lift(leading_directions(objective, weights)[1][:, :r])
    given = settings.covariance is not None
    if given:
        components = in_features(noise, weights, dense, replace(task, n_nonzero=None))
    if task.n_nonzero == ():
        counted = tuple(effective_entries(column) for column in components.T)
        task = replace(task, n_nonzero=counted)
    if task.n_nonzero:
        components = (
            in_features(noise, weights, dense, task)
            if given
            else _sparse_components(noise, weights, task)
        )
    value = objective.verify(weights)
    trace = (Iterate(0, value, 0.0, True),)
    reached = Weights.untouched(weights, noise.samples.n_features)
    found = Found(reached, value, Status.STATIONARY, trace)
    why = _unlike_white(noise, task) if told else "all columns have too few values to judge rows by"
    certificate = replace(certified(problem, found, bound, "other"), unlike_clean=why)
    aside = np.empty((noise.samples.n_features, 0))
    return Fit(noise, problem, found, certificate, score, scores, components, aside)


def _unlike_white(noise: Noise, task: Task) -> str:
    """Say why the noise of the rows was not taken to be white."""
    n, d = float(noise.sample_weight.sum()), noise.samples.n_features
    if too_few_for_white(n, d, task.n_components):
        return "rows or features are too few to tell whether the noise is white"
    if noise.standardizer.whitener is not None:
        return "the noise is not white, nor as `covariance` says"
    return "the noise is not white: columns are correlated or vary unevenly"


def _judged_columns(noise: Noise, samples: Samples) -> tuple[Indices, bool]:
    """Return the columns that rows are judged by, and whether these may be bent and made straight.

    Where rows are many they are judged in all directions, each in units of its spread, and a column
    of zeros and ones counts as much as any. Its rarer value is no outlier, so that columns of few
    values do not count. Where there are no others, nothing tells a rare row from a wrong one.
    """
    columns, every = noise.standardizer.columns, np.arange(samples.n_features)
    rows_enough = noise.kept.sum() >= TUNING.rows_per_direction * columns.size
    if not rows_enough or noise.standardizer.whitener is not None:
        return every, False
    rows, weight = noise.some_rows(MOST_ROWS)
    judged, _ = judged_columns(rows[:, columns], weight)
    if judged.size and every.size < columns.size:
        # Few rows that repeat are seen in coordinates of their span.
        return every, False
    return judged, True


def _straight(noise: Noise, standardizer: Standardizer, kept: NDArray[np.bool_]) -> Cloud | None:
    """Return the cloud that the rows kept form with skewed columns made straight; None without any.

    The long tail of a skewed column is far from the bulk; with straight columns it is near. The
    limit is what the share of clean rows exceeds that may be single outliers.
    """
    columns = standardizer.columns
    count = max(MOST_ROWS, _VALUES_TO_JUDGE // columns.size)
    places, weight = spread_places(noise.sample_weight, noise.keys, count)
    rows, kept = noise.rows.entries(places, columns), kept[places]
    form = marginals(rows, weight, kept)
    if not np.any(form.g):
        return None
    Z, d = form.apply(rows), columns.size
    scatter = Scatter.of(Z, weight * kept, d, shrink=False)
    squared = scatter.distances(Z, kept)
    share = float(weight[~kept].sum() / weight.sum())
    law = radial_law(squared, weight, d, scatter.count, share, shrink=False)
    none = np.empty(0)
    reach = Reach(none.astype(np.intp), none, none)
    return Cloud(columns, form, None, scatter, law.beyond(TUNING.few_far_share), (), (), reach)


def _without_apart(problem: Problem, leading: Array, bound: float) -> tuple[Problem, Groups]:
    """Return the problem without rows that are far or apart by the shape of the cloud, and clumps.

    A clump of outliers has no volume, so the least volume holds it; in the cloud that rows form in
    the leading directions it stands apart: in the first few, where its own is among them and others
    do not hide it, or in all. Only where these rows are no more than the bound allows,
    but for some that are single outliers. Distances tell wide groups afterwards, and whether they
    are outliers; clumps are the groups returned.
    """
    samples, clumps = problem.samples, list[Group]()
    n = float(problem.sample_weight.sum())
    most = bound * n + max(TUNING.few_far_share * n, TUNING.few_far)
    for count in sorted({min(TUNING.most_directions, leading.shape[1]), leading.shape[1]}):
        counted = np.flatnonzero(problem.untouched)
        if bound == 0.0 or counted.size * count > _VALUES_TO_JUDGE:
            break
        rows, weight = samples.project(leading[:, :count])[counted], problem.sample_weight[counted]
        judged = judge_rows(rows, weight, TUNING.loose_bound, straighten=False)
        pruned = np.union1d(problem.pruned, counted[judged.clean < 0.5])
        if problem.sample_weight[pruned].sum() > most:
            continue
        cloud = judged.cloud
        unit = cloud.marginals.unit * cloud.marginals.spread
        origin = cloud.coordinates(np.zeros((1, count)))[0][0]
        for group in cloud.groups:
            if group.spreads.max() <= TUNING.clump * group.spread:
                direction = leading[:, cloud.columns] @ (group.direction / unit)
                clumps.append(group.moved(direction, -float(origin @ group.direction)))
        problem = replace(problem, pruned=pruned)
    objective = replace(problem.objective, samples=samples.without(problem.pruned))
    return problem.with_objective(objective), tuple(clumps)


def n_leading(n_samples: float, values: Array) -> int:
    """Return how many leading directions rows are judged in.

    All where there are rows enough for each, else at most eight: see `Tuning`.

    Parameters
    ----------
    n_samples : float
    values : ndarray
        Variances in decreasing order.
    """
    rank, enough = rank_of(values), int(n_samples / TUNING.rows_per_direction)
    return rank if rank <= enough else max(min(enough, TUNING.most_directions, rank), 1)


def least_volume(problem: Problem, leading: Array, bound: float) -> Array:
    """Return weights of least volume among those that remove at most a share.

    Concentration from many starts: all rows, and those in the middle along the axes and the
    diagonals between two of them.

    Parameters
    ----------
    problem : Problem
        Its samples in an orthonormal basis, of moderately many columns.
    leading : ndarray of shape (d, q)
        Directions that the volume is measured in.
    bound : float
    """
    if bound == 0.0:
        return problem.untouched
    domain, rows = problem.domain(bound), problem.samples.project(leading)
    spread = np.sqrt(problem.untouched @ np.square(rows - problem.untouched @ rows))
    rows = rows / np.where(spread > 0.0, spread, 1.0)
    centre = replace(problem.objective, samples=DenseSamples(rows)).centre
    reference = domain.reference()
    starts = [reference]
    for direction in start_directions(rows.shape[1]):
        along = rows @ direction
        middle = weighted_quantile(along, reference, [0.5])[0]
        starts.append(domain.minimize_linear(np.abs(along - middle)))
    tried = [concentrated(rows, domain, start, centre, _FIRST_STEPS) for start in starts]
    # Volumes but for rounding: of starts that end alike the first is taken.
    tried.sort(key=lambda pair: round(pair[1], 8))
    ended = [concentrated(rows, domain, w, centre, _STEPS) for w, _ in tried[:_FINALISTS]]
    return min(ended, key=lambda pair: round(pair[1], 8))[0]


def start_directions(q: int) -> list[Array]:
    """Return the leading axes and the diagonals between them: no order of rows changes these."""
    axes = np.eye(q)[:_STARTS_ALONG]
    pairs = combinations(axes, 2)
    return [*axes, *(one + sign * other for one, other in pairs for sign in (1.0, -1.0))]


def concentrated(
    rows: Array,
    domain: CappedSimplex,
    weights: Array,
    centre: Callable[[Array], Array],
    steps: int,
) -> tuple[Array, float]:
    """Return the weights after so many concentration steps, and log det of the covariance then.

    Distances are measured from the centre that weights have.
    """
    volume = np.inf
    for _ in range(steps):
        away = rows - centre(weights)
        values, vectors = np.linalg.eigh((away * weights[:, None]).T @ away)
        # Rows are of unit variance; kept rows that coincide have none.
        values = np.maximum(values, _SINGULAR * max(float(values[-1]), 1.0))
        reached = float(np.log(values).sum())
        if reached >= volume - 1e-9:
            break
        volume = reached
        weights = domain.minimize_linear(np.square(away @ (vectors / np.sqrt(values))).sum(axis=1))
    return weights, volume


def _sparse_components(noise: Noise, weights: Array, task: Task) -> Array:
    """Return sparse components of the weighted covariance."""
    part, samples = coordinates(noise, task)
    counts = tuple(min(k, samples.n_features) for k in task.n_nonzero or ())
    array = as_array(samples.moment(weights, centred=task.centred))
    # Scaled to a top eigenvalue of one: the shift of the power iteration is then small beside it.
    scale = max(float(np.abs(np.diagonal(array)).max()), np.finfo(float).tiny)
    return part.lift(SparseReader(counts).best(array / scale))
