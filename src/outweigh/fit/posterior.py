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
from scipy.special import expit, logsumexp

from outweigh.fit.columns import weighted_quantile
from outweigh.fit.law import GAUSSIAN, Law, Learned, Student
from outweigh.optimise.capped_simplex import CappedSimplex
from outweigh.protocols import Array, Samples
from outweigh.samples.matrices import as_array

__all__ = ["Group", "Groups", "Moved", "groups_apart", "groups_spread", "two_laws"]

# Fewer rows have no law of their own.
_FEWEST = 3.0
# Laws of outliers along one direction: more would only follow the noise of one that is smeared.
_MOST_LAWS = 4
# A law narrower than this share of the spread of all rows is a point.
_NARROWEST = 0.02
# Ends of iterations that nothing depends on: changes of probabilities below a thousandth.
_STEPS, _TURNS, _TOLERANCE = 100, 8, 1e-4
_BINS = 4096
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
    """

    direction: Array
    centre: float
    spread: float
    law: Law
    centres: Array
    spreads: Array
    shares: Array
    alike: bool = False

    def seen(self, samples: Samples) -> Array:
        """Return what rows are judged by: their projections."""
        return samples.project(self.direction)

    def wrong(self, projected: Array) -> Array:
        """Return how likely each row is to be one of the outliers, from its projection."""
        odds = logsumexp(self.log_odds(projected), axis=0)
        # Where the clean law has the longer tail, rows beyond the outliers would be clean again.
        for side in (-1.0, 1.0):
            last = float(np.max(side * self.centres))
            if last > side * self.centre:
                beyond = side * projected > last
                least = logsumexp(self.log_odds(np.array([side * last])), axis=0)
                odds = np.where(beyond, np.maximum(odds, least), odds)
        found = expit(odds)
        return np.where(found < _NOTHING, 0.0, found)

    def log_odds(self, projected: Array) -> Array:
        """Return the log odds of each law of the outliers against the clean one, shape (m, n)."""
        clean = self.law.log_density(projected, self.centre, self.spread)
        law = self.law if self.alike else GAUSSIAN
        others = law.log_density(projected, self.centres[:, None], self.spreads[:, None])
        odds = np.log(self.shares) - np.log1p(-self.shares.sum())
        return np.asarray(others - clean + odds[:, None])

    def log_likelihood(self, projected: Array) -> Array:
        """Return the log density of each row under all laws together."""
        clean = self.law.log_density(projected, self.centre, self.spread)
        clean += np.log1p(-self.shares.sum())
        return np.asarray(clean + np.logaddexp(0.0, logsumexp(self.log_odds(projected), axis=0)))

    def lifted(self, lift: Callable[[Array], Array]) -> Group:
        """Return the same group in other coordinates."""
        return replace(self, direction=lift(self.direction))

    def moved(self, direction: Array, by: float) -> Group:
        """Return the same group in coordinates that are larger by a number along its direction."""
        centre, centres = self.centre + by, self.centres + by
        return replace(self, direction=direction, centre=centre, centres=centres)


@dataclass(frozen=True, slots=True, eq=False)
class Moved:
    r"""Clean rows moved along a direction, told from the others in each of its features.

    Where noise is not Gaussian that tells more than the projection does, and it is the whole
    posterior: rows weighed by it have all moments of clean rows, not those along the direction
    alone.

    Attributes
    ----------
    direction, origin : ndarray of shape (d,)
        Of unit length, and the mean of the clean rows.
    law : Law
        Of a feature.
    lengths, spreads, shares : ndarray of shape (m,)
        How far groups were moved, what their noise was multiplied by, and their shares of all rows.
    """

    direction: Array
    origin: Array
    law: Law
    lengths: Array
    spreads: Array
    shares: Array

    @property
    def centre(self) -> float:
        """Of the clean rows along the direction."""
        return float(self.direction @ self.origin)

    def seen(self, samples: Samples) -> Array:
        """Return what rows are judged by: the features of the direction, shape (n, k)."""
        used = np.flatnonzero(self.direction)
        return samples.columns(used).project(np.eye(used.size))

    def wrong(self, features: Array) -> Array:
        """Return how likely each row is to be one of the outliers."""
        found = expit(logsumexp(self.log_odds(features), axis=0))
        return np.where(found < _NOTHING, 0.0, found)

    def log_odds(self, features: Array) -> Array:
        """Return the log odds of each law of the outliers against the clean one, shape (m, n)."""
        used = self.direction != 0.0
        origin, direction = self.origin[used], self.direction[used]
        odds = np.log(self.shares) - np.log1p(-self.shares.sum())
        found = np.repeat(odds[:, None], len(features), axis=1)
        for x, centre, part in zip(features.T, origin, direction, strict=True):
            clean = self.law.log_density(x, centre, 1.0)
            for i, (length, spread) in enumerate(zip(self.lengths, self.spreads, strict=True)):
                found[i] += self.law.log_density(x, centre + length * part, spread) - clean
        return found

    def lifted(self, lift: Callable[[Array], Array]) -> Moved:
        """Return the same group in other coordinates, among which are these."""
        return replace(self, direction=lift(self.direction), origin=lift(self.origin))


Groups = tuple[Group | Moved, ...]


def groups_apart(
    samples: Samples,
    domain: CappedSimplex,
    start: Array,
    weights: Array,
    lift: Callable[[Array], Array],
    law: Law,
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
    law : Law
        Of a typical feature.
    sparse : bool
        Whether a direction has only the features in which the difference is significant.
    features : bool, default=True
        Whether the coordinates are features, of independent noise.
    most : int, default=20
        Groups looked for.

    Returns
    -------
    weights : ndarray of shape (n,)
    groups : tuple of Group or Moved
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
        # Two digits: the last ones depend on the order of summation, and iterations carry them
        # on.
        left = np.round(left, 2)
        found = _group(samples, domain.metric, base / base.sum(), left, law, lift, sparse, features)
        if found is None:
            break
        group, gained = found
        if groups and gained <= _direction_price(lift(group.direction), float(domain.metric.sum())):
            break
        groups += (group,)
        clean *= 1.0 - group.wrong(group.seen(samples))
    return _weighed(domain, start, weights, groups, clean)


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
        wrong = np.asarray(np.round(wrong, 2), dtype=np.float64)
        values, counts, likely = _binned(y, base, wrong)
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
    law: Law,
    lift: Callable[[Array], Array],
    sparse: bool,
    features: bool,
) -> tuple[Group | Moved, float] | None:
    """Return the group that best explains what rows have lost, and what it gains over none.

    Outliers may differ in many features, in few of them, or be several groups that differ in one
    each: the direction of all, of those that differ significantly, and of the one that does most.

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

    def law_along(direction: Array) -> Law:
        return law.along(lift(direction))

    best: tuple[float, Group | Moved, float] | None = None
    n = float(metric.sum())
    counts = [*([1] if features else []), *([samples.n_features] if sparse else []), None]
    for count in counts:
        found = _along(samples, metric, base, wrong, law_along, count)
        if found is None:
            continue
        group, y, gained = found
        explained = _explained(group.log_odds(y), group.shares, base)
        chosen: Group | Moved = group
        if features and isinstance(law, Learned):
            moved = _moved(samples, base, group, y, law)
            if moved is not None and moved[1] > explained:
                chosen, explained = moved
        # A direction of many features explains noise too.
        explained -= _direction_price(lift(group.direction), n) / n
        if best is None or explained > best[0]:
            best = explained, chosen, gained
    return None if best is None else best[1:]


