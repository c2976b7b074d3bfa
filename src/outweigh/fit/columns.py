"""Robust statistics of columns: quantiles, centres, scales, and the bulk in a few directions.

The bulk is what a redescending M-estimator sees (minimum gamma-divergence for the Gaussian): rows
far from it count for nothing, however many they are, so a cluster or a second spike along a
direction does not pass for variance of the clean rows. It is for a handful of directions, of many
more rows than these.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri, ndtri

from outweigh.fit.tuning import TUNING
from outweigh.protocols import Array

# Of a Gaussian: one over the upper quartile.
MAD_TO_SD = 1.4826
_TINY = 1e-300
_MAX_ITER = 300
_COLUMN_STEPS = 5
_RTOL = 1e-11
# Four but for rounding: copies of a row equal its weight. A value that fills half of a column
# leaves it fewer that count.
FEW_VALUES = 4.0 * (1.0 - 1e-9)


class RankedColumns:
    """The columns of weighted rows, each in increasing order.

    A whole number as a weight counts as that many copies of the row.

    Parameters
    ----------
    rows : ndarray of shape (n, d)
    sample_weight : ndarray of shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> columns = RankedColumns(np.array([[0.0], [1.0], [3.0], [1e9]]), np.ones(4))
    >>> columns.midmean()
    array([1.])
    >>> columns.quantile(0.5)
    array([1.])
    """

    def __init__(self, rows: Array, sample_weight: Array) -> None:
        self._equal = bool(np.ptp(sample_weight) == 0)
        # Sorting contiguous values takes a third of the time of selecting a few of them in place.
        ranked = np.array(rows.T, order="C")
        if self._equal:
            ranked.sort(axis=1)
            self._cumulative = np.arange(1.0, rows.shape[0] + 1.0)
        else:
            order = np.argsort(ranked, axis=1, kind="stable")
            ranked = np.take_along_axis(ranked, order, axis=1)
            self._cumulative = np.cumsum(sample_weight[order], axis=1)
        self._ranked = ranked
        self._total = float(self._cumulative.flat[-1])

    def quantile(self, level: float) -> Array:
        """Return the least value of each column with that share of the weight at or below it."""
        # A share that is reached but for rounding is reached.
        reached = self._cumulative >= level * self._total * (1.0 - 1e-12)
        if self._equal:
            # A copy: what is found must not keep all values in memory.
            return self._ranked[:, int(np.argmax(reached))].copy()
        place = np.argmax(reached, axis=1)
        return np.take_along_axis(self._ranked, place[:, None], axis=1)[:, 0]

    def midmean(self) -> Array:
        """Return the mean of the middle half of each column, less its median.

        As robust as the quartiles, and unlike a median close to the mean also for discrete
        features.
        """
        median, upper = self.quantile(0.5)[:, None], self._cumulative
        lower = np.concatenate([np.zeros((*upper.shape[:-1], 1)), upper[..., :-1]], axis=-1)
        # A value counts by the part of its ranks that lies in the middle half.
        share = np.minimum(upper, 0.75 * self._total) - np.maximum(lower, 0.25 * self._total)
        share = np.maximum(share, 0.0)
        share /= share.sum(axis=-1, keepdims=True)
        if self._equal:
            middle = share > 0
            return np.asarray((self._ranked[:, middle] - median) @ share[middle])
        # Extreme ranks do not count, and may be out of range.
        counted = np.where(share > 0, self._ranked, median) - median
        return np.asarray((counted * share).sum(axis=1))

    def scales(self) -> Array:
        """Return a positive robust scale of each column, consistent for a Gaussian.

        From the median absolute deviation, which up to half of the rows do not move. Where a column
        has fewer than four values that count, one may fill half of it, and that is 0 or far too
        large: the plain deviation there, if it is less. 1 for a constant column.
        """
        centre = self.quantile(0.5)[:, None]
        if self._equal:
            # The values nearest to the median are consecutive: of all runs of half the values, the
            # one that reaches least far. That spares a second sort.
            last = int(np.argmax(self._cumulative >= 0.5 * self._total * (1.0 - 1e-12)))
            runs = self._ranked.shape[1] - last
            below, above = centre - self._ranked[:, :runs], self._ranked[:, last:] - centre
            robust = np.maximum(below, above, out=below).min(axis=1)
        else:
            weight = np.diff(self._cumulative, axis=1, prepend=0.0)
            robust = np.array(
                [
                    np.quantile(a, 0.5 * (1 - 1e-12), method="inverted_cdf", weights=w)
                    for a, w in zip(np.abs(self._ranked - centre), weight, strict=True)
                ]
            )
        scale = MAD_TO_SD * robust
        for j in np.flatnonzero(self.has_few_values()).tolist():
            most = np.finfo(float).max
            with np.errstate(over="ignore"):
                away = np.clip(self._ranked[j] - centre[j], -most, most)
            # In units of the largest, whose square may be beyond floating point.
            largest = max(float(np.abs(away).max()), _TINY)
            share = self._weight(j) / self._total
            mean = share @ (away / largest)
            plain = largest * np.sqrt(share @ np.square(away / largest - mean))
            # No more than the other, where there is one: a far value shall not decide.
            scale[j] = min(plain, scale[j]) if scale[j] > 0.0 else plain
        return np.where(scale > 0.0, scale, 1.0)

    def has_few_values(self) -> NDArray[np.bool_]:
        """Tell which columns have fewer than four values that count."""
        return np.asarray(self.values_that_count() < FEW_VALUES)

    def values_that_count(self) -> Array:
        """Return 1 / sum p^2 for each column, p the shares of the rows that have each value."""
        repeated = np.any(self._ranked[:, 1:] == self._ranked[:, :-1], axis=1)
        # Where all values differ and all rows count alike there are as many as rows.
        found = np.full(len(self._ranked), float(self._ranked.shape[1]))
        for j in np.flatnonzero(repeated).tolist() if self._equal else range(found.size):
            values, weight = self._ranked[j], self._weight(j)
            if repeated[j]:
                begins = np.flatnonzero(np.r_[True, values[1:] != values[:-1]])
                weight = np.add.reduceat(weight, begins)
            found[j] = self._total**2 / float(weight @ weight)
        return found

    def _weight(self, j: int) -> Array:
        """Return the weights of the rows in the order of column j."""
        cumulative = self._cumulative if self._equal else self._cumulative[j]
        return np.diff(cumulative, prepend=0.0)


def weighted_quantile(values: Array, weights: Array, levels: list[float]) -> Array:
    """Return quantiles of one weighted sample: the least value with that share at or below it."""
    order = np.argsort(values)
    share = np.cumsum(weights[order])
    share /= share[-1]
    # A share that is reached but for rounding is reached: copies of a row equal its weight. Rows
    # without weight come before the first that counts.
    reached = np.maximum(np.array(levels) * (1.0 - 1e-12), np.finfo(float).tiny)
    places = np.searchsorted(share, reached)
    return np.asarray(values[order[np.minimum(places, values.size - 1)]])


def column_quantiles(rows: Array, weights: Array, levels: list[float]) -> Array:
    """Return quantiles of each column of weighted rows, shape (len(levels), columns)."""
    if np.all(weights == weights[0]):
        levels = [level * (1.0 - 1e-12) for level in levels]
        return np.asarray(np.quantile(rows, levels, axis=0, method="inverted_cdf"))
    return np.array([weighted_quantile(column, weights, levels) for column in rows.T]).T


def together_by_ranks(rows: Array, weights: Array, n: float) -> float:
    r"""Return how far columns go together by their ranks; above 1 once in a hundred by chance.

    Each column is replaced by a Gaussian one of the same ranks: no tail of it hides what goes on in
    its middle, and scores of independent columns are independent, whatever their laws are. Of n
    rows a correlation of two is then of variance :math:`1/n`, and :math:`n \sum_{i<j} r_{ij}^2` of
    the law :math:`\chi^2` with d(d-1)/2 degrees of freedom: the root of it over its 0.99 quantile.

    Parameters
    ----------
    rows : ndarray of shape (m, d)
    weights : ndarray of shape (m,)
        Of sum one.
    n : float
        The number of rows that these amount to.
    """
    # Times the roots of the weights: a product with its own transpose is half the work.
    scores, roots = np.empty((rows.shape[1], weights.size)), np.sqrt(weights)
    for column, row in zip(np.ascontiguousarray(rows.T), scores, strict=True):
        order = np.argsort(column)
        ranked = column[order]
        begins = np.flatnonzero(np.r_[True, ranked[1:] != ranked[:-1]])
        share = np.add.reduceat(weights[order], begins)
        # Equal values have the middle of their ranks. At the ends may lie rows without weight.
        middle = np.clip(np.cumsum(share) - share / 2.0, 0.5 / n, 1.0 - 0.5 / n)
        row[order] = np.repeat(ndtri(middle), np.diff(begins, append=order.size))
        row -= weights @ row
        row *= roots
    moment = scores @ scores.T
    # Where all rows are equal, rounding is left.
    varies = np.flatnonzero(np.diagonal(moment) > 1e-12)
    if varies.size < 2:
        return 0.0
    deviations = np.sqrt(np.diagonal(moment)[varies])
    correlations = moment[np.ix_(varies, varies)] / deviations / deviations[:, None]
    pairs = varies.size * (varies.size - 1) / 2.0
    squares = (np.sum(correlations**2) - varies.size) / 2.0
    return float(np.sqrt(n * squares / chdtri(pairs, 0.01)))


def largest_of(count: int) -> float:
    """Return what the largest magnitude of `count` Gaussians exceeds with probability 0.05."""
    return -float(ndtri(0.05 / (2.0 * count)))


def robust_variance(values: Array, sample_weight: Array) -> float:
    """Return the variance of the Gaussian bulk of one weighted sample.

    Parameters
    ----------
    values : ndarray of shape (n,)
    sample_weight : ndarray of shape (n,)

    References
    ----------
    Fujisawa and Eguchi, "Robust parameter estimation with a small bias against heavy
    contamination", Journal of Multivariate Analysis 99 (2008).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> values = np.concatenate([rng.normal(size=1600), np.full(400, 6.0)])
    >>> bool(abs(robust_variance(values, np.ones(2000)) - 1.0) < 0.15)
    True
    """
    return float(robust_scatter(values[:, None], sample_weight)[0, 0])


def robust_scatter(rows: Array, sample_weight: Array) -> Array:
    """Return the covariance of the Gaussian bulk of weighted rows in a few dimensions.

    Parameters
    ----------
    rows : ndarray of shape (n, m)
        With n much larger than m.
    sample_weight : ndarray of shape (n,)

    Returns
    -------
    ndarray of shape (m, m)
        The starting value, from medians and spatial signs, where the iteration breaks down: so it
        does where it shrinks to rows that are equal or lie in a subspace.
    """
    share = sample_weight / sample_weight.sum()
    centre = np.array([weighted_quantile(column, share, [0.5])[0] for column in rows.T])
    scatter = start = _sign_scatter(rows - centre, share)
    largest, steep = float(np.linalg.eigvalsh(start)[-1]), TUNING.bulk
    for _ in range(_MAX_ITER):
        root = _inverse_root(scatter, largest)
        if root is None:
            return start
        weight = share * np.exp(-0.5 * steep * np.square((rows - centre) @ root).sum(axis=1))
        total = float(weight.sum())
        if total <= 0.0:
            return start
        centre = weight @ rows / total
        away = rows - centre
        updated = (1.0 + steep) * (away * weight[:, None]).T @ away / total
        change = float(np.abs(updated - scatter).max())
        scatter = updated
        if change <= _RTOL * float(np.abs(scatter).max()):
            break
    return scatter


def column_bulks(Z: Array, sample_weight: Array) -> tuple[Array, Array]:
    """Return the centre and the variance of the bulk of each column, all columns at once.

    A few steps of the iteration above, from a start that is near.

    Parameters
    ----------
    Z : ndarray of shape (n, d)
        Columns about a robust centre, in units of a robust scale.
    sample_weight : ndarray of shape (n,)
    """
    centre, variance, steep = np.zeros(Z.shape[1]), np.ones(Z.shape[1]), TUNING.bulk
    for _ in range(_COLUMN_STEPS):
        near = np.exp(-steep / 2.0 * (Z - centre) ** 2 / variance) * sample_weight[:, None]
        # All rows may be far from where the bulk was thought to be.
        total = np.maximum(near.sum(axis=0), _TINY)
        centre = (near * Z).sum(axis=0) / total
        new = (1.0 + steep) * (near * (Z - centre) ** 2).sum(axis=0) / total
        variance = np.where(new > 1e-6, new, variance)
    return centre, variance


def _sign_scatter(away: Array, share: Array) -> Array:
    """Return a scatter with the axes of the spatial signs and median deviations along them."""
    length = np.linalg.norm(away, axis=1)
    signs = away / np.where(length > 0, length, 1.0)[:, None]
    axes = np.linalg.eigh((signs * share[:, None]).T @ signs)[1]
    deviations = [
        MAD_TO_SD * weighted_quantile(np.abs(column), share, [0.5])[0] for column in (away @ axes).T
    ]
    return np.asarray((axes * np.square(deviations)) @ axes.T)


def _inverse_root(scatter: Array, largest: float) -> Array | None:
    """Return its root, unless it has shrunk to nothing beside a variance that it had."""
    values, vectors = np.linalg.eigh(scatter)
    if not values[0] > 1e-12 * max(float(values[-1]), largest, np.finfo(float).tiny):
        return None
    return np.asarray(vectors / np.sqrt(values))
