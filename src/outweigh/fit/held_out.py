"""How far out rows are, each judged by a fit that it had no part in, and how far clean rows are.

Directions fitted to few rows lie close to those rows: a row that was left out seems far away, be it
as clean as the others, and once left out it would stay so. Rows are therefore held out a fifth at a
time, and their distances from the fit to the others are comparable with those of rows without
weight, for any numbers of rows and columns.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from outweigh.fit.distances import Distances, distances_for
from outweigh.fit.mixture import Groups
from outweigh.fit.radial import discovered, radial_law, second_group
from outweigh.fit.readers import fix_signs
from outweigh.fit.tuning import TUNING
from outweigh.objectives import MomentObjective
from outweigh.protocols import Array, Indices
from outweigh.samples.matrices import as_array

_FOLDS = 5
# In a table without any wrong row one is taken for far out in so many tables.
_NONE = 0.05
_TINY = 1e-12
# Variances that differ by no more than this part are equal but for rounding.
_EQUAL = 1e-9


def folds_of(keys: Array) -> Indices:
    """Return a fold for each row, by its place along a fixed direction: equal rows share one."""
    unit = max(float(np.abs(keys).max(initial=0.0)), np.finfo(float).tiny)
    _, place = np.unique(np.round(keys / unit, 12), return_inverse=True)
    return np.asarray(place % _FOLDS, dtype=np.intp)


def leading_directions(objective: MomentObjective, weights: Array) -> tuple[Array, Array]:
    """Return eigenvalues and eigenvectors of the weighted second moments, largest first.

    Of directions of equal variance any mixture would do: those that lie on the first features come
    first, so that rounding does not choose.
    """
    moments = as_array(objective.moment(weights))
    # Iterations for eigenvalues may not end where numbers are huge; a power of two rounds nothing.
    unit = np.ldexp(1.0, np.frexp(np.abs(moments).max())[1] - 1)
    values, vectors = np.linalg.eigh(moments / unit)
    values, vectors = unit * values[::-1], vectors[:, ::-1]
    differ = -np.diff(values) > _EQUAL * values[:-1] + _TINY * values[0]
    order = np.linspace(1.0, 0.0, values.size)[:, None]
    for tied in np.split(np.arange(values.size), np.flatnonzero(differ) + 1):
        if tied.size > 1:
            part = vectors[:, tied]
            vectors[:, tied] = part @ np.linalg.eigh(part.T @ (order * part))[1][:, ::-1]
    # Eigenvectors have no sign of their own, and starts along them must not depend on it.
    return values, fix_signs(vectors.T).T


def beyond_limits(
    objective: MomentObjective,
    weights: Array,
    sample_weight: Array,
    folds: Indices | None,
    q: int,
    groups: Groups = (),
    price: float = -np.inf,
) -> Distances:
    r"""Return distances in q directions and from them, with cut-offs that clean rows do not exceed.

    The squared distances of clean rows, each held out, are taken for c F(k, m - q) within the
    subspace (Hotelling) and c F(k, k(m - q)) away from it: chi-squared with k degrees of freedom
    over variances that rows tell. m rows are fitted to, and c and k are by their quartiles. A row
    is beyond the limit where its chance is below 0.05/n, or where of all rows so far out 0.01 are
    expected to be clean (Benjamini and Hochberg, 1995). The cut-offs are these limits, or as far as
    the rows within both limits are from the fit to the rows that have weight: of those the few that
    had a part in it are nearer, or farther out along directions that were fitted to them.

    Parameters
    ----------
    objective : MomentObjective
        The samples, and what their second moments are about.
    weights : ndarray of shape (n,)
        Zero for the rows that are distrusted so far.
    sample_weight : ndarray of shape (n,)
        Zero for rows that do not count at all.
    folds : ndarray of int, shape (n,), or None
        None where rows are so many that none need be held out.
    q : int
    groups : tuple of Group
        Whose rows are beyond the limits wherever they are.
    price : float
        Nats by which a second group must explain many rows beyond the limits better than one law of
        heavier tail does; else that law is the one of clean rows. That those rows lie to one side,
        as no tail of a symmetric law does, counts for the group. Under weights that have trimmed
        clean rows tails are not told yet, and nothing is asked for.
    """
    samples = objective.samples
    squared = np.zeros((2, samples.n_samples))
    times = np.zeros(samples.n_samples)
    for fold in range(1 if folds is None else _FOLDS):
        others = weights if folds is None else np.where(folds == fold, 0.0, weights)
        # Where all rows that are kept are equal, they are one fold.
        others = others / others.sum() if others.sum() > 0.0 else weights
        fitted = fitted_distances(objective, others, q)
        held = (weights == 0.0) | (True if folds is None else folds == fold)
        squared[:, held] += np.square([distance[held] for distance in fitted.both(samples)])
        times += held
    squared /= np.maximum(times, 1.0)
    counted = sample_weight > 0.0
    weight, n = sample_weight[counted], float(sample_weight.sum())
    share = float(sample_weight[weights == 0.0].sum()) / n
    free = max((1.0 - share) * n * (1.0 if folds is None else 1.0 - 1.0 / _FOLDS) - q, 1.0)
    fitted = fitted_distances(objective, weights, q)
    grouped = replace(fitted, groups=groups)

    def limit(kind: int, most: int) -> float:
        """Return the squared distance within the subspace, or from it, that clean rows keep to.

        Within it the covariance of q directions is told by m rows, and has m - q degrees of
        freedom; away from it one scale serves all k, which tell it k times as well.
        """
        away = squared[kind, counted]
        law = radial_law(away, weight, most, n, share, shrink=True)
        told_by = free * (max(law.k, 1.0) if kind else 1.0)
        law = replace(law, nu=max(told_by, 2.0)).at_median(law.beyond(0.5))
        reach = law.beyond(discovered(law, away, weight, _NONE / n, TUNING.false_discoveries))
        far = away > reach
        many = weight[far].sum() > max(TUNING.few_far_share * n, TUNING.few_far)
        if price > 0.0 and many:
            group = second_group(away, weight, far, law, most)
            beyond = np.where(squared[kind] > reach, sample_weight, 0.0)
            if group.gain + fitted.to_one_side(samples, beyond, kind) < price:
                law, rate = group.alone, TUNING.false_discoveries
                reach = max(reach, law.beyond(discovered(law, away, weight, _NONE / n, rate)))
        # Where rows lie in a subspace, rounding is what is left beside it.
        return max(reach, _TINY**2 * float(away.max(initial=0.0)), np.finfo(float).tiny)

    limits = np.array([limit(0, q), limit(1, max(samples.n_features - q, 1))])
    within = np.all(squared <= limits[:, None], axis=0) & counted & (grouped.apart(samples) <= 0.5)
    farthest = fitted.both(samples)[:, within].max(axis=1, initial=0.0) * (1.0 + 1e-9)
    return grouped.with_cutoffs(*np.maximum(np.sqrt(limits), farthest))


def fitted_distances(
    objective: MomentObjective, weights: Array, q: int, sample_weight: Array | None = None
) -> Distances:
    """Return distances in the q leading directions under the weights, and from them."""
    values, vectors = leading_directions(objective, weights)
    leading, centre = vectors[:, : min(q, rank_of(values))], objective.centre(weights)
    return distances_for(objective.samples, weights, leading, centre, sample_weight)


def rank_of(values: Array) -> int:
    """Return the number of directions, one at least, in which rows vary by more than rounding."""
    return max(int(np.count_nonzero(values > _TINY * values[0])), 1)
