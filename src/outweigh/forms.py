"""Quadratic forms Z on feature space: a few entries plus a few directions, never a full array.

A norm answers with the form Z that attains it, the chain rule turns Z into a subgradient, and the
score of a new point is a sum of such forms. Each is sparse plus low rank, so evaluating x'Zx on n
samples costs n nnz(Z) or n d rank.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

# Sums of forms list their entries one after the other; past this many, equal places are added up.
_LISTED = 1 << 16
# Columns up to which a product with listed entries is quicker than making a sparse matrix of them.
_FEW_COLUMNS = 8


@dataclass(frozen=True, slots=True, eq=False)
class Form:
    r"""The form :math:`Z = E + U \,\mathrm{diag}(s)\, U^\top` on :math:`\mathbb{R}^d`.

    Parameters
    ----------
    rows, cols : ndarray of int, shape (m,)
        The places of the sparse part E, which need not be symmetric; where a place is named more
        than once its values add up.
    values : ndarray of shape (m,)
    directions : ndarray of shape (d, r)
        The columns U.
    strengths : ndarray of shape (r,)
        The coefficients s.

    Notes
    -----
    A descent makes, scales and adds up a form at every step. Plain lists of entries make that a
    matter of microseconds, which sparse matrix classes with their checks do not.

    Examples
    --------
    >>> import numpy as np
    >>> from outweigh.forms import Form
    >>> form = Form.from_entries(3, np.array([0]), np.array([2]), np.array([2.0]))
    >>> form.symmetric_product(np.ones(3))
    array([2., 0., 2.])
    """

    rows: Indices
    cols: Indices
    values: Array
    directions: Array
    strengths: Array

    @classmethod
    def zero(cls, n_features: int) -> Form:
        """Return the form that is zero everywhere."""
        empty = np.empty(0, dtype=np.intp)
        return cls.from_entries(n_features, empty, empty, np.empty(0))

    @classmethod
    def from_entries(cls, n_features: int, rows: Indices, cols: Indices, values: Array) -> Form:
        """Return the form with the given entries and no low-rank part."""
        values = np.asarray(values, dtype=np.float64)
        return cls(rows, cols, values, np.empty((n_features, 0)), np.empty(0))

    @classmethod
    def from_directions(cls, directions: Array, strengths: Array) -> Form:
        """Return the low-rank form ``directions @ diag(strengths) @ directions.T``."""
        empty = np.empty(0, dtype=np.intp)
        return cls(empty, empty, np.empty(0), directions, strengths)

    @property
    def n_features(self) -> int:
        """The dimension d of the space the form acts on."""
        return int(self.directions.shape[0])

    @property
    def is_zero(self) -> bool:
        """Whether the form has neither entries nor directions."""
        return self.values.size == 0 and self.strengths.size == 0

    @property
    def entries(self) -> sp.csr_array:
        """The sparse part as a matrix."""
        shape = (self.n_features, self.n_features)
        return sp.csr_array((self.values, (self.rows, self.cols)), shape=shape)

    def product(self, vectors: Array) -> Array:
        """Return Z V for V of shape (d,) or (d, m)."""
        low_rank = (self.directions * self.strengths) @ (self.directions.T @ vectors)
        return np.asarray(self._listed_product(self.rows, self.cols, vectors) + low_rank)

    def symmetric_product(self, vectors: Array) -> Array:
        """Return (Z + Z')V for V of shape (d,) or (d, m)."""
        low_rank = (self.directions * (2.0 * self.strengths)) @ (self.directions.T @ vectors)
        low_rank += self._listed_product(self.rows, self.cols, vectors)
        return np.asarray(low_rank + self._listed_product(self.cols, self.rows, vectors))

    def _listed_product(self, rows: Indices, cols: Indices, vectors: Array) -> Array:
        """Return E V for the entries at (rows, cols)."""
        if self.values.size == 0:
            return np.zeros(vectors.shape)
        if vectors.ndim == 1:
            summed = np.bincount(rows, self.values * vectors[cols], minlength=self.n_features)
            return np.asarray(summed, dtype=np.float64)
        if vectors.shape[1] <= _FEW_COLUMNS:
            columns = [self._listed_product(rows, cols, column) for column in vectors.T]
            return np.stack(columns, axis=1) if columns else np.zeros(vectors.shape)
        shape = (self.n_features, self.n_features)
        return np.asarray(sp.csr_array((self.values, (rows, cols)), shape=shape) @ vectors)

    def without(self, basis: Array) -> Form:
        """Return Z - U (U'ZU) U' for orthonormal columns U: the form blind to those directions.

        Parameters
        ----------
        basis : ndarray of shape (d, r)
        """
        core = basis.T @ self.product(basis)
        values, vectors = np.linalg.eigh((core + core.T) / 2.0)
        return self + Form.from_directions(basis @ vectors, -values)

    def support(self) -> Indices:
        """Return the coordinates that the form depends on, in increasing order."""
        used = np.asarray(self.directions.any(axis=1))
        used[self.rows] = used[self.cols] = True
        return np.flatnonzero(used)

    def on(self, coordinates: Indices) -> Form:
        """Return the form on the named coordinates, in increasing order, that hold its support."""
        return replace(
            self,
            rows=np.searchsorted(coordinates, self.rows),
            cols=np.searchsorted(coordinates, self.cols),
            directions=self.directions[coordinates],
        )

    def lift(self, coordinates: Indices, n_features: int) -> Form:
        """Return the same form on a larger space, where `coordinates` name the present axes."""
        directions = np.zeros((n_features, self.directions.shape[1]))
        directions[coordinates] = self.directions
        return replace(
            self,
            rows=coordinates[self.rows],
            cols=coordinates[self.cols],
            directions=directions,
        )

    def to_array(self) -> Array:
        """Return the form as a d x d array; for tests and small examples."""
        array = (self.directions * self.strengths) @ self.directions.T
        np.add.at(array, (self.rows, self.cols), self.values)
        return np.asarray(array)

    def merged(self) -> Form:
        """Return the same form with every place named once."""
        d = self.n_features
        flat = self.rows * d + self.cols
        if d * d <= 8 * flat.size:
            total = np.bincount(flat, self.values, minlength=d * d)
            flat = np.flatnonzero(total)
            values = total[flat]
        else:
            flat, place = np.unique(flat, return_inverse=True)
            values = np.bincount(place, self.values, minlength=flat.size)
        return replace(self, rows=flat // d, cols=flat % d, values=values.astype(np.float64))

    def __add__(self, other: Form) -> Form:
        total = Form(
            np.concatenate([self.rows, other.rows]),
            np.concatenate([self.cols, other.cols]),
            np.concatenate([self.values, other.values]),
            np.hstack([self.directions, other.directions]),
            np.concatenate([self.strengths, other.strengths]),
        )
        return total.merged() if total.values.size > _LISTED else total

    def __mul__(self, factor: float) -> Form:
        return replace(self, values=self.values * factor, strengths=self.strengths * factor)

    __rmul__ = __mul__
