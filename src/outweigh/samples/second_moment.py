"""X'diag(w)X by symmetric products over fixed blocks of rows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from outweigh.protocols import Array

__all__ = [
    "Change",
    "LastSecondMoment",
    "SecondMoments",
    "block_rows",
    "change_between",
    "second_moment",
]

# Rows scaled and multiplied at once, or as many as the product has if that is more: the block then
# takes no more memory than the product. Sums over fixed blocks do not depend on threads.
_ROW_BLOCK = 2048
# Rows of so few values that many of them stay in cache are multiplied together.
_VALUES_IN_CACHE = 1 << 17
# Below this share of rows with a weight, gathering them costs less than multiplying zeros.
_GATHER_BELOW = 0.7
# Beyond this share of rows whose weight changed, starting anew is as cheap as an update.
_UPDATE_BELOW = 0.5
# Columns multiplied at once where a second array of the size of the product would be wasteful.
_TILE = 1024
# Weights this close, relative to the largest, have the same moments to the last digit.
_EQUAL = 1e-14
# Updates after which a sum is made anew, so that their rounding does not pile up.
_UPDATES_IN_A_ROW = 16

Floats = NDArray[np.floating]
Change = tuple[float, Array, NDArray[np.bool_]]
"""A factor, the change beyond that multiple of the old weights, and the rows that have any."""


def second_moment(rows: NDArray[np.float64], weights: Array, dtype: type[np.floating]) -> Floats:
    """Return X'diag(w)X for nonnegative weights, as a symmetric C-ordered array of `dtype`."""
    return _weighted_sum(rows, weights, dtype)


@dataclass(slots=True, eq=False)
class LastSecondMoment:
    """The second moment of the last weights, from which that of similar weights follows cheaply.

    Most rows keep a common multiple of their old weight, so
    M_w = a M_old + sum over the other rows of (w_i - a w_old_i) x_i x_i'.
    """

    weights: Array | None = None
    matrix: Floats | None = None
    updates: int = 0
    version: int = 0
    missed: bool = False

    def keeps_from(self, weights: Array, dtype: type[np.floating]) -> bool:
        """Whether to keep the matrix and sum these weights apart: the first time it is no help.

        The second time in a row, it is better replaced.
        """
        helps = self.matrix is None or self.change_to(weights, dtype) is not None
        self.missed = not helps and not self.missed and self.updates < _UPDATES_IN_A_ROW
        return self.missed

    def holds(self, weights: Array) -> bool:
        """Whether the matrix is that of these weights."""
        if self.weights is None or self.weights.size != weights.size:
            return False
        return bool(np.abs(weights - self.weights).max() <= _EQUAL * weights.max())

    def change_to(self, weights: Array, dtype: type[np.floating]) -> Change | None:
        """Return what changes with the weights; None where a new sum costs less."""
        if (
            self.weights is None
            or self.matrix is None
            or self.matrix.dtype != dtype
            or self.updates >= _UPDATES_IN_A_ROW
        ):
            return None
        change = change_between(weights, self.weights)
        few = np.count_nonzero(change[2]) <= _UPDATE_BELOW * weights.size
        return change if few else None

    def shared(self, rows: NDArray[np.float64], weights: Array, dtype: type[np.floating]) -> Floats:
        """Return the remembered X'diag(w)X itself: not to be written to, and gone at `version` + 1.

        A matrix of many features is not held twice.
        """
        change = self.change_to(weights, dtype)
        if change is None:
            return self.anew(rows, weights, dtype)
        return self.apply(rows, weights, change)

    def apply(self, rows: NDArray[np.float64], weights: Array, change: Change) -> Floats:
        """Go on to other weights by what changes with them, and return the remembered matrix."""
        assert self.matrix is not None
        assert self.weights is not None
        self.version += 1
        factor, moves, moved = change
        dtype = self.matrix.dtype.type
        self.matrix *= dtype(factor)
        for sign in (1.0, -1.0):
            part = np.where(moved & (sign * moves > 0), np.abs(moves), 0.0)
            if part.any():
                _weighted_sum(rows, part, dtype, into=self.matrix, sign=sign)
        # Rows that count as unmoved are so to 1e-12; what is remembered is what was summed.
        self.weights = np.where(moved, weights, factor * self.weights)
        self.updates += 1
        return self.matrix

    def anew(self, rows: NDArray[np.float64], weights: Array, dtype: type[np.floating]) -> Floats:
        """Sum for other weights from nothing, and return the remembered matrix."""
        self.version += 1
        self.matrix = None
        self.matrix = second_moment(rows, weights, dtype)
        self.weights, self.updates = weights.copy(), 0
        return self.matrix


