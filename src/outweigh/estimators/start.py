"""The first look at X: which columns vary, in which units, about which centre."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from outweigh.estimators.preparation import Prepared, Standardizer, bounded, prepare
from outweigh.estimators.reference import whitener_on
from outweigh.protocols import Array
from outweigh.pruning import midmean, pruning_radius_sq
from outweigh.samples import Rows
from outweigh.samples.early import Early, Expect, Expected
from outweigh.samples.rows import ArrayRows, Overview
from outweigh.scaling import looks_unit_noise, plausibly_unit, robust_scales

__all__ = [
    "ROWS_FOR_ORIGIN",
    "Start",
    "look_over",
    "prepare_first",
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
# Centres of two small samples of clean Gaussian rows are apart by 1.1 times what their means are;
# outliers, of which one may have more, need room.
_SLACK = 1.5
# The largest error of some hundred robust scales off n rows, times sqrt(n).
_SCALES_OFF = 4.0
# Guessed scales that are wrong by more than this factor are no guess, nor is an origin that is
# wrong by more than this many noise units.
_FACTOR, _SHIFT = 2.0, 1.0


def look_over(rows: Rows, scales: Array, expect: Expect | None = None) -> Overview:
    """Look at all rows once, along a fixed direction in the units known so far."""
    direction = np.random.default_rng(0).standard_normal(rows.shape[1]) / scales
    return rows.overview(direction, expect)


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
    found : FoundEarly or None
        What was found of all rows by the way.
    """

    standardizer: Standardizer
    centre: Array
    first: Array
    varying: NDArray[np.intp]
    found: FoundEarly | None


@dataclass(frozen=True, slots=True, eq=False)
class FoundEarly:
    """What was found by the way, and how its units differ from the right ones.

    What was z there is (z + shift) / factor in the right units.
    """

    early: Early
    shift: Array
    factor: Array


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
    expectation = _Expectation(sample_weight, scale, given, covariance)
    seen = look_over(rows, given, expectation)
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
    found = None if seen.early is None else expectation.compared(standardizer, seen.early)
    return Start(standardizer, centre, seen.first, np.flatnonzero(seen.varies), found)


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


class _Expectation:
    """What a few rows say of the units and the centre that all of them are going to be seen in."""

    def __init__(
        self,
        sample_weight: Array,
        scale: str | Array | None,
        given: Array,
        covariance: Array | None,
    ) -> None:
        self._standardizer: Standardizer | None = None
        self._sample_weight = sample_weight
        self._scale = scale
        self._given = given
        self._covariance = covariance

    def __call__(self, some: Array, places: NDArray[np.intp]) -> Expected | None:
        """Return what will be asked of all rows, unless too little can be told from a few."""
        if not np.isfinite(some).all():
            return None
        columns = np.flatnonzero(some.max(axis=0) != some.min(axis=0))
        if columns.size == 0:
            return None
        part, weight = some[:, columns], self._sample_weight[places]
        radius_sq = pruning_radius_sq(float(self._sample_weight.sum()), columns.size)
        scales = self._given[columns]
        slack = _SLACK * math.sqrt(columns.size * (1.0 / len(part) + 1.0 / ROWS_FOR_ORIGIN))
        stand = _scales_stand(part, weight, self._scale)
        if not stand.all():
            scales = np.where(stand, 1.0, _scales_of(some, weight, columns))
            slack += math.sqrt(radius_sq) * _SCALES_OFF / math.sqrt(len(part))
        centre = midmean(part, weight)
        self._standardizer = _standardizer(columns, centre, scales, self._covariance)
        return Expected(
            self._standardizer.view,
            columns.size,
            self._standardizer.standardize(centre[None, :])[0],
            radius_sq,
            self._sample_weight,
            slack,
        )

    def compared(self, right: Standardizer, early: Early) -> FoundEarly | None:
        """Return what was found about this guess, unless the right units are quite others."""
        guess = self._standardizer
        if guess is None or not np.array_equal(guess.columns, right.columns):
            return None
        factor = right.scale / guess.scale
        shift = (guess.origin - right.origin) / guess.scale
        # Sums about a far origin lose digits, and distances in other units tell nothing.
        if factor.min() < 1.0 / _FACTOR or factor.max() > _FACTOR or np.abs(shift).max() > _SHIFT:
            return None
        if right.whitener is not None:
            # It stands between scales and samples.
            if np.any(factor != 1.0):
                return None
            shift = shift @ right.whitener
        return FoundEarly(early, shift, factor)


def prepare_first(rows: Rows, sample_weight: Array, start: Start, bound: float) -> Prepared:
    """Return the samples in units of the noise, with what was found of them by the way.

    Parameters
    ----------
    rows, sample_weight
        As for `prepare`.
    start : Start
    bound : float
        The largest contamination that rows are going to be pruned at.
    """
    standardizer, found = start.standardizer, start.found
    if found is not None:
        far = _told_apart(sample_weight, start, found, bound)
        if far is not None:
            samples = found.early.samples(standardizer.view, found.shift, found.factor)
            radius_sq = found.early.expected.radius_sq
            return Prepared(
                standardizer, start.centre, samples, radius_sq, bounded(far), outdated=True
            )
    return prepare(rows, sample_weight, standardizer, start.centre)


def _told_apart(
    sample_weight: Array, start: Start, found: FoundEarly, bound: float
) -> Array | None:
    """Return numbers that are right about which rows are beyond the squared radius.

    Distances from the expected centre, in the expected units, bound the right ones from both sides.
    The rows for which the bounds leave it open were brought home, unless they are many. None where
    they are, or where distances themselves matter because not all rows beyond may be pruned.
    """
    early, factor = found.early, found.factor
    radius = float(np.sqrt(early.expected.radius_sq))
    anchor = start.standardizer.standardize(start.centre[None, :])[0]
    away = anchor * factor - found.shift - early.expected.centre
    # With room for rounding.
    apart = float(np.linalg.norm(away)) + 1e-9 * radius
    seen = np.sqrt(early.squared_distances)
    low = np.maximum(seen - apart, 0.0) / factor.max()
    high = (seen + apart) / factor.min()
    pruned = float(sample_weight[high >= radius].sum())
    doubtful = np.flatnonzero((low <= radius) & (high >= radius))
    raw = early.raw_rows(doubtful)
    if raw is None or pruned > bound * float(sample_weight.sum()):
        return None
    far: Array = np.where(low > radius, low, high) ** 2
    exact = start.standardizer.apply(raw) - anchor
    far[doubtful] = np.einsum("ij,ij->i", exact, exact)
    return far


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
