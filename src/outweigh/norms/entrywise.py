r"""Norms that read the entries of largest magnitude.

:math:`\|v\|_{2,k}` (the k largest entries of a vector), :math:`\|A\|_{F,k,k}` (k rows, the k
largest entries in each) and :math:`\|A\|_{F,m}` (the m largest entries anywhere). The matrix
arrives in blocks and only what may still be among the largest is kept. Where it arrives rounded,
what is within rounding of being chosen is read again in double precision, and that decides.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from outweigh.forms import Form, sum_at
from outweigh.norms.screening import exact_blocks, largest_entries, row_energies
from outweigh.protocols import Array, Indices, Maximum, MomentMatrix, Survey
from outweigh.selection import top_k_indices, top_k_per_row

__all__ = ["LargestEntries", "RowwiseLargest", "VectorLargest"]

# Rows that a survey looks into even where the form has fewer.
_LEAST_ROWS = 15


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
        if min(self.n_nonzero, matrix.n_features) == 1:
            # One entry: there is no need to look for rows first.
            return LargestEntries(1).maximize(matrix)
        return self._look(matrix, 0)[0]

    def survey(self, matrix: MomentMatrix, n_coordinates: int) -> Survey:
        """Return the value, its form, and the features with most energy in its rows.

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
        energy = row_energies(matrix.blocks(), d, k)
        if rounding > 0.0 and not np.isfinite(energy).all():
            rounding = 0.0
            energy = row_energies(exact_blocks(matrix), d, k)
        wanted = min(max(k, min(_LEAST_ROWS, n_rows)), d)
        listed = _within_rounding(energy, wanted, k, rounding)
        lines = matrix.rows(listed)
        cols = top_k_per_row(lines, k)
        values = np.take_along_axis(lines, cols, axis=1)
        own = np.einsum("ij,ij->i", values, values)
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
            return _normalised(d, *largest_entries(exact_blocks(matrix), d, self.n_entries))
        features = np.union1d(rows, cols)
        block = matrix.restrict(features)
        rows, cols, values = largest_entries([(0, 0, block)], features.size, self.n_entries)
        return _normalised(d, features[rows], features[cols], values)

    def survey(self, matrix: MomentMatrix, n_coordinates: int) -> Survey:
        """Return the value, its form, and the features with most energy in its largest rows."""
        maximum = self.maximize(matrix)
        form = maximum.form
        energy = sum_at(form.rows, form.values**2, matrix.n_features)
        rows = top_k_indices(energy, min(n_coordinates, int(np.count_nonzero(energy))))
        return _survey(maximum, rows, matrix.rows(rows), n_coordinates)


def _survey(maximum: Maximum, rows: Indices, values: Array, n_coordinates: int) -> Survey:
    """Return what full rows of a matrix tell about where its maximum lies."""
    energy = np.square(values).sum(axis=0)
    coordinates = np.union1d(rows, top_k_indices(energy, n_coordinates))
    own = np.zeros_like(energy)
    own[rows] = np.square(values[np.arange(rows.size), rows])
    form = maximum.form
    return Survey(maximum.value, form, coordinates, energy - own, own, rows.size)


def _within_rounding(energy: Array, wanted: int, k: int, rounding: float) -> Indices:
    """Return the rows that may be among the `wanted` of largest energy."""
    if rounding == 0.0:
        return top_k_indices(energy, wanted)
    length = np.sqrt(energy)
    off = _length_off(length, k, rounding)
    cut = np.partition(length - off, length.size - wanted)[length.size - wanted]
    return np.flatnonzero(length + off >= cut)


def _length_off(length: Array, k: int, rounding: float) -> Array:
    """Return by how much the length of k rounded entries may be off.

    By sqrt(k) times as much as an entry; and the sum of their squares was itself rounded.
    """
    return np.asarray(np.sqrt(k) * rounding + 1e-6 * length)


def _normalised(n_features: int, rows: Indices, cols: Indices, values: Array) -> Maximum:
    norm = float(np.linalg.norm(values))
    unit = values / norm if norm > 0 else values
    return Maximum(norm, Form.from_entries(n_features, rows, cols, unit), norm)
