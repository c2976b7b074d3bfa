r"""Weights for rows of unknown covariance, from the shape of the cloud they form.

Under weights found by second moments alone the covariance of the kept rows explains itself, so it
carries no evidence. Shape does. Clean rows are taken to be elliptical, of any covariance and any
tail (`outweigh.fit.radial`); rows are distrusted for three reasons: they are farther out than any
clean row of such a table; they belong to a group that stands apart along a direction
(`outweigh.fit.groups`); or the others hid them until those were removed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from outweigh.fit.groups import set_apart
from outweigh.fit.marginals import Marginals, Reach, judged_columns, marginals
from outweigh.fit.mixture import Group, chance_of
from outweigh.fit.scatter import Mask, Scatter, WeightedRows
from outweigh.fit.shape import Shape, undecided
from outweigh.fit.tuning import TUNING
from outweigh.protocols import Array, Indices
from outweigh.samples import DenseSamples


@dataclass(frozen=True, slots=True, eq=False)
class Cloud:
    """What clean rows of unknown covariance are like, and which groups stand apart from them.

    Attributes
    ----------
    columns : ndarray of int
        The columns that rows are judged by.
    marginals : Marginals
    basis : ndarray of shape (r, d) or None
        Orthonormal rows: coordinates of the span where there are fewer rows than columns.
    scatter : Scatter
        Of the rows kept, in those coordinates.
    limit : float
        The squared distance beyond which rows are distrusted.
    groups, doubted : tuple of Group
        Those that stand apart, and those that may be genuine.
    reach : Reach
        Of the columns that rows are not judged by otherwise.
    """

    columns: Indices
    marginals: Marginals
    basis: Array | None
    scatter: Scatter
    limit: float
    groups: tuple[Group, ...]
    doubted: tuple[Group, ...]
    reach: Reach

    def coordinates(self, X: NDArray[np.floating]) -> tuple[Array, Array]:
        """Return rows of all columns as they are judged, and squared how far outside the span."""
        z = self.marginals.apply(X[:, self.columns])
        if self.basis is None:
            return z, np.zeros(len(z))
        inside = z @ self.basis.T
        outside = np.square(z).sum(axis=1) - np.square(inside).sum(axis=1)
        # Differences of squares: what rounding leaves is not a distance.
        return inside, np.where(outside > 1e-9 * np.square(z).sum(axis=1), outside, 0.0)

    def apart(self, z: Array) -> tuple[Array, Array]:
        """Return the chances of rows, as they are judged, to be of a group.

        Of one that stands apart, and of one that may be genuine.
        """
        samples = DenseSamples(z)
        return chance_of(self.groups, samples), chance_of(self.doubted, samples)

    def foretold(self, X: NDArray[np.floating]) -> Array:
        r"""Return what the other columns judged foretell of each, in the units of X.

        With :math:`P` the inverse covariance and :math:`g = P (z - m)`, the mean of column j given
        the others is :math:`z_j - g_j / P_{jj}`. A column s is to blame where it is the only one
        without which the row is within the limit, :math:`g'P^{-1}g - g_s^2 / P_{ss}`; the others
        are then foretold without it,
        :math:`z_j - (P_{ss} g_j - P_{js} g_s) / (P_{jj} P_{ss} - P_{js}^2)`. NaN where there are
        fewer rows than columns, and the others foretell too well.
        """
        if self.basis is not None:
            return np.full((len(X), self.columns.size), np.nan)
        z, whitener = self.coordinates(X)[0], self.scatter.whitener
        white, precision = self.scatter.white(z), whitener @ whitener.T
        own, force = np.diagonal(precision), white @ whitener.T
        within = np.square(white).sum(axis=1)[:, None] - np.square(force) / own <= self.limit
        rows, blamed = np.arange(len(z)), within.argmax(axis=1)
        shared = precision[blamed] * (within.sum(axis=1) == 1)[:, None]
        # Of itself a column says nothing.
        shared[rows, blamed] = 0.0
        its, its_force = own[blamed, None], force[rows, blamed][:, None]
        left = np.maximum(own * its - np.square(shared), 1e-12 * own * its)
        return self.marginals.restore(z - (its * force - shared * its_force) / left)

    def among(self, columns: Indices, scale: Array) -> Cloud:
        """Return the same cloud of rows `scale` times as large, with columns counted among more."""
        form, unit = self.marginals, scale[self.columns]
        form = replace(form, middle=form.middle * unit, unit=form.unit * unit)
        reach = self.reach.among(columns, scale)
        return replace(self, columns=columns[self.columns], marginals=form, reach=reach)


@dataclass(frozen=True, slots=True, eq=False)
class Judgement:
    """What is known of rows of unknown covariance.

    Attributes
    ----------
    cloud : Cloud
    clean : ndarray of shape (n,)
        The chance of each row to be clean; 0 for those beyond the limit.
    severity : ndarray of shape (n,)
        How much speaks against each row, each left out where it is judged; above 1: distrusted.
    farthest : float
        The distance of the farthest row kept, in units of the limit; a value in a column that rows
        are not judged by counts in units of its reach.
    far : float
        The share of the rows that are beyond the limit.
    apart : float
        The share of the rows in groups that stand apart.
    spared : float
        The share of the rows that are far or apart but kept: no more may be distrusted.
    divided : float
        The share of the rows that are far or apart where they are too many to be wrong; all are
        kept then. Else 0.
    doubtful : float
        The share of the rows that were kept but may be wrong.
    doubt : {"overlap", "many", "few values"}
        Why: they are a group that overlaps the others; in groups that with the far rows are too
        many to be wrong; or amiss in columns of so few values that such a group may be genuine.
    seen : float
        The share of the columns that rows are judged by; the others have too few values.
    """

    cloud: Cloud
    clean: Array
    severity: Array
    farthest: float
    far: float
    apart: float
    spared: float
    divided: float
    doubtful: float
    doubt: str
    seen: float


def judge_rows(
    X: Array, sample_weight: Array, bound: float, *, straighten: bool = True
) -> Judgement:
    """Judge rows of unknown covariance.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    sample_weight : ndarray of shape (n,)
        Positive; a whole number counts as that many copies of the row.
    bound : float
        At most this share of the sample weight is distrusted.
    straighten : bool, default=True
        Whether columns that are skewed are made straight: those of a table are, directions of a
        subspace are not.
    """
    columns, grouped = judged_columns(X, sample_weight)
    n_columns = X.shape[1]
    others = np.setdiff1d(np.arange(n_columns), columns)
    reach = Reach.of(X, sample_weight, others)
    beyond = reach.exceeded(X)
    shaped = columns.size > 0
    coarse = 0.0
    if grouped and others.size > 1:
        # What is amiss among the others by themselves is told, not removed.
        by_others = judge_rows(X[:, others], sample_weight, bound, straighten=straighten)
        coarse = by_others.far + by_others.apart + by_others.doubtful
    columns = columns if shaped else others
    X = X[:, columns]
    everything = np.ones(len(X), dtype=np.bool_)
    form = marginals(X, sample_weight, everything, straighten=False)
    apart: list[Mask] = []
    overlapping = ~everything
    # As many are looked for as there may be at all, however few may be distrusted.
    most = max(bound, TUNING.loose_bound)
    if shaped and bound > 0.0:
        apart, overlapping = set_apart(form.apply(X), sample_weight, most)
        # Skewness is read off the bulk alone: a group at one side would look like it.
        bulk = ~np.any(apart, axis=0) if apart else everything
        bent = marginals(X, sample_weight, bulk, straighten=straighten)
        if grouped and np.any(bent.g):
            # Both count: straightening a column shows groups that its tail hid, and draws those
            # beyond the tail in.
            form = bent
            more, also = set_apart(form.apply(X), sample_weight, most)
            apart, overlapping = apart + more, overlapping | also
    rows = WeightedRows(form.apply(X), sample_weight)
    found = undecided(rows)
    if shaped:
        outliers, genuine = (apart, [overlapping]) if grouped else ([], [*apart, overlapping])
        found = Shape(rows, most).judged(outliers, genuine)
    least = float(np.finfo(np.float64).eps) * max(float(found.squared.max()), 1.0)
    # More than half of the rows may be equal, or all: then there is no distance but zero.
    limit = max(found.limit, least)
    farness = np.maximum(found.squared / limit, beyond)
    severity = np.maximum(np.maximum(farness, 2.0 * found.chance), found.maybe)
    suspect = np.where(beyond > 1.0, 0.0, found.clean)
    clean = _at_most(bound * rows.n, sample_weight, suspect, severity)

    def share(rows: Mask) -> float:
        return float(sample_weight[rows].sum() / sample_weight.sum())

    kept = clean >= 0.5
    # A group without a law of its own is told, too.
    told = share((overlapping | (found.maybe > 0.5)) & kept)
    why = found.doubt if grouped else "few values"
    doubtful, doubt = max((told, why), (coarse, "few values"))
    return Judgement(
        Cloud(columns, form, rows.basis, found.scatter, limit, found.groups, found.doubted, reach),
        clean,
        np.where(clean < 0.5, np.maximum(severity, 1.0), severity),
        farthest=float(farness[kept].max(initial=0.0)),
        far=share((farness > 1.0) & (found.chance < 0.5)),
        apart=share(found.chance >= 0.5),
        spared=share((suspect < 0.5) & kept),
        divided=found.divided,
        doubtful=doubtful,
        doubt=doubt,
        seen=columns.size / n_columns if shaped else 0.0,
    )


def _at_most(room: float, weight: Array, clean: Array, severity: Array) -> Array:
    """Return the same with no more weight taken than there is room: from the worst rows only."""
    room *= 1.0 + 1e-9
    if weight @ (1.0 - clean) <= room:
        return clean
    wrong = np.flatnonzero(clean < 0.5)
    order = wrong[np.argsort(-severity[wrong], kind="stable")]
    fits = np.cumsum(weight[order]) <= room
    # Equal rows go together.
    fits &= severity[order] > severity[order[~fits]].max(initial=-np.inf)
    least = np.ones_like(clean)
    least[order[fits]] = clean[order[fits]]
    return least