def _along(
    samples: Samples,
    metric: Array,
    base: Array,
    wrong: Array,
    law_along: Callable[[Array], Law],
    most: int | None,
) -> tuple[Group, Array, float] | None:
    """Return a group along at most so many features, the rows there, and what it gains."""
    n = float(metric.sum())
    turned = 0
    while True:
        direction = _direction(samples, metric, base, wrong, most)
        if direction is None:
            return None
        y = samples.project(direction)
        if turned == 0 and most == 1:
            # Along one feature, rows that differ in others are in the middle.
            mean = float((base * wrong) @ y) / float(base @ wrong)
            wrong = np.where(y > mean, wrong, 0.0)
        values, counts, likely = _binned(y, base, wrong)
        law = law_along(direction)
        rough = _maximised(values, counts, n, law, likely[None, :], free=False, steps=_TURNS)
        if rough is None:
            return None
        before, wrong = wrong, rough.wrong(y)
        turned += 1
        still = float(base @ np.abs(wrong - before)) <= _TOLERANCE * float(base @ wrong)
        if still or turned == _TURNS:
            break
    group = _laws(values, counts, n, law, rough.wrong(values))
    if group is None:
        return None
    gained = n * float(counts @ (group.log_likelihood(values) - _one_law(values, counts, law)))
    gained -= _price(group, n)
    return (replace(group, direction=direction), y, gained) if gained > 0.0 else None


