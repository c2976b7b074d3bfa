"""The first look at X: which columns vary, in which units, about which centre."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from outweigh.estimators.preparation import Standardizer
from outweigh.estimators.reference import whitener_on
from outweigh.protocols import Array
from outweigh.pruning import midmean
from outweigh.samples import Rows
from outweigh.samples.rows import ArrayRows, Overview
from outweigh.scaling import looks_unit_noise, plausibly_unit, robust_scales

__all__ = [
    "ROWS_FOR_ORIGIN",
    "Start",
    "look_over",
    "rows_for_scale",
    "spread_rows",
    "start_on",
]

ROWS_FOR_ORIGIN = 500
"""The origin, and whether the noise is of unit size, are read off this many rows."""

# Scales that are divided by are read off all rows unless there are more values than this.
_VALUES_FOR_SCALE = 10_000_000
_VALUES_AT_ONCE = 1_000_000
# A centre within this many noise units of zero needs no shift of the origin.
_NEAR_ORIGIN = 10.0


def look_over(rows: Rows, scales: Array) -> Overview:
    """Look at all rows once, along a fixed direction in the units known so far."""
    direction = np.random.default_rng(0).standard_normal(rows.shape[1]) / scales
    return rows.overview(direction)


@dataclass(frozen=True, slots=True, eq=False)
class Start:
    """What is known of the rows before any weights are.

    Attributes
    ----------
    standardizer : Standardizer
    centre : ndarray of shape (len(standardizer.columns),)
        In the units of X.
    first : ndarray of shape (d,)
        The first row, which holds the constants.
    varying : ndarray of int
        The columns that vary.
    """

    standardizer: Standardizer
    centre: Array
    first: Array
    varying: NDArray[np.intp]


def start_on(
    rows: Rows,
    sample_weight: Array,
    scale: str | Array | None,
    covariance: Array | None = None,
) -> Start:
    """Look at all rows for the first time.

    Parameters
    ----------
    rows : Rows
        n rows of d columns.
    sample_weight : ndarray of shape (n,)
        Positive.
    scale : {"auto", "mad"}, array of shape (d,) or None
    covariance : ndarray of shape (d, d), optional
        Of clean rows, where it is known.
    """
    given = np.ones(rows.shape[1])
    if scale is not None and not isinstance(scale, str):
        given = np.asarray(scale, dtype=np.float64)
    seen = look_over(rows, given)
    # Where nothing varies, one column stands in for all: its mean is its constant.
    columns = np.flatnonzero(seen.varies) if seen.varies.any() else np.zeros(1, dtype=np.intp)
    scales = given[columns]
    part, weight = spread_rows(rows, sample_weight, seen.keys, ROWS_FOR_ORIGIN)
    part = part if columns.size == part.shape[1] else part[:, columns]
    kept = _scales_stand(part, weight, scale)
    if not kept.all():
        count = rows_for_scale(columns.size)
        more, more_weight = spread_rows(rows, sample_weight, seen.keys, count)
        scales = np.where(kept, 1.0, _scales_of(more, more_weight, columns))
    centre = midmean(part, weight) if columns.size else np.empty(0)
    standardizer = _standardizer(columns, centre, scales, covariance)
    return Start(standardizer, centre, seen.first, np.flatnonzero(seen.varies))


def _standardizer(
    columns: NDArray[np.intp], centre: Array, scales: Array, covariance: Array | None
) -> Standardizer:
    # Second moments do not depend on the origin: a near one is not worth a copy of X.
    near = bool(np.all(np.abs(centre) <= _NEAR_ORIGIN * scales))
    whitener = None if covariance is None else whitener_on(covariance, columns)
    return Standardizer(columns, np.zeros_like(centre) if near else centre, scales, whitener)


def _scales_stand(part: Array, weight: Array, scale: str | Array | None) -> NDArray[np.bool_]:
    """Return the columns whose scale is not to be read off the rows."""
    if not isinstance(scale, str):
        return np.ones(part.shape[1], dtype=np.bool_)
    if scale != "auto":
        return np.zeros(part.shape[1], dtype=np.bool_)
    rough = robust_scales(part, weight)
    # Columns that may well be of unit noise are left alone, if nine in ten are.
    return plausibly_unit(*rough) & looks_unit_noise(*rough)


def rows_for_scale(n_columns: int) -> int:
    """Return how many rows the scales of so many columns are read off."""
    return max(ROWS_FOR_ORIGIN, _VALUES_FOR_SCALE // max(n_columns, 1))


def spread_rows(rows: Rows, sample_weight: Array, keys: Array, count: int) -> tuple[Array, Array]:
    """Return about `count` rows spread evenly over the data, with their weights.

    They are evenly spaced in the order of a fixed projection in the units known so far, so the
    choice depends neither on the order of the rows nor on where the origin is, nor on units that
    were given; and integer weights choose as repeated rows do.

    Parameters
    ----------
    rows : Rows
    sample_weight : ndarray of shape (n,)
    keys : ndarray of shape (n,)
        The projection, see `look_over`.
    count : int
    """
    total = float(sample_weight.sum())
    if total <= count:
        if isinstance(rows, ArrayRows):
            return rows.array, sample_weight
        return rows.take(np.arange(rows.shape[0])), sample_weight
    # Huge values make projections infinite; their order among themselves is no matter.
    order = np.argsort(np.nan_to_num(keys, nan=np.inf), kind="stable")
    cumulative = np.cumsum(sample_weight[order])
    places = (np.arange(count) + 0.5) * (total / count)
    chosen, times = np.unique(np.searchsorted(cumulative, places), return_counts=True)
    return rows.take(order[chosen]), times.astype(np.float64)


def _scales_of(rows: Array, sample_weight: Array, columns: NDArray[np.intp]) -> Array:
    """Return positive robust scales of the named columns, some of them at a time.

    Sorted copies of all rows at once would take several times their memory.
    """
    scales = np.empty(columns.size)
    size = max(1, _VALUES_AT_ONCE // max(rows.shape[0], 1))
    for start in range(0, columns.size, size):
        part = rows[:, columns[start : start + size]]
        found = robust_scales(part, sample_weight)
        scales[start : start + size] = _positive(*found, part)
    return scales


def _positive(by_deviation: Array, by_deciles: Array, part: Array) -> Array:
    """Return the first positive scale of each column: deviations, deciles, the spread, or one."""
    with np.errstate(over="ignore"):
        spread = part.max(axis=0) - part.min(axis=0)
    fallback = np.where(by_deciles > 0, by_deciles, np.where(spread > 0, spread, 1.0))
    return np.where(by_deviation > 0, by_deviation, np.minimum(fallback, np.finfo(float).max))
