"""Tables from CSV, TSV, Parquet and NumPy files, or standard input.

Nothing is unpickled, whatever a file claims to be.
"""

from __future__ import annotations

import csv
import io
import sys
import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from outweigh.io.needs import DataError, listed, one_line, pandas_for, refuse_unknown
from outweigh.io.table import ID_NAMES, Table, table_from

__all__ = ["MAX_GIGABYTES", "MORE_CELLS", "check_header", "read_table"]

MAX_GIGABYTES = 4.0
"""Files larger than this are refused unless more is allowed."""

MORE_CELLS = (
    "{}: the rows have more cells than the header has names; the header needs a name for every "
    "column"
)

_SEPARATORS = {";": "a semicolon", "\t": "a tab", "|": "a bar", ",": "a comma"}


def read_table(
    source: str | Path,
    *,
    columns: Sequence[str] | None = None,
    id_column: str | None = None,
    drop_missing: bool = False,
    delimiter: str | None = None,
    decimal: str = ".",
    max_gigabytes: float = MAX_GIGABYTES,
    min_rows: int = 2,
) -> Table:
    r"""Read the numeric columns of a CSV, TSV, Parquet, .npy or .npz file, or of standard input.

    Parameters
    ----------
    source : str or Path
        A file, or "-" for standard input, whose kind is recognised by its first bytes.
    columns : sequence of str, optional
        The columns to use; all numeric ones by default.
    id_column : str, optional
        The column that names the rows. A first column of distinct values called id or index is
        taken by default.
    drop_missing : bool, default=False
        Leave rows with missing values out instead of refusing them.
    delimiter : str, optional
        Between the cells of a text file; a tab for .tsv and a comma for others by default.
    decimal : {".", ","}, default="."
        In the numbers of a text file.
    max_gigabytes : float, default=4.0
        Larger files are refused.
    min_rows : int, default=2
        Fewer usable rows are refused.

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
    name = str(source)
    content, kind = _content(name, max_gigabytes)
    try:
        if kind in ("npy", "npz"):
            frame, row_names = _array_frame(content, kind, name)
        elif kind == "parquet":
            frame, row_names = _parquet_frame(content, name, columns, id_column)
        else:
            frame, row_names = _text_frame(content, name, delimiter, decimal), None
    except (OSError, UnicodeDecodeError, EOFError) as error:
        raise DataError(f"{name}: cannot be read as {kind}: {one_line(error)}") from error
    return table_from(frame, row_names, name, columns, id_column, drop_missing, min_rows)


def _content(name: str, max_gigabytes: float) -> tuple[Path | bytes, str]:
    """Return where the bytes are, or the bytes of standard input, and what kind they are."""
    if name == "-":
        data = sys.stdin.buffer.read()
        if not data:
            raise DataError("-: standard input is empty")
        return data, _kind_of_bytes(data[:8])
    path = Path(name)
    if not path.exists():
        raise DataError(f"{name}: no such file")
    if path.is_dir():
        raise DataError(f"{name}: is a folder; name one file in it")
    size = path.stat().st_size
    if size == 0:
        raise DataError(f"{name}: the file is empty")
    if size > max_gigabytes * 1e9:
        raise DataError(
            f"{name}: {size / 1e9:.1f} GB is more than is read at once ({max_gigabytes:g} GB); "
            "raise --max-gigabytes if it fits into memory, or read it in parts with "
            "--scheduler threads (it needs Dask: pip install 'outweigh[dask,io]')"
        )
    with path.open("rb") as file:
        by_bytes = _kind_of_bytes(file.read(8))
    suffix = path.suffix.lower()
    if by_bytes == "text" and suffix in (".npy", ".npz", ".parquet", ".pq"):
        raise DataError(f"{name}: is not a {suffix} file")
    return path, by_bytes


def _kind_of_bytes(start: bytes) -> str:
    if start.startswith(b"PAR1"):
        return "parquet"
    if start.startswith(b"\x93NUMPY"):
        return "npy"
    return "npz" if start.startswith(b"PK\x03\x04") else "text"


def _array_frame(content: Path | bytes, kind: str, name: str) -> tuple[Any, None]:
    source: Any = io.BytesIO(content) if isinstance(content, bytes) else content.open("rb")
    try:
        with source:
            loaded = np.load(source, allow_pickle=False)
            array = loaded if kind == "npy" else _only_array(loaded, name)
    except DataError:
        raise
    except Exception as error:
        raise DataError(f"{name}: cannot be read as .{kind}: {one_line(error)}") from error
    if array.ndim != 2 or array.dtype.kind not in "fiu":
        raise DataError(
            f"{name}: needs an array of numbers with two dimensions, rows and columns; "
            f"got {array.dtype} of shape {array.shape}"
        )
    names = [f"x{j}" for j in range(array.shape[1])]
    return pandas_for("reading files").DataFrame(array, columns=names), None


def _only_array(archive: Any, name: str) -> NDArray[Any]:
    with archive:
        keys = list(archive.files)
        if "X" in keys or len(keys) == 1:
            return np.asarray(archive["X" if "X" in keys else keys[0]])
        if {"format", "shape", "data"} <= set(keys):
            raise DataError(
                f"{name}: holds a sparse matrix of scipy, which this command does not read; in "
                "Python the means take scipy.sparse.load_npz(FILE) as it is"
            )
    raise DataError(f"{name}: holds {len(keys)} arrays and none is called X: {', '.join(keys[:5])}")


def _parquet_frame(
    content: Path | bytes, name: str, columns: Sequence[str] | None, id_column: str | None
) -> tuple[Any, list[str] | None]:
    pandas = pandas_for("reading files")
    source: Any = io.BytesIO(content) if isinstance(content, bytes) else content
    try:
        import pyarrow.parquet as pq

        known = pq.read_schema(source).names
        if isinstance(source, io.BytesIO):
            source.seek(0)
        wanted = None
        if columns is not None:
            refuse_unknown(name, [*columns, *([id_column] if id_column else [])], known)
            wanted = [c for c in known if c in columns or c == id_column or c in ID_NAMES]
        frame = pandas.read_parquet(source, columns=wanted)
    except ImportError as error:
        raise DataError(
            f"{name}: reading Parquet files needs pyarrow: pip install 'outweigh[io]'"
        ) from error
    except DataError:
        raise
    except Exception as error:
        raise DataError(f"{name}: cannot be read as Parquet: {one_line(error)}") from error
    frame.columns = [str(column) for column in frame.columns]
    named = not isinstance(frame.index, pandas.RangeIndex)
    return frame, [str(label) for label in frame.index] if named else None


def _text_frame(content: Path | bytes, name: str, delimiter: str | None, decimal: str) -> Any:
    pandas = pandas_for("reading files")
    separator = delimiter or ("\t" if name.lower().endswith((".tsv", ".tab")) else ",")
    source: Any = io.BytesIO(content) if isinstance(content, bytes) else content
    try:
        head = pandas.read_csv(source, sep=separator, header=None, nrows=1, dtype=str)
        if isinstance(source, io.BytesIO):
            source.seek(0)
        header = ["" if cell is None or cell != cell else str(cell) for cell in head.iloc[0]]
        check_header(header, name, separator)
        with warnings.catch_warnings():
            warnings.simplefilter("error", pandas.errors.ParserWarning)
            frame = pandas.read_csv(
                source, sep=separator, decimal=decimal, low_memory=False, index_col=False
            )
    except pandas.errors.ParserWarning as error:
        raise DataError(MORE_CELLS.format(name)) from error
    except (pandas.errors.ParserError, pandas.errors.EmptyDataError, csv.Error) as error:
        raise DataError(
            f"{name}: cannot be read with {_called(separator)} between cells: {one_line(error)}; "
            "another one is given with --delimiter"
        ) from error
    frame.columns = header
    if frame.empty:
        raise DataError(f"{name}: has a header and no rows")
    return frame


def check_header(header: list[str], name: str, separator: str) -> None:
    """Refuse the names of columns that do not tell the columns apart."""
    if len(header) == 1:
        inside = [other for other in _SEPARATORS if other != separator and other in header[0]]
        if inside:
            shown = "'\\t'" if inside[0] == "\t" else repr(inside[0])
            raise DataError(
                f"{name}: one column only; the cells seem to be separated by "
                f"{_called(inside[0])}: use --delimiter {shown}"
            )
    twice = [column for column, count in Counter(header).items() if count > 1]
    if twice:
        raise DataError(f"{name}: more than one column is called {listed(twice)}; rename them")
    if len(header) > 1 and all(_is_number(cell) for cell in header):
        raise DataError(
            f"{name}: the first line holds numbers and no names; a header with a name for each "
            "column is needed"
        )


def _called(separator: str) -> str:
    return _SEPARATORS.get(separator, repr(separator))


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