@dataclass(slots=True, eq=False)
class SecondMoments:
    """The second moments of the first weights and of the last, each array handed out a copy.

    Descents start from the same weights over and over; those after them are close to the last.
    """

    first: LastSecondMoment = field(default_factory=LastSecondMoment)
    last: LastSecondMoment = field(default_factory=LastSecondMoment)

    def find(self, weights: Array) -> Floats | None:
        """Return X'diag(w)X if it is known."""
        for known in (self.last, self.first):
            if known.matrix is not None and known.holds(weights):
                return known.matrix.copy()
        return None

    def get(self, rows: NDArray[np.float64], weights: Array) -> Floats:
        """Return X'diag(w)X in float64, and remember it."""
        if 2 * np.count_nonzero(weights) < weights.size:
            # Few rows are summed quickly, and tell little about the weights to come.
            return second_moment(rows, weights, np.float64)
        found = self.find(weights)
        if found is not None:
            return found
        if self.first.matrix is None:
            return self.first.shared(rows, weights, np.float64).copy()
        change = self.last.change_to(weights, np.float64)
        if change is None:
            change = self.first.change_to(weights, np.float64)
            if change is None:
                return self.last.anew(rows, weights, np.float64).copy()
            self.last = replace(self.first, matrix=self.first.matrix.copy())
        return self.last.apply(rows, weights, change).copy()


def block_rows(n: int, d: int) -> int:
    """Return how many of n rows of d columns are scaled and multiplied at once."""
    return min(max(_ROW_BLOCK, d, _VALUES_IN_CACHE // max(d, 1)), max(n, 1))


def change_between(weights: Array, old: Array) -> Change:
    """Return a factor, the change beyond a multiple of the old weights, and where there is any."""
    positive = old > 0
    # The multiple of its old weight that the typical row now has.
    factor = float(np.median(weights[positive] / old[positive])) if positive.any() else 1.0
    change = weights - factor * old
    return factor, change, np.abs(change) > 1e-12 * weights.max()


def _weighted_sum(
    rows: NDArray[np.float64],
    weights: Array,
    dtype: type[np.floating],
    into: Floats | None = None,
    sign: float = 1.0,
) -> Floats:
    """Return X'diag(w)X for nonnegative weights, or add it to an array with a sign."""
    d = rows.shape[1]
    root = np.sqrt(weights)
    used = np.flatnonzero(root)
    gather = used.size < _GATHER_BELOW * root.size
    count = used.size if gather else root.size
    size = block_rows(count, d)
    scaled = np.empty((size, d), dtype=dtype)
    for start in range(0, count, size):
        chosen = used[start : start + size] if gather else slice(start, min(start + size, count))
        block = rows[chosen]
        part = scaled[: block.shape[0]]
        # In double, then rounded: a huge value without weight must give 0, not inf times 0.
        np.multiply(block, root[chosen, None], out=part, dtype=np.float64, casting="same_kind")
        if into is None:
            # NumPy knows a product of an array with its own transpose: half the multiplications.
            into = part.T @ part
        else:
            _add_product(into, part, sign)
    return np.zeros((d, d), dtype=dtype) if into is None else into


def _add_product(total: Floats, part: Floats, sign: float) -> None:
    """Add sign * part' part to a symmetric array, by tiles on and above the diagonal."""
    d = total.shape[0]
    for start in range(0, d, _TILE):
        rows = slice(start, min(start + _TILE, d))
        for column in range(start, d, _TILE):
            columns = slice(column, min(column + _TILE, d))
            tile = part[:, rows].T @ part[:, columns]
            if sign < 0:
                np.negative(tile, out=tile)
            total[rows, columns] += tile
            if column > start:
                total[columns, rows] += tile.T
