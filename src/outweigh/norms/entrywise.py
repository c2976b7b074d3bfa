r"""Norms that read the entries of largest magnitude.

:math:`\|v\|_{2,k}` (the k largest entries of a vector), :math:`\|A\|_{F,k,k}` (k rows, the k
largest entries in each) and :math:`\|A\|_{F,m}` (the m largest entries anywhere). The matrix
arrives in blocks of rows and only what may still be among the largest is kept.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from outweigh.forms import Form
from outweigh.protocols import Array, Maximum, MomentMatrix
from outweigh.selection import top_k_indices, top_k_per_row

__all__ = ["LargestEntries", "RowwiseLargest", "VectorLargest"]


@dataclass(frozen=True, slots=True)
class VectorLargest:
    r"""The norm :math:`\|v\|_{2,k}`: the l2 norm of the k entries of largest magnitude.

    Examples
    --------
    >>> import numpy as np
    >>> VectorLargest(2).value(np.array([3.0, 1.0, -4.0]))
    5.0
    """

    n_nonzero: int

    def value(self, vector: Array) -> float:
        """Return the norm of `vector`."""
        return float(np.linalg.norm(vector[top_k_indices(vector, self.n_nonzero)]))

    def maximizer(self, vector: Array) -> Array:
        """Return the k-sparse unit vector z with <z, vector> equal to the norm."""
        indices = top_k_indices(vector, self.n_nonzero)
        sparse = np.zeros_like(vector)
        norm = np.linalg.norm(vector[indices])
        if norm > 0:
            sparse[indices] = vector[indices] / norm
        return sparse


@dataclass(frozen=True, slots=True)
class RowwiseLargest:
    r"""The norm :math:`\|A\|_{F,k,k}` of the robust sparse mean (Definition in Section 2).

    The Frobenius norm of k rows with k entries in each, chosen to be largest.

    Parameters
    ----------
    n_nonzero : int
        The k of the definition; a matrix with fewer than k rows is taken whole.

    References
    ----------
    Cheng, Diakonikolas, Ge, Gupta, Kane, Soltanolkotabi, "Outlier-Robust Sparse Estimation via
    Non-Convex Optimization", NeurIPS 2022.
    """

    n_nonzero: int

    def maximize(self, matrix: MomentMatrix) -> Maximum:
        r"""Return the value and the form :math:`A_Q / \|A_Q\|_F` on the chosen entries Q."""
        k = min(self.n_nonzero, matrix.n_features)
        kept = _RowsKept.none(k)
        for start, block in matrix.row_blocks():
            kept = kept.merged_with(_RowsKept.from_block(start, block, k), k)
        rows = np.repeat(kept.rows, k)
        return _normalised(matrix.n_features, rows, kept.cols.ravel(), kept.values.ravel())


@dataclass(frozen=True, slots=True)
class LargestEntries:
    r"""The norm :math:`\|A\|_{F,m}` of robust sparse PCA: the m entries of largest magnitude.

    With :math:`m = 2k^2` it is the objective of Algorithm 2; with :math:`m \ge d^2` it is the
    Frobenius norm.

    Parameters
    ----------
    n_entries : int
        The m of the definition; clipped to the number of entries.
    """

    n_entries: int

    def maximize(self, matrix: MomentMatrix) -> Maximum:
        r"""Return the value and the form :math:`A_Q / \|A_Q\|_F` on the chosen entries Q."""
        d = matrix.n_features
        flat = np.empty(0, dtype=np.intp)
        values = np.empty(0)
        for start, block in matrix.row_blocks():
            chosen = top_k_indices(block.reshape(-1), self.n_entries)
            flat = np.concatenate([flat, chosen + start * d])
            values = np.concatenate([values, block.reshape(-1)[chosen].astype(np.float64)])
            if flat.size > self.n_entries:
                best = top_k_indices(values, self.n_entries)
                flat, values = flat[best], values[best]
        return _normalised(d, flat // d, flat % d, values)


@dataclass(frozen=True, slots=True, eq=False)
class _RowsKept:
    """The best rows seen so far, each with its k entries of largest magnitude."""

    rows: NDArray[np.intp]
    cols: NDArray[np.intp]
    values: Array

    @classmethod
    def none(cls, k: int) -> _RowsKept:
        return cls(np.empty(0, np.intp), np.empty((0, k), np.intp), np.empty((0, k)))

    @classmethod
    def from_block(cls, start: int, block: NDArray[np.floating], k: int) -> _RowsKept:
        cols = top_k_per_row(block, k)
        values = np.take_along_axis(block, cols, axis=1)
        energy = np.einsum("ij,ij->i", values, values)
        best = top_k_indices(energy, k)
        return cls(best + start, cols[best], values[best].astype(np.float64))

    def merged_with(self, other: _RowsKept, k: int) -> _RowsKept:
        rows = np.concatenate([self.rows, other.rows])
        cols = np.concatenate([self.cols, other.cols])
        values = np.concatenate([self.values, other.values])
        if rows.size <= k:
            return _RowsKept(rows, cols, values)
        best = top_k_indices(np.einsum("ij,ij->i", values, values), k)
        return _RowsKept(rows[best], cols[best], values[best])


def _normalised(
    n_features: int, rows: NDArray[np.intp], cols: NDArray[np.intp], values: Array
) -> Maximum:
    norm = float(np.linalg.norm(values))
    unit = values / norm if norm > 0 else values
    return Maximum(norm, Form.from_entries(n_features, rows, cols, unit), norm)
