"""Passes over chunked rows: which rows of each chunk count, and what a kernel makes of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from outweigh.protocols import Array, Indices
from outweigh.samples import kernels
from outweigh.samples.chunks import Chunks, Kernel, Sums
from outweigh.samples.kernels import Loader, Transform

__all__ = ["Passes"]


@dataclass(frozen=True, slots=True, eq=False)
class Passes:
    """Runs kernels over the rows of samples, see `outweigh.samples.kernels`.

    Parameters
    ----------
    chunks, n_features, transform, keep, zeroed
        As for `ChunkedSamples`.
    """

    chunks: Chunks
    n_features: int
    transform: Transform | None
    keep: NDArray[np.bool_] | None
    zeroed: Indices

    @property
    def n_samples(self) -> int:
        """Number of rows that count."""
        return sum(self.chunks.sizes) if self.keep is None else int(np.count_nonzero(self.keep))

    def told(
        self,
        purpose: str,
        method: Callable[..., Array],
        *arguments: object,
        shape: tuple[int, ...] = (),
    ) -> Array:
        """Return what a method of samples in memory tells of each row, an array of some shape."""
        return self.run(kernels.told, (method, *arguments), purpose, shape=shape)[0]

    def added(
        self, purpose: str, method: Callable[..., Array], weights: Array, *arguments: object
    ) -> Array:
        """Return what a method of samples in memory sums over the rows, given their weights."""
        return self.run(kernels.added, (method, *arguments), purpose, weights, None)[1][0]

    def run(
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
        bounds = self.bounds
        # As many partial sums may exist at once as fit the budget, at most 16.
        lanes = int(np.clip(self.chunks.budget // (8 * max(self.n_features, 1) ** 2), 1, 16))

        def put(i: int, said: Array) -> None:
            found[bounds[i] : bounds[i + 1]] = said

        sums = self.chunks.scan(
            kernels.on_samples,
            (kernel, self.transform, arguments),
            self.own(weights),
            purpose,
            None if shape is None else put,
            lanes=lanes,
            bytes_per_row=0 if shape is None else 8 * int(np.prod(shape)),
        )
        return found, sums

    def whole_rows(self, rows: Indices) -> Array:
        """Return some of the rows that count, in increasing order, huge values clipped."""
        every = np.arange(self.n_features)
        purpose = f"{rows.size} rows"
        return self.only(rows).run(kernels.columns, (every,), purpose, shape=every.shape)[0]

    def only(self, rows: Indices) -> Passes:
        """Return passes over some of the rows that count, all with their values."""
        counted = np.arange(sum(self.chunks.sizes))
        keep = np.zeros(counted.size, dtype=np.bool_)
        keep[(counted if self.keep is None else counted[self.keep])[rows]] = True
        return replace(self, keep=keep, zeroed=np.empty(0, dtype=np.intp))

    @property
    def bounds(self) -> Indices:
        """Where each chunk begins among the rows that count."""
        ends = np.cumsum(self.chunks.sizes)
        if self.keep is not None:
            ends = np.concatenate([[0], np.cumsum(self.keep)])[ends]
        return np.concatenate([[0], ends]).astype(np.intp)

    def own(self, weights: Array | None = None) -> list[tuple[Loader, Array | None]]:
        """Return for each chunk which of its rows count and hold zeros, and their weights."""
        bounds = self.bounds
        keeps: list[NDArray[np.bool_] | None] = [None] * len(self.chunks.sizes)
        if self.keep is not None:
            keeps = list(np.split(self.keep, np.cumsum(self.chunks.sizes)[:-1]))
        found: list[tuple[Loader, Array | None]] = []
        for i, keep in enumerate(keeps):
            first, last = np.searchsorted(self.zeroed, bounds[i : i + 2])
            part = None if weights is None else weights[bounds[i] : bounds[i + 1]]
            found.append(((keep, self.zeroed[first:last] - bounds[i]), part))
        return found
