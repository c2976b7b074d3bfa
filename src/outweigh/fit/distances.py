"""How far out rows are: inside a subspace and away from it, and how far clean rows are.

Directions fitted to few rows lie close to those rows: a row that was left out seems far away, be it
as clean as the others, and once left out it would stay so. Rows are therefore held out a fifth at a
time, and their distances from the fit to the others are comparable with those of rows without
weight, for any numbers of rows and columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri

from outweigh.fit.columns import weighted_quantile
from outweigh.fit.elliptical import Cloud
from outweigh.fit.mixture import Groups, chance_of
from outweigh.fit.noise import Standardizer
from outweigh.fit.radial import RadialLaw, discovered, radial_law, second_group
from outweigh.fit.readers import fix_signs
from outweigh.fit.score import EllipticalScore
from outweigh.fit.tuning import TUNING
from outweigh.objectives import MomentObjective
from outweigh.protocols import Array, Indices, Samples
from outweigh.samples import DenseSamples
from outweigh.samples.dense import INFINITE
from outweigh.samples.matrices import as_array

_FOLDS = 5
_ONE_IN_FORTY = 0.025
# In a table without any wrong row one is taken for far out in so many tables.
_NONE = 0.05
_TINY = 1e-12
_LEAST = 1e-300
# Variances that differ by no more than this part are equal but for rounding.
_EQUAL = 1e-9


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
    cutoffs : ndarray of shape (2,)
        What clean rows do not exceed, of the distance within the subspace and of that from it.
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
    cutoffs: Array = field(default_factory=lambda: np.ones(2))
    groups: Groups = ()

    @classmethod
    def of(cls, samples: Samples, weights: Array, components: Array, centre: Array) -> Distances:
        """Return those from a centre, with orthonormal components turned to be uncorrelated.

        Variances are of the weighted rows; the cut-offs are one.
        """
        along = samples.project(components) - centre @ components
        values, axes = np.linalg.eigh((along * weights[:, None]).T @ along)
        values, axes = values[::-1], axes[:, ::-1]
        # Kept rows may coincide along a component; then the spread of all rows is the unit there.
        unit = max(float(values[0]), float(np.mean(np.square(along))), np.finfo(float).tiny)
        values = np.maximum(values, max(_TINY * unit, _LEAST))
        return cls(centre, components @ axes, values)

    def at_median(self, samples: Samples, sample_weight: Array) -> Distances:
        """Return the same with variances that give the median distance of Gaussian rows.

        For weights that have trimmed clean rows too, under which variances are too small.
        """
        typical = float(weighted_quantile(self.score(samples), sample_weight, [0.5])[0])
        factor = max(typical**2 / float(chdtri(self.variances.size, 0.5)), _TINY)
        return replace(self, variances=np.maximum(self.variances * factor, _LEAST))

    def calibrated(self, samples: Samples, weights: Array) -> Distances:
        """Return the same with the cut-offs that one clean row in forty exceeds.

        By the law of the bulk of the distances of the rows that have weight.
        """
        kept, limits = weights > 0.0, []
        d, r = self.components.shape
        for away, most in zip(np.square(self.both(samples)), (r, max(d - r, 1)), strict=True):
            law = radial_law(away[kept], weights[kept], most, np.inf, 0.0, shrink=True)
            limits.append(_above_rounding(law.beyond(_ONE_IN_FORTY), away[kept]))
        return replace(self, cutoffs=np.sqrt(limits))

    def score(self, samples: Samples) -> Array:
        """Return the Mahalanobis distance inside the subspace; at least that of groups apart."""
        along = samples.project(self.components) - self.centre @ self.components
        with np.errstate(over="ignore"):
            # Where the clean rows are one point in it, others are infinitely far.
            inside = np.sqrt((along**2 / self.variances).sum(axis=1))
        inside = np.maximum(inside, np.sqrt(2.0 * self.apart(samples)) * self.cutoffs[0])
        return np.asarray(np.minimum(inside, INFINITE))

    def apart(self, samples: Samples) -> Array:
        """Return the chance of each row to be of a group that stands apart."""
        return chance_of(self.groups, samples)

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

    def reaching(self, samples: Samples, sample_weight: Array) -> Distances:
        """Return the same with cut-offs that no row of positive weight exceeds, and no groups."""
        farthest = float(self.combined(samples)[sample_weight > 0.0].max()) * (1.0 + 1e-9)
        return replace(self, cutoffs=self.cutoffs * farthest, groups=())

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
        within, beside = distances.both(samples) / distances.cutoffs[:, None]
        off = (beside >= within)[:, None]
        parts = np.where(off, np.square(residual), np.maximum(away * pulled, 0.0))
        return parts + np.finfo(float).tiny, np.where(off, residual, away), off


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
        held = (weights == 0.0) | (True if folds is None else folds == fold)
        squared[:, held] += np.square(fitted_distances(objective, others, q).both(samples)[:, held])
        times += held
    squared /= np.maximum(times, 1.0)
    counted = sample_weight > 0.0
    weight, n = sample_weight[counted], float(sample_weight.sum())
    share = float(sample_weight[weights == 0.0].sum()) / n
    free = max((1.0 - share) * n * (1.0 if folds is None else 1.0 - 1.0 / _FOLDS) - q, 1.0)
    found = replace(fitted_distances(objective, weights, q), groups=groups)

    limits = []
    for kind, most in enumerate((q, max(samples.n_features - q, 1))):
        away = squared[kind, counted]
        law = radial_law(away, weight, most, n, share, shrink=True)
        # Within the subspace the covariance of q directions is told by m rows, and has m - q
        # degrees of freedom; away from it one scale serves all k, which tell it k times as well.
        told_by = free * (max(law.k, 1.0) if kind else 1.0)
        law = replace(law, nu=max(told_by, 2.0)).at_median(law.beyond(0.5))
        reach = _discovered_beyond(law, away, weight)
        far = away > reach
        many = weight[far].sum() > max(TUNING.few_far_share * n, TUNING.few_far)
        if price > 0.0 and many:
            group = second_group(away, weight, far, law, most)
            outside = np.where(squared[kind] > reach, sample_weight, 0.0)
            if group.gain + found.to_one_side(samples, outside, kind) < price:
                reach = max(reach, _discovered_beyond(group.alone, away, weight))
        limits.append(_above_rounding(reach, away))
    within = np.all(squared <= np.array(limits)[:, None], axis=0) & counted
    within &= found.apart(samples) <= 0.5
    farthest = found.both(samples)[:, within].max(axis=1, initial=0.0) * (1.0 + 1e-9)
    return replace(found, cutoffs=np.maximum(np.sqrt(limits), farthest))


def _discovered_beyond(law: RadialLaw, squared: Array, weight: Array) -> float:
    """Return the squared distance beyond which rows are taken for far ones by a law."""
    level = _NONE / float(weight.sum())
    return law.beyond(discovered(law, squared, weight, level, TUNING.false_discoveries))


def _above_rounding(limit: float, squared: Array) -> float:
    """Return a limit of squared distances, or what rounding leaves where rows lie in a subspace."""
    return max(limit, _TINY**2 * float(squared.max(initial=0.0)), np.finfo(float).tiny)


def fitted_distances(objective: MomentObjective, weights: Array, q: int) -> Distances:
    """Return distances in the q leading directions under the weights, and from them."""
    values, vectors = leading_directions(objective, weights)
    leading = vectors[:, : min(q, rank_of(values))]
    return Distances.of(objective.samples, weights, leading, objective.centre(weights))


def rank_of(values: Array) -> int:
    """Return the number of directions, one at least, in which rows vary by more than rounding."""
    return max(int(np.count_nonzero(values > _TINY * values[0])), 1)
