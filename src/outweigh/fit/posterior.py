r"""Weigh rows by how likely they are to be clean, along what a descent has revealed.

A descent stops where second moments over many features reach their noise floor. By then the rows it
removed point at the outliers: their mean differs from the mean of the kept in one direction. Along
that direction noise is small, and the rows are a mixture of laws,

.. math:: (1 - \textstyle\sum_j \epsilon_j)\, \frac{1}{s_0} f\Bigl(\frac{y - m_0}{s_0}\Bigr)
    + \sum_j \epsilon_j\, \frac{1}{s_j} g\Bigl(\frac{y - m_j}{s_j}\Bigr),

that of the clean rows, learned from the features (`fit/law.py`), and some of outliers: the same law
moved, or Gaussians. Expectation maximisation fits them, and takes the direction again from the
difference of the means, in units of its noise. A row keeps the share of its weight that is its
probability of being clean. Clean rows lose nothing on either side but that, so their mean stays
where it is. What the descent removed and no group explains yet points at the next.

How many laws there are, and whether outliers spread as clean rows do, is decided by the Bayesian
information criterion: each number must gain log(n)/2 in log likelihood. So must the group as a
whole, against one law for all rows: what noise makes of clean rows does not.

For Gaussian noise the projection holds all that tells a moved row from a clean one. Else each
feature of the direction says more, and the odds are the product over them,
:math:`\prod_j f(x_j - m_j - \delta_j) / f(x_j - m_j)`. Where that explains the rows better than the
projection, rows are weighed by it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, ndtr, ndtri

from outweigh.fit.columns import weighted_quantile
from outweigh.fit.law import GAUSSIAN, Law, Learned, Student
from outweigh.optimise.capped_simplex import CappedSimplex
from outweigh.protocols import Array, Indices, Samples
from outweigh.samples.matrices import as_array

# Fewer rows have no law of their own.
_FEWEST = 3.0
# Laws of outliers along one direction: more would only follow the noise of one that is smeared.
_MOST_LAWS = 4
# A law narrower than this share of the spread of all rows is a point.
_NARROWEST = 0.02
# Iterations end where the log likelihood of all rows rises by less than this; one number more must
# gain log(n)/2. So they end too where they would go round in circles, and carry no rounding on.
_NATS = 0.01
_STEPS, _TURNS = 100, 8
_BINS, _BINS_IN_QUARTILES = 1024, 50
# A law of four numbers costs so many times log(n). Features looked at together.
_LAW_PRICE, _AT_ONCE = 2.0, 32
# Rows are told in at most so many features, which are held for all of them.
_MOST_FEATURES = 100
# Less than a thousandth is as good as nothing, and leaves nearly all rows their weight.
_NOTHING = 1e-3
_TINY = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Outliers along a direction, beside the clean rows.

    Attributes
    ----------
    direction : ndarray of shape (d,)
    centre, spread, law : float, float, Law
        Of the clean rows along it.
    centres, spreads, shares : ndarray of shape (m,)
        Of the laws of the outliers, and their shares of all rows.
    alike : bool
        Whether outliers are of the law of clean rows, moved; else they are Gaussian.
    origin : ndarray of shape (d,) or None
        Where rows are judged in each feature of the direction, the mean of the clean rows; the law
        is that of a feature. None where they are judged by their projection on the direction.
    """

    direction: Array
    centre: float
    spread: float
    law: Law
    centres: Array
    spreads: Array
    shares: Array
    alike: bool = False
    origin: Array | None = None

    def seen(self, samples: Samples) -> Array:
        """Return what rows are judged by: their projections, or features in shape (n, k)."""
        if self.origin is None:
            return samples.project(self.direction)
        return _columns(samples, np.flatnonzero(self.direction))

    def wrong(self, seen: Array) -> Array:
        """Return how likely each row is to be one of the outliers."""
        odds = _any(self.log_odds(seen))
        # Where the clean law has the longer tail, rows beyond the outliers would be clean again.
        for side in (-1.0, 1.0) if self.origin is None else ():
            last = float(np.max(side * self.centres))
            if last > side * self.centre:
                least = _any(self.log_odds(np.array([side * last])))
                odds = np.where(side * seen > last, np.maximum(odds, least), odds)
        found = expit(odds)
        return np.where(found < _NOTHING, 0.0, found)

    def log_odds(self, seen: Array) -> Array:
        """Return the log odds of each law of the outliers against the clean one, shape (m, n)."""
        return self._odds(seen, self._log_density(self.law, seen, self.centre, self.spread))

    def log_likelihood(self, seen: Array) -> Array:
        """Return the log density of each row under all laws together."""
        return self.judged(seen)[0]

    def judged(self, seen: Array) -> tuple[Array, Array]:
        """Return that, and how likely rows are to be of each law of the outliers, shape (m, n)."""
        clean = self._log_density(self.law, seen, self.centre, self.spread)
        odds = self._odds(seen, clean)
        gained = np.logaddexp(0.0, _any(odds))
        chances = np.exp(odds - gained)
        return clean + np.log1p(-self.shares.sum()) + gained, chances

    def explained(self, seen: Array, base: Array) -> float:
        """Return the mean log likelihood of rows of these weights over that of the clean law."""
        gained = np.logaddexp(0.0, _any(self.log_odds(seen)))
        return float(base @ gained + np.log1p(-self.shares.sum()))

    def lifted(self, lift: Callable[[Array], Array]) -> Group:
        """Return the same group in other coordinates."""
        origin = None if self.origin is None else lift(self.origin)
        return replace(self, direction=lift(self.direction), origin=origin)

    def moved(self, direction: Array, by: float) -> Group:
        """Return the same group in coordinates that are larger by a number along its direction."""
        centre, centres = self.centre + by, self.centres + by
        return replace(self, direction=direction, centre=centre, centres=centres)

    def _odds(self, seen: Array, clean: Array) -> Array:
        law = self.law if self.alike else GAUSSIAN
        odds = np.log(self.shares) - np.log1p(-self.shares.sum())
        laws = zip(self.centres, self.spreads, odds, strict=True)
        return np.array([self._log_density(law, seen, c, s) - clean + o for c, s, o in laws])

    def _log_density(self, law: Law, seen: Array, centre: float, spread: float) -> Array:
        """Return the log density of a law at a centre along the direction."""
        if self.origin is None:
            return law.log_density(seen, centre, spread)
        used = self.direction != 0.0
        point = self.origin[used] + (centre - self.centre) * self.direction[used]
        return np.asarray(law.log_density(seen, point, spread).sum(axis=1))


