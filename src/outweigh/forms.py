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

__all__ = ["Form"]

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Form:
    r"""The form :math:`Z = E + U \,\mathrm{diag}(s)\, U^\top` on :math:`\mathbb{R}^d`.

    Parameters
    ----------
    entries : scipy.sparse.csr_array of shape (d, d)
        The sparse part E; it need not be symmetric.
    directions : ndarray of shape (d, r)
        The columns U.
    strengths : ndarray of shape (r,)
        The coefficients s.

    Examples
    --------
    >>> import numpy as np
    >>> from outweigh.forms import Form
    >>> form = Form.from_entries(3, np.array([0]), np.array([2]), np.array([2.0]))
    >>> form.symmetric_product(np.ones(3))
    array([2., 0., 2.])
    """

    entries: sp.csr_array
    directions: Array
    strengths: Array

    @classmethod
    def zero(cls, n_features: int) -> Form:
        """Return the form that is zero everywhere."""
        empty = np.empty(0, dtype=np.intp)
        return cls.from_entries(n_features, empty, empty, np.empty(0))

    @classmethod
    def from_entries(
        cls, n_features: int, rows: NDArray[np.intp], cols: NDArray[np.intp], values: Array
    ) -> Form:
        """Return the form with the given entries and no low-rank part."""
        shape = (n_features, n_features)
        entries = sp.csr_array((np.asarray(values, dtype=np.float64), (rows, cols)), shape=shape)
        return cls(entries, np.empty((n_features, 0)), np.empty(0))

    @classmethod
    def from_directions(cls, directions: Array, strengths: Array) -> Form:
        """Return the low-rank form ``directions @ diag(strengths) @ directions.T``."""
        shape = (directions.shape[0], directions.shape[0])
        return cls(sp.csr_array(shape, dtype=np.float64), directions, strengths)

    @property
    def n_features(self) -> int:
        """The dimension d of the space the form acts on."""
        return int(self.directions.shape[0])

    def product(self, vectors: Array) -> Array:
        """Return Z V for V of shape (d,) or (d, m)."""
        low_rank = (self.directions * self.strengths) @ (self.directions.T @ vectors)
        return np.asarray(self.entries @ vectors + low_rank)

    def symmetric_product(self, vectors: Array) -> Array:
        """Return (Z + Z')V for V of shape (d,) or (d, m)."""
        low_rank = (self.directions * (2.0 * self.strengths)) @ (self.directions.T @ vectors)
        return np.asarray(self.entries @ vectors + self.entries.T @ vectors + low_rank)

    def without(self, basis: Array) -> Form:
        """Return Z - U (U'ZU) U' for orthonormal columns U: the form blind to those directions.

        Parameters
        ----------
        basis : ndarray of shape (d, r)
        """
        core = basis.T @ self.product(basis)
        values, vectors = np.linalg.eigh((core + core.T) / 2.0)
        return self + Form.from_directions(basis @ vectors, -values)

    def support(self) -> NDArray[np.intp]:
        """Return the coordinates that the form depends on, in increasing order."""
        used = np.zeros(self.n_features, dtype=np.bool_)
        sparse = self.entries.tocoo()
        used[sparse.row] = used[sparse.col] = True
        used |= self.directions.any(axis=1)
        return np.flatnonzero(used)

    def on(self, coordinates: NDArray[np.intp]) -> Form:
        """Return the form on the named coordinates alone; `lift` undoes it where it vanishes."""
        part = sp.csr_array(self.entries[coordinates][:, coordinates])
        return Form(part, self.directions[coordinates], self.strengths)

    def lift(self, coordinates: NDArray[np.intp], n_features: int) -> Form:
        """Return the same form on a larger space, where `coordinates` name the present axes."""
        sparse = self.entries.tocoo()
        lifted = Form.from_entries(
            n_features, coordinates[sparse.row], coordinates[sparse.col], sparse.data
        )
        directions = np.zeros((n_features, self.directions.shape[1]))
        directions[coordinates] = self.directions
        return replace(lifted, directions=directions, strengths=self.strengths)

    def to_array(self) -> Array:
        """Return the form as a d x d array; for tests and small examples."""
        low_rank = (self.directions * self.strengths) @ self.directions.T
        return np.asarray(self.entries.toarray() + low_rank)

    def __add__(self, other: Form) -> Form:
        return Form(
            self.entries + other.entries,
            np.hstack([self.directions, other.directions]),
            np.concatenate([self.strengths, other.strengths]),
        )

    def __mul__(self, factor: float) -> Form:
        return Form(self.entries * factor, self.directions, self.strengths * factor)

    __rmul__ = __mul__
