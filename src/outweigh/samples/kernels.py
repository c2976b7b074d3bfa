"""What is done with one chunk of rows; plain functions, so that any worker can run them.

Those of samples take rows in units of the noise and their weights, and are run by `on_samples`;
the others take a block as it was read. All return (what is said of each row, sums).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from outweigh.protocols import Array, Indices
from outweigh.samples.chunks import Sums
from outweigh.samples.dense import INFINITE, DenseSamples, some_columns
from outweigh.samples.matrices import second_moment

_T = TypeVar("_T")
Transform = Callable[[NDArray[np.floating]], Array]
Block = NDArray[Any]
Loader = tuple[NDArray[np.bool_] | None, Indices | None]
"""Which rows of a chunk count (None: all), and which of those hold zeros instead of values."""


def divided(transform: Transform | None, factor: Array, rows: NDArray[np.floating]) -> Array:
    """Return rows after a transform, every column divided by a factor."""
    found = rows if transform is None else transform(rows)
    with np.errstate(over="ignore"):
        return np.asarray(found / factor, dtype=np.float64)


def on_samples(
    block: Block,
    kernel: Callable[..., tuple[Any, Sums]],
    transform: Transform | None,
    arguments: tuple[object, ...],
    loader: Loader,
    weights: Array | None,
) -> tuple[Any, Sums]:
    """Run a kernel on the rows of a chunk that count, in units of the noise."""
    keep, zeroed = loader
    rows = np.asarray(block if keep is None else block[keep], dtype=np.float64)
    rows = rows if transform is None else np.asarray(transform(rows), dtype=np.float64)
    if zeroed is not None and zeroed.size:
        rows = rows.copy()
        rows[zeroed] = 0.0
    return kernel(rows, weights, *arguments)


def told(
    rows: Array, weights: Array | None, method: Callable[..., Array], *arguments: object
) -> tuple[Array, Sums]:
    """Return what a method of samples in memory tells of each row."""
    del weights
    return method(DenseSamples(rows), *arguments), ()


def added(
    rows: Array, weights: Array, method: Callable[..., Array], *arguments: object
) -> tuple[None, Sums]:
    """Return what a method of samples in memory sums over the rows, given their weights."""
    return None, (method(DenseSamples(rows), weights, *arguments),)


def columns(rows: Array, weights: Array | None, indices: Indices) -> tuple[Array, Sums]:
    """Return the named columns, huge values clipped."""
    del weights
    found = np.take(rows, indices, axis=1)
    return np.clip(found, -INFINITE, INFINITE, out=found), ()


def spread(rows: Array, weights: Array, centre: Array) -> tuple[None, Sums]:
    """Return the weighted squares about a centre."""
    return None, (weights @ np.square(rows - centre),)


def holds_pairs(n_features: int, budget: int) -> bool:
    """Tell whether a matrix over all pairs of features fits a number of bytes."""
    return 8 * n_features**2 <= budget


def moment_sums(rows: Array, weights: Array, budget: int) -> tuple[None, Sums]:
    """Return weighted sums of x, of x x' (its diagonal beyond the budget), of some x^3 and x^4."""
    if not weights.all():
        # Rows of no weight may hold values whose powers overflow.
        rows, weights = rows[weights != 0.0], weights[weights != 0.0]
    part = some_columns(rows)
    cubes = part**3
    third, fourth = weights @ cubes, weights @ (cubes * part)
    if holds_pairs(rows.shape[1], budget):
        second = second_moment(rows, weights)
    else:
        second = np.einsum("i,ij,ij->j", weights, rows, rows)
    return None, (weights @ rows, np.asarray(second), third, fourth)


def distances(
    rows: Array, weights: Array, centre: Array, within: float, budget: int
) -> tuple[Array, Sums]:
    """Return squared distances, and the moment sums of the rows within a squared radius."""
    found = DenseSamples(rows).squared_distances(centre)
    near = found <= within
    if not near.all():
        # Values of 1e300 must not meet even a weight of zero.
        rows, weights = rows[near], weights[near]
    return found, moment_sums(rows, weights, budget)[1]


class BadValue(NamedTuple):
    """The place of a value in a chunk that is not finite; -1 where it is not even a number."""

    row: int
    column: int


def refuse_bad(said: _T | BadValue, chunk: int, start: int) -> _T:
    """Return what a kernel said of a chunk, unless it met a value that it could not use."""
    if not isinstance(said, BadValue):
        return said
    if said.row < 0:
        raise ValueError(
            f"X: chunk {chunk} (from row {start} on) holds values that are not numbers"
        )
    raise ValueError(
        f"X: chunk {chunk} holds NaN or infinity, first in row {start + said.row}, column "
        f"{said.column}; drop or impute such rows first"
    )


def _numbers(block: Block, kind: type[np.floating] = np.float64) -> NDArray[Any] | BadValue:
    """Return a block as finite numbers, or the place of the first value that is not one."""
    try:
        rows = np.asarray(block, dtype=kind)
    except (TypeError, ValueError):
        return BadValue(-1, -1)
    finite = np.isfinite(rows)
    if finite.all():
        return rows
    row, column = np.argwhere(~finite)[0]
    return BadValue(int(row), int(column))


def overview(
    block: Block, first: Array, direction: Array, keep: NDArray[np.bool_] | None
) -> tuple[Array | BadValue, Sums]:
    """Return a projection of each row, or the place of a bad value; count what varies."""
    rows = _numbers(block)
    if isinstance(rows, BadValue):
        return rows, (np.zeros(first.size),)
    rows = rows if keep is None else rows[keep]
    with np.errstate(over="ignore", invalid="ignore"):
        keys = rows @ direction
    return keys, ((rows != first).any(axis=0).astype(np.float64),)


def mapped_rows(
    block: Block, function: Callable[[NDArray[Any]], Any], keep: NDArray[np.bool_] | None
) -> tuple[Any, Sums]:
    """Return a function of the rows, or the place of a value that is not finite."""
    rows = _numbers(block, np.float32 if block.dtype == np.float32 else np.float64)
    if isinstance(rows, BadValue):
        return rows, ()
    return function(rows if keep is None else rows[keep]), ()


def checked_rows(block: Block, chunk: int, start: int, positions: Indices) -> tuple[Array, Sums]:
    """Return the named rows of a chunk of which all are finite; refuse it otherwise."""
    return np.asarray(refuse_bad(_numbers(block), chunk, start))[positions], ()


def some_rows(block: Block, positions: Indices) -> tuple[Array | BadValue, Sums]:
    """Return the named rows in the units of the user."""
    try:
        return np.asarray(block[positions], dtype=np.float64), ()
    except (TypeError, ValueError):
        return BadValue(-1, -1), ()


def accepted(
    block: Block,
    accepts: Callable[[NDArray[Any]], NDArray[np.bool_]],
    origin: Array,
    weights: Array | None,
) -> tuple[NDArray[np.bool_], Sums]:
    """Return which rows are accepted, and their sums about an origin."""
    rows = np.asarray(block, dtype=np.float64)
    mask = accepts(rows)
    if weights is not None:
        mask = mask & (weights > 0)
    # A copy of what is accepted alone: other rows may hold 1e300, which no weight may meet.
    away = rows[mask] - origin
    if weights is None:
        shift, amounts = away.sum(axis=0), np.array([len(away), len(rows)], dtype=np.float64)
    else:
        shift, amounts = weights[mask] @ away, np.array([weights[mask].sum(), weights.sum()])
    return mask, (shift, amounts)