def _direction(
    samples: Samples, metric: Array, base: Array, wrong: Array, most: int | None
) -> Array | None:
    r"""Return the unit direction in which rows likely to be wrong differ from the others.

    In units of its noise, :math:`\sqrt{1/n_0 + 1/n_1}` in every feature. With `most`, the features
    beyond sqrt(2 log d), which the largest of d Gaussians hardly exceeds, and at most so many. Else
    all of them, if the sum of squares is three deviations above that of d Gaussians.
    """
    counted = metric > 0
    share = float(base @ wrong)
    if not 0.0 < share < 1.0:
        return None
    noise = 0.0
    for part, size in ((base * wrong, share), (base * (1.0 - wrong), 1.0 - share)):
        noise += float(np.sum(part[counted] ** 2 / metric[counted])) / size**2
    # The mean of the others follows from that of all, which is known.
    of_wrong = samples.mean(base * wrong)
    means = of_wrong / share, (samples.mean(base) - of_wrong) / (1.0 - share)
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


def _binned(y: Array, base: Array, wrong: Array) -> tuple[Array, Array, Array]:
    """Return a grid along a direction, the weight at each point, and how much of it is wrong.

    Points are a hundredth of the distance of the quartiles apart; a law takes no notice of it, and
    the work no longer grows with the rows.
    """
    low, middle, high = weighted_quantile(y, base, [0.25, 0.5, 0.75])
    # Where more than half of the rows agree, the deviation of all stands in for their quartiles.
    width = float(high - low) or float(np.sqrt(base @ (y - middle) ** 2)) or 1.0
    reach = _BINS / 200.0 * width
    grid = np.linspace(middle - reach, middle + reach, _BINS)
    places = np.clip((y - grid[0]) / (grid[1] - grid[0]), 0.0, _BINS - 1.0)
    # A row is shared between its two neighbours, so that no answer hangs on the last digit.
    lower = np.minimum(places.astype(np.intp), _BINS - 2)
    upper_share = places - lower

    def shared(amount: Array) -> Array:
        below = np.bincount(lower, amount * (1.0 - upper_share), _BINS)
        return np.asarray(below + np.bincount(lower + 1, amount * upper_share, _BINS))

    weight = shared(base)
    filled = weight > 0.0
    return grid[filled], weight[filled], shared(base * wrong)[filled] / weight[filled]


def _laws(y: Array, base: Array, n: float, law: Law, wrong: Array) -> Group | None:
    """Return the laws along a direction that gain most in likelihood, less their price.

    First one law of outliers that spread by one, as clean rows do in units of the noise: a law that
    is free to be wide from the start takes clean rows for its own. From there one that is free; and
    one law more, of the rows that lie farther out than the largest law explains, as long as it
    gains.
    """
    first = _maximised(y, base, n, law, wrong[None, :], free=False)
    if first is None or not np.any(first.wrong(y)):
        return None

    def gained(group: Group) -> float:
        return n * float(base @ group.log_likelihood(y)) - _price(group, n)

    group, best, start = first, -np.inf, first.wrong(y)[None, :]
    for _ in range(_MOST_LAWS):
        tried = [_maximised(y, base, n, law, start, free=free) for free in (False, True)]
        found = max((each for each in tried if each is not None), key=gained, default=None)
        if found is None or gained(found) <= best:
            break
        group, best = found, gained(found)
        parts = _chances(group.log_odds(y))
        largest = int(np.argmax(group.shares))
        middle, width = group.centres[largest], group.spreads[largest]
        far = np.sign(middle - group.centre) * (y - middle) > width
        start = np.concatenate([parts, np.where(far, parts[largest], 0.0)[None, :]])
        start[largest, far] = 0.0
    # Nearer than that the outliers move the mean by less than the clean rows lost with them do.
    apart = np.abs(group.centres - group.centre) > group.spread
    return group if apart.all() else None


