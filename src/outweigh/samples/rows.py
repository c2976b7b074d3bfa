"""X as the user gave it, and rows that are in memory as a NumPy array.

Everything an estimator asks of raw rows is here; whatever the kind, the answers are the same. Rows
on disk or on a cluster are in `outweigh.samples.chunked_rows`, a sparse matrix in
`outweigh.samples.sparse_rows`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from outweigh.protocols import Array, Indices, Samples
from outweigh.samples import kernels
from outweigh.samples.chunks import GATHERED_BYTES, Sums, add_sums
from outweigh.samples.dense import DenseSamples
from outweigh.samples.kernels import Transform
from outweigh.samples.sparse import row_slices

# Of rows that are put in order, and the columns that are tried for it at first.
COPIED_BYTES, _FEW = 64 * 2**20, 4
# Rows that are looked at for what tells them apart. All m differ in two columns of v equally
# likely values with chance exp(-m^2/v), below .05 for v < m^2/3: ten rows tell such columns from
# ratings and counts of up to 33 values, fewer do not; 500 from any of fewer than 80,000, and in two
# columns of more it takes as many rows for one to be repeated by chance.
_LOOKED_AT, _TOO_FEW = 500, 10

Accepts = Callable[[NDArray[np.floating]], NDArray[np.bool_]]
"""From rows to whether each is accepted; small enough to be sent to workers."""


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

    @classmethod
    def of(cls, sums: Sums, mask: Any, weights: Array | None) -> Accepted:
        """Return what is accepted, given what `kernels.accepted` sums and says."""
        shift, (kept, total) = sums
        # Where nothing is accepted there is nothing to share out, and every entry is zero.
        scale = 1.0 / float(kept) if kept > 0.0 else 0.0
        shares = mask * scale if weights is None else mask * weights * scale
        return cls(shift, float(kept), float(total), shares)


@dataclass(frozen=True, slots=True, eq=False)
class Affine:
    """A transform z = (x[columns] - origin) / scale."""

    columns: Indices
    origin: Array
    scale: Array


@dataclass(frozen=True, slots=True, eq=False)
class Distinct:
    """The rows that count, equal ones as one row with a weight.

    Attributes
    ----------
    rows : Rows
        In the order of their values where they are in memory.
    weight : ndarray of shape (m,)
        Of each, summing to the number of rows that they are worth as evidence.
    place : ndarray of int, shape (n,)
        Which of them each row of X is; -1 for a row without weight.
    """

    rows: Rows
    weight: Array
    place: Indices

    def merged(self, values: Array) -> Array:
        """Return the sum of a value of each row of X over equal rows."""
        counts = self.place >= 0
        found = np.bincount(self.place[counts], values[counts], self.weight.size)
        return np.asarray(found, dtype=np.float64)

    def shared(self, values: Array, sample_weight: Array) -> Array:
        """Return a value of each distinct row shared among equal rows of X by their weights."""
        each = np.append(values / self.merged(sample_weight), 0.0)
        return np.asarray(each[self.place] * sample_weight)


class Rows(ABC):
    """The rows of X in the units of the user.

    What is not said otherwise below is done as for rows in memory, a dense slice at a time.
    """

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""

    @property
    def n_passes(self) -> int | None:
        """Passes made so far over data that is not in memory; None for data that is."""
        return None

    @abstractmethod
    def overview(self, direction: Array) -> Overview:
        """Look at all rows once, and along a direction; refuse values that are not finite."""

    @abstractmethod
    def take(self, indices: Indices | slice) -> Array:
        """Return some rows, dense."""

    def entries(self, indices: Indices, columns: Indices) -> Array:
        """Return some columns of some rows, dense."""
        return self.take(indices)[:, columns]

    @abstractmethod
    def part(self, indices: Indices) -> Rows:
        """Return the rows of increasing indices alone; refuse values of any row not finite."""

    @abstractmethod
    def samples(self, transform: Transform, d: int, affine: Affine | None = None) -> Samples:
        """Return the rows as samples after a transform to d columns.

        Parameters
        ----------
        transform : callable
        d : int
        affine : Affine, optional
            What the transform does, for rows that it can be applied to implicitly.
        """

    def distinct(self, sample_weight: Array) -> Distinct:
        """Return the rows of positive weight in the order of their values, equal ones as one.

        So no answer depends on the order of the table, or on whether a row is repeated or
        weighted. Rows that are too many for a copy stay as they are.
        """
        indices = np.flatnonzero(sample_weight > 0)
        weight = sample_weight[indices]
        place = np.full(sample_weight.size, -1, dtype=np.intp)
        if 8 * indices.size * self.shape[1] > COPIED_BYTES:
            place[indices] = np.arange(indices.size)
            rows = self if indices.size == self.shape[0] else self.part(indices)
            return Distinct(rows, weight, place)
        # All rows are not copied to be looked at.
        X = self.take(slice(None) if indices.size == self.shape[0] else indices)
        order, begins = _by_value(X, weight)
        place[indices[order]] = np.cumsum(begins) - 1
        weight = np.add.reduceat(weight[order], np.flatnonzero(begins))
        weight = weight * evidence_of_copies(weight, X)
        return Distinct(self.part(indices[order[begins]]), weight, place)

    def accept(self, accepts: Accepts, origin: Array, weights: Array | None) -> Accepted:
        """Return which rows a rule accepts, and their sums about an origin."""
        masks: list[NDArray[np.bool_]] = []
        total: Sums | None = None
        for part in row_slices(*self.shape):
            own = None if weights is None else weights[part]
            mask, sums = kernels.accepted(self.take(part), accepts, origin, own)
            masks.append(mask)
            total = add_sums(total, sums)
        return Accepted.of(total or (), np.concatenate(masks), weights)

    def map(self, function: Callable[[Array], Array]) -> Array:
        """Return a function of every row, computed block by block."""
        return np.concatenate([function(self.take(part)) for part in row_slices(*self.shape)])


@dataclass(frozen=True, slots=True, eq=False)
class ArrayRows(Rows):
    """Finite float64 rows in memory."""

    array: NDArray[np.float64]

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        n, d = self.array.shape
        return n, d

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

    def take(self, indices: Indices | slice) -> Array:
        """Return some rows."""
        return self.array[indices]

    def entries(self, indices: Indices, columns: Indices) -> Array:
        """Return some columns of some rows."""
        return self.array[np.ix_(indices, columns)]

    def part(self, indices: Indices) -> ArrayRows:
        """Return some rows alone."""
        return ArrayRows(self.array[indices])

    def samples(self, transform: Transform, d: int, affine: Affine | None = None) -> DenseSamples:
        """Return the rows as samples after a transform."""
        del d, affine
        return DenseSamples(transform(self.array))

    def map(self, function: Callable[[Array], Array]) -> Array:
        """Return a function of every row, of all of them at once."""
        return function(self.array)


def evidence_of_copies(weight: Array, rows: Array) -> float:
    """Return what to multiply the weights of distinct rows by, to sum to the rows they are worth.

    Whole numbers count copies. A factor common to all is no evidence. Where two columns tell all
    rows apart, chance does not repeat a row: its copies add to its weight, and there are as many
    independent rows as distinct ones. Else, in counts and ratings, each repetition is a row.
    Weights that are not whole numbers count as they are.

    Parameters
    ----------
    weight : ndarray of shape (m,)
        Of each distinct row.
    rows : ndarray of shape (some, d)
        Some of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> rows = np.random.default_rng(0).standard_normal((12, 2))
    >>> evidence_of_copies(np.arange(1.0, 13.0), rows) * 78.0
    12.0
    """
    if weight.size <= _TOO_FEW or weight.max() == 1.0 or np.any(weight != np.round(weight)):
        return 1.0
    some = np.unique(rows[:: -(-len(rows) // _LOOKED_AT)], axis=0)
    told_apart = (np.diff(np.sort(some, axis=0), axis=0) > 0.0).all(axis=0)
    if np.count_nonzero(told_apart) > 1:
        return float(weight.size / weight.sum())
    return float(1.0 / np.gcd.reduce(weight.astype(np.int64)))


def _by_value(X: Array, sample_weight: Array) -> tuple[Indices, NDArray[np.bool_]]:
    """Return the order of rows by their columns, the first first, and by their weights.

    And which of them, in that order, differ from the one before.
    """
    # One column or a few tell most rows apart, and sorting by all of a thousand takes long.
    for width in (1, _FEW, X.shape[1]):
        seen = X[:, :width]
        order = np.lexsort((sample_weight, *seen.T[::-1]))
        begins = np.ones(order.size, dtype=bool)
        begins[1:] = (seen[order[1:]] != seen[order[:-1]]).any(axis=1)
        if begins.all():
            break
    return order, begins


def is_dask(X: object) -> bool:
    """Tell whether X is a collection of Dask, without importing Dask."""
    return type(X).__module__.split(".")[0] in {"dask", "dask_expr"} and hasattr(X, "dask")


def is_on_disk(X: object) -> bool:
    """Tell whether X is an array on disk, too large to be read at once."""
    return isinstance(X, np.memmap) and X.ndim == 2 and 8 * X.size > GATHERED_BYTES
