"""Rows that are read a chunk at a time, in a few passes, by whatever engine holds them."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from outweigh.protocols import Array, Indices

logger = logging.getLogger("outweigh")

GATHERED_BYTES = 512 * 2**20
"""Values brought to one place at once: columns of a working set, or a matrix over all pairs."""

# Read at once from a file on disk.
_SLICE_BYTES = 64 * 2**20

Sums = tuple[Array, ...]
"""Arrays that add up over the chunks."""

Kernel = Callable[..., tuple[Any, Sums]]
"""What is done with one chunk: from the block, shared and own arguments to (per row, sums)."""

Rowwise = Callable[[NDArray[Any]], NDArray[Any]]
"""A function of each row of a block."""


@dataclass(frozen=True, slots=True, eq=False)
class Pass:
    """What is to be done with every chunk.

    Parameters
    ----------
    kernel : callable
        Called as ``kernel(block, *shared, *own[i])``.
    shared : tuple
        Arguments that are the same for every chunk.
    own : sequence of tuples
        Arguments of each chunk.
    purpose : str
        For the log.
    take : callable, optional
        Called with the number of each chunk and what the kernel says of its rows.
    lanes : int
        The sums are added along this many chains at once, in an order that depends on the chunks
        alone.
    bytes_per_row : int
        The size of what the kernel says of one row.
    only : sequence of int, optional
        The chunks to visit; all by default.
    """

    kernel: Kernel
    shared: tuple[object, ...]
    own: Sequence[tuple[object, ...]]
    purpose: str
    take: Callable[[int, Any], None] | None = None
    lanes: int = 16
    bytes_per_row: int = 8
    only: Sequence[int] | None = None


@dataclass(slots=True, eq=False)
class PassLog:
    """Counts the passes over the data and tells the logger of each.

    Parameters
    ----------
    passes : list of str
        The purposes of those made so far.
    name : str, optional
        What passes are called that read no data, and do not count.
    """

    passes: list[str] = field(default_factory=list)
    name: str | None = None

    @contextmanager
    def __call__(self, purpose: str, n_chunks: int, name: str | None = None) -> Iterator[None]:
        """Note the beginning and the end of a pass; one that is given a name does not count."""
        name = name or self.name
        if name is None:
            self.passes.append(purpose)
            name = f"pass {len(self.passes)}"
        note = "%s over %d chunks: %s"
        logger.info(note, name, n_chunks, purpose, extra={"a_pass": "begins"})
        began = perf_counter()
        yield
        took = perf_counter() - began
        logger.info("%s: done in %.1f s", name, took, extra={"a_pass": "ends"})


class Chunks(ABC):
    """An engine: blocks of consecutive full rows, and a way to run a kernel on each of them.

    Attributes
    ----------
    sizes : tuple of int
        Rows in each chunk.
    n_features : int
        Number of columns d.
    budget : int
        Bytes that may be gathered in one place.
    log : PassLog
        Where passes are counted.
    """

    sizes: tuple[int, ...]
    n_features: int
    budget: int
    log: PassLog

    def scan(self, todo: Pass) -> Sums:
        """Run a kernel on every chunk, hand on what it says, and return its sums."""
        visited = range(len(self.sizes)) if todo.only is None else todo.only
        with self.log(todo.purpose, len(visited), None if todo.only is None else "some rows"):
            return self._run(todo, visited)

    @abstractmethod
    def _run(self, todo: Pass, visited: Sequence[int]) -> Sums: ...

    @abstractmethod
    def derived(self, todo: Pass, sizes: tuple[int, ...], n_features: int) -> Chunks:
        """Return chunks, of the given shapes, whose blocks are what a kernel says of these."""

    def lazily(self, function: Rowwise, weights: Array | None) -> Any:
        """Return a function of each row, times its weight, not yet computed.

        None where the engine cannot wait: what is on disk is read at once or not at all.
        """
        del function, weights

    @property
    def starts(self) -> Indices:
        """Where each chunk begins, and where the last one ends."""
        return np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.intp)

    def count(self, keep: NDArray[np.bool_] | None) -> int:
        """Return the number of rows that count, given which do; None stands for all."""
        return sum(self.sizes) if keep is None else int(np.count_nonzero(keep))

    def split(self, keep: NDArray[np.bool_] | None) -> Sequence[NDArray[np.bool_] | None]:
        """Return which rows of each chunk count, given which of all do."""
        return [None] * len(self.sizes) if keep is None else np.split(keep, self.starts[1:-1])


@dataclass(frozen=True, slots=True, eq=False)
class SlicedChunks(Chunks):
    """Blocks that are read, or made, one after the other: for `numpy.memmap`.

    Parameters
    ----------
    read : callable
        From the number of a block to its rows.
    sizes, n_features, budget, log
        As for `Chunks`.
    """

    read: Callable[[int], NDArray[Any]]
    sizes: tuple[int, ...]
    n_features: int
    budget: int = GATHERED_BYTES
    log: PassLog = field(default_factory=PassLog)

    @classmethod
    def of(
        cls, array: Any, budget: int = GATHERED_BYTES, sizes: tuple[int, ...] | None = None
    ) -> SlicedChunks:
        """Return slices of an array on disk, of about 64 MB by default."""
        n, d = array.shape
        if sizes is None:
            step = max(1, _SLICE_BYTES // (8 * max(d, 1)))
            sizes = tuple(min(step, n - start) for start in range(0, n, step))
        starts = np.concatenate([[0], np.cumsum(sizes)])
        return cls(lambda i: np.asarray(array[starts[i] : starts[i + 1]]), sizes, int(d), budget)

    def _run(self, todo: Pass, visited: Sequence[int]) -> Sums:
        total: Sums | None = None
        for i in visited:
            said, sums = todo.kernel(self.read(i), *todo.shared, *todo.own[i])
            total = add_sums(total, sums)
            if todo.take is not None:
                todo.take(i, said)
        return total or ()

    def derived(self, todo: Pass, sizes: tuple[int, ...], n_features: int) -> SlicedChunks:
        """Return blocks that are made again each time they are read."""

        def made(i: int) -> NDArray[Any]:
            return np.asarray(todo.kernel(self.read(i), *todo.shared, *todo.own[i])[0])

        return SlicedChunks(made, sizes, n_features, self.budget, self.log)


def add_sums(total: Sums | None, part: Sums) -> Sums:
    """Return the sums of both; neither is changed."""
    return part if total is None else tuple(a + b for a, b in zip(total, part, strict=True))