Groups = tuple[Group, ...]


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
) -> tuple[Array, Groups, Array]:
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
    removed = np.maximum(start - weights, 0.0)
    removed[removed <= 1e-9 * start.max()] = 0.0
    clean = np.ones(weights.size)
    groups: Groups = ()
    for _ in range(most):
        base = start * clean
        left = np.clip((removed - start * (1.0 - clean)) / np.where(base > 0, base, 1.0), 0.0, 1.0)
        found = _group(samples, domain.metric, base / base.sum(), left, law, lift, sparse, features)
        if found is None:
            break
        group, gained = found
        if groups and gained <= _direction_price(lift(group.direction), float(domain.metric.sum())):
            break
        groups += (group,)
        clean *= 1.0 - group.wrong(group.seen(samples))
    return _weighed(domain, start, weights, groups, clean)


def groups_in_features(
    samples: Samples, domain: CappedSimplex, weights: Array, lift: Callable[[Array], Array]
) -> tuple[Array, Groups, Array]:
    """Find rows that lie together in single features of Gaussian noise, and weigh rows by them.

    Few rows at one place add less to second moments than noise does. But the density shows them:
    where more rows lie in an interval than the law of clean rows has there, a group begins.

    Parameters
    ----------
    samples : Samples
        In units of the noise: the features to look at.
    domain, lift
        As for `groups_apart`.
    weights : ndarray of shape (n,)
        Before the look.

    Returns
    -------
    weights, groups, wrong
        As for `groups_apart`.
    """
    n, clean = float(domain.metric.sum()), np.ones(weights.size)
    groups: Groups = ()
    for start in range(0, samples.n_features, _AT_ONCE):
        features = np.arange(start, min(start + _AT_ONCE, samples.n_features))
        rows = _columns(samples, features)
        for j in _may_be_crowded(rows, weights, n):
            y = rows[:, j]
            base = weights * clean / float(weights @ clean)
            values, counts, _ = _binned(y, base, clean, _frame(y, base))
            crowded = _crowded(values, counts, n)
            if crowded is None:
                continue
            group = _laws(values, counts, n, GAUSSIAN, crowded)
            if group is None:
                continue
            one_law = _one_law(values, counts, GAUSSIAN)
            gained = n * float(counts @ (group.log_likelihood(values) - one_law))
            direction = np.eye(1, samples.n_features, features[j])[0]
            if gained > _price(group, n) + _direction_price(lift(direction), n):
                groups += (replace(group, direction=direction),)
                clean *= 1.0 - group.wrong(y)
    return _weighed(domain, weights, weights, groups, clean)


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
) -> tuple[Array, Groups, Array]:
    """Find the directions in which what a descent removed spreads more than the rest, likewise.

    For components, whose outliers need not differ in their mean: a law of outliers about the centre
    of the clean rows, wider than theirs.

    Parameters
    ----------
    samples, domain, start, weights, law_along
        As for `groups_apart`.
    basis : ndarray of shape (d, r)
        Orthonormal directions in which clean rows spread, too: nothing is looked for there.
    leading : callable
        From a matrix to the direction in which it is largest.
    centred : bool
        Whether second moments are about the weighted mean.
    most : int, default=20
        Groups looked for.

    Returns
    -------
    weights, groups, wrong
        As for `groups_apart`.
    """
    removed = np.maximum(start - weights, 0.0)
    removed[removed <= 1e-9 * start.max()] = 0.0
    clean = np.ones(weights.size)
    groups: Groups = ()
    n = float(domain.metric.sum())
    share = float(removed.sum())
    if share <= 0.0:
        return weights, (), np.zeros(weights.size)
    # About the mean of the kept rows: the moment about zero less away centre' + centre away'.
    difference = as_array(samples.moment(removed / share, centred=False))
    if centred:
        centre = samples.mean(weights)
        away = samples.mean(removed / share) - centre / 2.0
        difference = difference - np.outer(away, centre) - np.outer(centre, away)
    difference = difference - as_array(samples.moment(weights, centred=centred))
    for _ in range(most):
        # The span of clean directions is projected out on both sides.
        along = difference @ basis
        difference = difference - along @ basis.T - basis @ along.T
        difference += basis @ (basis.T @ along) @ basis.T
        direction = leading(difference)
        y = samples.project(direction)
        base = start * clean
        base = base / base.sum()
        wrong = np.clip(removed / np.where(start > 0, start, 1.0), 0.0, 1.0)
        values, counts, likely = _binned(y, base, wrong, _frame(y, base))
        law = law_along(direction)
        group = _maximised(values, counts, n, law, likely[None, :], free=True)
        # Farther out than clean rows: spread about their centre, or gathered beside it.
        if group is None or np.hypot(group.spreads, group.centres - group.centre) <= group.spread:
            break
        one_law = _one_law(values, counts, law)
        gained = n * float(counts @ (group.log_likelihood(values) - one_law))
        if gained <= _price(group, n) + _direction_price(direction, n):
            break
        groups += (replace(group, direction=direction),)
        clean *= 1.0 - group.wrong(y)
        basis = np.column_stack([basis, direction])
    return _weighed(domain, start, weights, groups, clean)


