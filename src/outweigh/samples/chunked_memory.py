"""What passes over chunked rows have brought home, so that it is not read again."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from outweigh.protocols import Array, Indices
from outweigh.samples.dense import median_kurtosis, some_columns
from outweigh.samples.matrices import Change, add_moves, change_between

# Weights whose moments are remembered: the reference, and those of the last two rounds.
_REMEMBERED = 5
# A sum of squares that falls below this share of what it was has lost too many of its digits.
_CANCELLED = 1e-5
# Directions that are those of a span but for this are so but for rounding.
_IN_SPAN = 1e-13


@dataclass(frozen=True, slots=True, eq=False)
class MomentSums:
    """Weighted sums of x, of x x' (or its diagonal), and of x^3 and x^4 in some columns.

    ``changes`` counts how often they were changed since they were summed over all rows.
    """

    first: Array
    second: Array
    third: Array
    fourth: Array
    changes: int = field(default=0, kw_only=True)

    @property
    def diagonal(self) -> Array:
        """The weighted sums of squares."""
        return self.second if self.second.ndim == 1 else np.diagonal(self.second)

    def scaled(self, factor: float) -> MomentSums:
        """Return the sums for weights `factor` times as large."""
        if factor == 1.0:
            return self
        sums = (self.first, self.second, self.third, self.fourth)
        return MomentSums(*(factor * each for each in sums), changes=self.changes)

    def changed(self, factor: float, rows: Array, moves: Array) -> MomentSums | None:
        """Return the sums for weights `factor` times as large but for some rows.

        Parameters
        ----------
        factor : float
        rows : ndarray of shape (m, d)
            The rows whose weights change by more.
        moves : ndarray of shape (m,)
            By how much more.

        Returns
        -------
        MomentSums or None
            None where the difference would cancel.
        """
        second = factor * self.second
        add_moves(second, rows, moves)
        if np.any(np.diagonal(second) <= _CANCELLED * factor * self.diagonal):
            return None
        part = some_columns(rows)
        cubes = part**3
        return MomentSums(
            factor * self.first + moves @ rows,
            second,
            factor * self.third + moves @ cubes,
            factor * self.fourth + moves @ (cubes * part),
            changes=self.changes + 1,
        )

    def divided(self, factor: Array) -> MomentSums:
        """Return the sums of rows whose columns are divided by a factor."""
        some = some_columns(factor)
        squares = factor**2 if self.second.ndim == 1 else np.multiply.outer(factor, factor)
        higher = (self.third / some**3, self.fourth / some**4)
        return MomentSums(self.first / factor, self.second / squares, *higher, changes=self.changes)

    def typical_kurtosis(self) -> float:
        """Return the median kurtosis of some columns, for weights of sum one."""
        m = some_columns(self.first)
        raw = some_columns(self.diagonal)
        second = raw - m**2
        fourth = self.fourth - 4.0 * m * self.third + 6.0 * m**2 * raw - 3.0 * m**4
        return median_kurtosis(second, fourth)


@dataclass(slots=True, eq=False)
class MomentMemory:
    """The moments of a few weights."""

    _entries: list[tuple[Array, MomentSums]] = field(default_factory=list)

    def find(self, weights: Array) -> MomentSums | None:
        """Return the moments of these weights if those of a multiple of them are known."""
        total = float(weights.sum())
        for known, sums in self._entries:
            size = float(known.sum())
            if size == 0.0 or total <= 0.0:
                continue
            factor = total / size
            if np.array_equal(known, weights) or np.all(
                np.abs(weights - factor * known) <= 1e-14 * weights.max()
            ):
                return sums.scaled(factor)
        return None

    def nearest(self, weights: Array) -> tuple[Change, MomentSums] | None:
        """Return what changes from the known weights that fewest rows differ from, and their sums.

        Only sums over all rows count: errors of rounding must not pile up over many changes.
        """
        best: tuple[Change, MomentSums] | None = None
        fewest = weights.size
        for known, sums in self._entries:
            if sums.changes == 0 and weights.min() >= 0.0:
                change = change_between(weights, known)
                count = int(np.count_nonzero(change[2]))
                if count < fewest and change[0] > 0.0:
                    best, fewest = (change, sums), count
        return best

    def divided(self, factor: Array) -> MomentMemory:
        """Return what is known of rows whose columns are divided by a factor."""
        return MomentMemory([(known, sums.divided(factor)) for known, sums in self._entries])

    def remember(self, weights: Array, sums: MomentSums, budget: int) -> None:
        """Keep the moments of these weights; the first of all and the last few stay.

        Their matrices together take no more than `budget` bytes, except that the last always stays.
        """
        self._entries.append((weights.copy(), sums))
        allowed = int(np.clip(budget // max(sums.second.nbytes, 1), 1, _REMEMBERED))
        while len(self._entries) > allowed:
            del self._entries[1 if allowed > 1 else 0]


@dataclass(slots=True, eq=False)
class Projections:
    """The rows along the directions that were asked for last."""

    _entries: list[tuple[Array, Array]] = field(default_factory=list)

    def find(self, vectors: Array) -> Array | None:
        """Return X V if the columns of V are in the span of directions that are known."""
        for known, along in self._entries:
            parts = np.linalg.lstsq(known, vectors)[0]
            if np.abs(known @ parts - vectors).max(initial=0.0) <= _IN_SPAN * np.abs(vectors).max():
                return np.asarray(along @ parts)
        return None

    def remember(self, vectors: Array, along: Array) -> None:
        """Keep X V, and the one before."""
        self._entries = [(vectors, along), *self._entries[:1]]

    def divided(self, factor: Array) -> Projections:
        """Return what is known of rows whose columns are divided by a factor."""
        return Projections([(factor[:, None] * known, along) for known, along in self._entries])


@dataclass(slots=True, eq=False)
class Gathered:
    """Columns, or whole rows, brought home so far.

    Columns hold the values of all rows. Rows are those whose weights change: nearly all keep a
    common multiple of their weight throughout a fit, and moments at new weights follow from known
    ones and from the other rows alone.

    Parameters
    ----------
    axis : {0, 1}
        Rows or columns.
    """

    axis: int
    _indices: Indices = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    _array: Array = field(default_factory=lambda: np.empty((0, 0)))

    @property
    def n_bytes(self) -> int:
        """Memory in use."""
        return self._array.nbytes

    def missing(self, indices: Indices) -> Indices:
        """Return what is not here, in increasing order."""
        return np.setdiff1d(indices, self._indices)

    def take(self, indices: Indices) -> Array:
        """Return what is here, in the order it is named; not to be written to."""
        if np.array_equal(indices, self._indices):
            return self._array
        order = np.argsort(self._indices, kind="stable")
        places = order[np.searchsorted(self._indices, indices, sorter=order)]
        return np.take(self._array, places, axis=self.axis)

    def add(self, indices: Indices, array: Array) -> None:
        """Keep more, none of which is here."""
        if self._indices.size:
            array = np.concatenate([self._array, array], axis=self.axis)
            indices = np.concatenate([self._indices, indices])
        self._indices, self._array = indices, array

    def divided(self, factor: Array) -> Gathered:
        """Return the same with every column divided by its factor."""
        if self._indices.size == 0:
            return Gathered(self.axis)
        own = factor if self.axis == 0 else factor[self._indices]
        return Gathered(self.axis, self._indices, self._array / own)
