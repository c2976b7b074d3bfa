"""Moment matrices held as an array, or computed a block of rows at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from outweigh.protocols import Array, Indices, MomentMatrix, Reference

__all__ = [
    "ArrayMoment",
    "BlockedMoment",
    "apply_reference",
    "as_array",
    "reference_block",
    "reference_diagonal",
    "restrict_reference",
    "subtract_reference",
]


_BLOCK_ROWS = 256


@dataclass(frozen=True, slots=True, eq=False)
class ArrayMoment:
    """A moment matrix small enough to hold.

    Parameters
    ----------
    array : ndarray of shape (d, d)
        Symmetric, float32 or float64.
    """

    array: NDArray[np.floating]

    @property
    def n_features(self) -> int:
        """Its dimension d."""
        return int(self.array.shape[0])

    def diagonal(self) -> NDArray[np.floating]:
        """Return the diagonal."""
        return np.diagonal(self.array)

    def row_blocks(self) -> Iterator[tuple[int, NDArray[np.floating]]]:
        """Yield blocks of rows small enough for what a norm computes beside them."""
        for start in range(0, self.n_features, _BLOCK_ROWS):
            yield start, self.array[start : start + _BLOCK_ROWS]

    def rows(self, indices: Indices) -> NDArray[np.floating]:
        """Return the named full rows."""
        return self.array[indices]

    def product(self, vectors: Array) -> Array:
        """Return A V, in the precision of the array."""
        # Else a vector in double would turn the whole array into doubles first.
        return (self.array @ vectors.astype(self.array.dtype, copy=False)).astype(np.float64)

    def restrict(self, indices: Indices) -> Array:
        """Return the block on the named coordinates."""
        if _is_everything(indices, self.n_features):
            return self.array.astype(np.float64)
        return self.array[np.ix_(indices, indices)].astype(np.float64, copy=False)


@dataclass(frozen=True, slots=True, eq=False)
class BlockedMoment:
    """A moment matrix X'diag(w)X - mu mu' - R computed on demand; no d x d array exists.

    Parameters
    ----------
    rows_of_x : ndarray of shape (n, d)
    weights : ndarray of shape (n,)
    mean : ndarray of shape (d,) or None
        Subtracted as mu mu' when given.
    reference : float or ndarray
    block_size : int
        Rows of the matrix computed at once.
    """

    rows_of_x: NDArray[np.floating]
    weights: Array
    mean: Array | None
    reference: Reference
    block_size: int

    @property
    def n_features(self) -> int:
        """Its dimension d."""
        return int(self.rows_of_x.shape[1])

    def diagonal(self) -> NDArray[np.floating]:
        """Return the diagonal."""
        values = np.einsum("i,ij,ij->j", self.weights, self.rows_of_x, self.rows_of_x)
        if self.mean is not None:
            values = values - self.mean**2
        return np.asarray(values - reference_diagonal(self.reference, self.n_features))

    def row_blocks(self) -> Iterator[tuple[int, NDArray[np.floating]]]:
        """Yield blocks of `block_size` rows."""
        for start in range(0, self.n_features, self.block_size):
            stop = min(start + self.block_size, self.n_features)
            yield start, self.rows(np.arange(start, stop))

    def rows(self, indices: Indices) -> NDArray[np.floating]:
        """Return the named full rows."""
        weighted = np.take(self.rows_of_x, indices, axis=1)
        weighted *= self.weights.astype(self.rows_of_x.dtype)[:, None]
        block = weighted.T @ self.rows_of_x
        if self.mean is not None:
            block -= np.outer(self.mean[indices], self.mean).astype(block.dtype)
        subtract_reference(block, self.reference, indices)
        return np.asarray(block)

    def product(self, vectors: Array) -> Array:
        """Return A V without forming A."""
        inner = self.rows_of_x @ vectors
        scale = self.weights if inner.ndim == 1 else self.weights[:, None]
        result = self.rows_of_x.T @ (scale * inner)
        if self.mean is not None:
            result = result - np.multiply.outer(self.mean, self.mean @ vectors)
        return np.asarray(result - apply_reference(self.reference, vectors), dtype=np.float64)

    def restrict(self, indices: Indices) -> Array:
        """Return the block on the named coordinates."""
        part = np.take(self.rows_of_x, indices, axis=1) * np.sqrt(self.weights)[:, None]
        block = part.T @ part
        if self.mean is not None:
            block -= np.outer(self.mean[indices], self.mean[indices])
        return np.asarray(block - reference_block(self.reference, indices))


def as_array(matrix: MomentMatrix) -> Array:
    """Return the whole of a matrix that is not needed again: the array may be its own."""
    if isinstance(matrix, ArrayMoment):
        return matrix.array.astype(np.float64, copy=False)
    return matrix.restrict(np.arange(matrix.n_features))


def _is_everything(indices: Indices, n_features: int) -> bool:
    """Whether the indices name all coordinates in order."""
    return indices.size == n_features and bool(np.all(indices == np.arange(n_features)))


def reference_block(reference: Reference, indices: Indices) -> Array:
    """Return R restricted to the named coordinates, as an array."""
    if np.ndim(reference) == 2:
        return np.asarray(reference)[np.ix_(indices, indices)]
    return np.diag(np.broadcast_to(restrict_reference(reference, indices), (len(indices),)))


def restrict_reference(reference: Reference, indices: Indices) -> Reference:
    """Return R restricted to the named coordinates, in the same kind (scalar, diagonal, matrix)."""
    if np.ndim(reference) == 0:
        return reference
    array = np.asarray(reference)
    return array[indices] if array.ndim == 1 else array[np.ix_(indices, indices)]


def apply_reference(reference: Reference, vectors: Array) -> Array:
    """Return R V for V of shape (d,) or (d, m)."""
    if np.ndim(reference) == 2:
        return np.asarray(reference @ vectors)
    diagonal = np.broadcast_to(reference, (vectors.shape[0],))
    return np.asarray((diagonal * vectors.T).T)


def subtract_reference(block: NDArray[np.floating], reference: Reference, indices: Indices) -> None:
    """Subtract the named rows of R from `block` in place."""
    if np.ndim(reference) == 2:
        block -= np.asarray(reference)[indices].astype(block.dtype)
    else:
        diagonal = np.broadcast_to(restrict_reference(reference, indices), (len(indices),))
        block[np.arange(len(indices)), indices] -= diagonal


def reference_diagonal(reference: Reference, n_features: int) -> Array:
    """Return the diagonal of R."""
    if np.ndim(reference) == 2:
        return np.diagonal(np.asarray(reference))
    return np.broadcast_to(np.asarray(reference, dtype=np.float64), (n_features,))
