"""Faults at will: the k-th thing that is done to a file fails, for every k.

`Faults(folder, error, at)` replaces, while it is entered, what Python writes files with: opening
for writing, writing, flushing, cutting, synchronising, changing permissions, renaming and making
folders. Each has two moments, before it is done and after; a write that fails has written a half.
"""

from __future__ import annotations

import builtins
import errno
import io
import os
from pathlib import Path
from typing import Any

import pytest

FAULTS: dict[str, BaseException] = {
    "disk full": OSError(errno.ENOSPC, "No space left on device"),
    "not allowed": PermissionError(errno.EACCES, "Permission denied"),
    "interrupt": KeyboardInterrupt(),
}


class Faults:
    """A context in which the moment `at` of the work on files in a folder fails.

    A full disk stays full and what is not allowed stays so; an interrupt happens once. Closing and
    removing files go on working. `count` is the number of moments, to know when all are through.
    """

    def __init__(self, folder: Path, error: BaseException | None, at: int) -> None:
        self.folder, self.error, self.at, self.count = folder.resolve(), error, at, 0
        self._patch = pytest.MonkeyPatch()

    def __enter__(self) -> Faults:
        opened = builtins.open

        def faulty_open(file: Any, mode: str = "r", *args: Any, **options: Any) -> Any:
            if not set(mode) & set("wax+") or not self._inside(file):
                return opened(file, mode, *args, **options)
            self.moment()
            result = opened(file, mode, *args, **options)
            try:
                self.moment()
            except BaseException:
                result.close()
                raise
            return _FaultyFile(result, self)

        for module in (builtins, io):
            self._patch.setattr(module, "open", faulty_open)
        for name in ("replace", "rename", "chmod", "mkdir", "fsync", "ftruncate", "open"):
            self._patch.setattr(os, name, self._faulty(getattr(os, name), name))
        return self

    def __exit__(self, *error: object) -> None:
        self._patch.undo()

    def moment(self) -> None:
        """Count; fail if it is time."""
        now, self.count = self.count, self.count + 1
        if self.error is not None and (
            now == self.at or (now > self.at and isinstance(self.error, OSError))
        ):
            raise type(self.error)(*self.error.args)

    def _faulty(self, function: Any, name: str) -> Any:
        def faulty(what: Any, *args: Any, **options: Any) -> Any:
            flags = args[0] if name == "open" else os.O_WRONLY
            if not flags & (os.O_WRONLY | os.O_RDWR) or not self._inside(what):
                return function(what, *args, **options)
            self.moment()
            result = function(what, *args, **options)
            try:
                self.moment()
            except BaseException:
                if name == "open":
                    os.close(result)
                raise
            return result

        return faulty

    def _inside(self, file: Any) -> bool:
        # What is synchronised and cut has no name; only what is written here is.
        return isinstance(file, int) or Path(file).resolve().is_relative_to(self.folder)


class _FaultyFile:
    def __init__(self, file: Any, faults: Faults) -> None:
        self._file, self._faults = file, faults

    def __enter__(self) -> _FaultyFile:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def write(self, data: Any) -> int:
        try:
            self._faults.moment()
        except BaseException:
            self._file.write(data[: len(data) // 2])
            raise
        written = self._file.write(data)
        self._faults.moment()
        return int(written)

    def flush(self) -> None:
        self._faults.moment()
        self._file.flush()
        self._faults.moment()

    def truncate(self, size: int) -> None:
        self._faults.moment()
        self._file.truncate(size)
        self._faults.moment()