def _weighed(
    domain: CappedSimplex, start: Array, weights: Array, groups: Groups, clean: Array
) -> tuple[Array, Groups, Array]:
    """Return weights by how likely rows are clean, the groups, and how likely they are wrong."""
    if not groups:
        return weights, (), np.zeros(weights.size)
    kept = start * clean
    return domain.project(kept / kept.sum()), groups, 1.0 - clean


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
    trails = [_Trail(count, wrong) for count in counts]
    left = trails
    for _ in range(_TURNS):
        # Together: a pass over the rows for all of them.
        of_wrong = samples.mean(np.stack([base * trail.wrong for trail in left]))
        found = [
            (trail, direction)
            for trail, part in zip(left, of_wrong, strict=True)
            if (direction := _direction(metric, base, mean, trail.wrong, part, trail.most))
            is not None
        ]
        if not found:
            break
        along = samples.project(np.column_stack([direction for _, direction in found])).T
        left = [
            trail
            for (trail, direction), y in zip(found, np.ascontiguousarray(along), strict=True)
            if trail.turned(direction, y, base, n, law().along(lift(direction)))
        ]
        if not left:
            break

    def worth(explained: float, direction: Array) -> float:
        # A direction of many features explains noise too.
        return explained - _direction_price(lift(direction), n) / n

    trails = [trail for trail in trails if trail.direction.size]
    trails.sort(key=lambda trail: worth(trail.explained, trail.direction), reverse=True)
    best: tuple[float, Group, float] | None = None
    for trail in trails:
        group = _laws(trail.values, trail.counts, n, trail.law, trail.likely)
        if group is None:
            continue
        one_law = _one_law(trail.values, trail.counts, trail.law)
        gained = n * float(trail.counts @ (group.log_likelihood(trail.values) - one_law))
        gained -= _price(group, n)
        if gained <= 0.0:
            continue
        group = replace(group, direction=trail.direction)
        typical = law()
        if not (features and isinstance(typical, Learned)):
            return group, gained
        explained = group.explained(trail.y, base)
        if np.count_nonzero(group.direction) <= _MOST_FEATURES:
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

    def turned(self, direction: Array, y: Array, base: Array, n: float, law: Law) -> bool:
        """Take the next direction, with the rows along it; tell whether it explains more."""
        wrong = self.wrong
        if self._frame is None:
            self._frame = _frame(y, base)
            if self.most == 1:
                # Along one feature, rows that differ in others are in the middle.
                middle = float((base * wrong) @ y) / float(base @ wrong)
                wrong = np.where(y > middle, wrong, 0.0)
        values, counts, likely = _binned(y, base, wrong, self._frame)
        rough = _maximised(values, counts, n, law, likely[None, :], free=False, steps=_TURNS)
        if rough is None:
            return False
        explained = rough.explained(values, counts)
        if n * (explained - self.explained) <= _NATS:
            return False
        self.direction, self.explained, self.y, self.law = direction, explained, y, law
        self.values, self.counts, self.likely = values, counts, rough.wrong(values)
        self.wrong = rough.wrong(y)
        return True


