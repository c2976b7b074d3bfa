"""What is done with one chunk of rows; plain functions, so that any worker can run them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from outweigh.forms import Form
from outweigh.protocols import Array, Indices
from outweigh.samples.chunks import Sums
from outweigh.samples.dense import INFINITE, DenseSamples
from outweigh.samples.second_moment import second_moment

__all__ = [
    "BadValue",
    "Clipped",
    "Divided",
    "Loader",
    "accepted",
    "checked_rows",
    "columns",
    "distances",
    "distances_and_quadratic",
    "mean",
    "moment_block",
    "moment_product",
    "moment_rows",
    "moment_sums",
    "overview",
    "prepared_rows",
    "project",
    "quadratic",
    "refuse_bad",
    "some_rows",
    "spread",
    "whole_rows",
]


class BadValue(NamedTuple):
    """The place of a value in a chunk that is not finite; -1 where it is not even a number."""

    row: int
    column: int


_T = TypeVar("_T")
Transform = Callable[[NDArray[np.floating]], Array]
Block = NDArray[Any]
Loader = tuple[NDArray[np.bool_] | None, Indices | None]
"""Which rows of a chunk count (None: all), and which of those hold zeros instead of values."""


def load(block: Block, transform: Transform | None, loader: Loader) -> Array:
    """Return the rows of a chunk that count, in units of the noise."""
    keep, zeroed = loader
    rows = np.asarray(block if keep is None else block[keep], dtype=np.float64)
    rows = rows if transform is None else np.asarray(transform(rows), dtype=np.float64)
    if zeroed is not None and zeroed.size:
        rows = rows.copy()
        rows[zeroed] = 0.0
    return rows


@dataclass(frozen=True, slots=True, eq=False)
class Clipped:
    """A transform followed by the clipping of huge values."""

    transform: Transform | None

    def __call__(self, rows: NDArray[np.floating]) -> Array:
        """Return the transformed rows."""
        found = rows if self.transform is None else self.transform(rows)
        return np.asarray(np.clip(found, -INFINITE, INFINITE), dtype=np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class Divided:
    """A transform followed by the division of each column by a factor."""

    transform: Transform | None
    factor: Array

    def __call__(self, rows: NDArray[np.floating]) -> Array:
        """Return the transformed rows."""
        found = rows if self.transform is None else self.transform(rows)
        with np.errstate(over="ignore"):
            return np.asarray(found / self.factor, dtype=np.float64)


def overview(
    block: Block, first: Array, direction: Array, keep: NDArray[np.bool_] | None
) -> tuple[Array | BadValue, Sums]:
    """Return a projection of each row, or the place of a bad value; count what varies."""
    nothing = (np.zeros(first.size),)
    try:
        rows = np.asarray(block, dtype=np.float64)
    except (TypeError, ValueError):
        return BadValue(-1, -1), nothing
    finite = np.isfinite(rows)
    if not finite.all():
        row, column = np.argwhere(~finite)[0]
        return BadValue(int(row), int(column)), nothing
    rows = rows if keep is None else rows[keep]
    with np.errstate(over="ignore", invalid="ignore"):
        keys = rows @ direction
    varies = (rows != first).any(axis=0)
    return keys, (varies.astype(np.float64),)


def checked_rows(block: Block, chunk: int, start: int, positions: Indices) -> tuple[Array, Sums]:
    """Return the named rows of a chunk of which all are finite; refuse it otherwise."""
    try:
        rows = np.asarray(block, dtype=np.float64)
    except (TypeError, ValueError):
        rows = refuse_bad(BadValue(-1, -1), chunk, start)
    finite = np.isfinite(rows)
    if not finite.all():
        row, column = np.argwhere(~finite)[0]
        refuse_bad(BadValue(int(row), int(column)), chunk, start)
    return rows[positions], ()


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


def accepted(
    block: Block,
    accepts: Callable[[NDArray[Any]], NDArray[np.bool_]],
    origin: Array,
    told: bool,
    weights: Array | None,
) -> tuple[NDArray[np.bool_] | None, Sums]:
    """Return which rows are accepted, if that is to be told, and their sums about an origin."""
    rows = np.asarray(block, dtype=np.float64)
    mask = accepts(rows)
    total = float(len(rows)) if weights is None else float(weights.sum())
    if weights is not None:
        mask = mask & (weights > 0)
    # A copy of what is accepted alone: other rows may hold 1e300, which no weight may meet.
    away = rows[mask] - origin
    if weights is None:
        shift, kept = away.sum(axis=0), float(len(away))
    else:
        shift, kept = weights[mask] @ away, float(weights[mask].sum())
    return mask if told else None, (shift, np.array([kept, total]))


def some_rows(block: Block, positions: Indices) -> tuple[Array | BadValue, Sums]:
    """Return the named rows in the units of the user."""
    try:
        return np.asarray(block[positions], dtype=np.float64), ()
    except (TypeError, ValueError):
        return BadValue(-1, -1), ()


def prepared_rows(
    block: Block, function: Callable[[NDArray[Any]], Any], keep: NDArray[np.bool_] | None
) -> tuple[Any, Sums]:
    """Return a function of the rows, or the place of a value that is not finite."""
    kind = np.float32 if block.dtype == np.float32 else np.float64
    rows = np.asarray(block, dtype=kind)
    finite = np.isfinite(rows)
    if not finite.all():
        row, column = np.argwhere(~finite)[0]
        return BadValue(int(row), int(column)), ()
    return function(rows if keep is None else rows[keep]), ()


def whole_rows(
    block: Block, transform: Transform | None, positions: Indices, loader: Loader
) -> tuple[Array, Sums]:
    """Return the named ones of the rows that count, in units of the noise, huge values clipped."""
    keep, _ = loader
    chosen = positions if keep is None else np.flatnonzero(keep)[positions]
    found = load(block[chosen], transform, (None, None))
    return np.clip(found, -INFINITE, INFINITE), ()


def columns(
    block: Block, transform: Transform | None, indices: Indices, loader: Loader
) -> tuple[Array, Sums]:
    """Return the named columns, huge values clipped."""
    found = np.take(load(block, transform, loader), indices, axis=1)
    return np.clip(found, -INFINITE, INFINITE, out=found), ()


def mean(
    block: Block, transform: Transform | None, loader: Loader, weights: Array
) -> tuple[None, Sums]:
    """Return the weighted sum of the rows."""
    return None, (weights @ load(block, transform, loader),)


def project(
    block: Block, transform: Transform | None, vectors: Array, loader: Loader
) -> tuple[Array, Sums]:
    """Return the rows along some vectors."""
    return load(block, transform, loader) @ vectors, ()


def quadratic(
    block: Block, transform: Transform | None, form: Form, drift: Array | None, loader: Loader
) -> tuple[Array, Sums]:
    """Return x'Zx - x'b of each row."""
    return DenseSamples(load(block, transform, loader)).quadratic(form, drift), ()


def moment_sums(
    block: Block,
    transform: Transform | None,
    pairs: bool,
    spacing: int,
    loader: Loader,
    weights: Array,
) -> tuple[None, Sums]:
    """Return weighted sums of x, of x x' (or of its diagonal), of some x^3 and x^4."""
    return None, _sums(load(block, transform, loader), weights, pairs, spacing)


