"""A crash-safe store of records: JSON lines, one a run, appended and synced one at a time.

The first line says what the file is. A record counts when its line ends; what a crash left of a
last line is cut off when the store is next opened for writing, and ignored by readers. One
process at a time may write, which is enforced where the system has advisory locks.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Self

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
        self._version = version
        self._file: BinaryIO | None = None
        self.records: dict[str, Record] = {}
        self._read()

    def __enter__(self) -> Self:
        with self._told("cannot be written: {}; choose another --out"):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = open(self.path, "a+b")
        try:
            self._lock(self._file)
            # Another process may have written between reading and locking.
            kept = self._read()
            if kept < self._file.seek(0, os.SEEK_END):
                self._file.truncate(kept)
            if kept == 0:
                self._write({"kind": _KIND, "schema": SCHEMA, "version": self._version})
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self._close()

    def append(self, record: Mapping[str, Any]) -> None:
        """Write a record through to the disk."""
        if self._file is None:
            raise RuntimeError("open the store with `with` before writing to it")
        self._write(record)
        self.records[str(record["key"])] = dict(record)

    def _write(self, line: Mapping[str, Any]) -> None:
        assert self._file is not None
        text = json.dumps(line, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
        with self._told("cannot be written: {}; all earlier records are safe"):
            self._file.write(text.encode("ascii") + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())

    def _close(self) -> None:
        if self._file is not None:
            # What a full disk did not take is tried again here; `_write` has told of it.
            with suppress(OSError):
                self._file.close()
            self._file = None

    def _read(self) -> int:
        """Read the complete lines; return how many bytes they are."""
        self.records = {}
        with self._told("cannot be read: {}"):
            if not self.path.exists():
                return 0
            data = self.path.read_bytes()
        kept = data.rfind(b"\n") + 1
        lines = data[:kept].splitlines()
        if not lines:
            # Only the torn beginning of a first line is ours to complete.
            beginning = json.dumps({"kind": _KIND}, separators=(",", ":"))[:-1].encode()
            if data and not (beginning.startswith(data) or data.startswith(beginning)):
                raise self._error("is not a store of records; nothing was written")
            return 0
        self._check_header(lines[0])
        for number, line in enumerate(lines[1:], start=2):
            record = _parse(line)
            if "key" not in record:
                raise self._error(f"line {number} is damaged; remove it, or choose another --out")
            self.records[str(record["key"])] = record
        return kept

    def _check_header(self, line: bytes) -> None:
        header = _parse(line)
        if header.get("kind") != _KIND:
            raise self._error("is not a store of records; nothing was written")
        for name, ours in (("schema", SCHEMA), ("version", self._version)):
            if header.get(name) != ours:
                other = f"is from {name} {header.get(name)}, this is {name} {ours}"
                raise self._error(f"{other}; choose another --out or move the file away")

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


def _parse(line: bytes) -> Record:
    """Return what a line holds; what is not a record at all is an empty one, which none accepts."""
    try:
        value = json.loads(line)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
