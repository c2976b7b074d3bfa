"""A part of the rows: some of them by number, read while all are checked, or those accepted."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from outweigh.protocols import Array, Indices
from outweigh.samples import kernels
from outweigh.samples.chunks import Chunks

__all__ = ["Accepted", "Accepts", "accept_chunks", "accept_slices", "checked_part"]

Accepts = Callable[[NDArray[np.floating]], NDArray[np.bool_]]
"""From rows to whether each is accepted; small enough to be sent to workers."""


@dataclass(frozen=True, slots=True, eq=False)
class Accepted:
    """The rows that a rule accepts, and their sums.

    Attributes
    ----------
    shift : ndarray of shape (d,)
        The weighted sum of x - origin over them.
    kept, total : float
        Their weight, and that of all rows.
    shares : ndarray of shape (n,)
        The weight of each row over `kept`, and zero for those not accepted. A dask array, chunked
        like the rows and not yet computed, for rows of Dask.
    """

    shift: Array
    kept: float
    total: float
    shares: Any


def accept_slices(
    slices: Iterable[tuple[slice, NDArray[np.floating]]],
    n_samples: int,
    accepts: Accepts,
    origin: Array,
    weights: Array | None,
) -> Accepted:
    """Return the accepted rows of what is in memory, looked at a slice at a time.

    Parameters
    ----------
    slices : iterable of (slice, ndarray)
        Which rows, and their values.
    n_samples : int
    accepts : callable
    origin : ndarray of shape (d,)
    weights : ndarray of shape (n,), optional
        One each by default.
    """
    mask = np.zeros(n_samples, dtype=np.bool_)
    total = (np.zeros(origin.size), np.zeros(2))
    for part, rows in slices:
        own = None if weights is None else weights[part]
        mask[part], sums = kernels.accepted(rows, accepts, origin, True, own)
        total = (total[0] + sums[0], total[1] + sums[1])
    return _accepted(*total, mask, weights)


def accept_chunks(
    chunks: Chunks, accepts: Accepts, origin: Array, weights: Array | None
) -> Accepted:
    """Return the accepted rows by one pass; what each row weighs stays lazy where it can."""
    bounds = np.concatenate([[0], np.cumsum(chunks.sizes)])
    own: list[tuple[object, ...]] = [
        (None if weights is None else weights[bounds[i] : bounds[i + 1]],)
        for i in range(len(chunks.sizes))
    ]
    lazy = chunks.lazily(accepts, weights)
    mask = np.zeros(bounds[-1] if lazy is None else 0, dtype=np.bool_)
    shared = (accepts, origin, lazy is None)
    total = (np.zeros(origin.size), np.zeros(2))
    width = int(lazy is None)
    for i, said in chunks.scan(
        kernels.accepted, shared, own, "rows that are trusted", bytes_per_row=width
    ):
        if i < 0:
            total = said
        elif lazy is None:
            mask[bounds[i] : bounds[i + 1]] = said
    return _accepted(*total, mask if lazy is None else lazy, None if lazy is not None else weights)


def _accepted(shift: Array, amounts: Array, mask: Any, weights: Array | None) -> Accepted:
    kept, total = float(amounts[0]), float(amounts[1])
    # Where nothing is accepted there is nothing to share out, and every entry is zero.
    scale = 1.0 / kept if kept > 0.0 else 0.0
    shares = mask * scale if weights is None else mask * weights * scale
    return Accepted(shift, kept, total, shares)


def checked_part(chunks: Chunks, positions: Indices) -> Array | Chunks:
    """Return the named rows after a look at all, in one pass; refuse values that are not finite.

    Parameters
    ----------
    chunks : Chunks
    positions : ndarray of int
        Increasing.

    Returns
    -------
    ndarray of shape (len(positions), d), or Chunks
        Chunks that hold the named rows alone, where these do not fit the budget.
    """
    starts = np.concatenate([[0], np.cumsum(chunks.sizes)])
    bounds = np.searchsorted(positions, starts)
    own = [
        (i, int(starts[i]), positions[bounds[i] : bounds[i + 1]] - starts[i])
        for i in range(len(chunks.sizes))
    ]
    n_bytes = 8 * positions.size * chunks.n_features
    if n_bytes > chunks.budget:
        sizes = tuple(int(size) for size in np.diff(bounds))
        return chunks.derived(kernels.checked_rows, (), own, (sizes, chunks.n_features))
    found = np.empty((positions.size, chunks.n_features))
    width = -(-n_bytes // max(int(starts[-1]), 1))
    purpose = f"finite values, {positions.size} rows"
    for i, said in chunks.scan(kernels.checked_rows, (), own, purpose, bytes_per_row=width):
        if i >= 0:
            found[bounds[i] : bounds[i + 1]] = said
    return found
