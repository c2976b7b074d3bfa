"""A moment matrix too large to hold, each part of it computed by a pass over chunked rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from outweigh.protocols import Array, Indices, Reference
from outweigh.samples.matrices import (
    apply_reference,
    reference_block,
    reference_diagonal,
    subtract_reference,
)

__all__ = ["ChunkedMoment"]


class MomentPasses(Protocol):
    """Passes over rows that add up parts of X'diag(w)X."""

    @property
    def n_features(self) -> int:
        """Number of columns d."""
        ...

    def moment_rows(self, weights: Array, indices: Indices) -> Array:
        """Return the named rows of X'diag(w)X."""
        ...

    def moment_block(self, weights: Array, indices: Indices) -> Array:
        """Return the block of X'diag(w)X on the named coordinates."""
        ...

    def moment_product(self, weights: Array, vectors: Array) -> Array:
        """Return X'diag(w)X V."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class ChunkedMoment:
    """X'diag(w)X - mu mu' - R for features so many that no d x d array may exist.

    Parameters
    ----------
    passes : MomentPasses
    weights : ndarray of shape (n,)
    mean : ndarray of shape (d,) or None
        Subtracted as mu mu' when given.
    reference : float or ndarray
    squares : ndarray of shape (d,)
        The diagonal of X'diag(w)X.
    block_size : int
        Rows of the matrix computed in one pass.
    """

    passes: MomentPasses
    weights: Array
    mean: Array | None
    reference: Reference
    squares: Array
    block_size: int

    @property
    def n_features(self) -> int:
        """Its dimension d."""
        return self.passes.n_features

    def diagonal(self) -> NDArray[np.floating]:
        """Return the diagonal."""
        values = self.squares if self.mean is None else self.squares - self.mean**2
        return np.asarray(values - reference_diagonal(self.reference, self.n_features))

    def row_blocks(self) -> Iterator[tuple[int, NDArray[np.floating]]]:
        """Yield blocks of rows that fit the budget; a pass each."""
        for start in range(0, self.n_features, self.block_size):
            stop = min(start + self.block_size, self.n_features)
            yield start, self.rows(np.arange(start, stop))

    def rows(self, indices: Indices) -> NDArray[np.floating]:
        """Return the named full rows."""
        block = self.passes.moment_rows(self.weights, indices)
        if self.mean is not None:
            block -= np.multiply.outer(self.mean[indices], self.mean)
        subtract_reference(block, self.reference, indices)
        return block

    def product(self, vectors: Array) -> Array:
        """Return A V without forming A."""
        result = self.passes.moment_product(self.weights, vectors)
        if self.mean is not None:
            result = result - np.multiply.outer(self.mean, self.mean @ vectors)
        return np.asarray(result - apply_reference(self.reference, vectors))

    def restrict(self, indices: Indices) -> Array:
        """Return the block on the named coordinates."""
        block = self.passes.moment_block(self.weights, indices)
        if self.mean is not None:
            block -= np.outer(self.mean[indices], self.mean[indices])
        return np.asarray(block - reference_block(self.reference, indices))
