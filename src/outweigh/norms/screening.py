"""One pass over a symmetric matrix for its largest entries: of each row, or of all.

A matrix arrives in blocks of full rows, or in tiles on and above its diagonal, where each entry
stands for two. What cannot be among the largest any more is dropped at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeGuard, cast

import numpy as np
from numpy.typing import NDArray

from outweigh.protocols import Array, MomentMatrix, ScreenedMatrix, TiledMatrix
from outweigh.selection import top_k_indices

__all__ = ["ArrayBlock", "largest_entries", "row_energies", "screened"]

Floats = NDArray[np.floating]
Indices = NDArray[np.intp]


def screened(matrix: MomentMatrix) -> tuple[MomentMatrix | TiledMatrix, float]:
    """Return what is quickest to read as a whole, and by how much its entries may be off."""
    # A check of the whole protocol takes as long as a small matrix does.
    if not hasattr(matrix, "screen"):
        return matrix, 0.0
    seen = cast(ScreenedMatrix, matrix)
    return seen.screen, seen.rounding


@dataclass(frozen=True, slots=True, eq=False)
class ArrayBlock:
    """An array as the one block of rows of a matrix."""

    array: Array

    @property
    def n_features(self) -> int:
        """Its dimension."""
        return int(self.array.shape[0])

    def row_blocks(self) -> Iterator[tuple[int, Floats]]:
        """Yield the array."""
        yield 0, self.array


def row_energies(matrix: MomentMatrix | TiledMatrix, k: int) -> tuple[Array, Array]:
    """Return, for each row, the sum of its k largest squares, and the square on the diagonal.

    Parameters
    ----------
    matrix : MomentMatrix or TiledMatrix
    k : int
        At most d.

    Returns
    -------
    energy, diagonal : ndarray of shape (d,)
    """
    diagonal = np.empty(matrix.n_features)
    with np.errstate(over="ignore", invalid="ignore"):
        if _is_tiled(matrix):
            kept = _LargestPerRow(matrix.n_features, k)
            for start, column, tile in matrix.tiles():
                squares = np.square(tile)
                kept.offer(start, squares)
                if column > start:
                    kept.offer(column, squares.T)
                else:
                    diagonal[start : start + len(tile)] = np.diagonal(squares)
            return np.asarray(kept.largest.sum(axis=1, dtype=np.float64)), diagonal
        energy = np.empty(matrix.n_features)
        for start, block in cast(MomentMatrix, matrix).row_blocks():
            rows = slice(start, start + block.shape[0])
            squares = np.square(block)
            diagonal[rows] = np.diagonal(squares, start)
            energy[rows] = _largest(squares, k).sum(axis=1)
    return energy, diagonal


def _is_tiled(matrix: MomentMatrix | TiledMatrix | ArrayBlock) -> TypeGuard[TiledMatrix]:
    return hasattr(matrix, "tiles")


def _largest(squares: Floats, k: int) -> Floats:
    """Return the k largest values of each row, unordered."""
    width = squares.shape[1]
    if k >= width:
        return squares
    return np.partition(squares, width - k, axis=1)[:, width - k :]


class _LargestPerRow:
    """The k largest squares seen so far in each of d rows."""

    def __init__(self, d: int, k: int) -> None:
        self.largest: Floats = np.zeros((d, k), dtype=np.float32)

    def offer(self, start: int, squares: Floats) -> None:
        """See more entries of the rows from `start` on."""
        rows = slice(start, start + squares.shape[0])
        best = self.largest[rows]
        k = best.shape[1]
        hits = np.ascontiguousarray(squares > best.min(axis=1)[:, None])
        counts = np.count_nonzero(hits, axis=1)
        most = int(counts.max(initial=0))
        if most == 0:
            return
        if 4 * most > squares.shape[1]:
            fresh = _largest(np.ascontiguousarray(squares), k)
        else:
            # The few that are large enough, row by row, padded with zeros.
            row, column = np.divmod(np.flatnonzero(hits), hits.shape[1])
            place = np.arange(row.size) - np.repeat(np.cumsum(counts) - counts, counts)
            fresh = np.zeros((best.shape[0], most), dtype=squares.dtype)
            fresh[row, place] = squares[row, column]
        self.largest[rows] = _largest(np.concatenate([best, fresh], axis=1), k)


def largest_entries(
    matrix: MomentMatrix | TiledMatrix | ArrayBlock, m: int, rounding: float
) -> tuple[Indices, Indices, Array]:
    """Return rows, columns and values of the m largest entries by magnitude.

    Parameters
    ----------
    matrix : MomentMatrix, TiledMatrix or ArrayBlock
    m : int
        Clipped to the number of entries.
    rounding : float
        By how much entries may be off: then all are returned that may be among the m largest.
    """
    d = matrix.n_features
    flat = np.empty(0, dtype=np.intp)
    values = np.empty(0)
    cut = -np.inf
    for start, stride, block in _entries(matrix):
        sizes = np.abs(block)
        if rounding == 0.0:
            chosen = top_k_indices(sizes, m)
        else:
            if sizes.size > m and cut == -np.inf:
                cut = float(np.partition(sizes, sizes.size - m)[sizes.size - m])
            # Not a number is not below the cut: it must be seen.
            chosen = np.flatnonzero(~(sizes < cut - 2.0 * rounding))
        row, column = np.divmod(chosen, stride[2])
        flat = np.concatenate([flat, start + row * stride[0] + column * stride[1]])
        values = np.concatenate([values, block[chosen].astype(np.float64)])
        if values.size > m:
            sizes = np.abs(values)
            if rounding == 0.0:
                kept = top_k_indices(values, m)
            else:
                cut = float(np.partition(sizes, sizes.size - m)[sizes.size - m])
                kept = np.flatnonzero(~(sizes < cut - 2.0 * rounding))
            flat, values = flat[kept], values[kept]
    return flat // d, flat % d, values


def _entries(
    matrix: MomentMatrix | TiledMatrix | ArrayBlock,
) -> Iterator[tuple[int, tuple[int, int, int], Floats]]:
    """Yield entries block by block: flat place of the first, strides and width, flat values."""
    d = matrix.n_features
    if not _is_tiled(matrix):
        for start, block in cast(MomentMatrix, matrix).row_blocks():
            yield start * d, (d, 1, d), block.reshape(-1)
        return
    for start, column, tile in matrix.tiles():
        width = tile.shape[1]
        yield start * d + column, (d, 1, width), tile.reshape(-1)
        if column > start:
            yield column * d + start, (1, d, width), tile.reshape(-1)
