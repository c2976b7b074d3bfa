"""Tables from CSV, TSV, Parquet and NumPy files, or standard input, read into memory.

Nothing is unpickled, whatever a file claims to be.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
import sys
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from outweigh.files.archive import (
    DECOMPRESSED,
    TooLarge,
    array_in,
    check_members,
    read_at_most,
    read_member,
)
from outweigh.files.dialect import HEAD, encoding_of, read_header, recognise
from outweigh.files.table import (
    ID_NAMES,
    DataError,
    Found,
    Table,
    Wanted,
    named,
    one_line,
    refuse_other_arrays,
    table_from,
    wanted_columns,
)
from outweigh.libraries import library

MAX_GIGABYTES = 4.0
"""Files that hold more than this are refused unless more is allowed."""

BINARY = (".npy", ".npz", ".parquet", ".pq")
"""How names of files end that hold no text."""

_ROWS_AT_A_TIME = 4096
_KINDS = {b"PAR1": "parquet", b"\x93NUMPY": "npy", b"PK\x03\x04": "npz"}
_DECOMPRESSED: dict[bytes, Any] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\x00": lzma.open,
    b"\x28\xb5\x2f\xfd": lambda file: library("zstandard", "reading .zst needs").open(file, "rb"),
}


def read_table(
    source: str | Path, *, max_gigabytes: float = MAX_GIGABYTES, **options: Any
) -> Table:
    r"""Read the numeric columns of a CSV, TSV, Parquet, .npy or .npz file, or of standard input.

    Parameters
    ----------
    source : str or Path
        A file, or "-" for standard input. Its kind, and whether it is compressed, is recognised by
        its first bytes.
    max_gigabytes : float, default=4.0
        Files that hold more, also when decompressed, are refused.
    **options
        Which columns and rows, and how the file is written: the fields of `table.Wanted`.

    Returns
    -------
    Table

    Raises
    ------
    DataError
        With one line for a person.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> path = Path(tempfile.mkdtemp()) / "small.csv"
    >>> _ = path.write_text("id,mass,note\na,1.5,good\nb,2.5,bad\n")
    >>> table = read_table(path)
    >>> table.columns, table.labels, table.dropped
    (['mass'], ['a', 'b'], [('note', "text, such as 'good'")])
    """
    name, limit, kind = str(source), max_gigabytes * 1e9, "a table"
    wanted = Wanted(**options)
    with named(name):
        try:
            with _opened(name, limit) as file:
                kind = _kind(file, name)
                if kind == "text":
                    found = _text(file, name, wanted)
                else:
                    wanted.refuse_writing()
                    found = _BINARY[kind](file, limit, wanted)
        except TooLarge as error:
            raise DataError(
                f"{error} is more than is read at once ({max_gigabytes:g} GB); raise "
                "--max-gigabytes if it fits into memory, or read a file in parts with --scheduler "
                "threads (it needs Dask: pip install 'outweigh[dask,io]')"
            ) from error
        except (DataError, ImportError):
            raise
        except Exception as error:
            raise DataError(f"cannot be read as {kind}: {one_line(error)}") from error
        return table_from(found, name, wanted)


def _opened(name: str, limit: float) -> Any:
    """Return a file, or standard input, decompressed; it can be read again from its beginning."""
    file: Any
    if name == "-":
        file = read_at_most(sys.stdin.buffer, limit, "standard input")
        if not file.getbuffer().nbytes:
            raise DataError("standard input is empty")
    else:
        path = Path(name)
        if not path.exists():
            raise DataError("no such file")
        if path.is_dir():
            raise DataError("is a folder; name one file in it")
        if not path.is_file():
            raise DataError("is a pipe or a device; give - and redirect it to standard input")
        size = path.stat().st_size
        if size == 0:
            raise DataError("the file is empty")
        if size > limit:
            raise TooLarge(f"{size / 1e9:.1f} GB")
        file = path.open("rb")
    start = _start(file)
    for mark, decompressed in _DECOMPRESSED.items():
        if start.startswith(mark):
            with file, decompressed(file) as inside:
                return read_at_most(inside, limit, DECOMPRESSED)
    return file


def _kind(file: BinaryIO, name: str) -> str:
    start = _start(file)
    kind = next((kind for mark, kind in _KINDS.items() if start.startswith(mark)), "text")
    suffix = Path(name).suffix.lower()
    if kind == "text" and suffix in BINARY:
        raise DataError(f"is not a {suffix} file")
    return kind


def _start(file: BinaryIO) -> bytes:
    start = file.read(8)
    file.seek(0)
    return start


def _npy(file: BinaryIO, limit: float, wanted: Wanted) -> Found:
    return _in_columns(array_in(read_at_most(file, limit, "the array")))


def _npz(file: BinaryIO, limit: float, wanted: Wanted) -> Found:
    with zipfile.ZipFile(file) as archive:
        check_members(archive, limit)
        keys = [member.removesuffix(".npy") for member in archive.namelist()]
        if "X" in keys or len(keys) == 1:
            key = "X" if "X" in keys else keys[0]
            return _in_columns(array_in(read_member(archive, f"{key}.npy")))
    if {"format", "shape", "data"} <= set(keys):
        raise DataError("holds a sparse matrix; in Python the means take scipy.sparse matrices")
    if "[Content_Types].xml" in keys:
        raise DataError("is a workbook of a spreadsheet; save the sheet with the table as CSV")
    raise DataError(f"holds {len(keys)} arrays and none is called X: {', '.join(keys[:5])}")


def _in_columns(array: NDArray[Any]) -> Found:
    refuse_other_arrays(array.shape, array.dtype)
    names = [f"x{j}" for j in range(array.shape[1])]
    return _in_memory(_pandas().DataFrame(array, columns=names))


def _parquet(file: BinaryIO, limit: float, wanted: Wanted) -> Found:
    pandas = _pandas()
    needed = "pyarrow", "pyarrow.parquet"
    arrow, parquet = (library(name, "reading Parquet files needs") for name in needed)
    stored = parquet.ParquetFile(file)
    columns = None
    if wanted.columns is not None:
        known = stored.schema_arrow.names
        every = replace(wanted, columns=[*wanted.columns, *wanted.exclude], exclude=())
        # The first may name the rows.
        named = {*wanted_columns(every, known), wanted.id_column, *ID_NAMES, *known[:1]}
        columns = [column for column in known if column in named]
    # What a value that is repeated takes is not in its sizes: some rows at a time, it is counted.
    batches, held = [], 0
    for batch in stored.iter_batches(_ROWS_AT_A_TIME, columns=columns, use_pandas_metadata=True):
        batches.append(batch)
        held += batch.nbytes
        if held > limit:
            raise TooLarge(DECOMPRESSED)
    schema = batches[0].schema if batches else stored.schema_arrow
    frame = arrow.Table.from_batches(batches, schema).to_pandas()
    frame.columns = [str(column) for column in frame.columns]
    named_rows = not isinstance(frame.index, pandas.RangeIndex)
    return _in_memory(frame, [str(label) for label in frame.index] if named_rows else None)


def _text(file: BinaryIO, name: str, wanted: Wanted) -> Found:
    pandas = _pandas()
    found = encoding_of(iter(partial(file.read, HEAD), b""), wanted.encoding)
    file.seek(0)
    dialect = recognise(file.read(HEAD), found, name, wanted)
    file.seek(0)
    try:
        header = _header(file, dialect.separator, found)
        frame = pandas.read_csv(
            file,
            sep=dialect.separator,
            decimal=dialect.decimal,
            encoding=found,
            na_values=wanted.words,
            skiprows=None if dialect.units is None else [dialect.units],
            low_memory=False,
            index_col=False,
        )
    except (pandas.errors.ParserError, csv.Error) as error:
        raise DataError(
            f"cannot be read with {dialect.separator!r} between cells (--delimiter), the names of "
            f"the columns in the first line: {one_line(error)}"
        ) from error
    frame.columns = header
    if frame.empty:
        raise DataError("has a header and no rows")
    said = (
        [] if wanted.encoding or found == "utf-8-sig" else [f"text is read as {found} (--encoding)"]
    )
    return _in_memory(frame, recognised=said + dialect.recognised)


def _header(file: BinaryIO, separator: str, encoding: str) -> list[str]:
    lines = io.TextIOWrapper(file, encoding, newline="")
    try:
        return read_header(lines, separator)
    finally:
        # Else the file would be closed with it.
        lines.detach().seek(0)


_BINARY = {"parquet": _parquet, "npy": _npy, "npz": _npz}


def _in_memory(
    frame: Any, row_names: list[str] | None = None, recognised: Sequence[str] = ()
) -> Found:
    return Found(
        list(frame.columns),
        lambda column: _not_numeric(frame[column]),
        frame.__getitem__,
        partial(_numbers, frame),
        row_names,
        list(recognised),
    )


def _numbers(frame: Any, columns: list[str]) -> NDArray[np.float64]:
    return np.ascontiguousarray(frame[columns].to_numpy(dtype=np.float64, na_value=np.nan))


def _not_numeric(column: Any) -> str | None:
    """Return why a column is not numeric, or None if it is."""
    if column.isna().all():
        return "nothing"
    kind = column.dtype.kind
    if kind in "fiu":
        return None
    if kind in "bmM":
        return "true and false" if kind == "b" else "dates"
    present = column.dropna().astype(str)
    to_numeric = _pandas().to_numeric
    text = present[to_numeric(present, errors="coerce").isna()]
    if text.empty:
        return "numbers stored as text"
    with_points = present.str.replace(",", ".", n=1, regex=False)
    if to_numeric(with_points, errors="coerce").notna().all():
        such = f"numbers with commas, such as {present.iloc[0][:30]!r}"
        return f"{such}: use --decimal , if they are decimal commas, else remove them"
    said = f"such as {text.iloc[0][:30]!r}"
    if len(text) > 0.05 * len(present):
        return f"text, {said}"
    words = ",".join(text.unique()[:3])
    return (
        f"text in {len(text)} of {len(present)} cells, {said}: use --na {words} if it means a "
        "missing value"
    )


def _pandas() -> Any:
    return library("pandas", "reading files needs")
