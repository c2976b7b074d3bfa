"""Rows that are read a chunk at a time, in a few passes, by whatever engine holds them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["Chunks", "Kernel", "PassLog", "SlicedChunks", "Sums", "Take", "add_sums", "batches"]

logger = logging.getLogger("outweigh")

GATHERED_BYTES = 512 * 2**20
"""Values brought to one place at once: columns of a working set, or a matrix over all pairs."""

_BATCH_BYTES = 64 * 2**20
# Read at once from a file on disk.
_SLICE_BYTES = 64 * 2**20

Sums = tuple[NDArray[np.float64], ...]
"""Arrays that add up over the chunks."""

Kernel = Callable[..., tuple[Any, Sums]]
"""What is done with one chunk: from the block, shared and own arguments to (per row, sums)."""

Take = Callable[[int, Any], None]
"""Takes the number of a chunk and what a kernel says of its rows."""


@dataclass(slots=True, eq=False)
class PassLog:
    """Counts the passes over the data and tells the logger of each."""

    passes: list[str] = field(default_factory=list)
    counted: bool = True

    def __call__(self, purpose: str, n_chunks: int, whole: bool) -> Callable[[], None]:
        """Note the beginning of a pass, or of a look at some rows; return what notes its end."""
        name = "some rows"
        if whole and self.counted:
            self.passes.append(purpose)
            name = f"pass {len(self.passes)}"
        elif whole:
            name = "what the workers hold"
        note = "%s over %d chunks: %s"
        logger.info(note, name, n_chunks, purpose, extra={"a_pass": "begins"})
        began = perf_counter()

        def ended() -> None:
            took = perf_counter() - began
            logger.info("%s: done in %.1f s", name, took, extra={"a_pass": "ends"})

        return ended

    def uncounted(self) -> PassLog:
        """Return a log for chunks that are held in memory: going through them reads no data."""
        return PassLog(self.passes, counted=False)


class Chunks(Protocol):
    """An engine: blocks of consecutive full rows, and a way to run a kernel on each of them."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """Rows in each chunk."""
        ...

    @property
    def n_features(self) -> int:
        """Number of columns d."""
        ...

    @property
    def budget(self) -> int:
        """Bytes that may be gathered in one place."""
        ...

    @property
    def log(self) -> PassLog:
        """Where passes are counted."""
        ...

    def scan(
        self,
        kernel: Kernel,
        shared: Sequence[object],
        own: Sequence[Sequence[object]],
        purpose: str,
        take: Take | None = None,
        *,
        lanes: int = 16,
        bytes_per_row: int = 8,
        only: Sequence[int] | None = None,
    ) -> Sums:
        """Run a kernel on every chunk, hand on what it says, and return its sums.

        Parameters
        ----------
        kernel : callable
            Called as ``kernel(block, *shared, *own[i])``.
        shared : sequence
            Arguments that are the same for every chunk.
        own : sequence of sequences
            Arguments of each chunk.
        purpose : str
            For the log.
        take : callable, optional
            Called with the number of each chunk and what the kernel says of its rows.
        lanes : int
            The sums are added along this many chains at once, in an order that depends on the
            chunks alone.
        bytes_per_row : int
            The size of what the kernel says of one row.
        only : sequence of int, optional
            The chunks to visit; all by default.
        """
        ...

    def derived(
        self,
        kernel: Kernel,
        shared: Sequence[object],
        own: Sequence[Sequence[object]],
        shape: tuple[tuple[int, ...], int],
    ) -> Chunks:
        """Return chunks whose blocks are what a kernel makes of the present ones.

        ``shape`` holds the rows of each of them and their columns.
        """
        ...

    def lazily(
        self,
        function: Callable[[NDArray[Any]], NDArray[Any]],
        weights: NDArray[np.float64] | None,
    ) -> Any:
        """Return a function of each row, times its weight, not yet computed.

        None where the engine cannot wait.
        """
        ...


@dataclass(frozen=True, slots=True, eq=False)
class SlicedChunks:
    """Slices of an array on disk, one after the other: for `numpy.memmap`.

    Parameters
    ----------
    array : ndarray of shape (n, d)
    sizes : tuple of int
        Rows in each slice.
    budget : int
        Bytes that may be gathered in memory.
    """

    array: Any
    sizes: tuple[int, ...]
    budget: int = GATHERED_BYTES
    log: PassLog = field(default_factory=PassLog)
    make: Callable[[NDArray[Any], int], NDArray[Any]] | None = None
    width: int | None = None
    source_sizes: tuple[int, ...] | None = None

    @classmethod
    def of(cls, array: Any, budget: int = GATHERED_BYTES) -> SlicedChunks:
        """Return slices of about 64 MB."""
        n, d = array.shape
        step = max(1, _SLICE_BYTES // (8 * max(d, 1)))
        return cls(array, tuple(min(step, n - start) for start in range(0, n, step)), budget)

    @property
    def n_features(self) -> int:
        """Number of columns d."""
        return int(self.array.shape[1]) if self.width is None else self.width

    @property
    def _slices(self) -> tuple[int, ...]:
        """Rows of the array in each slice, before any kernel leaves some out."""
        return self.sizes if self.source_sizes is None else self.source_sizes

    def scan(
        self,
        kernel: Kernel,
        shared: Sequence[object],
        own: Sequence[Sequence[object]],
        purpose: str,
        take: Take | None = None,
        *,
        lanes: int = 16,
        bytes_per_row: int = 8,
        only: Sequence[int] | None = None,
    ) -> Sums:
        """Run a kernel on every slice in turn; see `Chunks`."""
        del lanes, bytes_per_row
        visited = range(len(self.sizes)) if only is None else only
        ended = self.log(purpose, len(visited), only is None)
        starts = np.concatenate([[0], np.cumsum(self._slices)])
        total: Sums | None = None
        for i in visited:
            block = np.asarray(self.array[starts[i] : starts[i + 1]])
            if self.make is not None:
                block = self.make(block, i)
            said, sums = kernel(block, *shared, *own[i])
            total = add_sums(total, sums)
            if take is not None:
                take(i, said)
        ended()
        return total or ()

    def derived(
        self,
        kernel: Kernel,
        shared: Sequence[object],
        own: Sequence[Sequence[object]],
        shape: tuple[tuple[int, ...], int],
    ) -> SlicedChunks:
        """Return slices that are made again each time they are read."""

        def make(block: NDArray[Any], i: int) -> NDArray[Any]:
            before = block if self.make is None else self.make(block, i)
            return np.asarray(kernel(before, *shared, *own[i])[0])

        sizes, width = shape
        return SlicedChunks(self.array, sizes, self.budget, self.log, make, width, self._slices)

    def lazily(
        self,
        function: Callable[[NDArray[Any]], NDArray[Any]],
        weights: NDArray[np.float64] | None,
    ) -> None:
        """Return None: what is on disk is read at once or not at all."""
        del function, weights


def add_sums(total: Sums | None, part: Sums) -> Sums:
    """Return the sums of both; neither is changed."""
    return part if total is None else tuple(a + b for a, b in zip(total, part, strict=True))


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
