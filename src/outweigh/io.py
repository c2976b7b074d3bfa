"""Tables from files and frames, and back: pandas, polars and pyarrow are imported only here.

Nothing is unpickled, whatever a file claims to be.
"""

from __future__ import annotations

import csv
import io
import sys
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from outweigh.estimators.explanation import Explanation
from outweigh.protocols import Array

__all__ = [
    "DataError",
    "Table",
    "explanation_frame",
    "named_frame",
    "read_table",
    "weights_frame",
]

MAX_GIGABYTES = 4.0
"""Files larger than this are refused unless more is allowed."""

_ID_NAMES = {"", "id", "index", "row", "row_id", "rowid", "unnamed: 0"}
_NAMED_ROWS = 5
_SEPARATORS = {";": "a semicolon", "\t": "a tab", "|": "a bar", ",": "a comma"}


class DataError(ValueError):
    """A file that cannot be used; the message is one line that says what and what to do."""


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Numbers from a file, with the names of rows and columns.

    Attributes
    ----------
    values : ndarray of shape (n, d)
    columns : list of str
    labels : list of str
        A name for each row: from the id column, or its number in the file, counted from 1.
    id_column : str or None
        Where the labels come from.
    dropped : list of tuple (name, reason)
        Columns left out.
    n_missing : int
        Rows left out for missing values.
    source : str
    """

    values: Array
    columns: list[str]
    labels: list[str]
    id_column: str | None
    dropped: list[tuple[str, str]]
    n_missing: int
    source: str


def read_table(
    source: str | Path,
    *,
    columns: Sequence[str] | None = None,
    id_column: str | None = None,
    drop_missing: bool = False,
    delimiter: str | None = None,
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
            frame, row_names = _text_frame(content, name, delimiter), None
    except (OSError, UnicodeDecodeError, EOFError) as error:
        raise DataError(f"{name}: cannot be read as {kind}: {_one_line(error)}") from error
    return _table(frame, row_names, name, columns, id_column, drop_missing, min_rows)


def explanation_frame(explanation: Explanation) -> Any:
    """Return an explanation as a pandas DataFrame, one line for each row and feature.

    Parameters
    ----------
    explanation : Explanation

    Returns
    -------
    pandas.DataFrame
        Columns row, label, score, feature, share, deviation.
    """
    top = explanation.features.shape[1]
    return _pandas("a DataFrame").DataFrame(
        {
            "row": np.repeat(explanation.rows, top),
            "label": np.repeat(explanation.labels, top),
            "score": np.repeat(explanation.scores, top),
            "feature": explanation.feature_names[explanation.features.ravel()],
            "share": explanation.shares.ravel(),
            "deviation": explanation.deviations.ravel(),
        }
    )


def named_frame(values: Array, names: Sequence[str], labels: Sequence[str] | None = None) -> Any:
    """Return numbers as a pandas DataFrame with names for columns and, if given, rows."""
    return _pandas("a DataFrame").DataFrame(
        values, columns=list(names), index=None if labels is None else list(labels), copy=False
    )


def weights_frame(
    labels: Sequence[str],
    weights: Array,
    scores: Array,
    flagged: NDArray[np.bool_],
    name: str = "row",
) -> Any:
    """Return what a fit says of each row as a pandas DataFrame."""
    return _pandas("a DataFrame").DataFrame(
        {name: labels, "weight": weights, "score": scores, "distrusted": flagged}
    )


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
            "raise --max-gigabytes if it fits into memory, or make a Parquet file of it and choose "
            "--columns, or fit on a sample of the rows and use `outweigh score` on parts"
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
        raise DataError(f"{name}: cannot be read as .{kind}: {_one_line(error)}") from error
    if array.ndim != 2 or array.dtype.kind not in "fiu":
        raise DataError(
            f"{name}: needs an array of numbers with two dimensions, rows and columns; "
            f"got {array.dtype} of shape {array.shape}"
        )
    names = [f"x{j}" for j in range(array.shape[1])]
    return _pandas("reading files").DataFrame(array, columns=names), None


def _only_array(archive: Any, name: str) -> NDArray[Any]:
    with archive:
        keys = list(archive.files)
        if "X" in keys or len(keys) == 1:
            return np.asarray(archive["X" if "X" in keys else keys[0]])
    raise DataError(f"{name}: holds {len(keys)} arrays and none is called X: {', '.join(keys[:5])}")


def _parquet_frame(
    content: Path | bytes, name: str, columns: Sequence[str] | None, id_column: str | None
) -> tuple[Any, list[str] | None]:
    pandas = _pandas("reading files")
    source: Any = io.BytesIO(content) if isinstance(content, bytes) else content
    try:
        import pyarrow.parquet as pq

        known = pq.read_schema(source).names
        if isinstance(source, io.BytesIO):
            source.seek(0)
        wanted = None
        if columns is not None:
            _refuse_unknown(name, [*columns, *([id_column] if id_column else [])], known)
            wanted = [c for c in known if c in columns or c == id_column or c in _ID_NAMES]
        frame = pandas.read_parquet(source, columns=wanted)
    except ImportError as error:
        raise DataError(
            f"{name}: reading Parquet files needs pyarrow: pip install 'outweigh[io]'"
        ) from error
    except DataError:
        raise
    except Exception as error:
        raise DataError(f"{name}: cannot be read as Parquet: {_one_line(error)}") from error
    frame.columns = [str(column) for column in frame.columns]
    named = not isinstance(frame.index, pandas.RangeIndex)
    return frame, [str(label) for label in frame.index] if named else None


def _text_frame(content: Path | bytes, name: str, delimiter: str | None) -> Any:
    pandas = _pandas("reading files")
    separator = delimiter or ("\t" if name.lower().endswith((".tsv", ".tab")) else ",")
    source: Any = io.BytesIO(content) if isinstance(content, bytes) else content
    try:
        head = pandas.read_csv(source, sep=separator, header=None, nrows=1, dtype=str)
        if isinstance(source, io.BytesIO):
            source.seek(0)
        header = ["" if cell is None or cell != cell else str(cell) for cell in head.iloc[0]]
        _check_header(header, name, separator)
        with warnings.catch_warnings():
            warnings.simplefilter("error", pandas.errors.ParserWarning)
            frame = pandas.read_csv(source, sep=separator, low_memory=False, index_col=False)
    except pandas.errors.ParserWarning as error:
        raise DataError(
            f"{name}: the rows have more cells than the header has names; "
            "the header needs a name for every column"
        ) from error
    except (pandas.errors.ParserError, pandas.errors.EmptyDataError, csv.Error) as error:
        raise DataError(
            f"{name}: cannot be read with {_called(separator)} between cells: {_one_line(error)}; "
            "another one is given with --delimiter"
        ) from error
    frame.columns = header
    if frame.empty:
        raise DataError(f"{name}: has a header and no rows")
    return frame


def _check_header(header: list[str], name: str, separator: str) -> None:
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
        raise DataError(f"{name}: more than one column is called {_listed(twice)}; rename them")
    if len(header) > 1 and all(_is_number(cell) for cell in header):
        raise DataError(
            f"{name}: the first line holds numbers and no names; a header with a name for each "
            "column is needed"
        )


def _table(
    frame: Any,
    row_names: list[str] | None,
    name: str,
    columns: Sequence[str] | None,
    id_column: str | None,
    drop_missing: bool,
    min_rows: int,
) -> Table:
    known = list(frame.columns)
    _refuse_unknown(name, [*(columns or []), *([id_column] if id_column else [])], known)
    if id_column is None and row_names is None:
        id_column = _guessed_id(frame)
    if id_column is not None:
        row_names = [str(label) for label in frame[id_column]]
    labels = row_names or [str(number) for number in range(1, len(frame) + 1)]
    chosen: list[str] = []
    dropped: list[tuple[str, str]] = []
    for column in known if columns is None else columns:
        if column == id_column:
            continue
        reason = _not_numeric(frame[column])
        if reason is None:
            chosen.append(column)
        elif columns is not None:
            raise DataError(f"{name}: column {column!r} cannot be used: it holds {reason}")
        else:
            dropped.append((column, reason))
    if not chosen:
        held = ", ".join(f"{column!r} ({reason})" for column, reason in dropped[:_NAMED_ROWS])
        raise DataError(f"{name}: no numeric column" + (f"; found {held}" if held else ""))
    values = np.ascontiguousarray(frame[chosen].to_numpy(dtype=np.float64, na_value=np.nan))
    bad = ~np.isfinite(values).all(axis=1)
    if bad.any() and not drop_missing:
        raise DataError(_missing(name, values, labels, chosen, bad))
    if bad.any():
        values = values[~bad]
        labels = [label for label, left in zip(labels, bad, strict=True) if not left]
    if values.shape[0] < min_rows:
        raise DataError(f"{name}: {values.shape[0]} usable rows; at least {min_rows} are needed")
    return Table(values, chosen, labels, id_column, dropped, int(bad.sum()), name)


def _not_numeric(column: Any) -> str | None:
    """Return why a column is not numeric, or None if it is."""
    if column.isna().all():
        return "nothing"
    if column.dtype.kind in "fiu":
        return None
    if column.dtype.kind == "b":
        return "true and false"
    if column.dtype.kind in "mM":
        return "dates"
    present = column.dropna()
    parsed = _pandas("reading files").to_numeric(present.astype(str), errors="coerce")
    text = present[parsed.isna()]
    if text.empty:
        return "numbers stored as text"
    example = repr(str(text.iloc[0])[:30])
    if len(text) <= 0.05 * len(present):
        return f"text in {len(text)} of {len(present)} cells, such as {example}"
    return f"text, such as {example}"


def _guessed_id(frame: Any) -> str | None:
    first = str(frame.columns[0])
    if len(frame.columns) > 1 and first.strip().lower() in _ID_NAMES and frame[first].is_unique:
        return first
    return None


def _missing(
    name: str, values: Array, labels: list[str], columns: list[str], bad: NDArray[np.bool_]
) -> str:
    rows = np.flatnonzero(bad)
    shown = ", ".join(labels[i] for i in rows[:_NAMED_ROWS])
    more = ", ..." if rows.size > _NAMED_ROWS else ""
    holes = ~np.isfinite(values)
    worst = int(np.argmax(holes.sum(axis=0)))
    hint = "leave them out with --drop-missing"
    if holes[:, worst].mean() > 0.2:
        hint += (
            f", or choose --columns without {columns[worst]!r}, which is missing in "
            f"{holes[:, worst].mean():.0%} of the rows"
        )
    return f"{name}: {rows.size} rows have missing or infinite values ({shown}{more}); {hint}"


def _refuse_unknown(name: str, wanted: Sequence[str], known: Sequence[str]) -> None:
    unknown = [column for column in wanted if column not in known]
    if unknown:
        few = ", ".join(map(repr, known[:8])) + (", ..." if len(known) > 8 else "")
        raise DataError(f"{name}: no column is called {_listed(unknown)}; there are {few}")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:_NAMED_ROWS])) + (", ..." if len(names) > _NAMED_ROWS else "")


def _called(separator: str) -> str:
    return _SEPARATORS.get(separator, repr(separator))


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]


def _pandas(what: str) -> ModuleType:
    try:
        import pandas
    except ImportError as error:
        raise DataError(f"{what} needs pandas: pip install 'outweigh[io]'") from error
    return pandas