def _direction(
    metric: Array, base: Array, mean: Array, wrong: Array, of_wrong: Array, most: int | None
) -> Array | None:
    r"""Return the unit direction in which rows likely to be wrong differ from the others.

    Given the mean of all and their share of it. In units of its noise,
    :math:`\sqrt{1/n_0 + 1/n_1}` in every feature. With `most`, the features beyond sqrt(2
    log d), which the largest of d Gaussians hardly exceeds, and at most so many. Else all of them,
    if the sum of squares is three deviations above that of d Gaussians.
    """
    counted = metric > 0
    share = float(base @ wrong)
    if not 0.0 < share < 1.0:
        return None
    noise = 0.0
    for part, size in ((base * wrong, share), (base * (1.0 - wrong), 1.0 - share)):
        noise += float(np.sum(part[counted] ** 2 / metric[counted])) / size**2
    means = of_wrong / share, (mean - of_wrong) / (1.0 - share)
    z_scores = (means[0] - means[1]) / np.sqrt(noise)
    d = z_scores.size
    if most is not None:
        sizes = np.sort(np.abs(z_scores))
        limit = max(float(np.sqrt(2.0 * np.log(max(d, 2)))), float(sizes[-most]))
        z_scores = np.where(np.abs(z_scores) >= limit, z_scores, 0.0)
    elif z_scores @ z_scores < d + 3.0 * np.sqrt(2.0 * d):
        return None
    length = float(np.linalg.norm(z_scores))
    return z_scores / length if length > 0.0 else None


def _frame(y: Array, base: Array) -> tuple[float, float]:
    """Return the middle of rows along a direction, and a fiftieth of their quartiles' distance."""
    low, middle, high = weighted_quantile(y, base, [0.25, 0.5, 0.75])
    # Where more than half of the rows agree, the deviation of all stands in for their quartiles.
    width = float(high - low) or float(np.sqrt(base @ (y - middle) ** 2)) or 1.0
    return float(middle), width / _BINS_IN_QUARTILES


