"""Moment matrices: held as an array, or computed on demand where there are too many features.

Both are X'diag(w)X - mu mu' - r I for weights w of sum one. See `MomentMatrix` in
`outweigh.protocols`. Those held are sums of symmetric products over fixed blocks of rows, or follow
from sums that are remembered.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from outweigh.protocols import Array, Indices, MomentMatrix, Samples

Floats = NDArray[np.floating]
Block = tuple[int, int, Floats]
Change = tuple[float, Array, NDArray[np.bool_]]
"""A factor, the change beyond that multiple of the old weights, and the rows that have any."""

_BLOCK_ROWS = 256
# Rows scaled and multiplied at once, or as many as the product has if that is more: the block then
# takes no more memory than the product. Sums over fixed blocks do not depend on threads.
_ROW_BLOCK = 2048
# Rows of so few values that many of them stay in cache are multiplied together.
_VALUES_IN_CACHE = 1 << 17
# Below this share of rows with a weight, gathering them costs less than multiplying zeros.
_GATHER_BELOW = 0.7
CHANGE_BELOW = 0.5
"""Beyond this share of rows whose weight changed, starting anew is as cheap as a change."""
# Columns multiplied at once where a second array of the size of the product would be wasteful.
_TILE = 1024
# Weights this close, relative to the largest, have the same moments to the last digit.
_EQUAL = 1e-14


@dataclass(frozen=True, slots=True, eq=False)
class ArrayMoment:
    """A moment matrix small enough to hold.

    Parameters
    ----------
    array : ndarray of shape (d, d)
        Symmetric, float64.
    source : MomentMatrix, optional
        The same matrix on demand, which may know a factor of it.
    rounding : float
        By how much an entry may be off: the array is exact.
    """

    array: Array
    source: MomentMatrix | None = None
    rounding: float = 0.0

    @classmethod
    def of(cls, second: Array, source: LazyMoment) -> ArrayMoment:
        """Return M - mu mu' - r I, made of M in place, for the mean and reference of `source`."""
        return cls(_deviation(second, source.mean, source.reference), source)

    @property
    def n_features(self) -> int:
        """Its dimension d."""
        return int(self.array.shape[0])

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


@dataclass(frozen=True, slots=True, eq=False)
class LazyMoment:
    """X'diag(w)X - mu mu' - r I computed on demand; no d x d array in double precision exists.

    Parameters
    ----------
    source : Samples
    weights : ndarray of shape (n,)
    mean : ndarray of shape (d,) or None
        Subtracted as mu mu' when given.
    reference : float
        The r.
    block_size : int
        Rows of the matrix computed at once.
    rounded : callable, optional
        Yields X'diag(w)X - mu mu' in rounded blocks; they are exact without it.
    rounding : float
        By how much their entries may be off.
    root : callable, optional
        Makes rows Y, fewer than features, with X'diag(w)X - mu mu' = Y'Y.
    """

    source: Samples
    weights: Array
    mean: Array | None
    reference: float
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
                if column == row or block.shape[1] == self.n_features:
                    places = np.arange(block.shape[0])
                    block[places, places + row - column] -= self.reference
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
        block[np.arange(indices.size), indices] -= self.reference
        return block

    def product(self, vectors: Array) -> Array:
        """Return A V without forming A."""
        result = self.source.moment_product(self.weights, vectors)
        if self.mean is not None:
            result = result - np.multiply.outer(self.mean, self.mean @ vectors)
        return np.asarray(result - self.reference * vectors)

    def restrict(self, indices: Indices) -> Array:
        """Return the block on the named coordinates."""
        block = self.source.moment_block(self.weights, indices)
        mean = None if self.mean is None else self.mean[indices]
        return _deviation(block, mean, self.reference)

    def factor(self) -> tuple[Array, float] | None:
        """Return (Y, c) with A = Y'Y - c I and fewer rows in Y than features, if known."""
        return None if self.root is None else (self.root(), self.reference)


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


class AnySamples(Samples):
    """What samples of every kind have in common."""

    def moment(self, weights: Array, *, centred: bool, reference: float = 0.0) -> MomentMatrix:
        """Return S_w - r I (centred) or M_w - r I, for weights of sum one."""
        return self.moment_about(weights, self.mean(weights) if centred else None, reference)

    @abstractmethod
    def moment_about(self, weights: Array, mean: Array | None, reference: float) -> MomentMatrix:
        """Return X'diag(w)X - mu mu' - r I, without mu mu' where there is no mean."""

    def at_hand(self) -> Samples:
        """Return the same samples in memory: these, unless they are not."""
        return self


def as_array(matrix: MomentMatrix) -> Array:
    """Return the whole of a matrix, a new array."""
    return matrix.restrict(np.arange(matrix.n_features))


def _deviation(second: Array, mean: Array | None, reference: float) -> Array:
    """Return M - mu mu' - r I, made of M in place."""
    if mean is not None:
        # Some rows at a time: an outer product as a whole would be another such array.
        for start in range(0, mean.size, _BLOCK_ROWS):
            rows = slice(start, start + _BLOCK_ROWS)
            second[rows] -= mean[rows, None] * mean
    second.flat[:: second.shape[0] + 1] -= reference
    return second


