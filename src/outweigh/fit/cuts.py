r"""Separate the outliers that a descent has revealed but not yet removed.

A descent stops where second moments over many features reach their noise floor. By then the rows it
removed point at the outliers: the mean of the removed weight differs from the mean of the kept,

.. math:: \delta = \mu_{w_0} - \mu_w, \qquad \mathrm{noise}^2 = \sum_i (w_{0,i} - w_i)^2 / s_i,

in one direction. Along that single direction noise is small, and the outliers still kept stand
apart from the clean rows. They are trimmed there symmetrically about the weighted median, which
takes equally much from both tails of the clean rows and so does not move their mean.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from outweigh.fit.tuning import Tuning
from outweigh.optimise.capped_simplex import CappedSimplex
from outweigh.protocols import Array, Samples

__all__ = ["Cut", "cut_along_removed", "weighted_quantile"]

_QUARTILES_TO_SD = 1.0 / 1.349


@dataclass(frozen=True, slots=True, eq=False)
class Cut:
    """A slab |direction'x - centre| <= limit * spread; what lies outside is trimmed."""

    direction: Array
    centre: float
    spread: float
    limit: float

    def excess(self, projected: Array) -> Array:
        """Return how far beyond the slab each projection is, in deviations; 0 inside."""
        away = np.abs(projected - self.centre) / self.spread - self.limit
        return np.asarray(np.maximum(away, 0.0))

    def along(self, direction: Array) -> Cut:
        """Return the same cut with its direction given in other coordinates."""
        return replace(self, direction=direction)


def cut_along_removed(
    samples: Samples, domain: CappedSimplex, weights: Array, sparse: bool, tuning: Tuning
) -> tuple[Array, tuple[Cut, ...], Array]:
    """Trim along the directions in which the removed rows differ from the kept ones.

    Parameters
    ----------
    samples : Samples
        In units of the noise: the features, or coordinates, in which the descent ran.
    domain : CappedSimplex
        The weights stay in it, so no more is removed than the contamination allows.
    weights : ndarray of shape (n,)
        Found by a descent.
    sparse : bool
        Keep only the features in which the difference is significant.
    tuning : Tuning

    Returns
    -------
    weights : ndarray of shape (n,)
    cuts : tuple of Cut
        Empty if the removed rows point nowhere.
    beyond : ndarray of shape (n,)
        How far each row is beyond the cuts, in deviations, added up over them.
    """
    weights = domain.project(weights)
    beyond = np.zeros(weights.size)
    cuts: list[Cut] = []
    pull = tuning.cut_pull / domain.metric.sum() * domain.metric
    for _ in range(tuning.cut_rounds):
        found = _next_cut(samples, domain, weights, sparse, tuning)
        if found is None:
            break
        cut, excess = found
        cuts.append(cut)
        beyond += excess
        weights = domain.project(weights - pull * excess)
    return weights, tuple(cuts), beyond


def _next_cut(
    samples: Samples, domain: CappedSimplex, weights: Array, sparse: bool, tuning: Tuning
) -> tuple[Cut, Array] | None:
    """Return a cut and how far beyond it each row is; None if the removed rows point nowhere."""
    start = domain.reference()
    change = start - weights
    change[np.abs(change) <= 1e-9 * start.max()] = 0.0
    removed = np.maximum(change, 0.0)
    share = float(removed.sum())
    counted = domain.metric > 0
    noise = float(np.sqrt(np.sum(change[counted] ** 2 / domain.metric[counted])))
    if share <= 0.0 or noise == 0.0:
        return None
    direction = _significant((samples.mean(start) - samples.mean(weights)) / noise, sparse)
    if direction is None:
        return None
    projected = samples.project(direction)
    low, centre, high = weighted_quantile(projected, weights, [0.25, 0.5, 0.75])
    spread = (high - low) * _QUARTILES_TO_SD
    if spread <= 0.0:
        return None
    separation = abs(float(removed @ projected) / share - centre) / spread
    # Where two Gaussians of weights share and 1 - share, that far apart, are equally likely.
    odds = np.log((1.0 - share) / share)
    limit = separation / 2.0 + odds / max(separation, np.finfo(float).eps)
    limit = float(np.clip(limit, tuning.nearest_cut, tuning.farthest_cut))
    cut = Cut(direction, float(centre), float(spread), limit)
    return cut, cut.excess(projected)


def _significant(z_scores: Array, sparse: bool) -> Array | None:
    """Return the unit direction of a difference given in units of its noise, or None.

    Sparse: the features beyond sqrt(2 log d), which the largest of d Gaussians hardly exceeds.
    Dense: all, if the sum of squares is three deviations above that of d Gaussians.
    """
    d = z_scores.size
    if sparse:
        z_scores = np.where(np.abs(z_scores) > np.sqrt(2.0 * np.log(max(d, 2))), z_scores, 0.0)
    elif z_scores @ z_scores < d + 3.0 * np.sqrt(2.0 * d):
        return None
    length = float(np.linalg.norm(z_scores))
    return z_scores / length if length > 0 else None


def weighted_quantile(values: Array, weights: Array, levels: list[float]) -> Array:
    """Return quantiles of one weighted sample: the least value with that share at or below it."""
    # A share that is reached but for rounding is reached: copies of a row equal its weight.
    levels = [level * (1.0 - 1e-12) for level in levels]
    return np.asarray(np.quantile(values, levels, method="inverted_cdf", weights=weights))
