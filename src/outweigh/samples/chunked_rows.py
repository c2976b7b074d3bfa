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
from outweigh.samples.chunks import GATHERED_BYTES, Chunks, Kernel, SlicedChunks, Sums
from outweigh.samples.rows import Accepted, Accepts, Affine, ArrayRows, Overview

__all__ = [
    "ChunkedRows",
    "chunked_rows",
    "is_dask",
    "is_on_disk",
    "map_lazily",
    "refuse_other_dask",
]

# Constant columns this many times the spread of a projection would cost it half its digits.
_SWAMPING = 1e8


@dataclass(frozen=True, slots=True, eq=False)
class ChunkedRows:
    """Rows that are read a chunk at a time."""

    chunks: Chunks
    keep: NDArray[np.bool_] | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        kept = sum(self.chunks.sizes) if self.keep is None else int(np.count_nonzero(self.keep))
        return kept, self.chunks.n_features

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

    def take(self, indices: Indices) -> Array:
        """Return some rows, reading only the chunks that hold them."""
        positions = indices if self.keep is None else np.flatnonzero(self.keep)[indices]
        starts = self._starts
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
        self.chunks.scan(kernels.some_rows, (), own, purpose, put, bytes_per_row=width, only=only)
        return found

    def select(self, mask: NDArray[np.bool_]) -> ChunkedRows:
        """Return the rows where a mask is true."""
        return self if mask.all() else ChunkedRows(self.chunks, mask)

    def part(self, indices: Indices) -> ArrayRows | ChunkedRows:
        """Return the rows of increasing indices alone, by one pass that checks all rows.

        In memory if they fit the budget. None of them may have been left out before.
        """
        starts, d = self._starts, self.chunks.n_features
        bounds = np.searchsorted(indices, starts)
        own = [
            (i, int(starts[i]), indices[bounds[i] : bounds[i + 1]] - starts[i])
            for i in range(len(self.chunks.sizes))
        ]
        n_bytes = 8 * indices.size * d
        if n_bytes > self.chunks.budget:
            sizes = tuple(int(size) for size in np.diff(bounds))
            return ChunkedRows(self.chunks.derived(kernels.checked_rows, (), own, (sizes, d)))
        found = np.empty((indices.size, d))
        width = -(-n_bytes // max(int(starts[-1]), 1))

        def put(i: int, said: Array) -> None:
            found[bounds[i] : bounds[i + 1]] = said

        purpose = f"finite values, {indices.size} rows"
        self.chunks.scan(kernels.checked_rows, (), own, purpose, put, bytes_per_row=width)
        return ArrayRows(found)

    def accept(self, accepts: Accepts, origin: Array, weights: Array | None) -> Accepted:
        """Return which rows a rule accepts, by one pass; their shares stay lazy where they can."""
        starts = self._starts
        own = [
            (None if weights is None else weights[starts[i] : starts[i + 1]],)
            for i in range(len(self.chunks.sizes))
        ]
        lazy = self.chunks.lazily(accepts, weights)
        told = lazy is None
        mask = np.zeros(starts[-1] if told else 0, dtype=np.bool_)

        def put(i: int, said: NDArray[np.bool_]) -> None:
            mask[starts[i] : starts[i + 1]] = said

        shared, purpose = (accepts, origin, told), "rows that are trusted"
        sums = self.chunks.scan(
            kernels.accepted, shared, own, purpose, put if told else None, bytes_per_row=int(told)
        )
        # What is lazy holds the weights already.
        return Accepted.of(sums, mask if told else lazy, weights if told else None)

    def samples(
        self,
        transform: Callable[[NDArray[np.floating]], Array],
        d: int,
        affine: Affine | None = None,
    ) -> Samples:
        """Return the rows as samples after a transform: in memory if all of them fit the budget."""
        del affine
        return ChunkedSamples(self.chunks, d, transform, self.keep).at_hand()

    def map(self, function: Callable[[Array], Array]) -> Array:
        """Return a function of every row by a pass."""
        return self._each(kernels.mapped_rows, (function,), "a function of the rows")[0]

    def _each(self, kernel: Kernel, shared: tuple[object, ...], purpose: str) -> tuple[Array, Sums]:
        """Return what a kernel says of the rows that count, and its sums; refuse bad values."""
        keeps: list[NDArray[np.bool_] | None] = [None] * len(self.chunks.sizes)
        if self.keep is not None:
            keeps = list(np.split(self.keep, self._starts[1:-1]))
        parts: list[Array] = []

        def put(i: int, said: Array | kernels.BadValue) -> None:
            parts.append(kernels.refuse_bad(said, i, int(self._starts[i])))

        sums = self.chunks.scan(kernel, shared, [(keep,) for keep in keeps], purpose, put)
        return np.concatenate(parts), sums

    @property
    def _starts(self) -> Indices:
        """Where each chunk begins, and where the last one ends."""
        return np.concatenate([[0], np.cumsum(self.chunks.sizes)]).astype(np.intp)


def _along(direction: Array, rows: Array) -> Array:
    return rows @ direction


def is_dask(X: object) -> bool:
    """Tell whether X is a collection of Dask, without importing Dask."""
    return type(X).__module__.split(".")[0] in {"dask", "dask_expr"} and hasattr(X, "dask")


def is_on_disk(X: object) -> bool:
    """Tell whether X is an array on disk, too large to be read at once."""
    return isinstance(X, np.memmap) and X.ndim == 2 and 8 * X.size > GATHERED_BYTES


def chunked_rows(X: Any) -> ChunkedRows:
    """Return the rows of a dask collection or of an array on disk."""
    if is_dask(X):
        from outweigh.samples.dask_chunks import DaskChunks, as_rows

        return ChunkedRows(DaskChunks.of(as_rows(X)))
    if X.dtype.kind not in "biuf":
        raise ValueError(f"X must hold real numbers; its dtype is {X.dtype}: convert it first")
    return ChunkedRows(SlicedChunks.of(X))


def refuse_other_dask(X: Any) -> None:
    """Refuse collections of Dask that are not a table of real numbers."""
    from outweigh.samples.dask_chunks import refuse_other_kinds

    refuse_other_kinds(X)


def map_lazily(
    X: Any,
    function: Callable[[NDArray[Any]], NDArray[Any]],
    n_columns: int | None,
    one_per_block: bool = False,
) -> Any:
    """Return a function of each row, or of each block, of a dask collection, lazily."""
    from outweigh.samples.dask_chunks import map_rows

    return map_rows(X, function, n_columns, one_per_block)