def _binned(
    y: Array, base: Array, wrong: Array, frame: tuple[float, float]
) -> tuple[Array, Array, Array]:
    """Return a grid along a direction, the weight at each point, and how much of it is wrong.

    A law takes no notice of it, and the work no longer grows with the rows.
    """
    middle, step = frame
    grid = middle + step * (np.arange(_BINS, dtype=np.float64) - (_BINS - 1) / 2.0)
    places = np.clip((y - grid[0]) / step, 0.0, _BINS - 1.0)
    # A row is shared between its two neighbours, so that no answer hangs on the last digit.
    lower = np.minimum(places.astype(np.intp), _BINS - 2)
    upper_share = places - lower

    def shared(amount: Array) -> Array:
        below = np.bincount(lower, amount * (1.0 - upper_share), _BINS)
        return np.asarray(below + np.bincount(lower + 1, amount * upper_share, _BINS))

    weight = shared(base)
    filled = weight > 0.0
    return grid[filled], weight[filled], shared(base * wrong)[filled] / weight[filled]


def _may_be_crowded(rows: Array, weights: Array, n: float) -> list[int]:
    """Return the columns in which `_crowded` may find rows: a look at all of them at once.

    In bins of the same width in deviations. Those of `_crowded` are elsewhere, so half of the
    evidence is enough.
    """
    away = rows - weights @ rows
    deviation = np.sqrt(weights @ np.square(away))
    step, d = 2.0 * float(ndtri(0.75)) / _BINS_IN_QUARTILES, rows.shape[1]
    away /= np.where(deviation > 0.0, deviation, 1.0) * step
    places = np.clip(away + _BINS / 2.0, 0.0, _BINS - 1.0).astype(np.intp)
    counted = np.broadcast_to(weights[:, None], rows.shape).ravel()
    counts = np.bincount((places + _BINS * np.arange(d)).ravel(), counted, d * _BINS)
    # Without the bins that no column has rows in at either end.
    ends = np.arange(places.min(), places.max() + 2)
    below = np.pad(counts.reshape(d, _BINS)[:, ends[:-1]].cumsum(axis=1), ((0, 0), (1, 0)))
    expected = ndtr((ends - _BINS / 2.0) * step)
    most = [_evidence(below, expected, width, n).max(axis=1) for width in _widths(ends.size - 1)]
    evident = np.max(most, axis=0, initial=0.0) > _LAW_PRICE * np.log(n) / 2.0
    return np.flatnonzero(evident & (deviation > 0.0)).tolist()


def _evidence(below: Array, expected: Array, width: int, n: float) -> Array:
    r"""Return nats of evidence that too many rows are in each interval of so many bins.

    With the share o of the rows in an interval and e that a law has there,
    :math:`n (o \log(o/e) - o + e)`, where o exceeds e. Shares up to each bin are given.
    """
    o, e = (np.maximum(of[..., width:] - of[..., :-width], _TINY) for of in (below, expected))
    return np.where(o > e, n * (o * np.log(o / e) - o + e), 0.0)


