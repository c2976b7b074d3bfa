"""From a frame of any columns to rows of numbers with names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from outweigh.io.needs import NAMED, DataError, pandas_for, refuse_unknown
from outweigh.protocols import Array

__all__ = ["ID_NAMES", "Table", "not_numeric", "table_from"]

ID_NAMES = frozenset({"", "id", "index", "row", "row_id", "rowid", "unnamed: 0"})
"""First columns of these names, in small letters, name the rows if their values differ."""


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Numbers from a file, with the names of rows and columns.

    Attributes
    ----------
    values : ndarray of shape (n, d)
        Or a Dask array of that shape, if the table was opened and not read.
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
    numbered : bool
        Whether the labels are numbers of rows.
    """

    values: Array
    columns: list[str]
    labels: list[str]
    id_column: str | None
    dropped: list[tuple[str, str]]
    n_missing: int
    source: str
    numbered: bool = False

    @property
    def lazy(self) -> bool:
        """Whether the values are yet to be read."""
        return not isinstance(self.values, np.ndarray)


def table_from(
    frame: Any,
    row_names: list[str] | None,
    name: str,
    columns: Sequence[str] | None,
    id_column: str | None,
    drop_missing: bool,
    min_rows: int,
) -> Table:
    """Choose the numeric columns of a frame, name its rows, refuse or drop what is missing."""
    known = list(frame.columns)
    refuse_unknown(name, [*(columns or []), *([id_column] if id_column else [])], known)
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
        reason = not_numeric(frame[column])
        if reason is None:
            chosen.append(column)
        elif columns is not None:
            raise DataError(f"{name}: column {column!r} cannot be used: it holds {reason}")
        else:
            dropped.append((column, reason))
    if not chosen:
        held = ", ".join(f"{column!r} ({reason})" for column, reason in dropped[:NAMED])
        more = ", ..." if len(dropped) > NAMED else ""
        raise DataError(f"{name}: no numeric column" + (f"; found {held}{more}" if held else ""))
    values = np.ascontiguousarray(frame[chosen].to_numpy(dtype=np.float64, na_value=np.nan))
    bad = ~np.isfinite(values).all(axis=1)
    if bad.any() and not drop_missing:
        raise DataError(_missing(name, values, labels, chosen, bad))
    if bad.any():
        values = values[~bad]
        labels = [label for label, left in zip(labels, bad, strict=True) if not left]
    if values.shape[0] < min_rows:
        raise DataError(f"{name}: {values.shape[0]} usable rows; at least {min_rows} are needed")
    numbered = row_names is None
    return Table(values, chosen, labels, id_column, dropped, int(bad.sum()), name, numbered)


def not_numeric(column: Any) -> str | None:
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
    parsed = pandas_for("reading files").to_numeric(present.astype(str), errors="coerce")
    text = present[parsed.isna()]
    if text.empty:
        return "numbers stored as text"
    with_points = present.astype(str).str.replace(",", ".", n=1, regex=False)
    if pandas_for("reading files").to_numeric(with_points, errors="coerce").notna().all():
        return f"decimal commas, such as {str(present.iloc[0])[:30]!r}: use --decimal ,"
    example = repr(str(text.iloc[0])[:30])
    if len(text) <= 0.05 * len(present):
        return f"text in {len(text)} of {len(present)} cells, such as {example}"
    return f"text, such as {example}"


def _guessed_id(frame: Any) -> str | None:
    first = str(frame.columns[0])
    if len(frame.columns) > 1 and first.strip().lower() in ID_NAMES and frame[first].is_unique:
        return first
    return None


def _missing(
    name: str, values: Array, labels: list[str], columns: list[str], bad: NDArray[np.bool_]
) -> str:
    rows = np.flatnonzero(bad)
    shown = ", ".join(labels[i] for i in rows[:NAMED])
    more = ", ..." if rows.size > NAMED else ""
    holes = ~np.isfinite(values)
    worst = int(np.argmax(holes.sum(axis=0)))
    hint = "leave them out with --drop-missing"
    if holes[:, worst].mean() > 0.2:
        hint += (
            f", or choose --columns without {columns[worst]!r}, which is missing in "
            f"{holes[:, worst].mean():.0%} of the rows"
        )
    return f"{name}: {rows.size} rows have missing or infinite values ({shown}{more}); {hint}"
