"""Samples that are read a chunk at a time: each reduction is a pass, and none is made twice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from outweigh.forms import Form
from outweigh.protocols import Array, Indices, MomentMatrix
from outweigh.samples import kernels
from outweigh.samples.chunked_memory import Gathered, MomentMemory, MomentSums, Projections
from outweigh.samples.chunks import Chunks, Kernel, Pass, Sums
from outweigh.samples.dense import DenseSamples
from outweigh.samples.kernels import Loader, Transform
from outweigh.samples.matrices import AnySamples, ArrayMoment, LazyMoment

# A variance this far below the squared mean is a difference of numbers that agree in six digits.
_CANCELLED = 1e-6
_NONE = np.empty(0, dtype=np.intp)


@dataclass(frozen=True, slots=True, eq=False)
class ChunkedSamples(AnySamples):
    """Rows in chunks, seen through passes over them.

    A pass brings home more than it was asked for where that costs nothing, and what is at hand is
    not read again: the moments of the last few weights, the columns gathered so far, and the rows
    whose weights changed.

    Parameters
    ----------
    chunks : Chunks
    transform : callable, optional
        From raw rows to rows in units of the noise.
    width : int
        Columns after the transform.
    keep : ndarray of bool, optional
        The rows that count; all by default.
    zeroed : ndarray of int
        Rows, among those that count, that hold zeros instead of their values.
    """

    chunks: Chunks
    width: int
    transform: Transform | None = None
    keep: NDArray[np.bool_] | None = None
    zeroed: Indices = field(default_factory=lambda: _NONE)
    _moments: MomentMemory = field(default_factory=MomentMemory, repr=False)
    _columns: Gathered = field(default_factory=lambda: Gathered(axis=1), repr=False)
    _rows: Gathered = field(default_factory=lambda: Gathered(axis=0), repr=False)
    _along: Projections = field(default_factory=Projections, repr=False)
    _far: list[tuple[Array, Array]] = field(default_factory=list, repr=False)

    @property
    def n_samples(self) -> int:
        """Number of rows n."""
        return self.chunks.count(self.keep)

    @property
    def n_features(self) -> int:
        """Number of columns d."""
        return self.width

    def mean(self, weights: Array) -> Array:
        """Return mu_w = X'w, for one or several weights in shape (n,) or (m, n)."""
        if weights.ndim == 1 and weights.min() >= 0.0:
            # Second moments at these weights are likely to be asked for next.
            return self._sums(weights).first.copy()
        return self._added("a weighted mean", _mean, weights.T)

    def moment_about(self, weights: Array, mean: Array | None, reference: float) -> MomentMatrix:
        """Return M_w - mu mu' - r I as an array, or on demand where it does not fit the budget."""
        sums = self._sums(weights)
        size = max(1, self.chunks.budget // (16 * self.n_features))
        lazy = LazyMoment(self, weights, mean, reference, size)
        return lazy if sums.second.ndim == 1 else ArrayMoment.of(sums.second.copy(), lazy)

    def quadratic(self, form: Form, drift: Array | None = None) -> Array:
        """Return x_i'Zx_i - x_i'b for every row."""
        support = form.support()
        if drift is not None:
            support = np.union1d(support, np.flatnonzero(drift))
        held = self._held(support)
        if held is not None:
            local = None if drift is None else drift[support]
            return DenseSamples(held).quadratic(form.on(support), local)
        return self._told("a quadratic form", DenseSamples.quadratic, form, drift)

    def project(self, vectors: Array) -> Array:
        """Return X V."""
        support = np.flatnonzero(vectors if vectors.ndim == 1 else vectors.any(axis=1))
        if 2 * support.size <= self.n_features:
            self._gather(support)
        held = self._held(support)
        if held is not None:
            return np.asarray(held @ vectors[support])
        columns = vectors.reshape(self.n_features, -1)
        along = self._along.find(columns)
        if along is None:
            shape = columns.shape[1:]
            along = self._told("a projection", DenseSamples.project, columns, shape=shape)
            self._along.remember(columns, along)
        return along.reshape(self.n_samples, *vectors.shape[1:])

    def columns(self, indices: Indices) -> DenseSamples | ChunkedSamples:
        """Return the same rows on the named columns: in memory if they fit the budget."""
        self._gather(indices)
        held = self._held(indices)
        if held is not None:
            return DenseSamples(held)
        sizes = tuple(int(size) for size in np.diff(self._bounds))
        shared = (kernels.columns, self.transform, (indices,))
        todo = Pass(kernels.on_samples, shared, self._own(), "columns kept by the workers")
        derived = self.chunks.derived(todo, sizes, int(indices.size))
        return ChunkedSamples(derived, int(indices.size))

    def at_hand(self) -> DenseSamples | ChunkedSamples:
        """Return the same samples in memory if they fit the budget, else themselves."""
        if 8 * self.n_samples * self.n_features > self.chunks.budget:
            return self
        return self.columns(np.arange(self.n_features))

    def without(self, rows: Indices) -> ChunkedSamples:
        """Return the samples with zeros in some rows, whose weights must be zero from now on."""
        return replace(self, zeroed=np.sort(rows), _along=Projections(), _far=[])

    def variances(self, weights: Array) -> Array:
        """Return the weighted variance of each column."""
        sums = self._sums(weights)
        found = sums.diagonal - sums.first**2
        if np.any(found < _CANCELLED * sums.first**2):
            # The origin is so far away that squares about it have lost their digits.
            purpose = "variances about the mean"
            found = self._run(kernels.spread, (sums.first,), purpose, weights, None)[1][0]
        return found

    def typical_kurtosis(self, weights: Array) -> float:
        """Return the median over columns of the weighted kurtosis; 3 for Gaussian features."""
        return self._sums(weights).typical_kurtosis()

    def squared_distances(self, centre: Array, near: tuple[float, Array] | None = None) -> Array:
        """Return |x_i - centre|^2 for every row; remember the moments of the rows within."""
        purpose = "squared distances"
        if near is None:
            # The last are asked for again, beside the components and along them.
            if not (self._far and np.array_equal(self._far[0][0], centre)):
                found = self._told(purpose, DenseSamples.squared_distances, centre)
                self._far[:] = [(centre.copy(), found)]
            return self._far[0][1].copy()
        within, weights = near
        arguments = (centre, within, self.chunks.budget)
        found, sums = self._run(kernels.distances, arguments, purpose, weights)
        kept = np.where(found <= within, weights, 0.0)
        self._moments.remember(kept, MomentSums(*sums), self.chunks.budget)
        return found

    def rescaled(self, factor: Array) -> ChunkedSamples:
        """Return the same rows with every column divided by its factor; what is known stays so."""
        return replace(
            self,
            transform=partial(kernels.divided, self.transform, factor),
            _moments=self._moments.divided(factor),
            _columns=self._columns.divided(factor),
            _rows=self._rows.divided(factor),
            _along=self._along.divided(factor),
            _far=[],
        )

    def moment_rows(self, weights: Array, indices: Indices) -> Array:
        """Return the named rows of X'diag(w)X by a pass."""
        return self._added("second moments", DenseSamples.moment_rows, weights, indices)

    def moment_block(self, weights: Array, indices: Indices) -> Array:
        """Return the block of X'diag(w)X on the named coordinates by a pass."""
        return self._added("second moments", DenseSamples.moment_block, weights, indices)

    def moment_product(self, weights: Array, vectors: Array) -> Array:
        """Return X'diag(w)X V by a pass."""
        method = DenseSamples.moment_product
        return self._added("a product of moments", method, weights, vectors)

    def _sums(self, weights: Array) -> MomentSums:
        known = self._moments.find(weights)
        if known is not None:
            return known
        known = self._changed_sums(weights)
        if known is None:
            arguments, purpose = (self.chunks.budget,), "second moments"
            known = MomentSums(
                *self._run(kernels.moment_sums, arguments, purpose, weights, None)[1]
            )
        self._moments.remember(weights, known, self.chunks.budget)
        return known

    def _changed_sums(self, weights: Array) -> MomentSums | None:
        """Return moments from known ones and the rows whose weights changed, if those fit."""
        held = kernels.holds_pairs(self.n_features, self.chunks.budget)
        near = self._moments.nearest(weights) if held else None
        if near is None:
            return None
        (factor, moves, moved), sums = near
        rows = np.flatnonzero(moved)
        missing = self._rows.missing(rows)
        if 8 * self.n_features * missing.size > self.chunks.budget - self._rows.n_bytes:
            return None
        if missing.size:
            every = np.arange(self.n_features)
            purpose = f"{missing.size} rows"
            found = self._only(missing)._run(kernels.columns, (every,), purpose, shape=every.shape)
            self._rows.add(missing, found[0])
        if rows.size == 0:
            return sums.scaled(factor)
        return sums.changed(factor, self._rows.take(rows), moves[rows])

    def _held(self, indices: Indices) -> Array | None:
        """Return columns, not to be written to, if all of them were brought home."""
        if indices.size == 0:
            return np.empty((self.n_samples, 0))
        if self._columns.missing(indices).size:
            return None
        found = self._columns.take(indices)
        if self.zeroed.size:
            found = found.copy()
            found[self.zeroed] = 0.0
        return found

    def _gather(self, indices: Indices) -> None:
        """Bring columns home unless they are there or do not fit."""
        missing = self._columns.missing(indices)
        room = self.chunks.budget - self._columns.n_bytes
        if missing.size == 0 or 8 * self.n_samples * missing.size > room:
            return
        # With the values of all rows: which of them hold zeros may change.
        every = replace(self, zeroed=_NONE)
        purpose = f"{missing.size} columns"
        found, _ = every._run(kernels.columns, (missing,), purpose, shape=missing.shape)
        self._columns.add(missing, found)

    def _told(
        self,
        purpose: str,
        method: Callable[..., Array],
        *arguments: object,
        shape: tuple[int, ...] = (),
    ) -> Array:
        """Return what a method of samples in memory tells of each row, an array of some shape."""
        return self._run(kernels.told, (method, *arguments), purpose, shape=shape)[0]

    def _added(
        self, purpose: str, method: Callable[..., Array], weights: Array, *arguments: object
    ) -> Array:
        """Return what a method of samples in memory sums over the rows, given their weights."""
        return self._run(kernels.added, (method, *arguments), purpose, weights, None)[1][0]

    def _run(
        self,
        kernel: Kernel,
        arguments: tuple[object, ...],
        purpose: str,
        weights: Array | None = None,
        shape: tuple[int, ...] | None = (),
    ) -> tuple[Array, Sums]:
        """Return what a kernel says of each row, an array of the given shape, and its sums.

        Nothing is said of rows where the shape is None.
        """
        found = np.empty((0,) if shape is None else (self.n_samples, *shape))
        bounds = self._bounds
        # As many partial sums may exist at once as fit the budget, at most 16.
        lanes = int(np.clip(self.chunks.budget // (8 * max(self.n_features, 1) ** 2), 1, 16))

        def put(i: int, said: Array) -> None:
            found[bounds[i] : bounds[i + 1]] = said

        shared, own = (kernel, self.transform, arguments), self._own(weights)
        take, width = (None, 0) if shape is None else (put, 8 * int(np.prod(shape)))
        todo = Pass(kernels.on_samples, shared, own, purpose, take, lanes, width)
        return found, self.chunks.scan(todo)

    def _only(self, rows: Indices) -> ChunkedSamples:
        """Return some of the rows that count, all with their values."""
        counted = np.arange(self.chunks.count(None))
        keep = np.zeros(counted.size, dtype=np.bool_)
        keep[(counted if self.keep is None else counted[self.keep])[rows]] = True
        return replace(self, keep=keep, zeroed=_NONE, _along=Projections(), _far=[])

    @property
    def _bounds(self) -> Indices:
        """Where each chunk begins among the rows that count, and where the last one ends."""
        starts = self.chunks.starts
        return starts if self.keep is None else np.append(0, np.cumsum(self.keep))[starts]

    def _own(self, weights: Array | None = None) -> list[tuple[Loader, Array | None]]:
        """Return for each chunk which of its rows count and hold zeros, and their weights."""
        bounds = self._bounds
        found: list[tuple[Loader, Array | None]] = []
        for i, keep in enumerate(self.chunks.split(self.keep)):
            first, last = np.searchsorted(self.zeroed, bounds[i : i + 2])
            part = None if weights is None else weights[bounds[i] : bounds[i + 1]]
            found.append(((keep, self.zeroed[first:last] - bounds[i]), part))
        return found


def _mean(samples: DenseSamples, weights: Array) -> Array:
    """Return weighted means, given the weights of each row in shape (n,) or (n, m)."""
    return samples.mean(weights.T)
