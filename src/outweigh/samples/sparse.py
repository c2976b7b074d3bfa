"""Samples held as a sparse matrix: shifted to their origin implicitly, never made dense as a whole.

A row in units of the noise is z = x / scale - origin / scale. The first part is as sparse as X and
the second is the same for every row, so means, products and second moments follow from those of
the sparse part and corrections of rank one and two.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from outweigh.forms import Form
from outweigh.protocols import Array, Indices, MomentMatrix
from outweigh.samples.chunks import GATHERED_BYTES
from outweigh.samples.dense import DenseSamples, median_kurtosis, some_columns
from outweigh.samples.matrices import AnySamples, ArrayMoment, LazyMoment

# Made dense at once: some rows, or some projections of all rows.
_SLICE_BYTES = 8 * 2**20
# Dense parts of the data may take a quarter of what all of it would, and at least so many bytes.
_ALWAYS = 16 * 2**20
_SHARE_OF_ALL = 4
# A d x d array of this many bytes is made however little there is of X.
_SMALL_MATRIX = 64 * 2**20
# A sparse product of second moments multiplies pairs of nonzeros of one row, a dense one all pairs;
# it does so this many times as slowly (measured: equal at a density of 0.07).
_SLOWER = 200
# Rows of a moment matrix multiplied at once, so that the sparse product stays small beside it.
_TILE = 512


@dataclass(frozen=True, slots=True, eq=False)
class SparseSamples(AnySamples):
    """The rows of a sparse matrix less a common shift, seen through reductions.

    Second moments are summed by sparse products where those are quicker, which is up to a density
    of about 0.07, and else over slices that are made dense one after the other.

    Parameters
    ----------
    matrix : csr_array of shape (n, d)
        float64, every place named once; never written to.
    shift : ndarray of shape (d,)
        What is subtracted from every row. It should be at most some hundred times the noise:
        products of the matrix and of the shift cancel.
    emptied : ndarray of bool, shape (n,), optional
        Rows that are zero altogether: the matrix holds none of their values, and they are not
        shifted.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> samples = SparseSamples(csr_array([[0.0, 2.0], [2.0, 0.0]]), np.array([0.0, 1.0]))
    >>> samples.mean(np.array([0.5, 0.5]))
    array([1., 0.])
    """

    matrix: Any
    shift: Array
    emptied: NDArray[np.bool_] | None = None

    @property
    def n_samples(self) -> int:
        """Number of rows n."""
        return int(self.matrix.shape[0])

    @property
    def n_features(self) -> int:
        """Number of columns d."""
        return int(self.matrix.shape[1])

    def mean(self, weights: Array) -> Array:
        """Return mu_w = X'w, for one or several weights in shape (n,) or (m, n)."""
        found = np.asarray(weights @ self.matrix)
        if not self._is_shifted:
            return found
        shifted = weights if self.emptied is None else weights[..., ~self.emptied]
        return np.asarray(found - np.multiply.outer(shifted.sum(axis=-1), self.shift))

    def moment_about(self, weights: Array, mean: Array | None, reference: float) -> MomentMatrix:
        """Return M_w - mu mu' - r I as an array, or on demand where it does not fit the budget."""
        size = max(1, self._budget // (16 * self.n_features))
        lazy = LazyMoment(self, weights, mean, reference, size)
        if 8 * self.n_features**2 > max(_SMALL_MATRIX, self._budget):
            return lazy
        return ArrayMoment.of(self._second(weights), lazy)

    def quadratic(self, form: Form, drift: Array | None = None) -> Array:
        """Return x_i'Zx_i - x_i'b for every row."""
        result = np.zeros(self.n_samples) if drift is None else -self.project(drift)
        size = max(1, _SLICE_BYTES // (8 * max(self.n_samples, 1)))
        for start in range(0, form.strengths.size, size):
            part = slice(start, start + size)
            result += self.project(form.directions[:, part]) ** 2 @ form.strengths[part]
        if form.values.size:
            support = np.union1d(form.rows, form.cols)
            entries = Form.from_entries(self.n_features, form.rows, form.cols, form.values)
            local = entries.on(support)
            for rows, block in self._on(support)._blocks():
                result[rows] += DenseSamples(block).quadratic(local)
        return result

    def project(self, vectors: Array) -> Array:
        """Return X V."""
        found = np.asarray(self.matrix @ vectors)
        if self._is_shifted:
            found -= self.shift @ vectors
            if self.emptied is not None:
                found[self.emptied] = 0.0
        return found

    def columns(self, indices: Indices) -> DenseSamples | SparseSamples:
        """Return the same rows on the named columns: dense if that is little memory."""
        found = self._on(indices)
        if 8 * self.n_samples * indices.size > self._budget:
            return found
        return DenseSamples(found._dense(slice(0, self.n_samples)))

    def without(self, rows: Indices) -> SparseSamples:
        """Return the samples with zeros in some rows."""
        emptied = np.zeros(self.n_samples, dtype=np.bool_)
        emptied[rows] = True
        counts = np.diff(self.matrix.indptr)
        left = np.repeat(~emptied, counts)
        matrix = _csr(
            self.matrix.data[left],
            self.matrix.indices[left],
            np.concatenate([[0], np.cumsum(np.where(emptied, 0, counts))]),
            self.matrix.shape,
        )
        if self.emptied is not None:
            emptied |= self.emptied
        return SparseSamples(matrix, self.shift, emptied)

    def variances(self, weights: Array) -> Array:
        """Return the weighted variance of each column."""
        return self._about(weights, self.mean(weights), (2,))[0]

    def typical_kurtosis(self, weights: Array) -> float:
        """Return the median over columns of the weighted kurtosis; 3 for Gaussian features."""
        some = self._on(some_columns(np.arange(self.n_features)))
        return median_kurtosis(*some._about(weights, some.mean(weights), (2, 4)))

    def squared_distances(self, centre: Array, near: tuple[float, Array] | None = None) -> Array:
        """Return |x_i - centre|^2 for every row."""
        del near
        centre = centre + self.shift if self._is_shifted else centre
        at = centre[self.matrix.indices]
        with np.errstate(over="ignore"):
            excess = np.square(self.matrix.data - at) - np.square(at)
            result = np.asarray(self._holding(excess).sum(axis=1)) + float(centre @ centre)
        if self.emptied is not None and self._is_shifted:
            own = centre - self.shift
            result[self.emptied] = own @ own
        return np.maximum(result, 0.0)

    def rescaled(self, factor: Array) -> SparseSamples:
        """Return the same rows with every column divided by its factor."""
        data = self.matrix.data / factor[self.matrix.indices]
        return SparseSamples(self._holding(data), self.shift / factor, self.emptied)

    def moment_rows(self, weights: Array, indices: Indices) -> Array:
        """Return the named rows of X'diag(w)X."""
        found = np.zeros((indices.size, self.n_features))
        if self._is_sparse:
            weighted = self._holding(self.matrix.data * self._of_nonzeros(weights)).T.tocsr()
            for start in range(0, indices.size, _TILE):
                tile = weighted[indices[start : start + _TILE]] @ self.matrix
                found[start : start + _TILE] = tile.toarray()
            if self._is_shifted:
                first = np.asarray(self.matrix.T @ weights)
                own = first[indices] - self._total(weights) * self.shift[indices]
                _subtract_outer(found, own, self.shift)
                _subtract_outer(found, self.shift[indices], first)
            return found
        for rows, block in self._blocks():
            part = np.take(block, indices, axis=1) * weights[rows, None]
            found += part.T @ block
        return found

    def moment_block(self, weights: Array, indices: Indices) -> Array:
        """Return the block of X'diag(w)X on the named coordinates."""
        return self._on(indices)._second(weights)

    def moment_product(self, weights: Array, vectors: Array) -> Array:
        """Return X'diag(w)X V."""
        along = self.project(vectors)
        along *= weights if along.ndim == 1 else weights[:, None]
        found = np.asarray(self.matrix.T @ along)
        if self._is_shifted:
            # Emptied rows are zero in `along`.
            found -= np.multiply.outer(self.shift, along.sum(axis=0))
        return found

    @property
    def _is_shifted(self) -> bool:
        return bool(self.shift.any())

    @property
    def _is_sparse(self) -> bool:
        """Whether sparse products of second moments are quicker than dense ones."""
        counts = np.diff(self.matrix.indptr).astype(np.float64)
        return _SLOWER * float(counts @ counts) <= self.n_samples * float(self.n_features) ** 2

    @property
    def _budget(self) -> int:
        return dense_budget(self.n_samples, self.n_features)

    def _second(self, weights: Array) -> Array:
        """Return X'diag(w)X, a new array."""
        if self._is_sparse:
            found = self.moment_rows(weights, np.arange(self.n_features))
            _symmetrize(found)
            return found
        found = np.zeros((self.n_features, self.n_features))
        for rows, block in self._blocks():
            block *= np.sqrt(weights[rows, None])
            found += block.T @ block
        return found

    def _about(self, weights: Array, centre: Array, powers: tuple[int, ...]) -> list[Array]:
        """Return the weighted powers of x - centre in every column, those of zeros all at once."""
        d = self.n_features
        each = self._of_nonzeros(weights)
        # Rows of no weight may hold values whose powers overflow.
        used = each != 0.0
        data, places, each = self.matrix.data[used], self.matrix.indices[used], each[used]
        total = self._total(weights)
        zeros = np.maximum(total - np.bincount(places, each, minlength=d), 0.0)
        zeros[np.bincount(places, minlength=d) == np.count_nonzero(weights)] = 0.0
        at = centre + self.shift
        away = data - at[places]
        return [
            np.bincount(places, each * away**power, minlength=d)
            + zeros * (-at) ** power
            + (weights.sum() - total) * (-centre) ** power
            for power in powers
        ]

    def _total(self, weights: Array) -> float:
        """Return the weight of the rows that are shifted."""
        return float(weights.sum() if self.emptied is None else weights[~self.emptied].sum())

    def _of_nonzeros(self, weights: Array) -> Array:
        return np.repeat(weights, np.diff(self.matrix.indptr))

    def _holding(self, data: Array) -> Any:
        """Return the matrix with other values in the same places."""
        return _csr(data, self.matrix.indices, self.matrix.indptr, self.matrix.shape)

    def _on(self, indices: Indices) -> SparseSamples:
        return replace(self, matrix=self.matrix[:, indices], shift=self.shift[indices])

    def _dense(self, rows: slice) -> Array:
        block = self.matrix[rows].toarray()
        if self._is_shifted:
            block -= self.shift
            if self.emptied is not None:
                block[self.emptied[rows]] = 0.0
        return np.asarray(block)

    def _blocks(self) -> Iterator[tuple[slice, Array]]:
        """Yield rows made dense, which may be written to."""
        for rows in row_slices(*self.matrix.shape):
            yield rows, self._dense(rows)


def row_slices(n: int, d: int) -> Iterator[slice]:
    """Yield runs of rows that are made dense at once.

    Examples
    --------
    >>> list(row_slices(3, 10))
    [slice(0, 3, None)]
    """
    size = max(1, _SLICE_BYTES // (8 * max(d, 1)))
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


def dense_budget(n: int, d: int) -> int:
    """Return the bytes that dense parts of n sparse rows of d columns may take."""
    return max(_ALWAYS, min(GATHERED_BYTES, 8 * n * d // _SHARE_OF_ALL))


def _csr(data: NDArray[Any], indices: NDArray[Any], indptr: NDArray[Any], shape: Any) -> Any:
    return sp.csr_array((data, indices, indptr), shape=shape)


def _subtract_outer(array: Array, left: Array, right: Array) -> None:
    """Subtract an outer product, some rows at a time."""
    for start in range(0, left.size, _TILE):
        rows = slice(start, start + _TILE)
        array[rows] -= np.multiply.outer(left[rows], right)


def _symmetrize(array: Array) -> None:
    """Copy the entries above the diagonal to their places below it, some rows at a time.

    Both were summed, in different orders; a moment matrix is symmetric to the last digit.
    """
    d = array.shape[0]
    for start in range(0, d, _TILE):
        rows = slice(start, min(start + _TILE, d))
        array[rows.stop :, rows] = array[rows, rows.stop :].T
        tile = np.triu(array[rows, rows])
        array[rows, rows] = tile + np.triu(tile, 1).T
