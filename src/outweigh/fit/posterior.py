r"""Weigh rows by how likely they are to be clean, along what a descent has revealed.

A descent stops where second moments over many features reach their noise floor. By then the rows it
removed point at the outliers: their mean differs from the mean of the kept in one direction. Along
that direction noise is small, and the rows are a mixture of laws (`outweigh.fit.mixture`): that of
the clean rows, learned from the features, and some of outliers. Expectation maximisation fits them,
and takes the direction again from the difference of the means, in units of its noise. A row keeps
the share of its weight that is its probability of being clean. Clean rows lose nothing on either
side but that, so their mean stays where it is. What the descent removed and no group explains yet
points at the next.

A group must explain the rows better than one law for all of them, by the price of its numbers:
what noise makes of clean rows does not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from outweigh.fit.columns import weighted_quantile
from outweigh.fit.law import Law, Learned, masses_at
from outweigh.fit.mixture import (
    NATS,
    Group,
    Groups,
    fitted,
    fitted_in_features,
    laws_along,
    one_law,
)
from outweigh.optimise.capped_simplex import CappedSimplex
from outweigh.protocols import Array, Samples
from outweigh.samples.dense import values_of
from outweigh.samples.matrices import as_array

# Directions taken again, each after so many steps along the last.
_TURNS = 8
BINS, BINS_IN_QUARTILES = 1024, 50
"""Points of a grid along a direction, and how many of them are between quartiles."""
# Rows are told in at most so many features, which are held for all of them.
_MOST_FEATURES, _STEPS_IN_FEATURES = 100, 25
_TINY = 1e-12

Weighed = tuple[Array, Groups, Array]
"""Weights of the rows, the groups they are by, and how likely each row is to be in one of them."""
Find = Callable[[Array], tuple[Group, Array] | None]
"""From how likely rows are clean by the groups so far, to the next and what rows it is seen by."""


def groups_apart(
    samples: Samples,
    domain: CappedSimplex,
    start: Array,
    weights: Array,
    lift: Callable[[Array], Array],
    law: Callable[[], Law],
    *,
    sparse: bool,
    features: bool = True,
    most: int = 20,
) -> Weighed:
    """Find the groups of outliers behind what a descent removed, and weigh rows by them.

    Parameters
    ----------
    samples : Samples
        In units of the noise: the features, or coordinates, in which the descent ran.
    domain : CappedSimplex
        The weights stay in it, so no more is removed than the contamination allows.
    start, weights : ndarray of shape (n,)
        Before a descent, and after it.
    lift : callable
        From a direction of these coordinates to one of all features.
    law : callable
        Finds the law of a typical feature; asked only where rows point somewhere.
    sparse : bool
        Whether a direction has only the features in which the difference is significant.
    features : bool, default=True
        Whether the coordinates are features, of independent noise.
    most : int, default=20
        Groups looked for.

    Returns
    -------
    weights : ndarray of shape (n,)
    groups : tuple of Group
        Empty if the removed rows point nowhere; the weights are then those given.
    wrong : ndarray of shape (n,)
        How likely each row is to be in one of the groups.
    """
    removed, n = _removed(start, weights), float(domain.metric.sum())

    def find(clean: Array) -> tuple[Group, Array] | None:
        base = start * clean
        left = np.clip((removed - start * (1.0 - clean)) / np.where(base > 0, base, 1.0), 0.0, 1.0)
        found = _group(samples, domain.metric, base / base.sum(), left, law, lift, sparse, features)
        if found is None:
            return None
        group, gained = found
        # The direction of the first is one of more variance than noise has, by the survey before.
        first = bool(np.all(clean == 1.0))
        dear = gained <= direction_price(lift(group.direction), n)
        return None if dear and not first else (group, group.seen(samples))

    return weighed(find, domain, start, weights, most)


def groups_spread(
    samples: Samples,
    domain: CappedSimplex,
    start: Array,
    weights: Array,
    basis: Array,
    leading: Callable[[Array], Array],
    law_along: Callable[[Array], Law],
    *,
    centred: bool,
    most: int = 20,
) -> Weighed:
    """Find the directions in which what a descent removed spreads more than the rest, likewise.

    For components, whose outliers need not differ in their mean: a law of outliers about the centre
    of the clean rows, wider than theirs.

    Parameters
    ----------
    samples, domain, start, weights, most
        As for `groups_apart`.
    basis : ndarray of shape (d, r)
        Orthonormal directions in which clean rows spread, too: nothing is looked for there.
    leading : callable
        From a matrix to the direction in which it is largest.
    law_along : callable
        From a direction to the law of clean rows along it.
    centred : bool
        Whether second moments are about the weighted mean.

    Returns
    -------
    weights, groups, wrong
        As for `groups_apart`.
    """
    removed, n = _removed(start, weights), float(domain.metric.sum())
    if not removed.any():
        return weights, (), np.zeros(weights.size)
    # Both about the mean of the kept rows: what all rows have beyond these is that of the removed.
    difference = as_array(samples.moment(start, centred=centred))
    difference -= as_array(samples.moment(weights, centred=centred))
    if centred:
        away = samples.mean(start) - samples.mean(weights)
        difference += np.outer(away, away)
    lost = np.clip(removed / np.where(start > 0, start, 1.0), 0.0, 1.0)

    def find(clean: Array) -> tuple[Group, Array] | None:
        nonlocal basis, difference
        # The span of clean directions is projected out on both sides.
        along = difference @ basis
        difference = difference - along @ basis.T - basis @ along.T
        difference += basis @ (basis.T @ along) @ basis.T
        direction = leading(difference)
        basis = np.column_stack([basis, direction])
        y, base = samples.project(direction), start * clean
        base = base / base.sum()
        values, counts, likely = binned(y, base, lost, _frame(y, base))
        found = fitted(values, counts, n, law_along(direction), likely[None, :], free=True)
        if found is None:
            return None
        group = replace(found[0], direction=direction)
        # Farther out than clean rows: spread about their centre, or gathered beside it.
        if np.hypot(group.spreads, group.centres - group.centre) <= group.spread:
            return None
        # The first pays for no direction, as above.
        price = 0.0 if np.all(clean == 1.0) else direction_price(direction, n)
        return (group, y) if nats_gained(group, values, counts, n) > price else None

    return weighed(find, domain, start, weights, most)


def weighed(find: Find, domain: CappedSimplex, start: Array, weights: Array, most: int) -> Weighed:
    """Weigh rows by one group after the other, as long as there are any; else as given."""
    groups: Groups = ()
    clean = np.ones(weights.size)
    while len(groups) < most and (found := find(clean)) is not None:
        group, seen = found
        groups += (group,)
        clean = clean * (1.0 - group.wrong(seen))
    if not groups:
        return weights, (), np.zeros(weights.size)
    kept = start * clean
    return domain.project(kept / kept.sum()), groups, 1.0 - clean


def _removed(start: Array, weights: Array) -> Array:
    """Return what a descent took from each row, without rounding."""
    removed = np.maximum(start - weights, 0.0)
    return np.where(removed > 1e-9 * start.max(), removed, 0.0)


def nats_gained(group: Group, y: Array, base: Array, n: float) -> float:
    """Return the nats by which laws explain rows better than one law does, less their price."""
    alone = one_law(y, base, group.law)
    return n * (float(base @ group.judged(y)[0]) - alone) - group.price(n)


def direction_price(direction: Array, n: float) -> float:
    """Return what a direction must gain that only the rows themselves point at."""
    m = np.count_nonzero(direction)
    return float(m * (1.0 + 0.5 * np.log(max(n / m, 1.0))))


def _group(
    samples: Samples,
    metric: Array,
    base: Array,
    wrong: Array,
    law: Callable[[], Law],
    lift: Callable[[Array], Array],
    sparse: bool,
    features: bool,
) -> tuple[Group, float] | None:
    """Return the group that best explains what rows have lost, and what it gains over none.

    Outliers may differ in many features, in few of them, or be several groups that differ in one
    each: the direction of all, of those that differ significantly, and of the one that does most.
    Each follows the rows taken for outliers, and these the direction, as long as both together
    explain the rows better. Laws are fitted along the best of the three.

    Parameters
    ----------
    samples : Samples
    metric : ndarray of shape (n,)
        How many rows each row stands for.
    base : ndarray of shape (n,)
        The weights before the loss, of sum one.
    wrong : ndarray of shape (n,)
        The share of its weight that each row has lost.
    """
    n, mean = float(metric.sum()), samples.mean(base)
    counts = [*([1] if features else []), *([samples.n_features] if sparse else []), None]
    trails = left = [_Trail(count, wrong) for count in counts]
    for _ in range(_TURNS):
        # Together: a pass over the rows for all of them.
        of_wrong = samples.mean(np.stack([base * trail.wrong for trail in left]))
        left = [
            trail
            for trail, part in zip(left, of_wrong, strict=True)
            if trail.points_somewhere(metric, base, mean, part)
        ]
        if not left:
            break
        along = samples.project(np.column_stack([trail.ahead for trail in left])).T
        left = [
            trail
            for trail, y in zip(left, np.ascontiguousarray(along), strict=True)
            if trail.turned(y, base, n, law().along(lift(trail.ahead)))
        ]
        if not left:
            break

    def worth(explained: float, direction: Array) -> float:
        # A direction of many features explains noise too.
        return explained - direction_price(lift(direction), n) / n

    trails = [trail for trail in trails if trail.direction.size]
    trails.sort(key=lambda trail: worth(trail.explained, trail.direction), reverse=True)
    best: tuple[float, Group, float] | None = None
    for trail in trails:
        group = laws_along(trail.values, trail.counts, n, trail.law, trail.likely)
        if group is None:
            continue
        gained = nats_gained(group, trail.values, trail.counts, n)
        if gained <= 0.0:
            continue
        group = replace(group, direction=trail.direction)
        typical = law()
        if not (features and isinstance(typical, Learned)):
            return group, gained
        explained = group.explained(trail.y, base)
        moved = _in_features(samples, base, n, group, trail.y, typical)
        if moved is not None and moved[1] > explained:
            group, explained = moved
        # What features tell is not seen along the direction: of those all are looked at.
        if best is None or worth(explained, group.direction) > best[0]:
            best = worth(explained, group.direction), group, gained
    return None if best is None else best[1:]


class _Trail:
    """A direction of at most so many features, and the rows that are outliers along it."""

    def __init__(self, most: int | None, wrong: Array) -> None:
        self.most, self.wrong = most, wrong
        self.direction, self.explained = np.empty(0), -np.inf
        self._frame: tuple[float, float] | None = None

    def points_somewhere(self, metric: Array, base: Array, mean: Array, of_wrong: Array) -> bool:
        r"""Find `ahead`, the unit direction in which rows likely wrong differ from the others.

        Given the mean of all and their share of it. In units of its noise,
        :math:`\sqrt{1/n_0 + 1/n_1}` in every feature. With `most`, the features beyond sqrt(2
        log d), which the largest of d Gaussians hardly exceeds, and at most so many. Else all of
        them, if the sum of squares is three deviations above that of d Gaussians.
        """
        counted, wrong = metric > 0, self.wrong
        share = float(base @ wrong)
        if not 0.0 < share < 1.0:
            return False
        noise = 0.0
        for part, size in ((base * wrong, share), (base * (1.0 - wrong), 1.0 - share)):
            noise += float(np.sum(part[counted] ** 2 / metric[counted])) / size**2
        z_scores = of_wrong / share - (mean - of_wrong) / (1.0 - share)
        z_scores /= np.sqrt(noise)
        d = z_scores.size
        if self.most is not None:
            sizes = np.sort(np.abs(z_scores))
            limit = max(float(np.sqrt(2.0 * np.log(max(d, 2)))), float(sizes[-self.most]))
            z_scores = np.where(np.abs(z_scores) >= limit, z_scores, 0.0)
        elif z_scores @ z_scores < d + 3.0 * np.sqrt(2.0 * d):
            return False
        length = float(np.linalg.norm(z_scores))
        self.ahead = z_scores / max(length, _TINY)
        return length > 0.0

    def turned(self, y: Array, base: Array, n: float, law: Law) -> bool:
        """Take the direction ahead, with the rows along it; tell whether it explains more."""
        wrong = self.wrong
        if self._frame is None:
            self._frame = _frame(y, base)
            if self.most == 1:
                # Along one feature, rows that differ in others are in the middle.
                middle = float((base * wrong) @ y) / float(base @ wrong)
                wrong = np.where(y > middle, wrong, 0.0)
        values, counts, likely = binned(y, base, wrong, self._frame)
        found = fitted(values, counts, n, law, likely[None, :], free=False, steps=_TURNS)
        if found is None:
            return False
        rough = found[0]
        explained = rough.explained(values, counts)
        if n * (explained - self.explained) <= NATS:
            return False
        self.direction, self.explained, self.y, self.law = self.ahead, explained, y, law
        self.values, self.counts, self.likely = values, counts, rough.wrong(values)
        self.wrong = rough.wrong(y)
        return True


def _in_features(
    samples: Samples, base: Array, n: float, group: Group, projected: Array, law: Law
) -> tuple[Group, float] | None:
    """Return the group as clean rows that were moved, told in each feature, and what it explains.

    Where noise is not Gaussian that tells more than the projection does, and it is the whole
    posterior: rows weighed by it have all moments of clean rows, not those along the direction
    alone. None where it has too many features, or the outliers become the majority.
    """
    used = np.flatnonzero(group.direction)
    if used.size > _MOST_FEATURES:
        return None
    x = values_of(samples.columns(used))
    # A feature of one value moves nothing.
    varies = np.ptp(x, axis=0) > 0.0
    used, x = used[varies], x[:, varies]
    wrong = group.judged(projected)[1][1:]
    found = fitted_in_features(x, base, n, law, wrong, _STEPS_IN_FEATURES)
    if found is None:
        return None

    def placed(vector: Array) -> Array:
        whole = np.zeros(group.direction.size)
        whole[used] = vector
        return whole

    return found.lifted(placed), found.explained(x, base)


def _frame(y: Array, base: Array) -> tuple[float, float]:
    """Return the middle of rows along a direction, and a fiftieth of their quartiles' distance."""
    low, middle, high = weighted_quantile(y, base, [0.25, 0.5, 0.75])
    # Where more than half of the rows agree, the deviation of all stands in for their quartiles.
    width = float(high - low) or float(np.sqrt(base @ (y - middle) ** 2)) or 1.0
    return float(middle), width / BINS_IN_QUARTILES


def binned(
    y: Array, base: Array, wrong: Array, frame: tuple[float, float]
) -> tuple[Array, Array, Array]:
    """Return a grid along a direction, the weight at each point, and how much of it is wrong.

    A law takes no notice of it, and the work no longer grows with the rows.
    """
    middle, step = frame
    grid = middle + step * (np.arange(BINS, dtype=np.float64) - (BINS - 1) / 2.0)
    places = (y - grid[0]) / step
    weight, of_wrong = (masses_at(places, mass, BINS) for mass in (base, base * wrong))
    filled = weight > 0.0
    return grid[filled], weight[filled], of_wrong[filled] / weight[filled]
