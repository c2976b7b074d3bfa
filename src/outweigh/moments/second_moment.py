"""X'diag(w)X by symmetric rank updates over fixed blocks of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsyrk, ssyrk

from outweigh.protocols import Array

__all__ = ["LastSecondMoment", "second_moment"]

# Rows converted and added at once: their block stays in cache, and sums do not depend on threads.
_ROW_BLOCK = 2048
# Beyond this share of rows whose weight changed, starting anew is as cheap as an update.
_UPDATE_BELOW = 0.4

Floats = NDArray[np.floating]


def second_moment(rows: NDArray[np.float64], weights: Array, dtype: type[np.floating]) -> Floats:
    """Return X'diag(w)X for nonnegative weights, as a symmetric C-ordered array of `dtype`."""
    total = _empty(rows.shape[1], dtype)
    used = np.flatnonzero(weights)
    _add_weighted(total, rows, used, np.sqrt(weights[used]), 1.0)
    return _mirrored(total)


@dataclass(slots=True, eq=False)
class LastSecondMoment:
    """The second moment of the last weights, from which that of similar weights follows cheaply.

    Most rows keep a common multiple of their old weight, so
    M_w = a M_old + sum over the other rows of (w_i - a w_old_i) x_i x_i'.
    """

    weights: Array | None = None
    matrix: Floats | None = None

    def updated(
        self, rows: NDArray[np.float64], weights: Array, dtype: type[np.floating]
    ) -> Floats:
        """Return X'diag(w)X, a new array, and remember it for the next call."""
        if self.weights is None or self.matrix is None or self.matrix.dtype != dtype:
            return self._remember(weights, second_moment(rows, weights, dtype))
        factor = _common_factor(weights, self.weights)
        change = weights - factor * self.weights
        moved = np.flatnonzero(np.abs(change) > 1e-12 * weights.max())
        if moved.size > _UPDATE_BELOW * weights.size:
            return self._remember(weights, second_moment(rows, weights, dtype))
        # In place: what is returned is a copy, so no third array of its size is needed.
        self.matrix *= dtype(factor)
        total = self.matrix.T
        for sign in (1.0, -1.0):
            part = moved[sign * change[moved] > 0]
            _add_weighted(total, rows, part, np.sqrt(sign * change[part]), sign)
        return self._remember(weights, _mirrored(total))

    def _remember(self, weights: Array, matrix: Floats) -> Floats:
        self.weights, self.matrix = weights.copy(), matrix
        return matrix.copy()


def _common_factor(weights: Array, old: Array) -> float:
    """Return the multiple of its old weight that the typical row now has."""
    positive = old > 0
    return float(np.median(weights[positive] / old[positive])) if positive.any() else 1.0


def _empty(d: int, dtype: type[np.floating]) -> Floats:
    return np.zeros((d, d), dtype=dtype, order="F")


def _add_weighted(
    total: Floats, rows: NDArray[np.float64], used: NDArray[np.intp], root: Array, sign: float
) -> None:
    """Add sign * sum root_i^2 x_i x_i' to the upper triangle of a Fortran-ordered array."""
    update: Any = ssyrk if total.dtype == np.float32 else dsyrk
    everything = used.size == rows.shape[0]
    for start in range(0, used.size, _ROW_BLOCK):
        chosen = slice(start, start + _ROW_BLOCK)
        block = rows[chosen] if everything else rows[used[chosen]]
        scaled = np.multiply(block, root[chosen, None], dtype=total.dtype, casting="same_kind")
        # The transpose of a C-ordered block is read by BLAS without a copy; so is the total.
        update(sign, scaled.T, beta=1.0, c=total, overwrite_c=1)


def _mirrored(upper: Floats, block: int = 256) -> Floats:
    """Return the C-ordered symmetric array of which a Fortran-ordered upper triangle is given."""
    array = upper.T
    size = array.shape[0]
    for start in range(0, size, block):
        stop = min(start + block, size)
        diagonal = array[start:stop, start:stop]
        diagonal[:] = np.tril(diagonal) + np.tril(diagonal, -1).T
        array[start:stop, stop:] = array[stop:, start:stop].T
    return array
