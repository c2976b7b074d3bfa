"""Dask arrays as chunks; of the estimators and what they rest on, only this file knows Dask."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from uuid import uuid4

import dask
import dask.array as da
import numpy as np
from dask.base import get_scheduler
from dask.delayed import Delayed, delayed
from dask.utils import parse_bytes
from numpy.typing import NDArray

from outweigh.protocols import Array
from outweigh.samples.chunks import (
    GATHERED_BYTES,
    Chunks,
    Kernel,
    Pass,
    PassLog,
    Rowwise,
    Sums,
    add_sums,
)

logger = logging.getLogger("outweigh")

# Answers of kernels that are brought home at once.
_BATCH_BYTES = 64 * 2**20


@dataclass(frozen=True, slots=True, eq=False)
class DaskChunks(Chunks):
    """The row chunks of a dask array, on whichever scheduler is in use.

    Parameters
    ----------
    blocks : tuple of Delayed
        One array of whole rows each.
    sizes : tuple of int
        Their rows.
    n_features : int
        Their columns.
    budget : int
        Bytes that may be gathered in one place.
    log : PassLog
    source : dask.array.Array, optional
        The array whose blocks they are, if it is one that the user gave.
    """

    blocks: tuple[Delayed, ...]
    sizes: tuple[int, ...]
    n_features: int
    budget: int
    log: PassLog = field(default_factory=PassLog)
    source: da.Array | None = None

    @classmethod
    def of(cls, array: da.Array) -> DaskChunks:
        """Return the chunks of an array that is chunked along its rows only."""
        budget = parse_bytes(dask.config.get("outweigh.gathered-bytes", GATHERED_BYTES))
        blocks = tuple(array.to_delayed().ravel())
        return cls(blocks, tuple(array.chunks[0]), int(array.shape[1]), int(budget), source=array)

    def _run(self, todo: Pass, visited: Sequence[int]) -> Sums:
        """Run a kernel on every chunk as a Dask graph."""
        # One copy of what is large for all tasks, not one each.
        common = delayed(Opaque(todo.shared), traverse=False, pure=False)
        sums: list[Sums | None] = [None] * todo.lanes
        place = 0
        for group in batches(self.sizes, visited, todo.bytes_per_row):
            chains: list[Any] = list(sums)
            said: list[Delayed] = []
            for i in group:
                lane = place % todo.lanes
                place += 1
                step = _step(chains[lane], self.blocks[i], todo.kernel, common, Opaque(todo.own[i]))
                chains[lane] = _summed(step)
                if todo.take is not None:
                    said.append(_said(step))
            answers, sums = _compute((said, chains), todo.purpose)
            if todo.take is not None:
                for i, answer in zip(group, answers, strict=True):
                    todo.take(i, answer)
        total: Sums | None = None
        for part in sums:
            if part is not None:
                total = add_sums(total, part)
        return total or ()

    def derived(self, todo: Pass, sizes: tuple[int, ...], n_features: int) -> DaskChunks:
        """Return chunks made by a kernel, kept in the memory of the workers where there are any."""
        common = delayed(Opaque(todo.shared), traverse=False, pure=False)
        blocks = [
            _said(_step(None, block, todo.kernel, common, Opaque(arguments)))
            for block, arguments in zip(self.blocks, todo.own, strict=True)
        ]
        log = self.log
        if _client() is not None:
            with log(todo.purpose, len(blocks)):
                blocks = list(dask.persist(*blocks))
            log = PassLog(log.passes, "what the workers hold")
        return DaskChunks(tuple(blocks), sizes, n_features, self.budget, log)

    def lazily(self, function: Rowwise, weights: Array | None) -> da.Array | None:
        """Return a function of each row, times its weight, as a dask array chunked like them."""
        if self.source is None:
            return None
        found = map_rows(self.source, function)
        return found if weights is None else found * da.from_array(weights, (self.sizes,))


def batches(sizes: Sequence[int], visited: Sequence[int], bytes_per_row: int) -> list[list[int]]:
    """Return the chunks in groups whose answers are small enough to be held beside the result.

    Examples
    --------
    >>> batches([2**20, 2**20, 2**20], [0, 1, 2], 32)
    [[0, 1], [2]]
    """
    groups: list[list[int]] = [[]]
    held = 0
    for i in visited:
        size = sizes[i] * bytes_per_row
        if groups[-1] and held + size > _BATCH_BYTES:
            groups.append([])
            held = 0
        groups[-1].append(i)
        held += size
    return groups


@dataclass(frozen=True, slots=True, eq=False)
class Opaque:
    """Arguments of a kernel that Dask neither looks into nor hashes."""

    values: tuple[object, ...]
    token: str = field(default_factory=lambda: uuid4().hex)

    def __dask_tokenize__(self) -> str:
        return self.token


@partial(delayed, pure=False)
def _step(
    total: Sums | None,
    block: NDArray[Any],
    kernel: Kernel,
    shared: Opaque,
    own: Opaque,
) -> tuple[Any, Sums]:
    """Run a kernel and add its sums to those of the chunk before it in the same lane."""
    said, sums = kernel(np.asarray(block), *shared.values, *own.values)
    return said, add_sums(total, sums)


@partial(delayed, pure=False)
def _said(step: tuple[Any, Sums]) -> Any:
    return step[0]


@partial(delayed, pure=False)
def _summed(step: tuple[Any, Sums]) -> Sums:
    return step[1]


def _client() -> Any:
    """Return the client of the cluster that graphs run on; None where they run in this process."""
    try:
        from distributed import get_client
    except ImportError:
        return None
    try:
        client = get_client()
    except ValueError:
        return None
    # A client may stand by while another scheduler was asked for.
    return client if getattr(get_scheduler(), "__self__", None) is client else None


def _compute(work: Any, purpose: str) -> Any:
    """Run a graph; say in plain words what happened where the cluster failed."""
    try:
        return dask.compute(work)[0]
    except Exception as error:
        module = type(error).__module__.split(".")[0]
        if type(error).__name__ == "KilledWorker":
            raise RuntimeError(
                f"Dask: workers died again and again during the pass for {purpose}, most likely "
                "for lack of memory; nothing was fitted. Use smaller chunks or more memory."
            ) from error
        if isinstance(error, OSError) and not (isinstance(error, ConnectionError) and _client()):
            raise RuntimeError(
                f"X: a chunk could not be read during the pass for {purpose}: "
                f"{type(error).__name__}: {error}; nothing was fitted"
            ) from error
        if module in {"distributed", "concurrent", "asyncio"} or isinstance(error, OSError):
            raise RuntimeError(
                f"Dask: the scheduler was lost during the pass for {purpose} "
                f"({type(error).__name__}); nothing was fitted. Connect to a cluster and fit again."
            ) from error
        raise


def as_rows(X: Any) -> da.Array:
    """Return a dask array chunked along its rows only, or say why that cannot be had.

    Parameters
    ----------
    X : dask.array.Array or dask.dataframe.DataFrame
    """
    refuse_other_kinds(X)
    if not isinstance(X, da.Array):
        logger.info("X: counting the rows of each partition of the DataFrame")
        X = _plain_numbers(X).to_dask_array(lengths=True)
    if np.isnan(X.shape[1]) or any(np.isnan(size) for size in X.chunks[1]):
        raise ValueError(
            "X: its number of columns is unknown; call X.compute_chunk_sizes() before fit"
        )
    if any(np.isnan(size) for size in X.chunks[0]):
        raise ValueError(
            "X: the sizes of its row chunks are unknown; call X.compute_chunk_sizes() before fit"
        )
    return _whole_rows(X)


def refuse_other_kinds(X: Any) -> None:
    """Refuse what is not a table of real numbers, whatever is known of its chunks."""
    if not isinstance(X, da.Array):
        if not (hasattr(X, "to_dask_array") and hasattr(X, "columns")):
            raise TypeError(
                f"X: of Dask, only arrays and DataFrames are taken; got {type(X).__name__}"
            )
        objects = [str(name) for name, kind in X.dtypes.items() if not _is_number(kind)]
        if objects:
            raise ValueError(
                f"X: columns that are not numbers: {', '.join(objects[:5])}; select the numeric "
                "columns of the DataFrame first"
            )
        return
    if X.ndim != 2:
        raise ValueError(f"X must have two dimensions, rows and columns; got {X.ndim}")
    if not _is_number(X.dtype):
        raise ValueError(f"X must hold real numbers; its dtype is {X.dtype}: convert it first")
    if X.shape[1] == 0:
        raise ValueError(
            f"Found array with 0 feature(s) (shape={X.shape}) while a minimum of 1 is required."
        )


def _is_number(kind: Any) -> bool:
    # Nullable types of pandas know their kind too; categories and text are "O".
    return getattr(kind, "kind", "O") in "biuf"


def _plain_numbers(frame: Any) -> Any:
    """Return a frame without nullable types: what is missing becomes NaN."""
    plain = all(isinstance(kind, np.dtype) for kind in frame.dtypes)
    return frame if plain else frame.astype(np.float64)


def _whole_rows(X: da.Array) -> da.Array:
    if len(X.chunks[1]) == 1:
        return X
    logger.info("X: rechunked to whole rows; it was in %d column chunks", len(X.chunks[1]))
    known = not any(np.isnan(size) for size in X.chunks[0])
    return X.rechunk({0: "auto", 1: -1} if known else {1: -1})


def map_rows(X: Any, function: Rowwise, n_columns: int | None = None) -> da.Array:
    """Return a function of each row of X, lazily, as a dask array.

    Parameters
    ----------
    X : dask.array.Array or dask.dataframe.DataFrame
    function : callable
        From a block of rows to one number, or `n_columns` of them, a row.
    n_columns : int, optional
    """
    array, apply = _table(X), partial(_apply, function)
    if n_columns is None:
        return array.map_blocks(apply, dtype=np.float64, drop_axis=1, meta=np.empty(0))
    dtype = np.float32 if array.dtype == np.float32 else np.float64
    chunks = (array.chunks[0], (n_columns,))
    return array.map_blocks(apply, dtype=dtype, chunks=chunks, meta=np.empty((0, 0), dtype))


def map_blocks(X: Any, function: Rowwise, n_columns: int) -> da.Array:
    """Return one row of answers for each block of rows of X, lazily, as a dask array."""
    array = _table(X)
    chunks = ((1,) * array.numblocks[0], (n_columns,))
    apply = partial(_apply, function)
    return array.map_blocks(apply, dtype=np.float64, chunks=chunks, meta=np.empty((0, 0)))


def _table(X: Any) -> da.Array:
    refuse_other_kinds(X)
    return _whole_rows(X if isinstance(X, da.Array) else _plain_numbers(X).to_dask_array())


def _apply(function: Rowwise, block: NDArray[Any]) -> NDArray[Any]:
    kind = np.float32 if block.dtype == np.float32 else np.float64
    rows = np.asarray(block, dtype=kind)
    bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
    if bad.size:
        raise ValueError(
            f"X holds NaN or infinity in row {bad[0]} of a chunk of {rows.shape[0]} rows; drop or "
            "impute such rows first"
        )
    return function(rows)
