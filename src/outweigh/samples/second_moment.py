"""X'diag(w)X by symmetric products over fixed blocks of rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from outweigh.protocols import Array

__all__ = [
    "Change",
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
# Beyond this share of rows whose weight changed, starting anew is as cheap as a change.
_CHANGE_BELOW = 0.5
# Columns multiplied at once where a second array of the size of the product would be wasteful.
_TILE = 1024
# Weights this close, relative to the largest, have the same moments to the last digit.
_EQUAL = 1e-14
# Changes after which a sum is made anew, so that their rounding does not pile up.
_CHANGES_IN_A_ROW = 16

Floats = NDArray[np.floating]
Change = tuple[float, Array, NDArray[np.bool_]]
"""A factor, the change beyond that multiple of the old weights, and the rows that have any."""


def second_moment(rows: NDArray[np.float64], weights: Array, dtype: type[np.floating]) -> Floats:
    """Return X'diag(w)X for nonnegative weights, as a symmetric C-ordered array of `dtype`."""
    return _weighted_sum(rows, weights, dtype)


@dataclass(frozen=True, slots=True, eq=False)
class _Known:
    """The second moment at some weights, and how many changes it has gone through."""

    weights: Array
    matrix: Floats
    changes: int = 0

    def holds(self, weights: Array) -> bool:
        """Whether the matrix is that of these weights."""
        return bool(np.abs(weights - self.weights).max() <= _EQUAL * weights.max())

    def changed_to(self, weights: Array, rows: NDArray[np.float64]) -> _Known | None:
        """Return the second moment of other weights; None where a new sum costs less.

        Most rows keep a common multiple of their old weight, so
        M_w = a M_old + sum over the other rows of (w_i - a w_old_i) x_i x_i'.
        """
        if self.changes >= _CHANGES_IN_A_ROW:
            return None
        factor, moves, moved = change_between(weights, self.weights)
        if np.count_nonzero(moved) > _CHANGE_BELOW * weights.size:
            return None
        dtype = self.matrix.dtype.type
        matrix = self.matrix * dtype(factor)
        for sign in (1.0, -1.0):
            part = np.where(moved & (sign * moves > 0), np.abs(moves), 0.0)
            if part.any():
                _weighted_sum(rows, part, dtype, into=matrix, sign=sign)
        # Rows that count as unmoved are so to 1e-12; what is remembered is what was summed.
        return _Known(np.where(moved, weights, factor * self.weights), matrix, self.changes + 1)


@dataclass(slots=True, eq=False)
class SecondMoments:
    """The second moments of the first weights and of the last, in one precision.

    Descents start from the same weights over and over; those after them are close to the last.
    Arrays that are handed out are shared, and never written to.
    """

    dtype: type[np.floating]
    _first: _Known | None = None
    _last: _Known | None = None

    def find(self, weights: Array) -> Floats | None:
        """Return X'diag(w)X if it is known."""
        for known in (self._last, self._first):
            if known is not None and known.holds(weights):
                return known.matrix
        return None

    def get(self, rows: NDArray[np.float64], weights: Array) -> Floats:
        """Return X'diag(w)X, and remember it."""
        if 2 * np.count_nonzero(weights) < weights.size:
            # Few rows are summed quickly, and tell little about the weights to come.
            return second_moment(rows, weights, self.dtype)
        found = self.find(weights)
        if found is not None:
            return found
        for known in (self._last, self._first):
            changed = None if known is None else known.changed_to(weights, rows)
            if changed is not None:
                self._last = changed
                return changed.matrix
        # What it replaces is let go before the new sum takes its memory.
        self._last = None
        new = _Known(weights.copy(), second_moment(rows, weights, self.dtype))
        if self._first is None:
            self._first = new
        else:
            self._last = new
        return new.matrix


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
