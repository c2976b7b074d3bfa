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
from scipy.special import ndtri

from outweigh.fit.columns import (
    FEW_VALUES,
    MAD_TO_SD,
    RankedColumns,
    column_quantiles,
    weighted_quantile,
)
from outweigh.fit.groups import price_of_direction, principal_axes, set_apart
from outweigh.fit.marginals import Marginals, marginals
from outweigh.fit.mixture import Group, two_laws
from outweigh.fit.radial import RadialLaw, discovered, radial_law, second_group
from outweigh.fit.reach import Reach
from outweigh.fit.scatter import Scatter
from outweigh.fit.tuning import Tuning
from outweigh.protocols import Array, Indices

Mask = NDArray[np.bool_]
_TINY = 1e-300


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
    groups : tuple of Group
    reach : Reach
        Of the columns that rows are not judged by otherwise.
    """

    columns: Indices
    marginals: Marginals
    basis: Array | None
    scatter: Scatter
    limit: float
    groups: tuple[Group, ...]
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

    def apart(self, z: Array) -> Array:
        """Return the chance of rows, as they are judged, to be of a group that stands apart."""
        clean = np.ones(len(z))
        for group in self.groups:
            clean *= 1.0 - group.wrong(z @ group.direction)
        return 1.0 - clean

    def foretold(self, X: NDArray[np.floating]) -> Array:
        r"""Return what the other columns judged foretell of each, in the units of X.

        With :math:`P` the inverse covariance, the mean of column j given the others is
        :math:`z_j - (P (z - m))_j / P_{jj}`. NaN where there are fewer rows than columns, and the
        others foretell too well.
        """
        if self.basis is not None:
            return np.full((len(X), self.columns.size), np.nan)
        z, whitener = self.coordinates(X)[0], self.scatter.whitener
        pulled = self.scatter.white(z) @ whitener.T / np.square(whitener).sum(axis=1)
        return self.marginals.restore(z - pulled)

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
    far: float
    apart: float
    spared: float
    divided: float
    doubtful: float
    doubt: str
    seen: float


def judge_rows(
    X: Array, sample_weight: Array, bound: float, tuning: Tuning, *, straighten: bool = True
) -> Judgement:
    """Judge rows of unknown covariance.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    sample_weight : ndarray of shape (n,)
        Positive; a whole number counts as that many copies of the row.
    bound : float
        At most this share of the sample weight is distrusted.
    tuning : Tuning
    straighten : bool, default=True
        Whether columns that are skewed are made straight: those of a table are, directions of a
        subspace are not.
    """
    columns, grouped = judged_columns(X, sample_weight, tuning)
    n_columns = X.shape[1]
    others = np.setdiff1d(np.arange(n_columns), columns)
    reach = Reach.of(X, sample_weight, others, tuning)
    beyond = reach.exceeded(X)
    shaped = columns.size > 0
    coarse = 0.0
    if grouped and others.size > 1:
        # What is amiss among the others by themselves is told, not removed.
        by_others = judge_rows(X[:, others], sample_weight, bound, tuning, straighten=straighten)
        coarse = by_others.far + by_others.apart + by_others.doubtful
    columns = columns if shaped else others
    X = X[:, columns]
    everything = np.ones(len(X), dtype=np.bool_)
    form = marginals(X, sample_weight, everything, straighten=False)
    apart: list[Mask] = []
    overlapping = ~everything
    if shaped and bound > 0.0:
        # As many are looked for as there may be at all, however few may be distrusted.
        most = max(bound, tuning.loose_bound)
        apart, overlapping = set_apart(form.apply(X), sample_weight, most, tuning)
        # Skewness is read off the bulk alone: a group at one side would look like it.
        bulk = ~np.any(apart, axis=0) if apart else everything
        bent = marginals(X, sample_weight, bulk, straighten=straighten)
        if grouped and np.any(bent.g):
            # Both count: straightening a column shows groups that its tail hid, and draws those
            # beyond the tail in.
            form = bent
            more, also = set_apart(form.apply(X), sample_weight, most, tuning)
            apart, overlapping = apart + more, overlapping | also
    judge = _Judge(form.apply(X), sample_weight, bound, tuning)
    found = judge.by_shape(apart, grouped=grouped) if shaped else judge.undecided()
    least = float(np.finfo(np.float64).eps) * max(float(found.squared.max()), 1.0)
    # More than half of the rows may be equal, or all: then there is no distance but zero.
    limit = max(found.limit, least)
    farness = np.maximum(found.squared / limit, beyond)
    severity = np.maximum(farness, 2.0 * found.chance)
    suspect = np.where(beyond > 1.0, 0.0, found.clean)
    clean = judge.at_most(suspect, severity)

    def share(rows: Mask) -> float:
        return float(sample_weight[rows].sum() / sample_weight.sum())

    doubts = {
        "overlap": share(overlapping & (clean >= 0.5)) if grouped else 0.0,
        "many": share(found.told & (clean >= 0.5)) if grouped else 0.0,
        "few values": coarse if grouped else share(found.told & (clean >= 0.5)),
    }
    doubt = max(doubts, key=lambda why: doubts[why])
    return Judgement(
        Cloud(columns, form, judge.basis, found.scatter, limit, found.groups, reach),
        clean,
        np.where(clean < 0.5, np.maximum(severity, 1.0), severity),
        far=share((farness > 1.0) & (found.chance < 0.5)),
        apart=share(found.chance >= 0.5),
        spared=share((suspect < 0.5) & (clean >= 0.5)),
        divided=found.divided,
        doubtful=doubts[doubt],
        doubt=doubt,
        seen=columns.size / n_columns if shaped else 0.0,
    )


def judged_columns(X: Array, sample_weight: Array, tuning: Tuning) -> tuple[Indices, bool]:
    """Return the columns that rows are judged by, and whether groups in them are outliers.

    Those of many values. Where fewer than two have many, all that have more than few, or none:
    groups among those are no outliers, but what is far from all others is.
    """
    values = RankedColumns(X, sample_weight).values_that_count()
    # A short column cannot have many values; the root of its length is enough.
    many = min(float(tuning.few_values), float(np.sqrt(sample_weight.sum())))
    for fewest, grouped in ((many, True), (FEW_VALUES, False)):
        columns = np.flatnonzero(values > fewest)
        if columns.size >= min(2, values.size):
            return columns, grouped
    return columns[:0], False


@dataclass(frozen=True, slots=True, eq=False)
class _Found:
    """What the shape of the cloud tells of rows: see `Cloud` and `Judgement`.

    ``squared`` are their distances, ``chance`` how likely each is to be of a group, ``told`` are
    those of groups that may be genuine.
    """

    scatter: Scatter
    squared: Array
    limit: float
    chance: Array
    clean: Array
    told: Mask
    groups: tuple[Group, ...] = ()
    divided: float = 0.0


class _Judge:
    """The steps from groups that may stand apart to a verdict on every row."""

    def __init__(self, Z: Array, weight: Array, bound: float, tuning: Tuning) -> None:
        # As many are looked for as there may be at all, however few may be distrusted.
        self.weight, self.allowed, self.tuning = weight, bound, tuning
        self.bound = max(bound, tuning.loose_bound)
        self.n, self.d = float(weight.sum()), Z.shape[1]
        self.shrink = self.n < tuning.rows_per_feature * self.d
        # Of all clean rows of a table, none is beyond the cut in 19 of 20 tables.
        self.level = 0.05 / self.n
        # The probability beyond which clean rows are of a second radial group, where there is one.
        self.parting = 0.0
        self.entries = Z
        self.basis: Array | None = None
        # The shape of the radial law, where the first look at the core or all rows told it.
        self.shape: RadialLaw | None = None
        self.gaussian = False
        if self.d > self.n:
            self.basis = principal_axes(Z, weight)[1].T
            Z = Z @ self.basis.T
        self.Z = Z

    def undecided(self, divided: float = 0.0) -> _Found:
        """Return that nothing says which rows are the clean ones: all are kept."""
        everything = np.ones(len(self.Z))
        scatter = self.scatter(self.weight)
        squared = scatter.distances(self.Z, everything > 0.0)
        limit, none = float(squared.max()), np.zeros(len(self.Z))
        return _Found(scatter, squared, limit, none, everything, none > 0.0, divided=divided)

    def by_shape(self, apart: list[Mask], *, grouped: bool) -> _Found:
        """Judge every row by the groups that may stand apart, and by its distance.

        Where groups are no outliers (`grouped` is false), or too many, they are only told.
        """
        none = np.zeros(len(self.Z), dtype=np.bool_)
        together = np.any(apart, axis=0) if apart and grouped else none
        core = self.core(~together)
        far = self.far_rows(core, together)
        chance, groups = self.verdict(core, far, apart)
        told = none
        if not grouped or self.removed(np.where(far, 0.0, 1.0 - chance)) > self.bound:
            told, chance, groups = chance >= 0.5, np.zeros(len(self.Z)), ()
        clean = np.where(far, 0.0, 1.0 - chance)
        # Once groups are gone, rows that they hid show, and some that seemed far do not.
        for _ in range(3):
            scatter, squared, limit = self.limit(clean, core, chance < 0.5)
            new = np.where(squared > limit, 0.0, 1.0 - chance)
            settled = np.array_equal(new < 0.5, clean < 0.5)
            clean = new
            if settled or self.removed(clean) > self.bound:
                break
        divided = self.removed(clean)
        if divided > self.bound:
            # No minority.
            return self.undecided(divided)
        return _Found(scatter, squared, limit, chance, clean, told, groups)

    def at_most(self, clean: Array, severity: Array) -> Array:
        """Return the same with no more weight taken than is allowed: from the worst rows only."""
        room = self.allowed * self.n * (1.0 + 1e-9)
        if self.weight @ (1.0 - clean) <= room:
            return clean
        wrong = np.flatnonzero(clean < 0.5)
        order = wrong[np.argsort(-severity[wrong], kind="stable")]
        fits = np.cumsum(self.weight[order]) <= room
        # Equal rows go together.
        fits &= severity[order] > severity[order[~fits]].max(initial=-np.inf)
        least = np.ones_like(clean)
        least[order[fits]] = clean[order[fits]]
        return least

    def removed(self, clean: Array) -> float:
        return float(self.weight[clean < 0.5].sum() / self.n)

    def share(self, rows: Mask, among: Mask) -> float:
        """Return the share of some rows among others."""
        return float(self.weight[rows & among].sum() / self.weight[among].sum())

    def scatter(self, weight: Array) -> Scatter:
        return Scatter.of(self.Z, weight, self.d, self.shrink)

    def law(self, squared: Array, count: float, left: Mask, share: float) -> RadialLaw:
        """Return the law of clean rows from those left but the share farthest, of the shape found.

        Left are the rows of no group: one that stands apart may be nearer than most clean rows, as
        a point is.
        """
        squared, weight = squared[left], self.weight[left]
        if self.shape is None:
            return radial_law(squared, weight, self.d, count, share, self.shrink)
        shape = self.shape
        if self.gaussian:
            shape = RadialLaw(1.0, self.d, max(count - self.d, 2.0))
        median = weighted_quantile(squared, weight, [0.5 * (1.0 - share)])[0]
        return shape.at_median(float(median))

    def limit(self, clean: Array, core: Mask, left: Mask) -> tuple[Scatter, Array, float]:
        """Return scatter, distances and cut under the weights found."""
        inner = self.inner(core, clean >= 0.5)
        scatter = self.scatter(np.where(inner, clean * self.weight, 0.0))
        squared = scatter.distances(self.Z, inner)
        law = self.law(squared, scatter.count, left, self.share(clean < 0.5, left))
        law = law.read_off(float(self.weight @ (left & (clean >= 0.5))))
        rate = self.tuning.false_discoveries
        chance = discovered(law, squared[left], self.weight[left], self.level, rate)
        return scatter, squared, law.beyond(max(chance, self.parting))

    def inner(self, core: Mask, trusted: Mask) -> Mask:
        """Return the rows trusted that are nearest to the core: what others are measured by.

        The farthest may be outliers that the rest hides; counted, they would hide one another.
        """
        # Of very few rows none of the core may be trusted.
        core = core & trusted if np.any(core & trusted) else trusted
        squared = self.scatter(self.weight * core).distances(self.Z, core)
        return self.nearest(squared, trusted, self.tuning.inner * float(self.weight[trusted].sum()))

    # ---- the core

    def core(self, left: Mask) -> Mask:
        """Return half of the rows, none of a group that stands apart, of least volume.

        Concentration from several starts. The best is that whose ellipsoid holds half of *all* rows
        in the least volume, which a tight clump inside the core does not lower.
        """
        held = min(self.n / 2.0, 0.75 * float(self.weight[left].sum()))
        first = [self.nearest(start, left, held) for start in self.starts(left)]
        tried = [self.concentrate(core, left, held, 3) for core in first]
        tried = sorted(tried, key=lambda pair: pair[1])[:2]
        ended = [self.concentrate(core, left, held, 20) for core, _ in tried]
        return min(ended, key=lambda pair: pair[1])[0]

    def nearest(self, squared: Array, left: Mask, held: float) -> Mask:
        """Return the nearest rows that hold a given weight; equal ones together."""
        cut = weighted_quantile(squared[left], self.weight[left], [held / self.weight[left].sum()])
        return np.asarray(left & (squared <= cut[0]))

    def concentrate(self, core: Mask, left: Mask, held: float, steps: int) -> tuple[Mask, float]:
        for _ in range(steps):
            scatter = self.scatter(self.weight * core)
            squared = scatter.distances(self.Z, core)
            last, core = core, self.nearest(squared, left, held)
            if np.array_equal(core, last):
                break
        middle = weighted_quantile(squared[left], self.weight[left], [0.5])[0]
        return core, scatter.log_det + self.d * float(np.log(max(middle, _TINY)))

    def starts(self, left: Mask) -> list[Array]:
        """Return squared distances from rough robust scatters (as DetMCD, Hubert et al. 2012).

        Each is a correlation of rows whose entries or lengths were bounded, with robust variances
        along its axes.
        """
        rows, weight = self.entries[left], self.weight[left]
        share = weight / weight.sum()
        length = np.linalg.norm(rows, axis=1)
        near = length <= weighted_quantile(length, weight, [0.5])[0]
        bounded = [
            np.where(np.abs(rows) > 4.0, 0.0, np.clip(rows, -1.5, 1.5)),
            rows / np.maximum(length, _TINY)[:, None],
            np.where(near[:, None], rows, 0.0),
            ndtri(np.apply_along_axis(_share_below, 0, rows, share)),
        ]
        found = []
        for part in bounded:
            part = part - share @ part
            part = part / np.maximum(np.sqrt(share @ part**2), _TINY)
            along = self.entries @ principal_axes(part, weight)[1]
            along -= column_quantiles(along[left], weight, [0.5])[0]
            spread = column_quantiles(np.abs(along[left]), weight, [0.5])[0]
            variance = np.square(MAD_TO_SD * spread)
            variance = np.maximum(variance, 1e-12 * variance.max() + _TINY)
            if self.shrink:
                variance = variance + self.d / self.n * variance.mean()
            with np.errstate(over="ignore"):
                # Where half of the rows are equal, the others are infinitely far.
                found.append(np.square(along) @ (1.0 / variance))
        return found

    # ---- far rows

    def far_rows(self, core: Mask, apart: Mask) -> Mask:
        """Return the rows farther out than clean ones.

        The core grows to all rows that are not far. If they are more than single outliers, they
        count only if a second radial group explains the distances better than one law of free k
        and nu; else that law is the one of clean rows.
        """
        left = ~apart
        # Of those left so many may be far that all wrong rows together are within the bound.
        in_groups = float(self.weight[apart].sum() / self.n)
        share = max(self.bound - in_groups, 0.0) / (1.0 - in_groups)
        far: Mask = np.zeros(len(core), dtype=np.bool_)
        kept = core
        for step in range(20):
            scatter = self.scatter(self.weight * kept)
            squared = scatter.distances(self.Z, kept)
            law = self.law(squared, scatter.count, left, share)
            if step == 0 and not self.shrink and law.nu >= 0.999 * (scatter.count - self.d):
                # The centre is that of Gaussian rows: so is the tail, however few rows tell.
                self.shape, self.gaussian = law, True
            count = (1.0 - share) * float(self.weight[left].sum())
            new = squared > law.read_off(count).beyond(self.level)
            share = self.share(new, left)
            if share > 0.5:
                return np.zeros(len(core), dtype=np.bool_)
            if step > 0 and np.array_equal(new, far):
                break
            far, kept = new, self.inner(core, ~new)
        scatter = self.scatter(self.weight * core)
        squared = scatter.distances(self.Z, core)
        law = self.law(squared, scatter.count, left, share)
        many = (
            share > max(self.tuning.few_far_share, self.tuning.few_far / self.n)
            and (far & left).any()
        )
        beyond = far & left if many else self.more_than_expected(squared, law, left)
        if not many and self.weight[beyond].sum() <= self.tuning.few_far:
            return far
        group = second_group(squared[left], self.weight[left], beyond[left], law, self.d)
        if group.gain >= 1.5 * np.log(self.n):
            # Cut where a row is as likely of the group as of the bulk.
            self.shape, self.gaussian = group.bulk, False
            self.parting = float(group.bulk.exceeded(np.array(group.parting)))
            return np.asarray(squared > group.bulk.beyond(max(self.level, self.parting)))
        # A bulk that is not Gaussian need not be elliptical either: its far rows count only if they
        # stand apart.
        if not many:
            return far
        self.shape, self.gaussian = group.alone, False
        return np.asarray(squared > group.alone.beyond(self.level))

    def more_than_expected(self, squared: Array, law: RadialLaw, left: Mask) -> Mask:
        """Return the far rows, of those left, where they are most in excess of twice the law."""
        expected = law.exceeded(squared)
        order = np.argsort(expected, kind="stable")
        order = order[left[order]]
        excess = np.cumsum(self.weight[order]) - 2.0 * self.n * expected[order]
        found = np.zeros(len(left), dtype=np.bool_)
        if excess.max(initial=0.0) > 0.0:
            found[order[: int(excess.argmax()) + 1]] = True
        return found

    # ---- the verdict on groups

    def verdict(self, core: Mask, far: Mask, apart: list[Mask]) -> tuple[Array, tuple[Group, ...]]:
        """Return each row's chance to be of a group that stands apart indeed, and those groups."""
        clean = np.ones(len(far))
        groups: list[Group] = []
        candidates = [group for group in apart if self.weight[group].sum() >= 3.0]
        others = np.any(candidates, axis=0) if candidates else far
        for group in candidates:
            bulk = ~far & ~others
            if self.weight[bulk].sum() <= min(self.d, self.n / 4.0):
                bulk = core & ~far
            found = self.tell_apart(group, bulk, (~far & ~others) | group)
            if found is not None:
                groups.append(found[0])
                clean = clean * (1.0 - found[1])
        return 1.0 - clean, tuple(groups)

    def tell_apart(self, group: Mask, bulk: Mask, among: Mask) -> tuple[Group, Array] | None:
        """Return a bulk and a group along a direction, and each row's chance to be of the group."""
        best, most = None, price_of_direction(self.n, self.d) + 1.5 * np.log(self.n)
        for _ in range(4):
            scatter = self.scatter(self.weight * bulk)
            white = scatter.white(self.Z)
            squared = np.einsum("ij,ij->i", white, white)
            count = float(self.weight[group].sum())
            centre = (self.weight * group) @ white / count
            length = max(float(np.linalg.norm(centre)), _TINY)
            y = white @ centre
            # Each row along the direction that it had no part in.
            y[group] = (count * y[group] - squared[group]) / max(count - 1.0, 1.0)
            y[bulk] = scatter.leaving_out(squared[bulk]) * (
                y[bulk] + squared[bulk] / (scatter.count - 1.0)
            )
            y /= length
            law = self.law(scatter.distances(self.Z, bulk), scatter.count, among & ~group, 0.0)
            found = two_laws(
                y[among], self.weight[among], group[among].astype(np.float64), law.freedom
            )
            if found is None:
                break
            laws, gain = found
            chance = np.where(among, laws.wrong(y), 0.0)
            new = among & (chance >= 0.5)
            if gain > most:
                direction = scatter.whitener @ centre / length
                best, most = (laws.moved(direction, float(scatter.mean @ direction)), chance), gain
            if np.array_equal(new, group) or not 3.0 <= self.weight[new].sum() <= self.n / 2.0:
                break
            group, bulk = new, among & ~new
        return best


def _share_below(column: Array, share: Array) -> Array:
    """Return the share of the rows below each, and half of that of those equal to it."""
    _, place = np.unique(column, return_inverse=True)
    equal = np.bincount(place, share)
    # Under very uneven weights a share may round to all or nothing.
    return np.clip((np.cumsum(equal) - equal / 2.0)[place], 1e-12, 1.0 - 1e-12)
