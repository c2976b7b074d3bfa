"""The two distances of robust PCA: inside the subspace and away from it, with cut-offs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri

from outweigh.fit.columns import weighted_quantile
from outweigh.fit.elliptical import Cloud
from outweigh.fit.mixture import Groups
from outweigh.fit.noise import Standardizer
from outweigh.fit.radial import radial_law
from outweigh.fit.score import EllipticalScore
from outweigh.protocols import Array, Samples
from outweigh.samples import DenseSamples
from outweigh.samples.dense import INFINITE
from outweigh.samples.matrices import as_array

_LEVEL = 0.975
_TINY = 1e-12
_LEAST = 1e-300
# A variance beside which no deviation counts; finite, as all that a model file holds.
_ANY = 1e100


@dataclass(frozen=True, slots=True, eq=False)
class Distances:
    """Score and orthogonal distances of rows from a fitted subspace.

    Attributes
    ----------
    centre : ndarray of shape (d,)
    components : ndarray of shape (d, r)
        Orthonormal columns.
    variances : ndarray of shape (r,)
        Of the clean rows along the columns, which are uncorrelated.
    score_cutoff, orthogonal_cutoff : float
        At first what one clean row in forty exceeds, by the law of the bulk of the distances
        (`outweigh.fit.radial`).
    groups : tuple of Group
        That stand apart, wherever they are. A row that is likely of one is beyond the cut-off
        within the subspace: its squared distance is at least 2p of it, p the chance.

    References
    ----------
    Hubert, Rousseeuw and Vanden Branden, "ROBPCA: a new approach to robust principal component
    analysis", Technometrics 47 (2005).
    """

    centre: Array
    components: Array
    variances: Array
    score_cutoff: float
    orthogonal_cutoff: float
    groups: Groups = ()

    def score(self, samples: Samples) -> Array:
        """Return the Mahalanobis distance inside the subspace; at least that of groups apart."""
        along = samples.project(self.components) - self.centre @ self.components
        with np.errstate(over="ignore"):
            # Where the clean rows are one point in it, others are infinitely far.
            inside = np.sqrt((along**2 / self.variances).sum(axis=1))
        inside = np.maximum(inside, np.sqrt(2.0 * self.apart(samples)) * self.score_cutoff)
        return np.asarray(np.minimum(inside, INFINITE))

    def apart(self, samples: Samples) -> Array:
        """Return the chance of each row to be of a group that stands apart."""
        clean = np.ones(samples.n_samples)
        for group in self.groups:
            clean *= 1.0 - group.wrong(group.seen(samples))
        return 1.0 - clean

    def orthogonal(self, samples: Samples) -> Array:
        """Return the distance from the subspace."""
        along = samples.project(self.components) - self.centre @ self.components
        total = samples.squared_distances(self.centre)
        left = total - (along**2).sum(axis=1)
        # Differences of squares: what rounding leaves is not a distance.
        length = float(np.linalg.norm(np.clip(self.centre, -INFINITE, INFINITE)))
        rounding = 1e-13 * total + 1e-14 * np.sqrt(total) * length
        return np.sqrt(np.where(left > rounding, left, 0.0))

    def both(self, samples: Samples) -> Array:
        """Return the distance within the subspace and that from it, shape (2, n)."""
        return np.array([self.score(samples), self.orthogonal(samples)])

    def combined(self, samples: Samples) -> Array:
        """Return the larger of the two distances in units of their cut-offs."""
        with np.errstate(over="ignore"):
            # Where the clean rows lie in the subspace, nearly all distances from it are infinite.
            both = self.both(samples) / self.cutoffs[:, None]
        return np.asarray(np.minimum(both.max(axis=0), INFINITE))

    def to_one_side(self, samples: Samples, weight: Array, kind: int) -> float:
        r"""Return how many nats say that rows lie to one side, as those of no symmetric law do.

        Of unit vectors :math:`u_i` from the centre each may as well be :math:`-u_i` if the law is
        symmetric, whatever its covariance and tail. Then :math:`|\sum_i u_i|^2` has the mean m and
        the variance :math:`2 \sum_{i \ne j} (u_i'u_j)^2`; the nats are half the squared deviation
        above that mean.

        Parameters
        ----------
        samples : Samples
        weight : ndarray of shape (n,)
            How often each row counts.
        kind : {0, 1}
            As in `both`: of the vectors within the subspace, of variance one along each axis, or of
            those from it.
        """
        length = self.both(samples)[kind]
        # A row at no distance lies to no side.
        weight = np.where(length > 0.0, weight, 0.0)
        if not weight.any():
            return 0.0
        length = np.where(weight > 0.0, length, 1.0)
        once = weight / length
        twice = once / length
        basis = self.components
        turns = (basis / np.sqrt(self.variances), np.eye(len(basis)) - basis @ basis.T)
        summed = once.sum() * (samples.mean(once / once.sum()) - self.centre) @ turns[kind]
        middle = samples.mean(twice / twice.sum()) - self.centre
        moment = as_array(samples.moment(twice / twice.sum(), centred=True))
        gram = twice.sum() * turns[kind].T @ (moment + np.outer(middle, middle)) @ turns[kind]
        alone = float(weight @ weight)
        variance = 2.0 * max(float(np.vdot(gram, gram)) - alone, np.finfo(float).tiny)
        return max(float(summed @ summed) - alone, 0.0) ** 2 / (2.0 * variance)

    @property
    def cutoffs(self) -> Array:
        """Both cut-offs, that within the subspace first."""
        return np.array([self.score_cutoff, self.orthogonal_cutoff])

    def with_cutoffs(self, score: float, orthogonal: float) -> Distances:
        """Return the same distances with other cut-offs."""
        return replace(self, score_cutoff=float(score), orthogonal_cutoff=float(orthogonal))

    def reaching(self, samples: Samples, sample_weight: Array) -> Distances:
        """Return the same with cut-offs that no row of positive weight exceeds, and no groups."""
        farthest = float(self.combined(samples)[sample_weight > 0.0].max()) * (1.0 + 1e-9)
        return replace(self, groups=()).with_cutoffs(*(self.cutoffs * farthest))

    def beside(self, directions: Array) -> Distances:
        """Return the same where nothing along some more directions counts against a row."""
        return replace(
            self,
            components=np.hstack([self.components, directions]),
            variances=np.append(self.variances, np.full(directions.shape[1], _ANY)),
        )

    def lifted(self, lift: Callable[[Array], Array]) -> Distances:
        """Return the same in more columns, to which a function takes vectors."""
        centre, components = lift(self.centre), lift(self.components)
        groups = tuple(group.lifted(lift) for group in self.groups)
        return replace(self, centre=centre, components=components, groups=groups)


@dataclass(frozen=True, slots=True, eq=False)
class DistanceScore:
    """A score for rows whose noise is not white: minus the larger distance, in cut-offs.

    Where there is a cloud of rows in straightened columns, the distance from that counts instead,
    in units of its limit, if it is less: the tail of a skewed column is far from the bulk and not
    wrong. But not for rows of a group that stands apart, which may be near.
    """

    standardizer: Standardizer
    distances: Distances
    straight: Cloud | None = None

    def __call__(self, X: NDArray[np.floating]) -> Array:
        """Return the score of each row of X, at most 0; lower is less trusted."""
        samples = DenseSamples(self.standardizer.apply(X))
        scores = -self.distances.combined(samples)
        if self.straight is None:
            return scores
        near = -np.sqrt(-EllipticalScore(self.standardizer, self.straight)(X))
        apart = self.distances.apart(samples) > 0.5
        return np.where(apart, scores, np.maximum(scores, near))

    def contributions(self, X: NDArray[np.floating]) -> tuple[Array, Array]:
        """Return how much each column counts against each row, and how far out it is there.

        Off the subspace, by the square of what the subspace leaves of the row; within it, by the
        terms of the squared distance of its scores. The larger of both distances tells which.
        """
        parts, away, _ = self._reasons(X)
        return parts, away

    def foretold(self, X: NDArray[np.floating]) -> Array:
        """Return what the subspace foretells of each column of rows off it; NaN of other rows."""
        _, away, off = self._reasons(X)
        columns, scale = self.standardizer.columns, self.standardizer.scale
        return np.where(off, X[:, columns] - away * scale, np.nan)

    def _reasons(self, X: NDArray[np.floating]) -> tuple[Array, Array, NDArray[np.bool_]]:
        distances = self.distances
        samples = DenseSamples(self.standardizer.apply(X))
        white = samples.array - distances.centre
        along = white @ distances.components
        residual = self.standardizer.to_features((white - along @ distances.components.T).T).T
        pulled = (along / distances.variances) @ distances.components.T
        away = self.standardizer.to_features(white.T).T
        if self.standardizer.whitener is not None:
            # Products z'v of whitened rows z = Wy are sums over the features of y times Wv.
            pulled = pulled @ self.standardizer.whitener
        beside = distances.orthogonal(samples) / distances.orthogonal_cutoff
        off = (beside >= distances.score(samples) / distances.score_cutoff)[:, None]
        parts = np.where(off, np.square(residual), np.maximum(away * pulled, 0.0))
        return parts + np.finfo(float).tiny, np.where(off, residual, away), off


def distances_for(
    samples: Samples,
    weights: Array,
    components: Array,
    centre: Array,
    sample_weight: Array | None = None,
) -> Distances:
    """Calibrate the distances on the rows that carry weight.

    Parameters
    ----------
    samples : Samples
    weights : ndarray of shape (n,)
    components : ndarray of shape (d, r)
        Orthonormal columns.
    centre : ndarray of shape (d,)
    sample_weight : ndarray of shape (n,), optional
        Given where the weights have trimmed clean rows too, so that variances under them are too
        small: they are then scaled to the median of the distances of all rows, and cut-offs are by
        the bulk of all.
    """
    along = samples.project(components) - centre @ components
    covariance = (along * weights[:, None]).T @ along
    values, axes = np.linalg.eigh(covariance)
    values, axes = values[::-1], axes[:, ::-1]
    # Kept rows may coincide along a component; then the spread of all rows is the unit there.
    unit = max(float(values[0]), float(np.mean(np.square(along))), np.finfo(float).tiny)
    floor = _TINY * unit
    values = np.maximum(values, max(floor, _LEAST))
    rank = components.shape[1]
    found = Distances(centre, components @ axes, values, 1.0, 1.0)
    counted = weights if sample_weight is None else sample_weight
    if sample_weight is not None:
        typical = float(weighted_quantile(found.score(samples), sample_weight, [0.5])[0])
        factor = max(typical**2 / float(chdtri(rank, 0.5)), _TINY)
        found = replace(found, variances=np.maximum(values * factor, _LEAST))
    kept = counted > 0.0
    cutoffs = []
    for distance, most in zip(found.both(samples), (rank, samples.n_features - rank), strict=True):
        squared = np.square(distance[kept])
        law = radial_law(squared, counted[kept], max(most, 1), np.inf, 0.0, shrink=True)
        # Where rows lie in a subspace, rounding is what is left beside it.
        least = max(_TINY**2 * float(squared.max(initial=0.0)), np.finfo(float).tiny)
        cutoffs.append(float(np.sqrt(max(law.beyond(1.0 - _LEVEL), least))))
    return found.with_cutoffs(*cutoffs)
