"""A crash-safe store of records: JSON lines, one a run, appended and synced one at a time.

The first line says what the file is. A record counts when its line ends; what a crash left of a
last line is cut off when the store is next opened for writing, and ignored by readers. One
process at a time may write, which is enforced where the system has advisory locks.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Self

from outweigh.experiments.errors import ExperimentError
from outweigh.experiments.spec import SCHEMA, Record

_KIND = "outweigh records"


class Store:
    """Records on disk, found by key. Use as a context manager to write.

    A key may occur twice only when a failure was tried again: the later record counts.

    Parameters
    ----------
    path : path-like
        The file; it is made, with its folder, when first written to.
    version : str
        The version of the library. A file from another version is refused, since its results
        may not be comparable.

    Attributes
    ----------
    records : dict
        The record of each run that has one, by its key.

    Raises
    ------
    ExperimentError
        If the file is not a store, or from another version, or damaged before its last line.
    """

    def __init__(self, path: str | os.PathLike[str], version: str) -> None:
        self.path = Path(path)
        self.records: dict[str, Record] = {}
        self._header = {"kind": _KIND, "schema": SCHEMA, "version": version}
        self._file: BinaryIO | None = None
        self._read()

    def __enter__(self) -> Self:
        with self._told("cannot be written: {}; choose another --out"):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = open(self.path, "a+b")
        try:
            self._lock(self._file)
            # Another process may have written between reading and locking.
            kept = self._read()
            self._file.truncate(kept)
            if kept == 0:
                self._write(self._header)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        file, self._file = self._file, None
        # What a full disk did not take is tried again here; `_write` has told of it.
        with suppress(OSError):
            if file is not None:
                file.close()

    def append(self, record: Record) -> None:
        """Write a record through to the disk."""
        self._write(record)
        self.records[str(record["key"])] = dict(record)

    def _write(self, line: Record) -> None:
        if self._file is None:
            raise RuntimeError("open the store with `with` before writing to it")
        text = _line(line)
        with self._told("cannot be written: {}; all earlier records are safe"):
            self._file.write(text)
            self._file.flush()
            os.fsync(self._file.fileno())

    def _read(self) -> int:
        """Read the complete lines; return how many bytes they are."""
        self.records = {}
        with self._told("cannot be read: {}"):
            data = self.path.read_bytes() if self.path.exists() else b""
        kept = data.rfind(b"\n") + 1
        if not kept and _line(self._header).startswith(data):
            # Nothing, or the torn beginning of a first line, which is ours to complete.
            return 0
        first, *lines = map(_parse, data[:kept].splitlines() or [data])
        if first.get("kind") != _KIND:
            raise self._error("is not a store of records; nothing was written")
        for name, ours in self._header.items():
            if first.get(name) != ours:
                other = f"is from {name} {first.get(name)}, this is {name} {ours}"
                raise self._error(f"{other}; choose another --out or move the file away")
        for number, record in enumerate(lines, start=2):
            if "key" not in record:
                raise self._error(f"line {number} is damaged; remove it, or choose another --out")
            self.records[str(record["key"])] = record
        return kept

    def _lock(self, file: BinaryIO) -> None:
        """Hold the file until it is closed; the system lets go of it when the process dies."""
        if sys.platform == "win32":  # has no advisory locks: a lock would keep readers out as well
            return
        import fcntl

        with self._told("another process is writing to it; wait for it, or choose another --out"):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    @contextmanager
    def _told(self, problem: str) -> Iterator[None]:
        """Say in one line what the system refuses; its own words go between the braces."""
        try:
            yield
        except OSError as error:
            raise self._error(problem.format(error.strerror)) from error

    def _error(self, problem: str) -> ExperimentError:
        return ExperimentError(f"{self.path}: {problem}")


def _line(record: Record) -> bytes:
    text = json.dumps(record, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.encode("ascii") + b"\n"


def _parse(line: bytes) -> Record:
    """Return what a line holds; what is not a record at all is an empty one, which none accepts."""
    try:
        value = json.loads(line)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