@dataclass(slots=True, eq=False)
class SecondMoments:
    """The second moments of the first weights, of which others are a change, and of the last.

    Arrays that are handed out are shared, and never written to.
    """

    dtype: type[np.floating] = np.float64
    _first: tuple[Array, Floats] | None = None
    _last: tuple[Array, Floats] | None = None

    def find(self, weights: Array) -> Floats | None:
        """Return X'diag(w)X if it is known."""
        for known in (self._first, self._last):
            if known and np.abs(weights - known[0]).max() <= _EQUAL * weights.max():
                return known[1]
        return None

    def divided(self, factor: Array) -> SecondMoments:
        """Return what is known of the first weights of rows whose columns are divided."""
        if self._first is None:
            return SecondMoments(self.dtype)
        weights, matrix = self._first
        by = factor.astype(self.dtype)
        return SecondMoments(self.dtype, (weights, matrix / by / by[:, None]))

    def get(self, rows: Array, weights: Array) -> Floats:
        """Return X'diag(w)X, and remember it."""
        if 2 * np.count_nonzero(weights) < weights.size:
            # Few rows are summed quickly, and tell little about the weights to come.
            return second_moment(rows, weights, self.dtype)
        found = self.find(weights)
        if found is None:
            # What it replaces is let go before the new matrix takes its memory.
            self._last = None
            found = self._changed(rows, weights)
            if found is None:
                found = second_moment(rows, weights, self.dtype)
            if self._first is None:
                self._first = weights.copy(), found
            else:
                self._last = weights.copy(), found
        return found

    def _changed(self, rows: Array, weights: Array) -> Floats | None:
        """Return what follows from the first; None where a new sum costs less.

        Most rows keep a common multiple of their old weight, so
        M_w = a M_old + sum over the other rows of (w_i - a w_old_i) x_i x_i'.
        """
        if self._first is None:
            return None
        factor, moves, moved = change_between(weights, self._first[0])
        if np.count_nonzero(moved) > CHANGE_BELOW * weights.size:
            return None
        matrix = self._first[1] * self.dtype(factor)
        add_moves(matrix, rows, np.where(moved, moves, 0.0))
        return matrix


def block_rows(n: int, d: int) -> int:
    """Return how many of n rows of d columns are scaled and multiplied at once."""
    return min(max(_ROW_BLOCK, d, _VALUES_IN_CACHE // max(d, 1)), max(n, 1))


def change_between(weights: Array, old: Array) -> Change:
    """Return a factor, the change beyond a multiple of the old weights, and where there is any."""
    positive = old > 0
    # The multiple of its old weight that the typical row now has.
    factor = float(np.median(weights[positive] / old[positive])) if positive.any() else 1.0
    change = weights - factor * old
    return factor, change, np.abs(change) > 1e-12 * weights.max()


def second_moment(
    rows: Array,
    weights: Array,
    dtype: type[np.floating] = np.float64,
    into: Floats | None = None,
    sign: float = 1.0,
) -> Floats:
    """Return X'diag(w)X for nonnegative weights, a symmetric C-ordered array of `dtype`.

    With `into`, add it to that array instead, times a sign.
    """
    d = rows.shape[1]
    root = np.sqrt(weights)
    used = np.flatnonzero(root)
    gather = used.size < _GATHER_BELOW * root.size
    count = used.size if gather else root.size
    size = block_rows(count, d)
    scaled = np.empty((size, d), dtype=dtype)
    for start in range(0, count, size):
        chosen = used[start : start + size] if gather else slice(start, min(start + size, count))
        block = rows[chosen]
        part = scaled[: block.shape[0]]
        # In double, then rounded: a huge value without weight must give 0, not inf times 0.
        np.multiply(block, root[chosen, None], out=part, dtype=np.float64, casting="same_kind")
        if into is None:
            # NumPy knows a product of an array with its own transpose: half the multiplications.
            into = part.T @ part
        else:
            _add_product(into, part, sign)
    return np.zeros((d, d), dtype=dtype) if into is None else into


def _add_product(total: Floats, part: Floats, sign: float) -> None:
    """Add sign * part' part to a symmetric array, by tiles on and above the diagonal."""
    d = total.shape[0]
    for start in range(0, d, _TILE):
        rows = slice(start, min(start + _TILE, d))
        for column in range(start, d, _TILE):
            columns = slice(column, min(column + _TILE, d))
            tile = part[:, rows].T @ part[:, columns]
            if sign < 0:
                np.negative(tile, out=tile)
            total[rows, columns] += tile
            if column > start:
                total[columns, rows] += tile.T


def add_moves(matrix: Floats, rows: Array, moves: Array) -> None:
    """Add the sum of moves_i x_i x_i', of either sign, to a symmetric array."""
    for sign in (1.0, -1.0):
        part = np.where(sign * moves > 0, np.abs(moves), 0.0)
        if part.any():
            second_moment(rows, part, matrix.dtype.type, matrix, sign)
