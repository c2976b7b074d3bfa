r"""Norms that read the entries of largest magnitude.

:math:`\|A\|_{F,k,k}` (k rows, the k largest entries in each) and :math:`\|A\|_{F,m}` (the m
largest entries anywhere), with the only top-k and the only hard threshold in the library, whose
length is :math:`\|v\|_{2,k}` of a vector.

A matrix arrives in blocks of full rows, or in tiles on and above its diagonal, where each entry
stands for two, and only what may still be among the largest is kept. Where it arrives rounded, what
is within rounding of being chosen is read again in double precision, and that decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from outweigh.forms import Form
from outweigh.protocols import Array, Indices, Maximum, MomentMatrix, Survey

Floats = NDArray[np.floating]
Blocks = Iterable[tuple[int, int, Floats]]
"""First row, first column and entries, as `MomentMatrix.blocks` yields them."""

# Rows that a survey looks into even where the form has fewer.
_LEAST_ROWS = 15
# Every so many rows are asked for the last of their largest entries; sums in float32 lose less.
_SPACED, _BOUND_ROUNDING = 32, 1e-4
# Rows read at once in double precision.
_EXACT_ROWS = 256


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
        if min(self.n_nonzero, matrix.n_features) == 1:
            # One entry: there is no need to look for rows first.
            return LargestEntries(1).maximize(matrix)
        return self._look(matrix, 0)[0]

    def survey(self, matrix: MomentMatrix, n_coordinates: int) -> Survey:
        """Return the value, and the features with most energy in its rows.

        Parameters
        ----------
        matrix : MomentMatrix
        n_coordinates : int
            About as many features. Where the form has fewer than 15 rows, up to 15 are looked into,
            and not more than this: those next in line are about as likely to hold evidence.
        """
        return _survey(*self._look(matrix, n_coordinates), n_coordinates)

    def _look(self, matrix: MomentMatrix, n_rows: int) -> tuple[Maximum, Indices, Array]:
        """Return the maximum, and up to `n_rows` rows of largest energy."""
        d = matrix.n_features
        k = min(self.n_nonzero, d)
        rounding = matrix.rounding
        wanted = min(max(k, min(_LEAST_ROWS, n_rows)), d)
        energy = row_energies(matrix.blocks(), d, k, wanted)
        if rounding > 0.0 and not np.isfinite(energy).all():
            rounding = 0.0
            energy = row_energies(_exact_blocks(matrix), d, k, wanted)
        if rounding == 0.0:
            listed = top_k_indices(_rounded(energy), wanted)
        else:
            # All rows that may be among the largest. Entries are off by the rounding, k of them by
            # sqrt(k) times as much; and the sum of their squares was itself rounded.
            length = np.sqrt(energy)
            off = np.sqrt(k) * rounding + 1e-6 * length
            cut = np.partition(length - off, d - wanted)[d - wanted]
            listed = np.flatnonzero(length + off >= cut)
        lines = matrix.rows(listed)
        cols = top_k_per_row(_rounded(lines), k)
        values = np.take_along_axis(lines, cols, axis=1)
        own = _rounded(np.einsum("ij,ij->i", values, values))
        best = top_k_indices(own, k)
        maximum = _normalised(
            d, np.repeat(listed[best], k), cols[best].ravel(), values[best].ravel()
        )
        shown = top_k_indices(own, max(min(wanted, n_rows), 0))
        return maximum, listed[shown], lines[shown]


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
        rows, cols, values = largest_entries(matrix.blocks(), d, self.n_entries, matrix.rounding)
        if matrix.rounding == 0.0:
            return _normalised(d, rows, cols, values)
        if not np.isfinite(values).all():
            return _normalised(d, *largest_entries(_exact_blocks(matrix), d, self.n_entries))
        features = np.union1d(rows, cols)
        block = matrix.restrict(features)
        rows, cols, values = largest_entries([(0, 0, block)], features.size, self.n_entries)
        return _normalised(d, features[rows], features[cols], values)

    def survey(self, matrix: MomentMatrix, n_coordinates: int) -> Survey:
        """Return the value, and the features with most energy in its largest rows."""
        maximum = self.maximize(matrix)
        form = maximum.form
        squares = np.bincount(form.rows, form.values**2, minlength=matrix.n_features)
        energy = np.asarray(squares, dtype=np.float64)
        rows = top_k_indices(energy, min(n_coordinates, int(np.count_nonzero(energy))))
        return _survey(maximum, rows, matrix.rows(rows), n_coordinates)


def _survey(maximum: Maximum, rows: Indices, values: Array, n_coordinates: int) -> Survey:
    """Return what full rows of a matrix tell about where its maximum lies."""
    energy = np.square(values).sum(axis=0)
    coordinates = np.union1d(rows, top_k_indices(energy, n_coordinates))
    own = np.zeros_like(energy)
    own[rows] = np.square(values[np.arange(rows.size), rows])
    return Survey(maximum.value, coordinates, energy - own, own, rows.size)


def _normalised(n_features: int, rows: Indices, cols: Indices, values: Array) -> Maximum:
    norm = float(np.linalg.norm(values))
    unit = values / norm if norm > 0 else values
    return Maximum(norm, Form.from_entries(n_features, rows, cols, unit), norm)


def top_k_indices(values: NDArray[np.floating], k: int) -> NDArray[np.intp]:
    """Return the indices of the `k` entries of largest magnitude, in increasing order.

    Parameters
    ----------
    values : ndarray of shape (d,)
    k : int
        How many to keep; all of them when ``k >= d``, none when ``k <= 0``.

    Returns
    -------
    ndarray of shape (min(k, d),)

    Examples
    --------
    >>> import numpy as np
    >>> top_k_indices(np.array([1.0, -3.0, 2.0]), 2)
    array([1, 2])
    """
    size = values.shape[0]
    if k <= 0:
        return np.empty(0, dtype=np.intp)
    if k >= size:
        return np.arange(size)
    return np.sort(np.argpartition(np.abs(values), size - k)[size - k :])


def top_k_per_row(block: NDArray[np.floating], k: int) -> NDArray[np.intp]:
    """Return, for each row, the column indices of its `k` entries of largest magnitude.

    Parameters
    ----------
    block : ndarray of shape (m, d)
    k : int
        At least 1; clipped to ``d``.

    Returns
    -------
    ndarray of shape (m, min(k, d))
        Unordered within a row.
    """
    size = block.shape[1]
    if k >= size:
        return np.broadcast_to(np.arange(size), block.shape)
    return np.argpartition(np.abs(block), size - k, axis=1)[:, size - k :]


def _rounded(values: Array) -> Array:
    """Return values to 1e-11 of the largest: those equal but for rounding are equal.

    Moments of whole numbers often are, and which of them is chosen must not hang on the order of
    summation.
    """
    unit = 1e-11 * float(np.abs(values).max(initial=0.0))
    return np.rint(values / unit) if 1e-290 < unit < np.inf else values


def hard_threshold(values: NDArray[np.floating], k: int) -> NDArray[np.float64]:
    """Keep the `k` entries of largest magnitude and set the others to zero.

    Examples
    --------
    >>> import numpy as np
    >>> hard_threshold(np.array([1.0, -3.0, 2.0]), 2)
    array([ 0., -3.,  2.])
    """
    kept = np.zeros(values.shape[0])
    indices = top_k_indices(values, k)
    kept[indices] = values[indices]
    return kept


def _exact_blocks(matrix: MomentMatrix) -> Iterator[tuple[int, int, Floats]]:
    """Yield all rows of a matrix in double precision, where its blocks are rounded."""
    for start in range(0, matrix.n_features, _EXACT_ROWS):
        stop = min(start + _EXACT_ROWS, matrix.n_features)
        yield start, 0, matrix.rows(np.arange(start, stop))


def row_energies(blocks: Blocks, d: int, k: int, wanted: int | None = None) -> Array:
    r"""Return, for each row, the sum of its k largest squares, shape (d,).

    Parameters
    ----------
    blocks : iterable of (first row, first column, block)
    d : int
        The dimension of the matrix.
    k : int
        At most d.
    wanted : int, optional
        So many rows of most energy are sought; for the others a bound will do that is below the
        energy of these: :math:`k t + \sum_j (s_j - t)_+` of the squares s, whatever t is, and
        equal to the sum of the k largest where t lies between the last of these and the next.
    """
    energy = np.empty(d)
    kept: Floats | None = None
    seen, cut = 0, -np.inf
    with np.errstate(over="ignore", invalid="ignore"):
        for start, column, block in blocks:
            squares = np.square(block)
            if block.shape[1] < d:
                if kept is None:
                    kept = np.zeros((d, k), dtype=np.float32)
                _keep_largest(kept[start:], squares)
                if column > start:
                    _keep_largest(kept[column:], squares.T)
                continue
            of_block = energy[start : start + len(block)]
            near: Indices | slice = slice(None)
            if seen > 0 and np.isfinite(cut):
                t = squares.dtype.type(np.median(_largest(squares[::_SPACED], k).min(axis=1)))
                beyond = squares - t
                of_block[:] = k * t + np.maximum(beyond, 0, out=beyond).sum(axis=1)
                # Not a number is not below the cut: it must be seen.
                near = np.flatnonzero(~(of_block < (1.0 - _BOUND_ROUNDING) * cut))
            of_block[near] = _largest(squares[near], k).sum(axis=1)
            seen += len(block)
            if wanted is not None and seen >= wanted:
                cut = float(np.partition(energy[:seen], seen - wanted)[seen - wanted])
    return energy if kept is None else np.asarray(kept.sum(axis=1, dtype=np.float64))


def _largest(squares: Floats, k: int) -> Floats:
    """Return the k largest values of each row, unordered."""
    width = squares.shape[1]
    if k >= width:
        return squares
    return np.partition(squares, width - k, axis=1)[:, width - k :]


def _keep_largest(kept: Floats, squares: Floats) -> None:
    """Write the largest of what was kept and of more entries, row by row, over what was kept."""
    best = kept[: squares.shape[0]]
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
    best[:] = _largest(np.concatenate([best, fresh], axis=1), k)


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
        if cut == -np.inf:
            cut = _cut(sizes, m)
        # Not a number is not below the cut: it must be seen.
        chosen = np.flatnonzero(~(sizes < cut - 2.0 * rounding))
        row, place = np.divmod(chosen, block.shape[1])
        row, place = row + start, place + column
        mirrored = column > start
        flat = np.concatenate([flat, row * d + place, *([place * d + row] if mirrored else [])])
        values = np.concatenate([values, *[entries[chosen].astype(np.float64)] * (1 + mirrored)])
        sizes = np.abs(values)
        cut = max(cut, _cut(sizes, m))
        kept = np.flatnonzero(~(sizes < cut - 2.0 * rounding))
        flat, values = flat[kept], values[kept]
    if rounding == 0.0:
        # Of those equal to the last that is chosen, as many as there is room for.
        kept = top_k_indices(values, m)
        flat, values = flat[kept], values[kept]
    return flat // d, flat % d, values


def _cut(sizes: Floats, m: int) -> float:
    """Return the m-th largest of the sizes; below all where there are no more than m."""
    if sizes.size <= m:
        return -np.inf
    return float(sizes.max() if m == 1 else np.partition(sizes, sizes.size - m)[sizes.size - m])
