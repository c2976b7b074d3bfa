"""Rows in units of their noise, and the directions in which the removed ones stand out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from outweigh.estimators.components import Reader, orthonormal, projected_out
from outweigh.estimators.pca_scatter import robust_variance
from outweigh.optimise.capped_simplex import CappedSimplex
from outweigh.protocols import Array, Indices, Samples
from outweigh.samples.matrices import as_array
from outweigh.separation import FARTHEST, NEAREST, PULL, Cut, weighted_quantile

__all__ = ["PCAProblem", "cut_outliers"]

_CUT_ROUNDS, _CUTS_PER_ROUND = 2, 3
# Removed rows must show this much more variance than noise could before they are cut along.
_SIGNIFICANT = 1.25


@dataclass(frozen=True, slots=True, eq=False)
class PCAProblem:
    """Rows in units of their noise, with everything a descent needs to know about them.

    Attributes
    ----------
    samples : Samples
        n rows in d' coordinates: features, or an orthonormal basis of a span.
    sample_weight : ndarray of shape (n,)
    pruned : ndarray of int
        Rows that no weights may use.
    centred : bool
        Whether second moments are about the weighted mean.
    n_ambient : int
        Number of features d of the data, at least d'.
    """

    samples: Samples
    sample_weight: Array
    pruned: Indices
    centred: bool
    n_ambient: int

    def domain(self, contamination: float) -> CappedSimplex:
        """Return the weights that remove at most this share."""
        room = 1e-12 * (self.pruned.size > 0)
        full = CappedSimplex.from_contamination(self.sample_weight, contamination + room)
        return full.pruned(self.pruned)

    def excess(self, weights: Array) -> Array:
        """Return the second moments less the identity, as an array."""
        return as_array(self.samples.moment(weights, centred=self.centred, reference=1.0))


def cut_outliers(
    problem: PCAProblem,
    reader: Reader,
    domain: CappedSimplex,
    weights: Array,
    components: Array,
) -> tuple[Array, tuple[Cut, ...]]:
    """Trim along the directions in which the removed rows vary more than the kept ones.

    At the floor, outliers near the centre of their direction are still kept, and some of those
    far out. Along the single direction that the removed rows reveal, noise is small: the cut is
    where a row is equally likely to belong to either.
    """
    cuts: list[Cut] = []
    basis = orthonormal(components)
    for _ in range(_CUT_ROUNDS):
        found = _find_cuts(problem, reader, domain, weights, basis)
        if not found:
            break
        excess = np.zeros(weights.size)
        for cut in found:
            beyond = cut.excess(problem.samples.project(cut.direction))
            excess = np.maximum(excess, beyond)
        cuts.extend(found)
        pull = PULL / domain.metric.sum() * domain.metric
        weights = domain.project(weights - pull * excess)
    return weights, tuple(cuts)


def _find_cuts(
    problem: PCAProblem, reader: Reader, domain: CappedSimplex, weights: Array, basis: Array
) -> list[Cut]:
    removed = np.maximum(domain.reference() - weights, 0.0)
    share = float(removed.sum())
    if share <= 1e-9:
        return []
    samples = problem.samples
    removed /= share
    counted = removed > 0
    n_removed = 1.0 / float(np.sum(removed[counted] ** 2 / domain.metric[counted]))
    centre = samples.mean(weights) if problem.centred else np.zeros(samples.n_features)
    difference = as_array(samples.moment(removed, centred=False))
    if problem.centred:
        # About the centre: the moment less away centre' + centre away' - centre centre'.
        away = samples.mean(removed) - centre / 2.0
        difference -= np.column_stack([away, centre]) @ np.vstack([centre, away])
    difference -= as_array(samples.moment(weights, centred=problem.centred))
    edge = _SIGNIFICANT * reader.edge(n_removed, samples.n_features)
    found: list[Cut] = []
    for _ in range(_CUTS_PER_ROUND):
        difference = projected_out(difference, basis)
        direction = reader.leading(difference)[:, 0]
        cut = _cut_along(samples.project(direction), weights, removed, share, edge, direction)
        if cut is None:
            break
        found.append(cut)
        basis = orthonormal(np.column_stack([basis, direction]))
    return found


def _cut_along(
    projected: Array, weights: Array, removed: Array, share: float, edge: float, direction: Array
) -> Cut | None:
    variance = robust_variance(projected, weights)
    if variance <= 0.0:
        return None
    middle = float(weighted_quantile(projected, weights, [0.5])[0])
    ratio = float(removed @ (projected - middle) ** 2) / variance
    if ratio < edge:
        return None
    # Where Gaussians of variance 1 and `ratio`, of weights 1 - share and share, are equally likely.
    odds = np.log((1.0 - share) / share) + 0.5 * np.log(ratio)
    limit = np.sqrt(max(2.0 * odds / (1.0 - 1.0 / ratio), 0.0))
    limit = float(np.clip(limit, NEAREST, FARTHEST))
    return Cut(direction, middle, float(np.sqrt(variance)), limit)
