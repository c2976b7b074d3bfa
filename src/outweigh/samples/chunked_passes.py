"""Passes over chunked rows: which rows of each chunk count, and what a kernel makes of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from outweigh.protocols import Array, Indices
from outweigh.samples import kernels
from outweigh.samples.chunks import Chunks, Sums
from outweigh.samples.kernels import Loader, Transform

__all__ = ["Passes"]


@dataclass(frozen=True, slots=True, eq=False)
class Passes:
    """Runs kernels over the chunks of samples.

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

    def loaders(self) -> list[Loader]:
        """Return for each chunk which of its rows count, and which of those hold zeros."""
        keeps: list[NDArray[np.bool_] | None] = [None] * len(self.chunks.sizes)
        if self.keep is not None:
            keeps = list(np.split(self.keep, np.cumsum(self.chunks.sizes)[:-1]))
        if self.zeroed.size == 0:
            return [(keep, None) for keep in keeps]
        bounds = self.bounds()
        loaders: list[Loader] = []
        for i, keep in enumerate(keeps):
            first, last = np.searchsorted(self.zeroed, bounds[i : i + 2])
            loaders.append((keep, self.zeroed[first:last] - bounds[i]))
        return loaders

    def own(self, weights: Array | None = None) -> list[tuple[object, ...]]:
        """Return for each chunk its loader, and its part of the weights if there are any."""
        if weights is None:
            return [(loader,) for loader in self.loaders()]
        bounds = self.bounds()
        parts = [weights[bounds[i] : bounds[i + 1]] for i in range(len(self.chunks.sizes))]
        return list(zip(self.loaders(), parts, strict=True))

    def bounds(self) -> Indices:
        """Return where each chunk begins among the rows that count."""
        ends = np.cumsum(self.chunks.sizes)
        if self.keep is not None:
            ends = np.concatenate([[0], np.cumsum(self.keep)])[ends]
        return np.concatenate([[0], ends]).astype(np.intp)

    def per_row(
        self,
        kernel: Any,
        shared: Sequence[object],
        own: Sequence[Sequence[object]],
        purpose: str,
        shape: tuple[int, ...] = (),
    ) -> Array:
        """Return what a kernel says of each row, an array of the given shape."""
        found = np.empty((self.n_samples, *shape))
        self.fill(kernel, shared, own, purpose, found)
        return found

    def fill(
        self,
        kernel: Any,
        shared: Sequence[object],
        own: Sequence[Sequence[object]],
        purpose: str,
        found: Array,
    ) -> Sums:
        """Fill `found` with what a kernel says of the rows; return its sums."""
        bounds = self.bounds()
        total: Sums = ()
        for i, said in self.visit(kernel, shared, own, purpose, found[:1].nbytes):
            if i < 0:
                total = said
            else:
                found[bounds[i] : bounds[i + 1]] = said
        return total

    def summed(
        self, kernel: Any, shared: Sequence[object], own: Sequence[Sequence[object]], purpose: str
    ) -> Sums:
        """Return the sums of a kernel over all chunks."""
        total: Sums = ()
        for i, said in self.visit(kernel, shared, own, purpose, 0):
            if i < 0:
                total = said
        return total

    def visit(
        self,
        kernel: Any,
        shared: Sequence[object],
        own: Sequence[Sequence[object]],
        purpose: str,
        width: int,
    ) -> Iterator[tuple[int, Any]]:
        """Yield what a kernel says of each chunk, then its sums."""
        return self.chunks.scan(
            kernel, shared, own, purpose, lanes=self._lanes, bytes_per_row=width
        )

    @property
    def _lanes(self) -> int:
        """How many partial sums may exist at once: as many as fit the budget, at most 16."""
        return int(np.clip(self.chunks.budget // (8 * max(self.n_features, 1) ** 2), 1, 16))

    def whole_rows(self, rows: Indices) -> Array:
        """Return some of the rows that count, by a pass."""
        found: list[Array] = []
        for i, said in self.visit(
            kernels.whole_rows,
            (self.transform,),
            self._places(rows),
            f"{rows.size} rows",
            1 + 8 * self.n_features * rows.size // self.n_samples,
        ):
            if i >= 0:
                found.append(said)
        return np.concatenate(found)

    def _places(self, rows: Indices) -> list[tuple[object, ...]]:
        """Return for each chunk where it holds some of the rows, and its loader."""
        bounds = self.bounds()
        parts = np.split(rows, np.searchsorted(rows, bounds[1:-1]))
        own = zip(parts, bounds, self.loaders(), strict=False)
        return [(part - first, loader) for part, first, loader in own]
