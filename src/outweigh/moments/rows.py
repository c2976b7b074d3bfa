"""X as the user gave it: a NumPy array, an array on disk, or chunks on a cluster.

A sparse matrix is in `outweigh.moments.sparse_rows`.

Everything an estimator asks of raw rows is here; whatever the kind, the answers are the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from outweigh.moments import kernels
from outweigh.moments.chunked import ChunkedSamples
from outweigh.moments.chunks import GATHERED_BYTES, Chunks, SlicedChunks
from outweigh.moments.dense import DenseSamples
from outweigh.moments.parts import Accepted, Accepts, accept_chunks, accept_slices, checked_part
from outweigh.moments.sparse import row_slices
from outweigh.protocols import Array, Indices, Samples

__all__ = [
    "Affine",
    "ArrayRows",
    "ChunkedRows",
    "Overview",
    "Rows",
    "chunked_rows",
    "is_dask",
    "is_on_disk",
    "map_lazily",
    "refuse_other_dask",
]


# Constant columns this many times the spread of a projection would cost it half its digits.
_SWAMPING = 1e8


@dataclass(frozen=True, slots=True, eq=False)
class Overview:
    """What one look at all rows tells.

    Attributes
    ----------
    first : ndarray of shape (d,)
        The first row.
    varies : ndarray of bool, shape (d,)
        The columns that are not constant.
    keys : ndarray of shape (n,)
        The rows along a given direction, up to a common constant.
    """

    first: Array
    varies: NDArray[np.bool_]
    keys: Array


class Affine(Protocol):
    """A transform z = (x[columns] - origin) / scale, then z W where there is a whitener W."""

    @property
    def columns(self) -> Indices:
        """The columns that are used."""
        ...

    @property
    def origin(self) -> Array:
        """What is subtracted from them."""
        ...

    @property
    def scale(self) -> Array:
        """What they are divided by."""
        ...

    @property
    def whitener(self) -> Array | None:
        """The matrix that rows are multiplied by at last, if any."""
        ...


class Rows(Protocol):
    """The rows of X in the units of the user."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        ...

    def overview(self, direction: Array) -> Overview:
        """Look at all rows once; refuse values that are not finite."""
        ...

    def take(self, indices: Indices) -> Array:
        """Return some rows."""
        ...

    def select(self, mask: NDArray[np.bool_]) -> Rows:
        """Return the rows where a mask is true."""
        ...

    def part(self, indices: Indices) -> Rows:
        """Return the rows of increasing indices alone; refuse values of any row not finite."""
        ...

    def accept(self, accepts: Accepts, origin: Array, weights: Array | None) -> Accepted:
        """Return which rows a rule accepts, and their sums about an origin."""
        ...

    def samples(
        self,
        transform: Callable[[NDArray[np.floating]], Array],
        d: int,
        affine: Affine | None = None,
    ) -> Samples:
        """Return the rows as samples after a transform to d columns.

        Parameters
        ----------
        transform : callable
        d : int
        affine : Affine, optional
            What the transform does, for rows that it can be applied to implicitly.
        """
        ...

    def map(self, function: Callable[[Array], Array]) -> Array:
        """Return a function of every row, computed block by block."""
        ...

    @property
    def n_passes(self) -> int | None:
        """Passes made so far over data that is not in memory; None for data that is."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class ArrayRows:
    """Finite float64 rows in memory."""

    array: NDArray[np.float64]

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        n, d = self.array.shape
        return n, d

    @property
    def n_passes(self) -> int | None:
        """None: nothing is read but memory."""
        return None

    def overview(self, direction: Array) -> Overview:
        """Look at all rows once."""
        X = self.array
        varies = X[0] != X[-1]
        alike = np.flatnonzero(~varies)
        if alike.size:
            # A closer look only where two rows agree.
            varies[alike] = X[:, alike].max(axis=0) != X[:, alike].min(axis=0)
        with np.errstate(over="ignore", invalid="ignore"):
            keys = X @ direction if varies.all() else X[:, varies] @ direction[varies]
        return Overview(X[0].copy(), varies, keys)

    def take(self, indices: Indices) -> Array:
        """Return some rows."""
        return self.array[indices]

    def select(self, mask: NDArray[np.bool_]) -> ArrayRows:
        """Return the rows where a mask is true."""
        return self if mask.all() else ArrayRows(self.array[mask])

    def part(self, indices: Indices) -> ArrayRows:
        """Return the rows of increasing indices alone."""
        return ArrayRows(self.array[indices])

    def accept(self, accepts: Accepts, origin: Array, weights: Array | None) -> Accepted:
        """Return which rows a rule accepts, and their sums about an origin."""
        slices = ((part, self.array[part]) for part in row_slices(*self.shape))
        return accept_slices(slices, self.shape[0], accepts, origin, weights)

    def samples(
        self,
        transform: Callable[[NDArray[np.floating]], Array],
        d: int,
        affine: Affine | None = None,
    ) -> DenseSamples:
        """Return the rows as samples after a transform."""
        del d, affine
        return DenseSamples(transform(self.array))

    def map(self, function: Callable[[Array], Array]) -> Array:
        """Return a function of every row."""
        return function(self.array)


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
        keys: list[Array] = []
        counts = np.zeros(first.size)
        purpose = "finite values, what varies, a projection"
        for i, said in self.chunks.scan(kernels.overview, (first, direction), own, purpose):
            if i < 0:
                (counts,) = said
                continue
            keys.append(kernels.refuse_bad(said, i, int(starts[i])))
        varies = counts > 0
        found = np.concatenate(keys)
        constant = float(np.abs(first[~varies] @ direction[~varies]))
        if constant > _SWAMPING * float(np.median(np.abs(found - np.median(found)))):
            found = self.map(_Along(np.where(varies, direction, 0.0)))
        return Overview(first, varies, found)

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
                found[chunk_of == i] = said
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
        from outweigh.moments.dask_chunks import DaskChunks, as_rows

        return ChunkedRows(DaskChunks.of(as_rows(X)))
    if X.dtype.kind not in "biuf":
        raise ValueError(f"X must hold real numbers; its dtype is {X.dtype}: convert it first")
    return ChunkedRows(SlicedChunks.of(X))


def refuse_other_dask(X: Any) -> None:
    """Refuse collections of Dask that are not a table of real numbers."""
    from outweigh.moments.dask_chunks import refuse_other_kinds

    refuse_other_kinds(X)


def map_lazily(
    X: Any,
    function: Callable[[NDArray[Any]], NDArray[Any]],
    n_columns: int | None,
    one_per_block: bool = False,
) -> Any:
    """Return a function of each row, or of each block, of a dask collection, lazily."""
    from outweigh.moments.dask_chunks import map_rows

    return map_rows(X, function, n_columns, one_per_block)
