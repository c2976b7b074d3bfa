r"""Clean rows and outliers as a mixture of laws, along a direction or in each of its features.

.. math:: (1 - \textstyle\sum_j \epsilon_j)\, \frac{1}{s_0} f\Bigl(\frac{y - m_0}{s_0}\Bigr)
    + \sum_j \epsilon_j\, \frac{1}{s_j} g\Bigl(\frac{y - m_j}{s_j}\Bigr)

The law f of the clean rows is known but for its place and spread (`outweigh.fit.law`); that of
outliers is the same, moved, or a Gaussian. How many laws there are, and whether outliers spread as
clean rows do, is decided by the Bayesian information criterion: each number must gain log(n)/2 in
log likelihood.

For Gaussian noise the projection y on a direction holds all that tells a moved row from a clean
one. Else each of its features says more, and a law is the product over them,
:math:`\prod_j f(x_j - m_j)`, with the places :math:`m` of all laws on a line.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from outweigh.fit.law import GAUSSIAN, LOG_ROOT_2PI, Law, Student
from outweigh.fit.tuning import TUNING
from outweigh.protocols import Array, Samples
from outweigh.samples.dense import values_of

NATS = 0.01
"""Iterations end where the log likelihood of all rows rises by less.

One number more must gain log(n)/2. So they end too where they would go round in circles, and carry
no rounding on.
"""
_STEPS = 100
# Rows whose densities in several features are computed together.
_ROWS_AT_ONCE = 4096
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
        used = np.flatnonzero(self.direction)
        return values_of(samples.columns(used))

    def wrong(self, seen: Array) -> Array:
        """Return how likely each row is to be one of the outliers."""
        odds = self.log_odds(seen)
        # Where the clean law has the longer tail, rows beyond the outliers would be clean again.
        for side in (-1.0, 1.0) if self.origin is None else ():
            last = float(np.max(side * self.centres))
            if last > side * self.centre:
                least = self.log_odds(np.array([side * last]))
                odds = np.where(side * seen > last, np.maximum(odds, least), odds)
        found = expit(odds)
        return np.where(found < TUNING.negligible, 0.0, found)

    def log_odds(self, seen: Array) -> Array:
        """Return the log odds of each row to be one of the outliers."""
        logs = self._logs(seen)
        return np.asarray(np.logaddexp.reduce(logs[1:], axis=0) - logs[0])

    def judged(self, seen: Array) -> tuple[Array, Array]:
        """Return the log density of each row, and how likely it is of each law, shape (1 + m, n).

        The law of the clean rows comes first.
        """
        return _judged(self._logs(seen))

    def explained(self, seen: Array, base: Array) -> float:
        """Return the mean log likelihood of rows of these weights over that of the clean law."""
        gained = np.logaddexp(0.0, self.log_odds(seen))
        return float(base @ gained + np.log1p(-self.shares.sum()))

    def price(self, n: float) -> float:
        """Return log(n)/2 for each number beside the centre of the clean rows.

        The share and centre of each law of outliers and, where they are free, all spreads.
        """
        numbers = 2 * self.centres.size + (0 if self.alike else 1 + self.spreads.size)
        return 0.5 * float(np.log(n)) * numbers

    def lifted(self, lift: Callable[[Array], Array]) -> Group:
        """Return the same group in other coordinates."""
        origin = None if self.origin is None else lift(self.origin)
        return replace(self, direction=lift(self.direction), origin=origin)

    def moved(self, direction: Array, by: float) -> Group:
        """Return the same group in coordinates that are larger by a number along its direction."""
        centre, centres = self.centre + by, self.centres + by
        return replace(self, direction=direction, centre=centre, centres=centres)

    def _logs(self, seen: Array) -> Array:
        """Return the log of the density of each law times its share, shape (1 + m, n)."""
        others = self.law if self.alike else GAUSSIAN
        centres = np.array([self.centre, *self.centres])
        spreads = np.array([self.spread, *self.spreads])
        shares = np.array([1.0 - self.shares.sum(), *self.shares])
        if self.origin is None:
            away = (seen - centres[:, None]) / spreads[:, None]
            logs = self.law.standard(away)
            if others is not self.law:
                logs[1:] = others.standard(away[1:])
            logs += np.log(shares / spreads)[:, None]
            return logs
        # One law after the other, and some rows: all would be several times the features in memory.
        # Where all features are seen, one in which nothing moves is among them.
        used = (self.direction != 0.0) | (self.direction.size == seen.shape[1])
        logs = np.empty((shares.size, len(seen)))
        for j, centre in enumerate(centres):
            point = self.origin[used] + (centre - self.centre) * self.direction[used]
            law = others if j else self.law
            for start in range(0, len(seen), _ROWS_AT_ONCE):
                rows = slice(start, start + _ROWS_AT_ONCE)
                np.sum(law.log_density(seen[rows], point, spreads[j]), axis=1, out=logs[j, rows])
        logs += np.log(shares)[:, None]
        return logs


Groups = tuple[Group, ...]


def chance_of(groups: Groups, samples: Samples) -> Array:
    """Return how likely each row is to be in any of some groups."""
    clean = np.ones(samples.n_samples)
    for group in groups:
        clean *= 1.0 - group.wrong(group.seen(samples))
    return 1.0 - clean


def _judged(logs: Array) -> tuple[Array, Array]:
    """Return the log density of each row, and how likely it is of each law, made of `logs`."""
    top = np.maximum.reduce(logs, axis=0)
    logs -= top
    chances = np.exp(logs, out=logs)
    total = np.add.reduce(chances, axis=0)
    chances /= total
    return top + np.log(total), chances


def fitted(
    x: Array,
    base: Array,
    n: float,
    law: Law,
    wrong: Array,
    *,
    free: bool,
    steps: int = _STEPS,
) -> tuple[Group, float] | None:
    """Fit laws along a direction by expectation maximisation; None where one has too few rows.

    Or where the clean rows are not the majority.

    Parameters
    ----------
    x : ndarray of shape (n,)
        Rows along the direction.
    base : ndarray of shape (n,)
        Their weights, of sum one.
    n : float
        The number of rows that these amount to.
    law : Law
        Of the clean rows.
    wrong : ndarray of shape (m, n)
        How likely each row is, at first, to be of each law of outliers.
    free : bool
        Whether outliers have spreads of their own, and are Gaussian, and clean rows have any
        spread, too; else outliers are clean rows, of unit noise, moved.
    steps : int

    Returns
    -------
    group : Group
        Its direction is of no meaning.
    value : float
        The mean log likelihood of the rows.
    """
    middle = float(base @ x)
    # About their middle, where squares keep their digits.
    away = x - middle
    powers = np.stack([np.ones(x.size), away, away * away])
    weighted = (powers * base).T
    narrowest = max(TUNING.narrowest * math.sqrt(float(base @ powers[2])), law.step)
    freedom = law.freedom if isinstance(law, Student) else 0.0
    others = law if not free or law == GAUSSIAN else GAUSSIAN
    chances = np.concatenate([1.0 - wrong.sum(axis=0, keepdims=True), wrong])
    laws: list[tuple[float, float, float]] = []
    best, reached = laws, -np.inf
    for _ in range(steps):
        sums = chances @ weighted
        shares = sums[:, 0].tolist()
        if shares[0] < 0.5 or min(shares) * n < TUNING.fewest_in_law:
            return None
        if laws and 0.0 < freedom < np.inf:
            # What rows count in the most likely centre and spread of Student's t.
            z = (away - laws[0][0]) / laws[0][1]
            sums[0] = (chances[0] * (freedom + 1.0) / (freedom + z * z)) @ weighted
        laws = []
        for share, (total, first, second) in zip(shares, sums.tolist(), strict=True):
            at = first / total
            wide = math.sqrt(max((second - first * at) / share, 0.0)) if free else 1.0
            laws.append((at, max(wide, narrowest) if free else 1.0, share))
        if free and min(wide for _, wide, _ in laws) == 0.0:
            return None
        if freedom == np.inf:
            # The log of a Gaussian density is quadratic: all of them are one product.
            steep = [(at, -0.5 / wide**2, math.log(share / wide)) for at, wide, share in laws]
            lines = [(c + s * at**2 - LOG_ROOT_2PI, -2.0 * s * at, s) for at, s, c in steep]
            logs = np.array(lines) @ powers
        else:
            logs = np.empty(chances.shape)
            for j, (at, wide, share) in enumerate(laws):
                logs[j] = (others if j else law).standard((away - at) / wide)
                logs[j] += math.log(share / wide)
        logs, chances = _judged(logs)
        value = float(base @ logs)
        risen = n * (value - reached)
        if risen > 0.0:
            best, reached = laws, value
        if risen <= NATS:
            break
    centres, spreads, of_all = np.array(best).T
    centres += middle
    group = Group(
        np.ones(1), centres[0], spreads[0], law, centres[1:], spreads[1:], of_all[1:], not free
    )
    return group, reached


def fitted_in_features(
    x: Array, base: Array, n: float, law: Law, wrong: Array, steps: int
) -> Group | None:
    """Fit clean rows, and some that were moved and widened, in each of several features.

    A law may lose its rows, and the others go on without it; None where the clean rows are not the
    majority.

    Parameters
    ----------
    x : ndarray of shape (n, k)
    base, n, wrong, steps
        As for `fitted`.
    law : Law
        Of the clean rows in a feature, in units of the noise.
    """
    middle = base @ x
    away = x - middle
    powers = np.column_stack([np.ones(len(x)), away, np.einsum("ij,ij->i", away, away)])
    weighted = powers * base[:, None]
    narrowest = max(TUNING.narrowest, law.step)
    chances = np.concatenate([1.0 - wrong.sum(axis=0, keepdims=True), wrong])
    best, reached = None, -np.inf
    for _ in range(steps):
        sums = chances @ weighted
        shares = np.maximum(sums[:, 0], _TINY)
        if shares[0] < 0.5:
            return None
        means = sums[:, 1:-1] / shares[:, None]
        squares = sums[:, -1] / shares - np.einsum("ij,ij->i", means, means)
        spreads = np.maximum(np.sqrt(np.maximum(squares / x.shape[1], 0.0)), narrowest)
        means += middle
        direction = shares[1:] @ (means[1:] - means[0])
        direction /= max(float(np.linalg.norm(direction)), _TINY)
        at = means @ direction
        group = Group(direction, at[0], 1.0, law, at[1:], spreads[1:], shares[1:], True, means[0])
        logs, chances = group.judged(x)
        value = float(base @ logs)
        risen = n * (value - reached)
        if risen > 0.0:
            best, reached = group, value
        if risen <= NATS:
            break
    return best


def laws_along(
    y: Array, base: Array, n: float, law: Law, wrong: Array, most: float = 1.0
) -> Group | None:
    """Return the laws along a direction that gain most in likelihood, less their price.

    First one law of outliers that spread by one, as clean rows do in units of the noise: a law that
    is free to be wide from the start takes clean rows for its own. From there one that is free; and
    one law more, of the rows that lie farther out than the largest law explains, as long as it
    gains. None where outliers are not apart, or become more than may be.

    Parameters
    ----------
    y, base, n, law
        As for `fitted`.
    wrong : ndarray of shape (n,)
        How likely each row is, at first, to be one of the outliers.
    most : float, default=1.0
        The share of the rows that may be outliers.
    """
    group: Group | None = None
    reached, start = -np.inf, wrong[None, :]
    for _ in range(TUNING.laws):
        found = [fitted(y, base, n, law, start, free=False)]
        if group is None:
            if found[0] is None or not np.any(tied := found[0][0].wrong(y)):
                return None
            start = tied[None, :]
        found.append(fitted(y, base, n, law, start, free=True))
        worth = [(n * each[1] - each[0].price(n), each[0]) for each in found if each is not None]
        best, candidate = max(worth, key=lambda each: each[0], default=(-np.inf, None))
        if candidate is None or best <= reached:
            break
        if candidate.shares.sum() > most:
            return None
        group, reached = candidate, best
        parts = group.judged(y)[1][1:]
        largest = int(np.argmax(group.shares))
        middle, width = group.centres[largest], group.spreads[largest]
        far = np.sign(middle - group.centre) * (y - middle) > width
        start = np.concatenate([parts, np.where(far, parts[largest], 0.0)[None, :]])
        start[largest, far] = 0.0
    assert group is not None
    # Nearer than that the outliers move the mean by less than the clean rows lost with them do.
    apart = np.abs(group.centres - group.centre) > group.spread
    return group if apart.all() else None


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
    found = fitted(y, weight / n, n, law, wrong[None, :], free=True)
    return None if found is None else (found[0], n * (found[1] - one_law(y, weight / n, law)))


def one_law(y: Array, base: Array, law: Law) -> float:
    """Return the mean log likelihood of rows under the one law that fits all."""
    centre = float(base @ y)
    spread = float(np.sqrt(base @ (y - centre) ** 2))
    if not (isinstance(law, Student) and np.isinf(law.freedom)):

        def placed(at: Array) -> tuple[float, float]:
            return centre + spread * float(at[0] - 1.0), spread * float(np.exp(at[1] - 1.0))

        def loss(at: Array) -> float:
            return -float(base @ law.log_density(y, *placed(at)))

        # Its first steps are a twentieth of where it starts.
        centre, spread = placed(minimize(loss, np.ones(2), method="Nelder-Mead", tol=1e-3).x)
    return float(base @ law.log_density(y, centre, spread))
