"""Whether clean rows are uncorrelated, by a test that outliers cannot fool.

Outliers add variance along a direction, but not to the bulk along it. So an axis of the second
moments that varies more than white noise, by the edge of Marchenko and Pastur, speaks against
whiteness only if the *bulk* along it varies more too. Axes that vary less say nothing: outliers at
one point do not vary at all.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from outweigh.fit.columns import (
    MAD_TO_SD,
    RankedColumns,
    column_bulks,
    column_quantiles,
    robust_variance,
    weighted_quantile,
)
from outweigh.fit.groups import EM_STEPS, two_groups
from outweigh.fit.marginals import positive_spread
from outweigh.fit.tuning import TUNING
from outweigh.protocols import Array, Indices

# The test is made on no more than these: correlations that matter show there.
MOST_ROWS, _MOST_COLUMNS = 1000, 150
# Axes beyond the edge whose bulk is looked at.
_AXES = 8
_NOWHERE = 1e6
_TINY = 1e-300


def some_columns(count: int) -> Indices:
    """Return the columns that stand for all: half of them neighbours, the others spread evenly.

    Neighbours show blocks and series, columns far apart show factors.
    """
    if count <= _MOST_COLUMNS:
        return np.arange(count)
    half = _MOST_COLUMNS // 2
    start = (count - half) // 2
    return np.union1d(np.arange(start, start + half), np.arange(0, count, -(-count // half)))


def bulk_excess(rows: Array, weight: Array) -> float:
    """Return the largest bulk variance along any axis, in units of what white noise may have.

    Above 1 rows are correlated; at most 1 for white rows, whatever the outliers, and 0 where no
    axis is beyond the edge.

    Parameters
    ----------
    rows : ndarray of shape (n, d)
    weight : ndarray of shape (n,)
        A whole number counts as that many copies of the row.
    """
    n, d = float(weight.sum()), rows.shape[1]
    if d < 2:
        return 0.0
    few = RankedColumns(rows, weight).has_few_values()
    Z = _bulk_standardised(rows, weight, few)
    bound, last, kept = TUNING.bounded, TUNING.uncounted, _kept_of_gaussian()
    bounded = np.where(np.abs(Z) > last, 0.0, np.clip(Z, -bound, bound))
    # A rare one of few values is far out, but no outlier.
    bounded[:, few] = np.sqrt(kept) * Z[:, few]
    values, axes = np.linalg.eigh((bounded * (weight / n)[:, None]).T @ bounded)
    ratio = d / n
    positive = values[values > 1e-8 * values[-1]]
    unit = float(np.median(positive)) / _median_of_noise(ratio)
    edge = (1.0 + np.sqrt(ratio)) ** 2 * unit
    largest, error = 0.0, TUNING.white_deviations * float(np.sqrt(2.0 / n))
    for axis, value in zip(axes.T[::-1][:_AXES], values[::-1], strict=False):
        # Beyond the edge of infinitely many rows.
        if value <= edge * (1.0 + min(error, 0.1)):
            break
        variance, grouped = bulk_variance(Z @ axis, weight)
        # Outliers that overlap the bulk blur its variance; without a sign of them four deviations
        # of a variance are room enough.
        room = TUNING.correlated if grouped else min(1.0 + error, TUNING.correlated)
        largest = max(largest, variance * kept / (edge * room))
    return largest


def bulk_variance(along: Array, weight: Array) -> tuple[float, bool]:
    """Return the variance of the bulk along an axis, and whether there is any sign of two groups.

    A redescending estimate, which no far row decides; and, for groups that overlap the bulk, the
    variance within two Gaussians where they are worth their three parameters (BIC).
    """
    # In units of those that count, others may be out of range.
    along, weight = along[weight > 0.0], weight[weight > 0.0]
    found = robust_variance(along, weight)
    centre = weighted_quantile(along, weight, [0.5])[0]
    unit = MAD_TO_SD * weighted_quantile(np.abs(along - centre), weight, [0.5])[0]
    share = weight / weight.sum()
    with np.errstate(over="ignore"):
        # Where half of the rows are equal, the others are infinitely far.
        y = np.clip((along - centre) / max(unit, _TINY), -TUNING.uncounted, TUNING.uncounted)
    y -= share @ y
    whole = float(np.sqrt(share @ y**2))
    y /= max(whole, _TINY)
    low, lower, upper, high = weighted_quantile(y, weight, [0.15, 0.3, 0.7, 0.85])
    odds = np.column_stack([y < low, y < lower, y > upper, y > high]).astype(np.float64)
    _, odds, gain = two_groups(y[:, None], weight, np.ones((1, 4)), 2 * EM_STEPS, odds, move=False)
    part = np.clip(share @ odds, _TINY, 1.0)
    between = (share @ (odds * y[:, None])) ** 2 / (part * np.maximum(1.0 - part, _TINY))
    within = np.maximum(1.0 - between, 0.01) * (whole * unit) ** 2
    worth = within[gain > 1.5 * np.log(weight.sum())]
    # Three idle parameters gain one and a half nats on average (Wilks).
    return float(min(found, worth.min(initial=np.inf))), bool(gain.max() > 1.5)


def _bulk_standardised(rows: Array, weight: Array, few: NDArray[np.bool_]) -> Array:
    """Return rows about the centre of each column's bulk, in units of its deviation.

    The bulk of a column of few values is one of them: its mean and deviation instead.
    """
    middle = column_quantiles(rows, weight, [0.5])[0]
    with np.errstate(over="ignore"):
        Z = (rows - middle) / positive_spread(rows, weight, middle)
    # So far out that nothing counts them, and their squares do no harm.
    Z = np.clip(Z, -_NOWHERE, _NOWHERE)
    centre, variance = column_bulks(Z, weight)
    share = weight / weight.sum()
    centre[few] = share @ Z[:, few]
    variance[few] = np.maximum(share @ np.square(Z[:, few] - centre[few]), _TINY)
    return np.asarray((Z - centre) / np.sqrt(variance))


def _kept_of_gaussian() -> float:
    """Return the part of a Gaussian's variance that bounded entries keep."""
    bound, inner = TUNING.bounded, ndtr(TUNING.bounded)
    tails = 2.0 * bound**2 * (ndtr(TUNING.uncounted) - inner)
    density = np.exp(-0.5 * bound**2) / np.sqrt(2.0 * np.pi)
    return float(2.0 * inner - 1.0 - 2.0 * bound * density + tails)


def _median_of_noise(ratio: float) -> float:
    """Return the median of the positive eigenvalues of white noise at d/n (Marchenko, Pastur)."""
    low, high = (1.0 - np.sqrt(ratio)) ** 2, (1.0 + np.sqrt(ratio)) ** 2
    x = np.linspace(low, high, 2001)[1:-1]
    mass = np.cumsum(np.sqrt((high - x) * (x - low)) / x)
    return float(x[np.searchsorted(mass, mass[-1] / 2.0)])
