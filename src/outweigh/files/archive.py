"""Bytes and arrays from files that may not be trusted: nothing takes more memory than allowed."""

from __future__ import annotations

import io
import math
import zipfile
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

DECOMPRESSED = "what it holds when decompressed"

_AT_A_TIME = 2**20


class TooLarge(ValueError):  # noqa: N818
    """There is more in a file than may be read; the message names what is too large."""


def read_at_most(file: IO[bytes], limit: float, what: str) -> io.BytesIO:
    """Return all that a file holds; refuse it under the name `what` if that is beyond `limit`."""
    buffer = io.BytesIO()
    while part := file.read(_AT_A_TIME):
        if buffer.tell() + len(part) > limit:
            raise TooLarge(what)
        buffer.write(part)
    buffer.seek(0)
    return buffer


def check_members(archive: zipfile.ZipFile, limit: float) -> None:
    """Refuse a zip archive whose members cannot be read safely, or hold more than `limit` bytes."""
    members = archive.infolist()
    if len({member.filename for member in members}) < len(members):
        raise ValueError("two members have one name")
    for member in members:
        # Of the methods of compression, only this one is undone a few bytes at a time.
        plain = member.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
        if not plain or member.flag_bits & 1:
            raise ValueError(f"{member.filename} is encrypted, or compressed in an unusual manner")
    if sum(member.file_size for member in members) > limit:
        raise TooLarge(DECOMPRESSED)


def read_member(archive: zipfile.ZipFile, name: str) -> io.BytesIO:
    """Return what a member holds: at most as many bytes as the archive declares for it."""
    with archive.open(name) as file:
        return read_at_most(file, archive.getinfo(name).file_size, name)


def array_in(buffer: io.BytesIO) -> NDArray[Any]:
    """Return the array that is stored in NumPy's format, without a copy.

    Raises
    ------
    ValueError
        If there are fewer or more numbers than the shape says, or objects in need of a pickle.
    """
    version = np.lib.format.read_magic(buffer)
    first = version == (1, 0)
    read = np.lib.format.read_array_header_1_0 if first else np.lib.format.read_array_header_2_0
    shape, by_columns, dtype = read(buffer)
    data = buffer.getbuffer()[buffer.tell() :]
    if dtype.hasobject:
        raise ValueError("holds Python objects and no numbers; objects are never read")
    if data.nbytes != math.prod(shape) * dtype.itemsize:
        raise ValueError(f"holds {data.nbytes} bytes, which are not {dtype} of shape {shape}")
    return np.frombuffer(data, dtype).reshape(shape, order="F" if by_columns else "C")
