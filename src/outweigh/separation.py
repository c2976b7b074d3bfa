"""Separate the outliers that a descent has revealed but not yet removed.

A descent stops where second moments over many features reach their noise floor. By then the rows
it removed point at the outliers: the mean of the removed mass differs from the mean of the kept in
one direction. Along that single direction noise is small, and the outliers still kept stand apart
from the clean rows. They are trimmed there symmetrically about the weighted median, which takes
equally much from both tails of the clean rows and so does not move their mean.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from outweigh.capped_simplex import CappedSimplex
from outweigh.moments import DenseSamples
from outweigh.protocols import Array, Indices, Samples, Span

__all__ = ["FARTHEST", "NEAREST", "PULL", "Cut", "Separator", "separate", "weighted_quantile"]

_ROUNDS = 2
# A cut nearer than two deviations would take too many clean rows, one beyond four too few outliers.
NEAREST, FARTHEST = 2.0, 4.0
# A row one deviation beyond the cut loses five times the weight of a row: all of it.
PULL = 5.0
_QUARTILES_TO_SD = 1.0 / 1.349


@dataclass(frozen=True, slots=True, eq=False)
class Cut:
    """A slab |direction'x - centre| <= limit * spread; what lies outside is trimmed."""

    direction: Array
    centre: float
    spread: float
    limit: float

    def excess(self, projected: Array) -> Array:
        """Return how far beyond the slab each projection is, in deviations; negative inside."""
        return np.asarray(np.abs(projected - self.centre) / self.spread - self.limit)


class Separator:
    """`separate` as a function of the weights alone, which remembers the cuts behind each answer.

    Parameters
    ----------
    samples, domain, sparse
        As for `separate`.
    """

    def __init__(self, samples: Samples, domain: CappedSimplex, *, sparse: bool) -> None:
        self._samples = samples
        self._domain = domain
        self._sparse = sparse
        self._answers: list[tuple[Array, tuple[Cut, ...], Array]] = []

    def __call__(
        self, weights: Array, features: Indices | None = None, span: Span | None = None
    ) -> Array:
        """Return the trimmed weights, given those of a descent and where it ran.

        Parameters
        ----------
        weights : ndarray of shape (n,)
        features : ndarray of int, optional
            The features of the descent.
        span : Span, optional
            Its directions. The removed rows are compared with the kept ones in these alone, where
            there is less noise, and no row is read again.
        """
        samples = self._samples if span is None else DenseSamples(span.projected)
        found, cuts, beyond = _trim(samples, self._domain, weights, self._sparse, features)
        if span is not None:
            cuts = tuple(replace(cut, direction=span.basis @ cut.direction) for cut in cuts)
        self._answers.append((found, cuts, beyond))
        return found

    def cuts_of(self, weights: Array) -> tuple[Cut, ...]:
        """Return the cuts behind weights that this object returned; none for other weights."""
        return next((cuts for found, cuts, _ in self._answers if found is weights), ())

    def beyond(self, weights: Array) -> Array | None:
        """Return how far each row is beyond the cuts behind such weights, added up over them."""
        return next((beyond for found, _, beyond in self._answers if found is weights), None)


def separate(
    samples: Samples,
    domain: CappedSimplex,
    weights: Array,
    *,
    sparse: bool,
    features: Indices | None = None,
) -> tuple[Array, tuple[Cut, ...]]:
    """Trim along the directions in which the removed rows differ from the kept ones.

    Parameters
    ----------
    samples : Samples
        In units of the noise.
    domain : CappedSimplex
        The weights stay in it, so no more is removed than the contamination allows.
    weights : ndarray of shape (n,)
        Found by a descent.
    sparse : bool
        Keep only the features in which the difference is significant.
    features : ndarray of int, optional
        The features that carry the evidence. The first direction is sought on all features, the
        next on these and those of the first alone: others hold noise, and need not be read again.

    Returns
    -------
    weights : ndarray of shape (n,)
    cuts : tuple of Cut
        Empty if the removed rows point nowhere.
    """
    found, cuts, _ = _trim(samples, domain, weights, sparse, features)
    return found, cuts


def _trim(
    samples: Samples,
    domain: CappedSimplex,
    weights: Array,
    sparse: bool,
    features: Indices | None,
) -> tuple[Array, tuple[Cut, ...], Array]:
    """Return the weights, the cuts, and how far each row is beyond them, added up."""
    start = domain.reference()
    weights = domain.project(weights)
    cuts: list[Cut] = []
    beyond = np.zeros(weights.size)
    among: Indices | None = None
    for _ in range(_ROUNDS):
        found = _find_cut(samples, domain, start, weights, sparse, among)
        if found is None:
            break
        cut, projected = found
        if sparse and features is not None:
            among = np.union1d(features, np.flatnonzero(cut.direction))
        excess = np.maximum(cut.excess(projected), 0.0)
        cuts.append(cut)
        beyond += excess
        pull = PULL / domain.metric.sum() * domain.metric
        weights = domain.project(weights - pull * excess)
    return weights, tuple(cuts), beyond


def _find_cut(
    samples: Samples,
    domain: CappedSimplex,
    start: Array,
    weights: Array,
    sparse: bool,
    among: Indices | None,
) -> tuple[Cut, Array] | None:
    """Return a cut and the projections on its direction, or None if nothing was revealed."""
    moved = start - weights
    moved[np.abs(moved) <= 1e-9 * start.max()] = 0.0
    removed = np.maximum(moved, 0.0)
    share = float(removed.sum())
    counted = domain.metric > 0
    noise = float(np.sqrt(np.sum(moved[counted] ** 2 / domain.metric[counted])))
    if share <= 0.0 or noise == 0.0:
        return None
    if among is None:
        difference = samples.mean(start) - samples.mean(weights)
    else:
        difference = np.zeros(samples.n_features)
        difference[among] = samples.columns(among).mean(moved)
    direction = _significant(difference / noise, sparse)
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
    return Cut(direction, centre, spread, float(np.clip(limit, NEAREST, FARTHEST))), projected


def _significant(z_scores: Array, sparse: bool) -> Array | None:
    """Return the unit direction of a difference given in units of its noise, or None."""
    d = z_scores.size
    if sparse:
        z_scores = np.where(np.abs(z_scores) > np.sqrt(2.0 * np.log(max(d, 2))), z_scores, 0.0)
    elif z_scores @ z_scores < d + 3.0 * np.sqrt(2.0 * d):
        return None
    length = float(np.linalg.norm(z_scores))
    return z_scores / length if length > 0 else None


def weighted_quantile(values: Array, weights: Array, levels: list[float]) -> Array:
    """Return quantiles of one weighted sample: the least value with that share at or below it."""
    order = np.argsort(values, kind="stable")
    cumulative = np.cumsum(weights[order])
    positions = np.searchsorted(cumulative, np.asarray(levels) * cumulative[-1] * (1.0 - 1e-12))
    return np.asarray(values[order][np.minimum(positions, values.size - 1)])
