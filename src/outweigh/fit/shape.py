"""Which rows the shape of the cloud they form speaks against: far ones, and groups apart."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from outweigh.fit.columns import weighted_quantile
from outweigh.fit.groups import price_of_direction, valley
from outweigh.fit.mixture import Group, two_laws
from outweigh.fit.radial import RadialLaw, radial_law, second_group
from outweigh.fit.scatter import Mask, Scatter, WeightedRows
from outweigh.fit.tuning import TUNING
from outweigh.protocols import Array

_TINY = 1e-300


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """What the shape of the cloud tells of rows.

    Attributes
    ----------
    scatter : Scatter
        Of the rows kept.
    squared : ndarray of shape (n,)
        The squared distances of the rows from it, each left out.
    limit : float
        The squared distance beyond which rows are far.
    chance, clean : ndarray of shape (n,)
        How likely each row is to be of a group, and to be neither that nor far.
    maybe : ndarray of shape (n,)
        How likely each row is to be of a group that may be genuine.
    doubt : {"overlap", "many"}
        Why it may be: by too little evidence, or by too many rows.
    groups, doubted : tuple of Group
        Those that stand apart, and those that may be genuine.
    divided : float
        The share of the rows that are far or apart where they are too many; all are kept then.
    """

    scatter: Scatter
    squared: Array
    limit: float
    chance: Array
    clean: Array
    maybe: Array
    doubt: str = "overlap"
    groups: tuple[Group, ...] = ()
    doubted: tuple[Group, ...] = ()
    divided: float = 0.0


def undecided(rows: WeightedRows, divided: float = 0.0) -> Found:
    """Return that nothing says which rows are the clean ones: all are kept."""
    everything = np.ones(len(rows.Z))
    scatter, squared = rows.measured_by(everything > 0.0)
    none = 0.0 * everything
    limit = float(squared.max())
    return Found(scatter, squared, limit, none, everything, none, divided=divided)


class Shape:
    """The steps from groups that may stand apart to a verdict on every row.

    At most the share `bound` of the rows is taken for wrong.
    """

    def __init__(self, rows: WeightedRows, bound: float) -> None:
        self.rows, self.bound = rows, bound
        # Of all clean rows of a table, none is beyond the cut in 19 of 20 tables.
        self.level = 0.05 / rows.n
        # The probability beyond which clean rows are of a second radial group, where there is one.
        self.parting = 0.0
        # The shape of the radial law, where the first look at the core or all rows told it.
        self.shape: RadialLaw | None = None
        self.gaussian = False
        # Rows of a second radial group that may be genuine.
        self.outer = np.zeros(len(rows.Z), dtype=np.bool_)

    def judged(self, apart: list[Mask], told: list[Mask]) -> Found:
        """Judge every row by the groups that may stand apart, and by its distance.

        Groups that are to be `told`, or that are too many, or not worth their direction too, may be
        genuine. One that was found before columns were made straight need not be worth it, and
        chance may not be.
        """
        together = np.any([np.zeros(len(self.rows.Z), dtype=np.bool_), *apart], axis=0)
        core = self.rows.core(~together)
        far = self._far_rows(core, together)
        price = price_of_direction(self.rows.n, self.rows.d)
        found = self._laws(core, far, apart)
        sure = [laws for laws in found if laws.gain > price]
        doubted = [laws for laws in found if laws.gain <= price] + self._laws(core, far, told)
        chance, doubt = _chance(sure, far), "overlap"
        if self._share(far | (chance > 0.5)) > self.bound:
            sure, doubted, doubt = [], sure + doubted, "many"
            chance = np.zeros(len(far))
        maybe = np.maximum(_chance(doubted, far), self.outer)
        # Once groups are gone, rows that they hid show, and some that seemed far do not.
        clean = np.where(far, 0.0, 1.0 - chance)
        scatter, squared, limit = self._limit(clean, core, chance < 0.5)
        clean = np.where(squared > limit, 0.0, 1.0 - chance)
        divided = self._share(clean < 0.5)
        if divided > self.bound:
            # No minority.
            return undecided(self.rows, divided)
        groups, others = (tuple(laws.group for laws in of) for of in (sure, doubted))
        return Found(scatter, squared, limit, chance, clean, maybe, doubt, groups, others)

    def _share(self, some: Mask, among: Mask | None = None) -> float:
        """Return the share of some rows in all, or among others."""
        if among is None:
            return self.rows.count(some) / self.rows.n
        return self.rows.count(some & among) / self.rows.count(among)

    # ---- far rows

    def _law(self, squared: Array, count: float, left: Mask, share: float) -> RadialLaw:
        """Return the law of clean rows from those left but the share farthest, of the shape found.

        Left are the rows of no group: one that stands apart may be nearer than most clean rows, as
        a point is.
        """
        rows, weight, shape = self.rows, self.rows.weight[left], self.shape
        squared = squared[left]
        if shape is None:
            return radial_law(squared, weight, rows.d, count, share, rows.shrink)
        if self.gaussian:
            shape = RadialLaw(1.0, rows.d, max(count - rows.d, 2.0))
        median = weighted_quantile(squared, weight, [0.5 * (1.0 - share)])[0]
        return shape.at_median(float(median))

    def _limit(self, clean: Array, core: Mask, left: Mask) -> tuple[Scatter, Array, float]:
        """Return scatter, distances and cut under the weights found."""
        inner = self.rows.inner(core, clean >= 0.5, TUNING.inner)
        scatter, squared = self.rows.measured_by(inner, clean)
        law = self._law(squared, scatter.count, left, self._share(clean < 0.5, left))
        law = law.read_off(self.rows.count(left & (clean >= 0.5)))
        return scatter, squared, law.beyond(max(self.level, self.parting))

    def _far_rows(self, core: Mask, apart: Mask) -> Mask:
        """Return the rows farther out than clean ones.

        The core grows to all rows that are not far. If they are more than single outliers, they
        count only if a second radial group explains the distances better than one law of free k
        and nu; else that law is the one of clean rows. So it is where the group is so large that it
        may be genuine and no valley of log distances parts it from the others: then it is told.
        """
        rows, left = self.rows, ~apart
        # Of those left so many may be far that all wrong rows together are within the bound.
        in_groups = self._share(apart)
        share = max(self.bound - in_groups, 0.0) / (1.0 - in_groups)
        far = np.zeros(len(core), dtype=np.bool_)
        kept = core
        for step in range(20):
            scatter, squared = rows.measured_by(kept)
            law = self._law(squared, scatter.count, left, share)
            if step == 0 and not rows.shrink and law.nu >= 0.999 * (scatter.count - rows.d):
                # The centre is that of Gaussian rows: so is the tail, however few rows tell.
                self.shape, self.gaussian = law, True
            new = squared > law.read_off((1.0 - share) * rows.count(left)).beyond(self.level)
            share = self._share(new, left)
            if share > 0.5:
                return np.zeros_like(far)
            if step > 0 and np.array_equal(new, far):
                break
            far, kept = new, rows.inner(core, ~new, TUNING.inner)
        scatter, squared = rows.measured_by(core)
        law = self._law(squared, scatter.count, left, share)
        many = share > max(TUNING.few_far_share, TUNING.few_far / rows.n)
        beyond = far & left if many else self._in_excess(squared, law, left)
        if rows.count(beyond) <= TUNING.few_far:
            return far
        group = second_group(squared[left], rows.weight[left], beyond[left], law, rows.d)
        if group.gain >= 1.5 * np.log(rows.n) and np.isfinite(group.parting):
            # Cut where a row is as likely of the group as of the bulk.
            parting = float(group.bulk.exceeded(np.array(group.parting)))
            outer = squared > group.bulk.beyond(max(self.level, parting))
            if self._share(outer, left) <= TUNING.second_group or self._parted(
                squared, outer, left
            ):
                self.shape, self.gaussian, self.parting = group.bulk, False, parting
                return np.asarray(outer)
            self.outer = outer & left
        # A bulk that is not Gaussian need not be elliptical either: its far rows count only if they
        # stand apart.
        elif not many:
            return far
        self.shape, self.gaussian = group.alone, False
        return np.asarray(squared > group.alone.beyond(self.level))

    def _parted(self, squared: Array, outer: Mask, left: Mask) -> bool:
        """Tell whether a valley of log distances parts the outer rows from the others left."""
        logs = np.log(np.maximum(squared[left], _TINY))
        return valley(logs, self.rows.weight[left], outer[left]) <= TUNING.valley

    def _in_excess(self, squared: Array, law: RadialLaw, left: Mask) -> Mask:
        """Return the far rows, of those left, where they are most in excess of twice the law."""
        expected = law.exceeded(squared)
        order = np.argsort(expected, kind="stable")
        order = order[left[order]]
        excess = np.cumsum(self.rows.weight[order]) - TUNING.excess * self.rows.n * expected[order]
        found = np.zeros(len(left), dtype=np.bool_)
        if excess.max(initial=0.0) > 0.0:
            found[order[: int(excess.argmax()) + 1]] = True
        return found

    # ---- the verdict on groups

    def _laws(self, core: Mask, far: Mask, apart: list[Mask]) -> list[_Laws]:
        """Return the laws of the groups that are worth theirs."""
        rows, found = self.rows, list[_Laws]()
        candidates = [group for group in apart if rows.count(group) >= TUNING.fewest_in_law]
        for group in candidates:
            bulk = ~far & ~np.any(candidates, axis=0)
            among = bulk | group
            if rows.count(bulk) <= min(rows.d, rows.n / 4.0):
                bulk = core & ~far
            scatter, distances = rows.measured_by(bulk)
            white = scatter.white(rows.Z)
            squared = np.einsum("ij,ij->i", white, white)
            count = rows.count(group)
            centre = (rows.weight * group) @ white / count
            length = max(float(np.linalg.norm(centre)), _TINY)
            y = white @ centre
            # Each row along the direction that it had no part in.
            y[group] = (count * y[group] - squared[group]) / max(count - 1.0, 1.0)
            left_out = scatter.leaving_out(squared[bulk])
            y[bulk] = left_out * (y[bulk] + squared[bulk] / (scatter.count - 1.0))
            y /= length
            freedom = self._law(distances, scatter.count, among & ~group, 0.0).freedom
            start = group[among].astype(np.float64)
            laws, gain = two_laws(y[among], rows.weight[among], start, freedom) or (None, 0.0)
            gain -= 1.5 * float(np.log(rows.n))
            if laws is not None and gain > 0.0:
                direction = scatter.whitener @ centre / length
                laws = laws.moved(direction, float(scatter.mean @ direction))
                wrong = laws.wrong(y + float(scatter.mean @ direction))
                found.append(_Laws(laws, gain, np.where(among, wrong, 0.0)))
        return found


@dataclass(frozen=True, slots=True, eq=False)
class _Laws:
    """A bulk and a group along a direction, the nats that they gain, each row's chance of it.

    The gain is beyond the price of the laws.
    """

    group: Group
    gain: float
    chance: Array


def _chance(laws: list[_Laws], rows: Mask) -> Array:
    """Return the chance of rows to be of any of some groups."""
    clean = [np.ones(len(rows)), *(1.0 - of.chance for of in laws)]
    return np.asarray(1.0 - np.prod(clean, axis=0))