def _widths(bins: int) -> list[int]:
    """Return the powers of two up to half of the bins."""
    return [1 << power for power in range((bins // 2).bit_length())]


def _crowded(y: Array, base: Array, n: float) -> Array | None:
    """Return how likely rows are to be too many in the interval in which this is most evident.

    None where the evidence against a Gaussian is below the price of a law.
    """
    mean = float(base @ y)
    deviation = float(np.sqrt(base @ (y - mean) ** 2))
    if deviation == 0.0:
        return None
    below = np.concatenate([[0.0], np.cumsum(base)])
    middles = (y[1:] + y[:-1]) / 2.0
    expected = np.concatenate([[0.0], ndtr((middles - mean) / deviation), [1.0]])
    best, chances = _LAW_PRICE * float(np.log(n)), None
    for width in _widths(y.size):
        evidence = _evidence(below, expected, width, n)
        place = int(np.argmax(evidence))
        if evidence[place] > best:
            best, chances = float(evidence[place]), np.zeros(y.size)
            o, e = (of[place + width] - of[place] for of in (below, expected))
            chances[place : place + width] = 1.0 - max(e, _TINY) / o
    return chances


def _laws(y: Array, base: Array, n: float, law: Law, wrong: Array) -> Group | None:
    """Return the laws along a direction that gain most in likelihood, less their price.

    First one law of outliers that spread by one, as clean rows do in units of the noise: a law that
    is free to be wide from the start takes clean rows for its own. From there one that is free; and
    one law more, of the rows that lie farther out than the largest law explains, as long as it
    gains.
    """

    def gained(group: Group) -> float:
        return n * float(base @ group.log_likelihood(y)) - _price(group, n)

    group: Group | None = None
    best, start = -np.inf, wrong[None, :]
    for _ in range(_MOST_LAWS):
        tied = _maximised(y, base, n, law, start, free=False)
        if group is None:
            if tied is None or not np.any(tied.wrong(y)):
                return None
            start = tied.wrong(y)[None, :]
        free = _maximised(y, base, n, law, start, free=True)
        found = max((each for each in (tied, free) if each is not None), key=gained, default=None)
        if found is None or gained(found) <= best:
            break
        group, best = found, gained(found)
        parts = group.judged(y)[1]
        largest = int(np.argmax(group.shares))
        middle, width = group.centres[largest], group.spreads[largest]
        far = np.sign(middle - group.centre) * (y - middle) > width
        start = np.concatenate([parts, np.where(far, parts[largest], 0.0)[None, :]])
        start[largest, far] = 0.0
    assert group is not None
    # Nearer than that the outliers move the mean by less than the clean rows lost with them do.
    apart = np.abs(group.centres - group.centre) > group.spread
    return group if apart.all() else None


def _in_features(
    samples: Samples, base: Array, n: float, group: Group, projected: Array, law: Law
) -> tuple[Group, float] | None:
    """Return the group as clean rows that were moved, told in each feature, and what it explains.

    Where noise is not Gaussian that tells more than the projection does, and it is the whole
    posterior: rows weighed by it have all moments of clean rows, not those along the direction
    alone. None where the outliers become the majority.
    """
    used = np.flatnonzero(group.direction)
    x = _columns(samples, used)
    # A feature of one value moves nothing.
    varies = np.ptp(x, axis=0) > 0.0
    used, x = used[varies], x[:, varies]

    found: Group | None = None
    chances, reached = group.judged(projected)[1], -np.inf
    for _ in range(_STEPS // 4):
        shares = np.maximum(chances @ base, _TINY)
        if shares.sum() >= 0.5:
            return None
        clean = base * (1.0 - chances.sum(axis=0))
        origin = clean @ x / clean.sum()
        means = (chances * base) @ x / shares[:, None]
        away = shares @ (means - origin)
        towards = away / max(float(np.linalg.norm(away)), _TINY)
        squares = [np.mean((w * base) @ (x - m) ** 2) for w, m in zip(chances, means, strict=True)]
        spreads = np.maximum(np.sqrt(np.array(squares) / shares), max(_NARROWEST, law.step))
        centre, centres = float(origin @ towards), means @ towards
        moved = Group(towards, centre, 1.0, law, centres, spreads, shares, True, origin)
        likelihood, chances = moved.judged(x)
        risen = n * (float(base @ likelihood) - reached)
        if risen > 0.0:
            found, reached = moved, float(base @ likelihood)
        if risen <= _NATS:
            break
    assert found is not None
    towards, origin = np.zeros((2, group.direction.size))
    towards[used], origin[used] = found.direction, found.origin
    return replace(found, direction=towards, origin=origin), found.explained(x, base)


def _columns(samples: Samples, used: Indices) -> Array:
    """Return some features of all rows, shape (n, k)."""
    return samples.columns(used).project(np.eye(used.size))


def _any(odds: Array) -> Array:
    """Return the log odds of any of several laws, from those of each in shape (m, n)."""
    return np.asarray(odds[0] if len(odds) == 1 else np.logaddexp.reduce(odds, axis=0))


def _direction_price(direction: Array, n: float) -> float:
    """Return what a direction must gain that only the rows themselves point at.

    That of the first group is one of more variance than noise has, by the survey before it.
    """
    m = np.count_nonzero(direction)
    return float(m * (1.0 + 0.5 * np.log(max(n / m, 1.0))))


def _price(group: Group, n: float) -> float:
    """Return log(n)/2 for each number of a group beside the centre of the clean rows.

    The share and centre of each law of outliers and, where they are free, all spreads.
    """
    numbers = 2 * group.centres.size
    if not group.alike:
        numbers += 1 + group.spreads.size
    return 0.5 * float(np.log(n)) * numbers


def _maximised(
    y: Array,
    base: Array,
    n: float,
    law: Law,
    wrong: Array,
    *,
    free: bool,
    steps: int = _STEPS,
) -> Group | None:
    """Fit laws by expectation maximisation; None where one has too few rows or too many.

    Parameters
    ----------
    y, base : ndarray of shape (n,)
        Rows along a direction, and their weights.
    n : float
        The number of rows that these amount to.
    law : Law
        Of the clean rows.
    wrong : ndarray of shape (m, n)
        How likely each row is, at first, to be of each law of outliers.
    free : bool
        Whether each law has a spread of its own; else all have that of unit noise.
    steps : int
    """
    middle = float(base @ y)
    # About their middle, where squares keep their digits.
    y = y - middle
    powers = np.column_stack([np.ones(y.size), y, y * y])
    narrowest = max(_NARROWEST * float(np.sqrt(base @ powers[:, 2])), law.step)
    chances = np.concatenate([1.0 - wrong.sum(axis=0, keepdims=True), wrong])
    spreads = np.full(len(chances), law.unit)
    reached, best, steady = -np.inf, None, None
    for _ in range(steps):
        chances *= base
        sums = chances @ powers
        shares = sums[:, 0].copy()
        if shares[1:].min() * n < _FEWEST or shares[1:].sum() > 0.5:
            return None
        if steady is not None:
            sums[0] = (chances[0] * steady) @ powers
        centres = sums[:, 1] / sums[:, 0]
        if free:
            squares = (sums[:, 2] - centres * sums[:, 1]) / shares
            spreads = np.maximum(np.sqrt(np.maximum(squares, 0.0)), narrowest)
            if not spreads.all():
                return None
        z = (y - centres[:, None]) / spreads[:, None]
        if free and law != GAUSSIAN:
            logs = np.concatenate([law.standard(z[:1]), GAUSSIAN.standard(z[1:])])
        else:
            logs = law.standard(z)
        logs += np.log(shares / spreads)[:, None]
        top = logs.max(axis=0)
        logs -= top
        chances = np.exp(logs, out=logs)
        total = chances.sum(axis=0)
        chances /= total
        value = float(base @ (top + np.log(total)))
        risen = n * (value - reached)
        if risen > 0.0:
            reached, best = value, (centres + middle, spreads, shares)
        if risen <= _NATS:
            break
        steady = law.steady(z[0])
    assert best is not None
    centres, spreads, shares = best
    return Group(
        np.empty(0), centres[0], spreads[0], law, centres[1:], spreads[1:], shares[1:], not free
    )


def two_laws(y: Array, weight: Array, wrong: Array, freedom: float) -> tuple[Group, float] | None:
    """Fit clean rows and one law of outliers, both of any spread, to rows along a direction.

    Parameters
    ----------
    y : ndarray of shape (n,)
    weight : ndarray of shape (n,)
        A whole number counts as that many copies of the row.
    wrong : ndarray of shape (n,)
        How likely each row is, at first, to be one of the outliers.
    freedom : float
        Of the law of the clean rows, Student's t; infinite for a Gaussian.

    Returns
    -------
    group : Group
        Without its direction.
    gain : float
        Nats by which the two laws explain the rows better than one does.
    """
    n, law = float(weight.sum()), Student(freedom)
    group = _maximised(y, weight / n, n, law, wrong[None, :], free=True)
    if group is None:
        return None
    return group, float(weight @ (group.log_likelihood(y) - _one_law(y, weight / n, law)))


def _one_law(y: Array, base: Array, law: Law) -> Array:
    """Return the log density of each row under the one law that fits all."""
    centre = float(base @ y)
    spread = float(np.sqrt(base @ (y - centre) ** 2))
    if isinstance(law, Learned) or np.isfinite(law.freedom):

        def placed(at: Array) -> tuple[float, float]:
            return centre + spread * float(at[0] - 1.0), spread * float(np.exp(at[1] - 1.0))

        def loss(at: Array) -> float:
            return -float(base @ law.log_density(y, *placed(at)))

        # Its first steps are a twentieth of where it starts.
        centre, spread = placed(minimize(loss, np.ones(2), method="Nelder-Mead", tol=1e-3).x)
    return law.log_density(y, centre, spread)
