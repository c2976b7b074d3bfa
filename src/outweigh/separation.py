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

from outweigh.optimise.capped_simplex import CappedSimplex
from outweigh.protocols import Array, Indices, Samples, Span
from outweigh.samples import DenseSamples

__all__ = ["FARTHEST", "NEAREST", "PULL", "Cut", "Separator", "separate", "weighted_quantile"]

_ROUNDS = 2
# A cut nearer than two deviations would take too many clean rows, one beyond four too few outliers.
NEAREST, FARTHEST = 2.0, 4.0
# A row one deviation beyond the cut loses five times the weight of a row: all of it.
PULL = 5.0
_QUARTILES_TO_SD = 1.0 / 1.349
# Features or a span that hold this share of the squared length of the direction of the outliers
# will do: the rest is not worth reading other columns for.
_WELL_HELD = 0.95


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

    def outside(self, weights: Array, span: Span) -> Array | None:
        """Return the direction outside a span in which rows removed within it differ from the kept.

        Eigenvectors of weak evidence miss a part of the direction of the outliers. The difference
        of means over all features holds that part, with the noise of all features. None where
        little is missing, or less than that noise.
        """
        moved = _Moved.between(self._domain, weights)
        if moved is None:
            return None
        z_scores = moved.difference(self._samples, weights) / moved.noise
        within = span.basis.T @ z_scores
        told = span.held > 0.0
        length_sq = float(np.sum(within[told] ** 2))
        true_sq = float(np.sum(within[told] ** 2 / span.held[told]))
        n_outside = z_scores.size - within.size
        # Squared cosines with the direction of the outliers, as they are and as they would be.
        if length_sq >= _WELL_HELD * true_sq or length_sq * (true_sq + n_outside) >= true_sq**2:
            return None
        beyond = z_scores - span.basis @ within
        return np.asarray(beyond / np.linalg.norm(beyond))

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
        The features that carry the evidence. The first direction is sought on all features unless
        nearly all of it lies in these, the next on these and those of the first alone: others hold
        noise, and need not be read again.

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
    weights = domain.project(weights)
    cuts: list[Cut] = []
    beyond = np.zeros(weights.size)
    among: Indices | None = None
    for _ in range(_ROUNDS):
        moved = _Moved.between(domain, weights)
        if moved is None:
            break
        if sparse and features is not None and among is None:
            difference = _difference_held(moved, samples, weights, features)
        else:
            difference = moved.difference(samples, weights, among)
        found = _find_cut(samples, weights, sparse, moved, difference)
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


@dataclass(frozen=True, slots=True, eq=False)
class _Moved:
    """How weights moved away from the reference, and the noise of the mean of what they lost."""

    start: Array
    change: Array
    removed: Array
    share: float
    noise: float

    @classmethod
    def between(cls, domain: CappedSimplex, weights: Array) -> _Moved | None:
        """Return the change from the reference to `weights`; None if there is none."""
        start = domain.reference()
        change = start - weights
        change[np.abs(change) <= 1e-9 * start.max()] = 0.0
        removed = np.maximum(change, 0.0)
        share = float(removed.sum())
        counted = domain.metric > 0
        noise = float(np.sqrt(np.sum(change[counted] ** 2 / domain.metric[counted])))
        if share <= 0.0 or noise == 0.0:
            return None
        return cls(start, change, removed, share, noise)

    def difference(self, samples: Samples, weights: Array, among: Indices | None = None) -> Array:
        """Return by how much the mean moved, on all features or on some and zero elsewhere."""
        difference = np.zeros(samples.n_features)
        if among is not None and 2 * among.size <= difference.size:
            difference[among] = samples.columns(among).mean(self.change)
            return difference
        chosen = slice(None) if among is None else among
        difference[chosen] = (samples.mean(self.start) - samples.mean(weights))[chosen]
        return difference


def _find_cut(
    samples: Samples, weights: Array, sparse: bool, moved: _Moved, difference: Array
) -> tuple[Cut, Array] | None:
    """Return a cut and the projections on its direction, or None if nothing was revealed."""
    direction = _significant(difference / moved.noise, sparse)
    if direction is None:
        return None
    projected = samples.project(direction)
    low, centre, high = weighted_quantile(projected, weights, [0.25, 0.5, 0.75])
    spread = (high - low) * _QUARTILES_TO_SD
    if spread <= 0.0:
        return None
    share = moved.share
    separation = abs(float(moved.removed @ projected) / share - centre) / spread
    # Where two Gaussians of weights share and 1 - share, that far apart, are equally likely.
    odds = np.log((1.0 - share) / share)
    limit = separation / 2.0 + odds / max(separation, np.finfo(float).eps)
    return Cut(direction, centre, spread, float(np.clip(limit, NEAREST, FARTHEST))), projected


def _difference_held(moved: _Moved, samples: Samples, weights: Array, features: Indices) -> Array:
    """Return by how much the mean moved: on the features if these hold nearly all, else on all."""
    difference = moved.difference(samples, weights)
    direction = _significant(difference / moved.noise, sparse=True)
    if direction is None or float(np.sum(direction[features] ** 2)) >= _WELL_HELD:
        return moved.difference(samples, weights, features)
    return difference


def _significant(z_scores: Array, sparse: bool) -> Array | None:
    """Return the unit direction of a difference given in units of its noise, or None."""
    d = z_scores.size
    if sparse:
        z_scores = np.where(np.abs(z_scores) > np.sqrt(2.0 * np.log(max(d, 2))), z_scores, 0.0)
    elif z_scores @ z_scores < _significance(d):
        return None
    length = float(np.linalg.norm(z_scores))
    return z_scores / length if length > 0 else None


def _significance(d: int) -> float:
    """Return what the sum of the squares of d Gaussians hardly ever exceeds."""
    return float(d + 3.0 * np.sqrt(2.0 * d))


def weighted_quantile(values: Array, weights: Array, levels: list[float]) -> Array:
    """Return quantiles of one weighted sample: the least value with that share at or below it."""
    order = np.argsort(values, kind="stable")
    cumulative = np.cumsum(weights[order])
    positions = np.searchsorted(cumulative, np.asarray(levels) * cumulative[-1] * (1.0 - 1e-12))
    return np.asarray(values[order][np.minimum(positions, values.size - 1)])
