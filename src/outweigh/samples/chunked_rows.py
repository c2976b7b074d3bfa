"""Rows that are read a chunk at a time: an array on disk, or a collection of Dask."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from outweigh.protocols import Array, Indices, Samples
from outweigh.samples import kernels
from outweigh.samples.chunked import ChunkedSamples
from outweigh.samples.chunks import GATHERED_BYTES, Chunks, SlicedChunks
from outweigh.samples.parts import Accepted, Accepts, accept_chunks, checked_part
from outweigh.samples.rows import Affine, ArrayRows, Overview

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
        own = [(keep,) for keep in self._keeps()]
        starts = np.concatenate([[0], np.cumsum(self.chunks.sizes)])
        parts: list[Array] = []
        counts = np.zeros(first.size)
        purpose = "finite values, what varies, a projection"
        for i, said in self.chunks.scan(kernels.overview, (first, direction), own, purpose):
            if i < 0:
                (counts,) = said
            else:
                parts.append(kernels.refuse_bad(said, i, int(starts[i])))
        varies, keys = counts > 0, np.concatenate(parts)
        constant = float(np.abs(first[~varies] @ direction[~varies]))
        if constant > _SWAMPING * float(np.median(np.abs(keys - np.median(keys)))):
            keys = self.map(_Along(np.where(varies, direction, 0.0)))
        return Overview(first, varies, keys)

    def take(self, indices: Indices) -> Array:
        """Return some rows, reading only the chunks that hold them."""
        positions = indices if self.keep is None else np.flatnonzero(self.keep)[indices]
        starts = np.concatenate([[0], np.cumsum(self.chunks.sizes)])
        chunk_of = np.searchsorted(starts, positions, side="right") - 1
        only = [int(i) for i in np.unique(chunk_of)]
        own: list[tuple[object, ...]] = [()] * len(self.chunks.sizes)
        for i in only:
            own[i] = (positions[chunk_of == i] - starts[i],)
        found = np.empty((positions.size, self.chunks.n_features))
        width = 8 * self.chunks.n_features
        for i, said in self.chunks.scan(
            kernels.some_rows, (), own, f"{positions.size} rows", bytes_per_row=width, only=only
        ):
            if i >= 0:
                found[chunk_of == i] = kernels.refuse_bad(said, i, int(starts[i]))
        return found

    def select(self, mask: NDArray[np.bool_]) -> ChunkedRows:
        """Return the rows where a mask is true."""
        return self if mask.all() else ChunkedRows(self.chunks, mask)

    def part(self, indices: Indices) -> ArrayRows | ChunkedRows:
        """Return the rows of increasing indices alone, by one pass that checks all rows.

        In memory if they fit the budget. None of them may have been left out before.
        """
        found = checked_part(self.chunks, indices)
        return ArrayRows(found) if isinstance(found, np.ndarray) else ChunkedRows(found)

    def accept(self, accepts: Accepts, origin: Array, weights: Array | None) -> Accepted:
        """Return which rows a rule accepts, and their sums about an origin, by one pass."""
        return accept_chunks(self.chunks, accepts, origin, weights)

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
        own = [(keep,) for keep in self._keeps()]
        starts = np.concatenate([[0], np.cumsum(self.chunks.sizes)])
        parts = [
            kernels.refuse_bad(said, i, int(starts[i]))
            for i, said in self.chunks.scan(
                kernels.prepared_rows, (function,), own, "a function of the rows"
            )
            if i >= 0
        ]
        return np.concatenate(parts)

    def _keeps(self) -> list[NDArray[np.bool_] | None]:
        if self.keep is None:
            return [None] * len(self.chunks.sizes)
        return list(np.split(self.keep, np.cumsum(self.chunks.sizes)[:-1]))


@dataclass(frozen=True, slots=True, eq=False)
class _Along:
    direction: Array

    def __call__(self, rows: Array) -> Array:
        return rows @ self.direction


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
