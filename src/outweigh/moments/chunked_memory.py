"""What passes over chunked rows have brought home, so that it is not read again."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from outweigh.moments.dense import median_kurtosis
from outweigh.protocols import Array, Indices

__all__ = ["ColumnMemory", "MomentMemory", "MomentSums"]

# Weights whose moments are remembered: the reference, and the last two that were verified.
_REMEMBERED = 3


@dataclass(frozen=True, slots=True, eq=False)
class MomentSums:
    """Weighted sums of x, of x x' (or its diagonal), and of x^3 and x^4 in some columns."""

    first: Array
    second: Array
    third: Array
    fourth: Array

    @property
    def diagonal(self) -> Array:
        """The weighted sums of squares."""
        return self.second if self.second.ndim == 1 else np.diagonal(self.second)

    def scaled(self, factor: float) -> MomentSums:
        """Return the sums for weights `factor` times as large."""
        if factor == 1.0:
            return self
        return MomentSums(
            self.first * factor, self.second * factor, self.third * factor, self.fourth * factor
        )

    def typical_kurtosis(self, spacing: int) -> float:
        """Return the median kurtosis of every `spacing`-th column, for weights of sum one."""
        m = self.first[::spacing]
        raw = self.diagonal[::spacing]
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

    def remember(self, weights: Array, sums: MomentSums, budget: int) -> None:
        """Keep the moments of these weights; the first of all and the last few stay.

        Their matrices together take no more than `budget` bytes, except that the last always stays.
        """
        self._entries.append((weights.copy(), sums))
        allowed = int(np.clip(budget // max(sums.second.nbytes, 1), 1, _REMEMBERED))
        while len(self._entries) > allowed:
            del self._entries[1 if allowed > 1 else 0]


@dataclass(slots=True, eq=False)
class ColumnMemory:
    """Columns gathered so far, with the values of all rows."""

    _indices: Indices = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    _array: NDArray[np.float64] | None = None

    @property
    def n_bytes(self) -> int:
        """Memory in use."""
        return 0 if self._array is None else self._array.nbytes

    def missing(self, indices: Indices) -> Indices:
        """Return the columns that are not here."""
        return np.setdiff1d(indices, self._indices)

    def on(self, indices: Indices, zeroed: Indices) -> Array | None:
        """Return the named columns if all are here, with zeros in some rows."""
        if self._array is None or self.missing(indices).size:
            return None
        order = np.argsort(self._indices, kind="stable")
        places = order[np.searchsorted(self._indices, indices, sorter=order)]
        if not np.array_equal(places, np.arange(self._indices.size)):
            found = np.take(self._array, places, axis=1)
        elif zeroed.size:
            found = self._array.copy()
        else:
            return self._array
        found[zeroed] = 0.0
        return found

    def add(self, indices: Indices, array: Array) -> None:
        """Keep further columns."""
        if self._array is None:
            self._indices, self._array = indices, array
        else:
            self._indices = np.concatenate([self._indices, indices])
            self._array = np.concatenate([self._array, array], axis=1)

    def of_rows(self, rows: Indices) -> ColumnMemory:
        """Return the same columns of some rows alone."""
        part = None if self._array is None else self._array[rows]
        return ColumnMemory(self._indices, part)
