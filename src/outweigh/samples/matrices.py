"""Moment matrices: held as an array, or computed on demand where there are too many features.

Both are X'diag(w)X - mu mu' - R for weights w of sum one. See `MomentMatrix` in
`outweigh.protocols`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from outweigh.protocols import Array, Indices, MomentMatrix, Reference

__all__ = [
    "ArrayMoment",
    "Deflated",
    "LazyMoment",
    "apply_reference",
    "as_array",
    "restrict_reference",
    "subtract_reference",
]

Block = tuple[int, int, NDArray[np.floating]]

_BLOCK_ROWS = 256


@dataclass(frozen=True, slots=True, eq=False)
class ArrayMoment:
    """A moment matrix small enough to hold.

    Parameters
    ----------
    array : ndarray of shape (d, d)
        Symmetric, float64.
    source : MomentMatrix, optional
        The same matrix on demand, which may know a factor of it.
    """

    array: Array
    source: MomentMatrix | None = None

    @classmethod
    def of(
        cls,
        array: Array,
        mean: Array | None,
        reference: Reference,
        source: MomentMatrix | None = None,
    ) -> ArrayMoment:
        """Return M - mu mu' - R, made of M in place."""
        if mean is not None:
            # Some rows at a time: an outer product as a whole would be another such array.
            for start in range(0, mean.size, _BLOCK_ROWS):
                rows = slice(start, start + _BLOCK_ROWS)
                array[rows] -= mean[rows, None] * mean
        subtract_reference(array, reference, np.arange(array.shape[0]))
        return cls(array, source)

    @property
    def n_features(self) -> int:
        """Its dimension d."""
        return int(self.array.shape[0])

    @property
    def rounding(self) -> float:
        """None: the array is exact."""
        return 0.0

    def blocks(self) -> Iterator[Block]:
        """Yield rows of the array, few enough for what a norm computes beside them."""
        for start in range(0, self.n_features, _BLOCK_ROWS):
            yield start, 0, self.array[start : start + _BLOCK_ROWS]

    def rows(self, indices: Indices) -> Array:
        """Return the named full rows."""
        return self.array[indices]

    def product(self, vectors: Array) -> Array:
        """Return A V."""
        return np.asarray(self.array @ vectors)

    def restrict(self, indices: Indices) -> Array:
        """Return the block on the named coordinates, a new array."""
        if np.array_equal(indices, np.arange(self.n_features)):
            return self.array.copy()
        return self.array[np.ix_(indices, indices)]

    def factor(self) -> tuple[Array, float] | None:
        """Return (Y, c) with A = Y'Y - c I and fewer rows in Y than features, if known."""
        return None if self.source is None else self.source.factor()


class MomentSource(Protocol):
    """Samples that add up parts of X'diag(w)X."""

    @property
    def n_features(self) -> int:
        """Number of columns d."""
        ...

    def moment_rows(self, weights: Array, indices: Indices) -> Array:
        """Return the named rows of X'diag(w)X, a new array."""
        ...

    def moment_block(self, weights: Array, indices: Indices) -> Array:
        """Return the block of X'diag(w)X on the named coordinates, a new array."""
        ...

    def moment_product(self, weights: Array, vectors: Array) -> Array:
        """Return X'diag(w)X V."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class LazyMoment:
    """X'diag(w)X - mu mu' - R computed on demand; no d x d array in double precision exists.

    Parameters
    ----------
    source : MomentSource
    weights : ndarray of shape (n,)
    mean : ndarray of shape (d,) or None
        Subtracted as mu mu' when given.
    reference : float or ndarray
    block_size : int
        Rows of the matrix computed at once.
    rounded : callable, optional
        Yields X'diag(w)X - mu mu' in rounded blocks; they are exact without it.
    rounding : float
        By how much their entries may be off.
    root : callable, optional
        Makes rows Y, fewer than features, with X'diag(w)X - mu mu' = Y'Y.
    """

    source: MomentSource
    weights: Array
    mean: Array | None
    reference: Reference
    block_size: int
    rounded: Callable[[], Iterator[Block]] | None = None
    rounding: float = 0.0
    root: Callable[[], Array] | None = None

    @property
    def n_features(self) -> int:
        """Its dimension d."""
        return self.source.n_features

    def blocks(self) -> Iterator[Block]:
        """Yield rounded blocks, or exact rows, a pass for each block where they are in chunks."""
        if self.rounded is not None:
            for row, column, block in self.rounded():
                rows = np.arange(row, row + block.shape[0])
                subtract_reference(block, self.reference, rows, column)
                yield row, column, block
            return
        for start in range(0, self.n_features, self.block_size):
            stop = min(start + self.block_size, self.n_features)
            yield start, 0, self.rows(np.arange(start, stop))

    def rows(self, indices: Indices) -> Array:
        """Return the named full rows."""
        block = self.source.moment_rows(self.weights, indices)
        if self.mean is not None:
            block -= np.multiply.outer(self.mean[indices], self.mean)
        subtract_reference(block, self.reference, indices)
        return block

    def product(self, vectors: Array) -> Array:
        """Return A V without forming A."""
        result = self.source.moment_product(self.weights, vectors)
        if self.mean is not None:
            result = result - np.multiply.outer(self.mean, self.mean @ vectors)
        return np.asarray(result - apply_reference(self.reference, vectors))

    def restrict(self, indices: Indices) -> Array:
        """Return the block on the named coordinates."""
        block = self.source.moment_block(self.weights, indices)
        mean = None if self.mean is None else self.mean[indices]
        return ArrayMoment.of(block, mean, restrict_reference(self.reference, indices)).array

    def factor(self) -> tuple[Array, float] | None:
        """Return (Y, c) with A = Y'Y - c I and fewer rows in Y than features, if known."""
        if self.root is None or np.ndim(self.reference) > 0:
            return None
        return self.root(), float(self.reference)


