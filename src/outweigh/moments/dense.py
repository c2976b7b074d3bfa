"""Samples held in memory as a NumPy array."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from outweigh.forms import Form
from outweigh.moments.matrices import ArrayMoment, BlockedMoment, subtract_reference
from outweigh.moments.second_moment import LastSecondMoment, second_moment
from outweigh.protocols import Array, Indices, MomentMatrix, Reference

__all__ = ["DenseSamples"]

# Above this many features a moment matrix is computed in blocks of rows instead of being held.
_HELD_LIMIT = 6000
_BLOCK_SIZE = 512
# Rows summed at once where a temporary of the size of X would be wasteful.
_ROW_CHUNK = 512


@dataclass(frozen=True, slots=True, eq=False)
class DenseSamples:
    """The rows of an (n, d) float64 array, seen through reductions.

    Parameters
    ----------
    array : ndarray of shape (n, d)
        Not copied and never written to.

    Examples
    --------
    >>> import numpy as np
    >>> samples = DenseSamples(np.array([[0.0, 2.0], [2.0, 0.0]]))
    >>> samples.mean(np.array([0.5, 0.5]))
    array([1., 1.])
    >>> samples.moment(np.array([0.5, 0.5]), centred=True).restrict(np.arange(2))
    array([[ 1., -1.],
           [-1.,  1.]])
    """

    array: NDArray[np.float64]
    _last: LastSecondMoment = field(default_factory=LastSecondMoment, init=False, repr=False)

    @property
    def n_samples(self) -> int:
        """Number of rows n."""
        return int(self.array.shape[0])

    @property
    def n_features(self) -> int:
        """Number of columns d."""
        return int(self.array.shape[1])

    def mean(self, weights: Array) -> Array:
        """Return mu_w = X'w."""
        return np.asarray(weights @ self.array)

    def moment(
        self,
        weights: Array,
        *,
        centred: bool,
        reference: Reference = 0.0,
        mean: Array | None = None,
        single_precision: bool = False,
    ) -> MomentMatrix:
        """Return S_w - R (centred) or M_w - R as a moment matrix.

        Parameters
        ----------
        weights : ndarray of shape (n,)
        centred : bool
            Subtract mu_w mu_w'.
        reference : float or ndarray
            The reference R.
        mean : ndarray of shape (d,), optional
            mu_w when it is known already.
        single_precision : bool, default=False
            Sum in float32: half the time, good to about 1e-6 of the largest entry.
        """
        if centred and mean is None:
            mean = self.mean(weights)
        mean = mean if centred else None
        if self.n_features > _HELD_LIMIT:
            rows = self.array.astype(np.float32) if single_precision else self.array
            return BlockedMoment(rows, weights, mean, reference, _BLOCK_SIZE)
        if single_precision:
            array = self._last.updated(self.array, weights, np.float32)
        else:
            array = second_moment(self.array, weights, np.float64)
        if mean is not None:
            short = mean.astype(array.dtype)
            for start in range(0, self.n_features, _ROW_CHUNK):
                array[start : start + _ROW_CHUNK] -= short[start : start + _ROW_CHUNK, None] * short
        subtract_reference(array, reference, np.arange(self.n_features))
        return ArrayMoment(array)

    def quadratic(self, form: Form) -> Array:
        """Return x_i'Zx_i for every row."""
        result = np.zeros(self.n_samples)
        if form.strengths.size:
            result += (self.array @ form.directions) ** 2 @ form.strengths
        if form.values.size:
            result += self._sparse_quadratic(form)
        return result

    def _sparse_quadratic(self, form: Form) -> Array:
        d = self.n_features
        in_rows, in_cols = np.zeros((2, d), dtype=np.bool_)
        in_rows[form.rows] = True
        in_cols[form.cols] = True
        rows, cols = np.flatnonzero(in_rows), np.flatnonzero(in_cols)
        # A dense product wastes multiplications on zeros but runs a hundred times faster each.
        if rows.size * cols.size > 100 * form.values.size:
            product = np.asarray((form.entries @ self.array.T).T)
            return np.asarray(np.einsum("ij,ij->i", product, self.array))
        few, many = (form.rows, form.cols) if rows.size <= cols.size else (form.cols, form.rows)
        if rows.size > cols.size:
            rows, cols = cols, rows
        # Gathering columns costs more than multiplying by some zeros.
        whole = 4 * cols.size > d
        block = np.zeros((d if whole else cols.size, rows.size))
        place = many if whole else np.searchsorted(cols, many)
        np.add.at(block, (place, np.searchsorted(rows, few)), form.values)
        left = self.array if whole else np.take(self.array, cols, axis=1)
        right = self.array if rows.size == d else np.take(self.array, rows, axis=1)
        return np.asarray(np.einsum("ij,ij->i", left @ block, right))

    def project(self, vectors: Array) -> Array:
        """Return X V."""
        return np.asarray(self.array @ vectors)

    def columns(self, indices: Indices) -> DenseSamples:
        """Return the same rows on the named columns, gathered."""
        # Three times as quick as indexing, whose result is in Fortran order.
        return DenseSamples(np.take(self.array, indices, axis=1))

    def variances(self, weights: Array) -> Array:
        """Return the weighted variance of each column."""
        mean = self.mean(weights)
        total = np.zeros(self.n_features)
        for start in range(0, self.n_samples, _ROW_CHUNK):
            part = self.array[start : start + _ROW_CHUNK] - mean
            total += weights[start : start + _ROW_CHUNK] @ (part * part)
        return total

    def typical_kurtosis(self, weights: Array) -> float:
        """Return the median over columns of the weighted kurtosis; 3 for Gaussian features.

        Read off some 64 evenly spaced columns.
        """
        part = self.array[:, :: max(1, self.n_features // 64)]
        squares = (part - weights @ part) ** 2
        second, fourth = weights @ squares, weights @ (squares * squares)
        varying = second > 0
        return float(np.median(fourth[varying] / second[varying] ** 2)) if varying.any() else 3.0

    def squared_distances(self, centre: Array) -> Array:
        """Return |x_i - centre|^2 for every row."""
        result = np.empty(self.n_samples)
        with np.errstate(over="ignore"):
            for start in range(0, self.n_samples, _ROW_CHUNK):
                part = self.array[start : start + _ROW_CHUNK] - centre
                np.einsum("ij,ij->i", part, part, out=result[start : start + _ROW_CHUNK])
        return result
