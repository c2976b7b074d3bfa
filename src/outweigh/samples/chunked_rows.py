"""Rows that are read a chunk at a time: an array on disk, or a collection of Dask."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from outweigh.protocols import Array, Indices, Samples
from outweigh.samples import kernels
from outweigh.samples.chunked import ChunkedSamples
from outweigh.samples.chunks import Chunks, Kernel, Pass, SlicedChunks, Sums
from outweigh.samples.kernels import Transform
from outweigh.samples.rows import (
    Accepted,
    Accepts,
    Affine,
    ArrayRows,
    Distinct,
    Overview,
    Rows,
    is_dask,
)

# Constant columns this many times the spread of a projection would cost it half its digits.
_SWAMPING = 1e8


@dataclass(frozen=True, slots=True, eq=False)
class ChunkedRows(Rows):
    """Rows that are read a chunk at a time."""

    chunks: Chunks
    keep: NDArray[np.bool_] | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.chunks.count(self.keep), self.chunks.n_features

    @property
    def n_passes(self) -> int | None:
        """Passes made so far."""
        return len(self.chunks.log.passes)

    def overview(self, direction: Array) -> Overview:
        """Make one pass; refuse values that are not finite, naming their place."""
        first = self.take(np.zeros(1, dtype=np.intp))[0]
        purpose = "finite values, what varies, a projection"
        keys, (counts,) = self._each(kernels.overview, (first, direction), purpose)
        varies = counts > 0
        constant = float(np.abs(first[~varies] @ direction[~varies]))
        if constant > _SWAMPING * float(np.median(np.abs(keys - np.median(keys)))):
            keys = self.map(partial(_along, np.where(varies, direction, 0.0)))
        return Overview(first, varies, keys)

    def take(self, indices: Indices | slice) -> Array:
        """Return some rows, reading only the chunks that hold them."""
        if isinstance(indices, slice):
            indices = np.arange(self.shape[0])[indices]
        positions = indices if self.keep is None else np.flatnonzero(self.keep)[indices]
        starts = self.chunks.starts
        chunk_of = np.searchsorted(starts, positions, side="right") - 1
        only = [int(i) for i in np.unique(chunk_of)]
        own: list[tuple[object, ...]] = [()] * len(self.chunks.sizes)
        for i in only:
            own[i] = (positions[chunk_of == i] - starts[i],)
        found = np.empty((positions.size, self.chunks.n_features))
        width = 8 * self.chunks.n_features

        def put(i: int, said: Array | kernels.BadValue) -> None:
            found[chunk_of == i] = kernels.refuse_bad(said, i, int(starts[i]))

        purpose = f"{positions.size} rows"
        todo = Pass(kernels.some_rows, (), own, purpose, put, bytes_per_row=width, only=only)
        self.chunks.scan(todo)
        return found

    def distinct(self, sample_weight: Array) -> Distinct:
        """Return the rows of positive weight as they are: no pass has told which are equal."""
        mask = sample_weight > 0
        rows = self if mask.all() else ChunkedRows(self.chunks, mask)
        place = np.where(mask, np.cumsum(mask) - 1, -1)
        return Distinct(rows, sample_weight[mask], place)

    def part(self, indices: Indices) -> ArrayRows | ChunkedRows:
        """Return the rows of increasing indices alone, by one pass that checks all rows.

        In memory if they fit the budget. None of them may have been left out before.
        """
        starts, d = self.chunks.starts, self.chunks.n_features
        bounds = np.searchsorted(indices, starts)
        own = [
            (i, int(starts[i]), indices[bounds[i] : bounds[i + 1]] - starts[i])
            for i in range(len(self.chunks.sizes))
        ]
        n_bytes = 8 * indices.size * d
        if n_bytes > self.chunks.budget:
            sizes = tuple(int(size) for size in np.diff(bounds))
            todo = Pass(kernels.checked_rows, (), own, "rows kept by the workers")
            return ChunkedRows(self.chunks.derived(todo, sizes, d))
        found = np.empty((indices.size, d))
        width = -(-n_bytes // max(int(starts[-1]), 1))

        def put(i: int, said: Array) -> None:
            found[bounds[i] : bounds[i + 1]] = said

        purpose = f"finite values, {indices.size} rows"
        self.chunks.scan(Pass(kernels.checked_rows, (), own, purpose, put, bytes_per_row=width))
        return ArrayRows(found)

    def accept(self, accepts: Accepts, origin: Array, weights: Array | None) -> Accepted:
        """Return which rows a rule accepts, by one pass; their shares stay lazy where they can."""
        starts = self.chunks.starts
        own = [
            (None if weights is None else weights[starts[i] : starts[i + 1]],)
            for i in range(len(self.chunks.sizes))
        ]
        lazy = self.chunks.lazily(accepts, weights)
        mask = np.zeros(starts[-1] if lazy is None else 0, dtype=np.bool_)

        def put(i: int, said: NDArray[np.bool_]) -> None:
            mask[starts[i] : starts[i + 1]] = said

        take, width = (put, 1) if lazy is None else (None, 0)
        shared, purpose = (accepts, origin), "rows that are trusted"
        sums = self.chunks.scan(
            Pass(kernels.accepted, shared, own, purpose, take, bytes_per_row=width)
        )
        # What is lazy holds the weights already.
        return Accepted.of(sums, mask, weights) if lazy is None else Accepted.of(sums, lazy, None)

    def samples(self, transform: Transform, d: int, affine: Affine | None = None) -> Samples:
        """Return the rows as samples after a transform: in memory if all of them fit the budget."""
        del affine
        return ChunkedSamples(self.chunks, d, transform, self.keep).at_hand()

    def map(self, function: Callable[[Array], Array]) -> Array:
        """Return a function of every row by a pass."""
        return self._each(kernels.mapped_rows, (function,), "a function of the rows")[0]

    def _each(self, kernel: Kernel, shared: tuple[object, ...], purpose: str) -> tuple[Array, Sums]:
        """Return what a kernel says of the rows that count, and its sums; refuse bad values."""
        starts, parts = self.chunks.starts, list[Array]()

        def put(i: int, said: Array | kernels.BadValue) -> None:
            parts.append(kernels.refuse_bad(said, i, int(starts[i])))

        own = [(keep,) for keep in self.chunks.split(self.keep)]
        sums = self.chunks.scan(Pass(kernel, shared, own, purpose, put))
        return np.concatenate(parts), sums


def _along(direction: Array, rows: Array) -> Array:
    return rows @ direction


def chunked_rows(X: Any) -> ChunkedRows:
    """Return the rows of a dask collection or of an array on disk."""
    if is_dask(X):
        from outweigh.samples.dask_chunks import DaskChunks, as_rows

        return ChunkedRows(DaskChunks.of(as_rows(X)))
    if X.dtype.kind not in "biuf":
        raise ValueError(f"X must hold real numbers; its dtype is {X.dtype}: convert it first")
    return ChunkedRows(SlicedChunks.of(X))