def _moved(
    samples: Samples, base: Array, group: Group, projected: Array, law: Law
) -> tuple[Moved, float] | None:
    """Return the group told in each feature, and the log likelihood over that of clean rows.

    None where the outliers become the majority.
    """
    used = np.flatnonzero(group.direction)
    x = samples.columns(used).project(np.eye(used.size))
    wrong = _chances(group.log_odds(projected))
    for _ in range(_STEPS // 4):
        shares = np.maximum(wrong @ base, _TINY)
        if shares.sum() >= 0.5:
            return None
        clean = base * (1.0 - wrong.sum(axis=0))
        origin = clean @ x / clean.sum()
        means = (wrong * base) @ x / shares[:, None]
        away = shares @ (means - origin)
        direction = away / max(float(np.linalg.norm(away)), _TINY)
        squares = [np.mean((w * base) @ (x - m) ** 2) for w, m in zip(wrong, means, strict=True)]
        spreads = np.maximum(np.sqrt(np.array(squares) / shares), max(_NARROWEST, law.step))
        found = Moved(direction, origin, law, (means - origin) @ direction, spreads, shares)
        # A column of one value moves nothing.
        odds = found.log_odds(x[:, direction != 0.0])
        before, wrong = wrong, _chances(odds)
        if float(np.abs(wrong - before).sum(axis=0) @ base) <= _TOLERANCE * float(shares.sum()):
            break
    lifted = np.zeros((2, group.direction.size))
    lifted[:, used] = found.direction, found.origin
    moved = replace(found, direction=lifted[0], origin=lifted[1])
    return moved, _explained(odds, shares, base)


def _chances(odds: Array) -> Array:
    """Return how likely rows are to be of each law, from log odds against the clean one."""
    return np.asarray(np.exp(odds - np.logaddexp(0.0, logsumexp(odds, axis=0))))


def _explained(odds: Array, shares: Array, base: Array) -> float:
    """Return the mean log likelihood of a mixture, over that of the clean law."""
    return float(base @ np.logaddexp(0.0, logsumexp(odds, axis=0)) + np.log1p(-shares.sum()))


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
    narrowest = max(_NARROWEST * float(np.sqrt(base @ (y - base @ y) ** 2)), law.step)
    group: Group | None = None
    steady = np.ones(y.size)
    for _ in range(steps):
        shares = wrong @ base
        if shares.min() * n < _FEWEST or shares.sum() > 0.5:
            return None
        clean = base * (1.0 - wrong.sum(axis=0))
        centre = float((clean * steady) @ y) / float(clean @ steady)
        centres = (wrong * y) @ base / shares
        spread, spreads = law.unit, np.full(shares.size, law.unit)
        if free:
            square = float((clean * steady) @ (y - centre) ** 2) / float(clean.sum())
            squares = (wrong * (y - centres[:, None]) ** 2) @ base / shares
            spread = max(float(np.sqrt(square)), narrowest)
            spreads = np.maximum(np.sqrt(squares), narrowest)
            if spread == 0.0 or not spreads.all():
                return None
        group = Group(np.empty(0), centre, spread, law, centres, spreads, shares, not free)
        steady = law.steady((y - centre) / spread)
        odds = np.exp(np.clip(group.log_odds(y), -700.0, 700.0))
        before, wrong = wrong, odds / (1.0 + odds.sum(axis=0))
        if float(np.abs(wrong - before).sum(axis=0) @ base) <= _TOLERANCE * float(shares.sum()):
            break
    return group


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

        def loss(at: Array) -> float:
            moved = centre + spread * at[0]
            return -float(base @ law.log_density(y, moved, spread * float(np.exp(at[1]))))

        away, wider = minimize(loss, np.zeros(2), method="Nelder-Mead").x
        centre, spread = centre + spread * float(away), spread * float(np.exp(wider))
    return law.log_density(y, centre, spread)
