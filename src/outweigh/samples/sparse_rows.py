"""X as a scipy.sparse matrix or array, which is never made dense as a whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from outweigh.protocols import Array, Indices
from outweigh.samples.chunked import ChunkedSamples
from outweigh.samples.chunks import SlicedChunks
from outweigh.samples.kernels import Transform
from outweigh.samples.rows import Affine, Overview, Rows
from outweigh.samples.sparse import SparseSamples, dense_budget, row_slices

# Products with an origin farther out, in units of the noise, would cost second moments more than
# four of their sixteen digits.
_FAR = 100.0


@dataclass(frozen=True, slots=True, eq=False)
class SparseRows(Rows):
    """Finite rows of a sparse matrix; see `SparseRows.of`."""

    matrix: Any

    @classmethod
    def of(cls, matrix: Any) -> SparseRows:
        """Return the rows of a float64 matrix in CSR format, checked.

        Parameters
        ----------
        matrix : csr_matrix or csr_array of shape (n, d)
            Not written to: places named twice are added up in a copy.
        """
        if not matrix.has_canonical_format:
            matrix = matrix.copy()
            matrix.sum_duplicates()
        finite = np.isfinite(matrix.data)
        if not finite.all():
            place = int(np.argmin(finite))
            row = int(np.searchsorted(matrix.indptr, place, side="right")) - 1
            raise ValueError(
                f"X: holds NaN or infinity, first in row {row}, column "
                f"{int(matrix.indices[place])}; drop or impute such rows before fit"
            )
        return cls(matrix)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        n, d = self.matrix.shape
        return int(n), int(d)

    def overview(self, direction: Array) -> Overview:
        """Look at all rows once."""
        X = self.matrix
        varies = _dense_row(X.max(axis=0)) != _dense_row(X.min(axis=0))
        with np.errstate(over="ignore", invalid="ignore"):
            keys = X @ np.where(varies, direction, 0.0)
        return Overview(_dense_row(X[:1]), varies, np.asarray(keys))

    def take(self, indices: Indices | slice) -> Array:
        """Return some rows, dense."""
        return np.asarray(self.matrix[indices].toarray())

    def part(self, indices: Indices) -> SparseRows:
        """Return the rows of increasing indices alone."""
        return SparseRows(self.matrix[indices])

    def samples(
        self, transform: Transform, d: int, affine: Affine | None = None
    ) -> SparseSamples | ChunkedSamples:
        """Return the rows as samples after a transform.

        Origin and scale are applied implicitly. What is not sparse after the transform, or would
        lose digits so, is made dense a slice at a time.
        """
        if affine is not None:
            shift = affine.origin / affine.scale
            if np.all(np.abs(shift) <= _FAR):
                return SparseSamples(_divided(self.matrix, affine.columns, affine.scale), shift)
        n, width = self.shape
        slices = list(row_slices(n, width))
        chunks = SlicedChunks(
            lambda i: self.take(slices[i]),
            tuple(rows.stop - rows.start for rows in slices),
            width,
            dense_budget(n, d),
        )
        return ChunkedSamples(chunks, d, transform)


def _divided(matrix: Any, columns: Indices, scale: Array) -> Any:
    """Return the named columns divided by their scales; the matrix itself where nothing changes."""
    if columns.size != matrix.shape[1]:
        matrix = matrix[:, columns]
    if np.all(scale == 1.0):
        return matrix
    divided = matrix.copy()
    with np.errstate(over="ignore"):
        divided.data /= scale[divided.indices]
    return divided


def _dense_row(row: Any) -> Array:
    return np.asarray(row.toarray(), dtype=np.float64).ravel()