@dataclass(frozen=True, slots=True, eq=False)
class Deflated:
    """A - U C U' for orthonormal columns U and C = U'AU, without forming it.

    Examples
    --------
    >>> import numpy as np
    >>> A = ArrayMoment(np.array([[2.0, 1.0], [1.0, 3.0]]))
    >>> Deflated.of(A, np.array([[1.0], [0.0]])).restrict(np.arange(2))
    array([[0., 1.],
           [1., 3.]])
    """

    matrix: MomentMatrix
    basis: Array
    core: Array

    @classmethod
    def of(cls, matrix: MomentMatrix, basis: Array) -> Deflated:
        """Return A - U (U'AU) U', given A and U of shape (d, r)."""
        core = basis.T @ matrix.product(basis)
        return cls(matrix, basis, (core + core.T) / 2.0)

    @property
    def n_features(self) -> int:
        """Its dimension d."""
        return self.matrix.n_features

    @property
    def rounding(self) -> float:
        """By how much entries of `blocks` may be off: as those of A."""
        return self.matrix.rounding

    def blocks(self) -> Iterator[Block]:
        """Yield the blocks that A comes in."""
        for row, column, block in self.matrix.blocks():
            left = self.basis[row : row + block.shape[0]]
            right = self.basis[column : column + block.shape[1]]
            yield row, column, block - (left @ self.core @ right.T).astype(block.dtype)

    def rows(self, indices: Indices) -> Array:
        """Return the named full rows."""
        return self.matrix.rows(indices) - self.basis[indices] @ self.core @ self.basis.T

    def product(self, vectors: Array) -> Array:
        """Return the product with V."""
        return self.matrix.product(vectors) - self.basis @ (self.core @ (self.basis.T @ vectors))

    def restrict(self, indices: Indices) -> Array:
        """Return the block on the named coordinates."""
        part = self.basis[indices]
        return self.matrix.restrict(indices) - part @ self.core @ part.T

    def factor(self) -> tuple[Array, float] | None:
        """Return None: what is taken out has no place in a factor."""
        return None


def as_array(matrix: MomentMatrix) -> Array:
    """Return the whole of a matrix, a new array."""
    return matrix.restrict(np.arange(matrix.n_features))


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


def subtract_reference(
    block: NDArray[np.floating], reference: Reference, rows: Indices, column: int = 0
) -> None:
    """Subtract R from a block of a matrix in place: the named rows, from a column on."""
    width = block.shape[1]
    if np.ndim(reference) == 2:
        block -= np.asarray(reference)[rows, column : column + width].astype(block.dtype)
        return
    places = rows - column
    here = np.flatnonzero((places >= 0) & (places < width))
    block[here, places[here]] -= restrict_reference(reference, rows[here])