def distances_and_quadratic(
    block: Block,
    transform: Transform | None,
    centre: Array,
    form: Form,
    drift: Array | None,
    loader: Loader,
) -> tuple[Array, Sums]:
    """Return squared distances and the values of a quadratic form, side by side."""
    samples = DenseSamples(load(block, transform, loader))
    return np.stack(samples.distances_and_quadratic(centre, form, drift), axis=1), ()


def distances(
    block: Block,
    transform: Transform | None,
    centre: Array,
    radius_sq: float | None,
    pairs: bool,
    spacing: int,
    loader: Loader,
    weights: Array | None,
) -> tuple[Array, Sums]:
    """Return squared distances, and the moment sums of the rows within the radius."""
    rows = load(block, transform, loader)
    found = DenseSamples(rows).squared_distances(centre)
    if radius_sq is None or weights is None:
        return found, ()
    near = found <= radius_sq
    if not near.all():
        # Values of 1e300 must not meet even a weight of zero.
        rows, weights = rows[near], weights[near]
    return found, _sums(rows, weights, pairs, spacing)


def moment_rows(
    block: Block, transform: Transform | None, indices: Indices, loader: Loader, weights: Array
) -> tuple[None, Sums]:
    """Return the named rows of X'diag(w)X."""
    rows = load(block, transform, loader)
    part = np.take(rows, indices, axis=1)
    part *= weights[:, None]
    return None, (part.T @ rows,)


def moment_block(
    block: Block, transform: Transform | None, indices: Indices, loader: Loader, weights: Array
) -> tuple[None, Sums]:
    """Return the block of X'diag(w)X on the named coordinates."""
    part = np.take(load(block, transform, loader), indices, axis=1)
    return None, (np.asarray(second_moment(part, weights, np.float64)),)


def spread(
    block: Block, transform: Transform | None, centre: Array, loader: Loader, weights: Array
) -> tuple[None, Sums]:
    """Return the weighted squares about a centre."""
    return None, (weights @ np.square(load(block, transform, loader) - centre),)


def moment_product(
    block: Block, transform: Transform | None, vectors: Array, loader: Loader, weights: Array
) -> tuple[None, Sums]:
    """Return X'diag(w)X V."""
    rows = load(block, transform, loader)
    along = rows @ vectors
    return None, (rows.T @ (along * (weights if along.ndim == 1 else weights[:, None])),)


def _sums(rows: Array, weights: Array, pairs: bool, spacing: int) -> Sums:
    if not weights.all():
        # Rows of no weight may hold values whose powers overflow.
        rows, weights = rows[weights != 0.0], weights[weights != 0.0]
    part = rows[:, ::spacing]
    cubes = part**3
    third, fourth = weights @ cubes, weights @ (cubes * part)
    if pairs:
        second = second_moment(rows, weights, np.float64)
    else:
        second = np.einsum("i,ij,ij->j", weights, rows, rows)
    return weights @ rows, np.asarray(second), third, fourth
