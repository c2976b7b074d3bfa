"""One pass over a symmetric matrix for its largest entries: of each row, or of all.

A matrix arrives in blocks of full rows, or in tiles on and above its diagonal, where each entry
stands for two. What cannot be among the largest any more is dropped at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from outweigh.protocols import Array, Indices, MomentMatrix
from outweigh.selection import top_k_indices

__all__ = ["exact_blocks", "largest_entries", "row_energies"]

Floats = NDArray[np.floating]
Blocks = Iterable[tuple[int, int, Floats]]
"""First row, first column and entries, as `MomentMatrix.blocks` yields them."""

_EXACT_ROWS = 256


def exact_blocks(matrix: MomentMatrix) -> Iterator[tuple[int, int, Floats]]:
    """Yield all rows of a matrix in double precision, where its blocks are rounded."""
    for start in range(0, matrix.n_features, _EXACT_ROWS):
        stop = min(start + _EXACT_ROWS, matrix.n_features)
        yield start, 0, matrix.rows(np.arange(start, stop))


def row_energies(blocks: Blocks, d: int, k: int) -> Array:
    """Return, for each row, the sum of its k largest squares, shape (d,).

    Parameters
    ----------
    blocks : iterable of (first row, first column, block)
    d : int
        The dimension of the matrix.
    k : int
        At most d.
    """
    energy = np.empty(d)
    kept: _LargestPerRow | None = None
    with np.errstate(over="ignore", invalid="ignore"):
        for start, column, block in blocks:
            squares = np.square(block)
            rows = slice(start, start + block.shape[0])
            if block.shape[1] == d:
                energy[rows] = _largest(squares, k).sum(axis=1)
                continue
            if kept is None:
                kept = _LargestPerRow(d, k)
            kept.offer(start, squares)
            if column > start:
                kept.offer(column, squares.T)
    if kept is not None:
        energy = np.asarray(kept.largest.sum(axis=1, dtype=np.float64))
    return energy


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
    blocks: Blocks, d: int, m: int, rounding: float = 0.0
) -> tuple[Indices, Indices, Array]:
    """Return rows, columns and values of the m largest entries by magnitude.

    Parameters
    ----------
    blocks : iterable of (first row, first column, block)
    d : int
        The dimension of the matrix.
    m : int
        Clipped to the number of entries.
    rounding : float, default=0.0
        By how much entries may be off: then all are returned that may be among the m largest.
    """
    flat = np.empty(0, dtype=np.intp)
    values = np.empty(0)
    cut = -np.inf
    for start, column, block in blocks:
        entries = block.reshape(-1)
        sizes = np.abs(entries)
        if rounding > 0.0 and sizes.size > m and cut == -np.inf:
            cut = _cut(sizes, m)
        chosen = _among(sizes, m, rounding, cut)
        row, place = np.divmod(chosen, block.shape[1])
        row, place = row + start, place + column
        mirrored = column > start
        flat = np.concatenate([flat, row * d + place, *([place * d + row] if mirrored else [])])
        values = np.concatenate([values, *[entries[chosen].astype(np.float64)] * (1 + mirrored)])
        if values.size > m:
            sizes = np.abs(values)
            cut = _cut(sizes, m) if rounding > 0.0 else cut
            kept = _among(sizes, m, rounding, cut)
            flat, values = flat[kept], values[kept]
    return flat // d, flat % d, values


def _cut(sizes: Floats, m: int) -> float:
    """Return the m-th largest of more than m sizes."""
    return float(np.partition(sizes, sizes.size - m)[sizes.size - m])


def _among(sizes: Floats, m: int, rounding: float, cut: float) -> Indices:
    """Return which sizes are among the m largest, or may be."""
    if rounding == 0.0:
        return top_k_indices(sizes, m) if m > 1 else np.array([np.argmax(sizes)])
    # Not a number is not below the cut: it must be seen.
    return np.flatnonzero(~(sizes < cut - 2.0 * rounding))
