"""Moment matrices seen twice: all of them in single precision, what matters in double."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from outweigh.protocols import Array, Indices, MomentMatrix, Reference, TiledMatrix
from outweigh.samples.matrices import apply_reference, subtract_reference
from outweigh.samples.second_moment import LastSecondMoment

__all__ = ["ScreenedMoment", "SharedMoment", "TiledMoment", "deflated"]

_TILE = 1024
_BLOCK_ROWS = 256


@dataclass(frozen=True, slots=True, eq=False)
class ScreenedMoment:
    """A matrix with a rounded copy that is quick to read as a whole.

    A norm looks for its entries in `screen`, whose entries are off by at most `rounding`, and reads
    off the matrix itself, in double precision, those that may be among the ones it wants. So
    rounding never decides. All methods but `row_blocks` are exact.

    Parameters
    ----------
    screen : MomentMatrix or TiledMatrix
        In single precision.
    exact : MomentMatrix
        The same matrix in double precision, computed on demand.
    rounding : float
        By how much an entry of `screen` may be off.
    """

    screen: MomentMatrix | TiledMatrix
    exact: MomentMatrix
    rounding: float

    @property
    def n_features(self) -> int:
        """Its dimension d."""
        return self.exact.n_features

    def diagonal(self) -> NDArray[np.floating]:
        """Return the diagonal."""
        return self.exact.diagonal()

    def row_blocks(self) -> Iterator[tuple[int, NDArray[np.floating]]]:
        """Yield blocks of exact rows, which costs a pass."""
        return self.exact.row_blocks()

    def rows(self, indices: Indices) -> NDArray[np.floating]:
        """Return the named full rows."""
        return self.exact.rows(indices)

    def product(self, vectors: Array) -> Array:
        """Return A V."""
        return self.exact.product(vectors)

    def restrict(self, indices: Indices) -> Array:
        """Return the block on the named coordinates."""
        return self.exact.restrict(indices)


@dataclass(frozen=True, slots=True, eq=False)
class SharedMoment:
    """M_w - mu mu' - R by blocks of rows, M_w being shared with what remembers it.

    Parameters
    ----------
    source : LastSecondMoment
        Its matrix is M_w until it goes on to other weights; then this one refuses to be read.
    mean : ndarray of shape (d,) or None
    reference : float or ndarray
    """

    source: LastSecondMoment
    mean: Array | None
    reference: Reference
    version: int

    @property
    def n_features(self) -> int:
        """Its dimension d."""
        return int(self._second.shape[0])

    @property
    def _second(self) -> NDArray[np.floating]:
        if self.source.version != self.version or self.source.matrix is None:
            raise RuntimeError("a screen must be read before that of other weights is asked for")
        return self.source.matrix

    def diagonal(self) -> NDArray[np.floating]:
        """Return the diagonal."""
        blocks = [np.diagonal(block, start) for start, block in self.row_blocks()]
        return np.concatenate(blocks)

    def row_blocks(self) -> Iterator[tuple[int, NDArray[np.floating]]]:
        """Yield blocks of rows, computed in cache."""
        for start in range(0, self.n_features, _BLOCK_ROWS):
            stop = min(start + _BLOCK_ROWS, self.n_features)
            yield start, self.rows(np.arange(start, stop))

    def rows(self, indices: Indices) -> NDArray[np.floating]:
        """Return the named full rows."""
        block = self._second[indices]
        if self.mean is not None:
            short = self.mean.astype(block.dtype)
            block -= short[indices, None] * short
        subtract_reference(block, self.reference, indices)
        return block

    def product(self, vectors: Array) -> Array:
        """Return A V, in the precision of M_w."""
        result = self._second @ vectors.astype(self._second.dtype, copy=False)
        result = result.astype(np.float64)
        if self.mean is not None:
            result -= np.multiply.outer(self.mean, self.mean @ vectors)
        return result - apply_reference(self.reference, vectors)

    def restrict(self, indices: Indices) -> Array:
        """Return the block on the named coordinates."""
        return self.rows(indices)[:, indices].astype(np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class TiledMoment:
    """Y'Y - R in square tiles on and above the diagonal; no d x d array exists.

    Parameters
    ----------
    root : ndarray of shape (n, d)
        The rows Y, centred if they are to be and scaled by the roots of their weights.
    reference : float or ndarray
        The reference R.
    tile : int
        Rows and columns of a tile.
    """

    root: NDArray[np.floating]
    reference: Reference
    tile: int = _TILE

    @property
    def n_features(self) -> int:
        """Its dimension d."""
        return int(self.root.shape[1])

    def tiles(self) -> Iterator[tuple[int, int, NDArray[np.floating]]]:
        """Yield (first row, first column, tile), first row <= first column; overwritten."""
        d = self.n_features
        for start in range(0, d, self.tile):
            stop = min(start + self.tile, d)
            # A copy in order: it is multiplied with every strip to the right of it.
            left = np.array(self.root[:, start:stop].T, order="C")
            indices = np.arange(start, stop)
            for column in range(start, d, self.tile):
                end = min(column + self.tile, d)
                block = left @ self.root[:, column:end]
                if np.ndim(self.reference) == 2:
                    block -= np.asarray(self.reference)[start:stop, column:end]
                elif column == start:
                    subtract_reference(block, _on(self.reference, indices), indices - start)
                yield start, column, block


@dataclass(frozen=True, slots=True, eq=False)
class _Deflated:
    """A - U C U' for orthonormal columns U and C = U'AU."""

    matrix: MomentMatrix
    basis: Array
    core: Array

    @property
    def n_features(self) -> int:
        return self.matrix.n_features

    def diagonal(self) -> NDArray[np.floating]:
        taken = np.einsum("ij,ij->i", self.basis @ self.core, self.basis)
        return np.asarray(self.matrix.diagonal() - taken)

    def row_blocks(self) -> Iterator[tuple[int, NDArray[np.floating]]]:
        for start, block in self.matrix.row_blocks():
            yield start, self._taken(slice(start, start + block.shape[0]), block)

    def rows(self, indices: Indices) -> NDArray[np.floating]:
        return self._taken(indices, self.matrix.rows(indices))

    def _taken(self, indices: Indices | slice, rows: NDArray[np.floating]) -> NDArray[np.floating]:
        taken = self.basis[indices] @ self.core @ self.basis.T
        return np.asarray(rows - taken.astype(rows.dtype))

    def product(self, vectors: Array) -> Array:
        return self.matrix.product(vectors) - self.basis @ (self.core @ (self.basis.T @ vectors))

    def restrict(self, indices: Indices) -> Array:
        part = self.basis[indices]
        return self.matrix.restrict(indices) - part @ self.core @ part.T


@dataclass(frozen=True, slots=True, eq=False)
class _DeflatedTiles:
    """The same in tiles."""

    matrix: TiledMatrix
    basis: Array
    core: Array

    @property
    def n_features(self) -> int:
        return self.matrix.n_features

    def tiles(self) -> Iterator[tuple[int, int, NDArray[np.floating]]]:
        for start, column, block in self.matrix.tiles():
            left = self.basis[start : start + block.shape[0]]
            right = self.basis[column : column + block.shape[1]]
            yield start, column, block - (left @ self.core @ right.T).astype(block.dtype)


def deflated(matrix: MomentMatrix, basis: Array) -> MomentMatrix:
    """Return A - U (U'AU) U' for orthonormal columns U, without forming it.

    Parameters
    ----------
    matrix : MomentMatrix
        The matrix A.
    basis : ndarray of shape (d, r)
        The columns U.

    Examples
    --------
    >>> import numpy as np
    >>> from outweigh.samples import ArrayMoment
    >>> A = ArrayMoment(np.array([[2.0, 1.0], [1.0, 3.0]]))
    >>> deflated(A, np.array([[1.0], [0.0]])).restrict(np.arange(2))
    array([[0., 1.],
           [1., 3.]])
    """
    core = basis.T @ matrix.product(basis)
    core = (core + core.T) / 2.0
    if not isinstance(matrix, ScreenedMoment):
        return _Deflated(matrix, basis, core)
    screen: MomentMatrix | TiledMatrix
    if isinstance(matrix.screen, TiledMatrix):
        screen = _DeflatedTiles(matrix.screen, basis, core)
    else:
        screen = _Deflated(matrix.screen, basis, core)
    return ScreenedMoment(screen, _Deflated(matrix.exact, basis, core), matrix.rounding)


def _on(reference: Reference, indices: Indices) -> Reference:
    return reference if np.ndim(reference) == 0 else np.asarray(reference)[indices]
