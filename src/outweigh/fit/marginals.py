"""The law of each column alone: whether rows can be judged by it, its units, skewness and reach.

Rows of unknown covariance are judged by the shape of the cloud they form. Two things give a column
a shape that says nothing of outliers: few different values (a column of 0 and 1 has two groups that
are both right) and skewness (the long tail of an income is no group). The first are left out, the
second straightened by a monotone map, so that what remains may be elliptical.

A column that is left out still has a reach: 0 and 1 are no outliers, but -999 among them is.
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
from outweigh.fit.tuning import TUNING
from outweigh.protocols import Array, Indices
from outweigh.samples.dense import INFINITE

_DECILE, _QUARTILE = float(ndtri(0.9)), float(ndtri(0.75))
_TINY = 1e-300
# Squares, and sums of their squares, are within floating point.
_HUGE = 1e70


@dataclass(frozen=True, slots=True, eq=False)
class Marginals:
    """The map from a column x to z: robustly standardised, and straight where it was skewed.

    With t = (x - middle) / unit a straightened column is log(1 + g t) / g, Tukey's g-transform
    turned round, for |z| <= 3 and a line of the same slope beyond; g = 0 leaves z = t.

    Attributes
    ----------
    middle, unit, g : ndarray of shape (d,)
    centre, spread : ndarray of shape (d,)
        The median and the robust deviation of what the straightened columns are.
    """

    middle: Array
    unit: Array
    g: Array
    centre: Array
    spread: Array

    def apply(self, X: NDArray[np.floating]) -> Array:
        """Return z for rows of the judged columns."""
        with np.errstate(over="ignore"):
            t = (np.asarray(X, dtype=np.float64) - self.middle) / self.unit
        return (self._straight(np.clip(t, -_HUGE, _HUGE)) - self.centre) / self.spread

    def restore(self, z: Array) -> Array:
        """Return the columns that `apply` takes to z."""
        t = z * self.spread + self.centre
        skewed = np.flatnonzero(self.g)
        g, part = self.g[skewed], t[:, skewed]
        inside = np.clip(part, -TUNING.drawn_in, TUNING.drawn_in)
        # Beyond its ends the logarithm goes on with the slope exp(-g z) that it has there.
        t[:, skewed] = np.expm1(g * inside) / g + (part - inside) * np.exp(g * inside)
        return np.asarray(self.middle + self.unit * t)

    def _straight(self, t: Array) -> Array:
        skewed = np.flatnonzero(self.g)
        if skewed.size:
            g = self.g[skewed]
            part = t[:, skewed]
            # 1 + g t at z = -3 and z = 3, between which the map is a logarithm; its slope there is
            # the inverse.
            low, high = np.exp(-TUNING.drawn_in * g), np.exp(TUNING.drawn_in * g)
            inside = np.clip(1.0 + g * part, np.minimum(low, high), np.maximum(low, high))
            t[:, skewed] = (np.log(inside) + (1.0 + g * part - inside) / inside) / g
        return t


def judged_columns(X: Array, sample_weight: Array) -> tuple[Indices, bool]:
    """Return the columns that rows are judged by, and whether groups in them are outliers.

    Those of many values. Where fewer than two have many, all that have more than few, or none:
    groups among those are no outliers, but what is far from all others is.
    """
    values = RankedColumns(X, sample_weight).values_that_count()
    # A short column cannot have many values; the root of its length is enough.
    many = min(float(TUNING.few_values), float(np.sqrt(sample_weight.sum())))
    for fewest, grouped in ((many, True), (FEW_VALUES, False)):
        columns = np.flatnonzero(values > fewest)
        if columns.size >= min(2, values.size):
            return columns, grouped
    return columns[:0], False


def marginals(
    X: Array, sample_weight: Array, among: NDArray[np.bool_], *, straighten: bool = True
) -> Marginals:
    """Read the law of each column off the rows named by a mask.

    Skewness by deciles, g = log((hi - mid) / (mid - lo)) / 1.28, at most that of the quartiles plus
    one of their standard errors, since outliers on one side reach the deciles first; 0 where a
    Gaussian column would show as much (once in fifty), or where it is below 0.1.
    """
    some, weight = X[among], sample_weight[among]
    n, d = float(weight.sum()), X.shape[1]
    levels = [0.1, 0.25, 0.5, 0.75, 0.9]
    low, first, middle, third, high = column_quantiles(some, weight, levels)
    unit = positive_spread(some, weight, middle)
    g = np.zeros(d)
    if straighten:
        least = 1e-3 * (high - low) + _TINY

        def log_ratio(a: Array, b: Array) -> Array:
            return np.asarray(np.log(np.maximum(a, least) / np.maximum(b, least)))

        by_deciles = log_ratio(high - middle, middle - low) / _DECILE
        by_quartiles = log_ratio(third - middle, middle - first) / _QUARTILE
        side = np.sign(by_deciles)
        seen = np.abs(by_deciles) > -ndtri(0.01) * _skewness_sd(0.1) / np.sqrt(n)
        most = by_quartiles * side + _skewness_sd(0.25) / np.sqrt(n)
        size = np.clip(most, 0.0, np.abs(by_deciles))
        g = np.where(
            seen & (size >= TUNING.least_skew), side * np.minimum(size, TUNING.most_skew), 0.0
        )
        safe = np.where(g == 0.0, 1.0, g)
        right = (high - middle) * safe / np.expm1(safe * _DECILE)
        left = (middle - low) * safe / -np.expm1(-safe * _DECILE)
        curved = np.where(g > 0, right, left)
        g = np.where(curved > 0, g, 0.0)
        unit = np.where(g != 0.0, curved, unit)
    rough = Marginals(middle, unit, g, np.zeros(d), np.ones(d))
    z = rough.apply(some)
    centre = column_quantiles(z, weight, [0.5])[0]
    return replace(rough, centre=centre, spread=positive_spread(z, weight, centre))


def positive_spread(X: Array, weight: Array, middle: Array) -> Array:
    """Return MAD x 1.48 of each column; the deviation where half of it is one value; or 1."""
    away = np.abs(X - middle)
    spread = MAD_TO_SD * column_quantiles(away, weight, [0.5])[0]
    # In units of the largest, whose square may be beyond floating point.
    largest = np.maximum(away.max(axis=0), _TINY)
    plain = largest * np.sqrt(weight @ np.square(away / largest) / weight.sum())
    spread = np.where(spread > 0.0, spread, plain)
    return np.where(spread > 0.0, spread, 1.0)


def _skewness_sd(tail: float) -> float:
    """Return sqrt(n) times the deviation of g read off two tails of a Gaussian column.

    By the delta method: g is the sum of both quantiles less twice the median, over z^2.
    """
    p = np.array([tail, 0.5, 1.0 - tail])
    z = ndtri(p)
    density = np.exp(-np.square(z) / 2.0) / np.sqrt(2.0 * np.pi)
    covariance = np.minimum.outer(p, p) * (1.0 - np.maximum.outer(p, p))
    covariance = covariance / np.outer(density, density)
    gradient = np.array([1.0, -2.0, 1.0]) / z[0] ** 2
    return float(np.sqrt(gradient @ covariance @ gradient))


@dataclass(frozen=True, slots=True, eq=False)
class Reach:
    """Beyond how far from its median a value of a column is none of it.

    Attributes
    ----------
    columns : ndarray of int
    middle, radius : ndarray of shape (columns.size,)
    """

    columns: Indices
    middle: Array
    radius: Array

    @classmethod
    def of(cls, X: Array, sample_weight: Array, columns: Indices) -> Reach:
        """Return the reach of some columns: `far` times that of most values but the median.

        Most are all but the share that may be wrong. The median itself does not count: it may be
        nearly all of a column, and the others are no outliers for that.
        """
        found = np.zeros((2, columns.size))
        for j, column in enumerate(X[:, columns].T):
            middle = weighted_quantile(column, sample_weight, [0.5])[0]
            away = np.abs(column - middle)
            others = away > 0.0
            if others.any():
                most = [1.0 - TUNING.loose_bound]
                reach = weighted_quantile(away[others], sample_weight[others], most)[0]
                found[:, j] = middle, TUNING.far * reach
        # A column of one value says nothing of another.
        seen = found[1] > 0.0
        return cls(columns[seen], *found[:, seen])

    def parts(self, X: NDArray[np.floating]) -> Array:
        """Return how far each value of the columns is from the median, in units of the reach."""
        with np.errstate(over="ignore"):
            away = np.abs(X[:, self.columns] - self.middle) / self.radius
        return np.minimum(away, INFINITE)

    def exceeded(self, X: NDArray[np.floating]) -> Array:
        """Return the largest of these of each row; above 1: beyond."""
        return np.asarray(self.parts(X).max(axis=1, initial=0.0))

    def among(self, columns: Indices, scale: Array) -> Reach:
        """Return the same of rows `scale` times as large, with columns counted among more."""
        unit = scale[self.columns]
        return replace(
            self,
            columns=columns[self.columns],
            middle=self.middle * unit,
            radius=self.radius * unit,
        )
