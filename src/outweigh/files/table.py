"""A table of numbers with names, and the rules by which every reader makes one."""

from __future__ import annotations

import csv
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from outweigh.protocols import Array

logger = logging.getLogger("outweigh")

NAMED = 5
"""How many rows or columns a message names."""

ID_NAMES = frozenset({"", "id", "index", "row", "row_id", "rowid", "unnamed: 0"})
"""First columns of these names, in small letters, name the rows if their values differ."""

_SEPARATORS = {";": "a semicolon", "\t": "a tab", "|": "a bar", ",": "a comma"}


class DataError(ValueError):
    """A file that cannot be used; the message is one line that says what and what to do."""


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


class Wanted(NamedTuple):
    """What of a file is asked for; see `read_table`."""

    columns: Sequence[str] | None
    id_column: str | None
    missing: str | None
    min_rows: int


@dataclass(frozen=True)
class Found:
    """What a reader found in a file, in memory or not.

    Attributes
    ----------
    columns : list of str
    not_numeric : callable
        Takes the name of a column; returns why it does not hold numbers, or None if it does.
    cells : callable
        Takes the name of a column; returns its cells, in memory.
    numbers : callable
        Takes names of columns; returns an array of floating point numbers, in memory or not.
    row_names : list of str or None
        Names of the rows that are in no column.
    """

    columns: list[str]
    not_numeric: Callable[[str], str | None]
    cells: Callable[[str], Iterable[object]]
    numbers: Callable[[list[str]], Any]
    row_names: list[str] | None = None


def table_from(found: Found, source: str, wanted: Wanted) -> Table:
    """Choose the numeric columns, name the rows, and refuse or drop rows with missing values."""
    columns, id_column = wanted.columns, wanted.id_column
    refuse_unknown(source, wanted, found.columns)
    labels = found.row_names
    if id_column is not None:
        labels = [str(cell) for cell in found.cells(id_column)]
    elif labels is None and len(found.columns) > 1 and is_id(found.columns[0]):
        cells = [str(cell) for cell in found.cells(found.columns[0])]
        if len(set(cells)) == len(cells):
            id_column, labels = found.columns[0], cells
    chosen, dropped = _numeric(found, source, columns, id_column)
    values = found.numbers(chosen)
    if not isinstance(values, np.ndarray):
        logger.info("%s: looking for missing values", source, extra={"a_pass": "begins"})
    holes = ~np.isfinite(values)
    bad = np.asarray(holes.any(axis=1))
    numbered = labels is None
    labels = labels or [str(number) for number in range(1, bad.size + 1)]
    if bad.any():
        if wanted.missing is None:
            raise DataError(f"{source}: {_missing(bad, holes, labels, chosen)}")
        if wanted.missing == "median":
            # For the estimator to fill in.
            values = np.where(holes, np.nan, values)
            bad = np.zeros_like(bad)
        values = values[~bad]
        labels = [label for label, left in zip(labels, bad, strict=True) if not left]
    if len(labels) < wanted.min_rows:
        raise DataError(
            f"{source}: {len(labels)} usable rows; at least {wanted.min_rows} are needed"
        )
    return Table(values, chosen, labels, id_column, dropped, int(bad.sum()), source, numbered)


def is_id(name: str) -> bool:
    """Return whether a first column of this name is likely to name the rows."""
    return name.strip().lower() in ID_NAMES


def _numeric(
    found: Found, source: str, columns: Sequence[str] | None, id_column: str | None
) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the columns of numbers, and the others with what they hold."""
    reasons = {
        column: found.not_numeric(column)
        for column in (found.columns if columns is None else columns)
        if column != id_column
    }
    chosen = [column for column, reason in reasons.items() if reason is None]
    dropped = [(column, reason) for column, reason in reasons.items() if reason is not None]
    if columns is not None and dropped:
        column, reason = dropped[0]
        raise DataError(f"{source}: column {column!r} cannot be used: it holds {reason}")
    if not chosen:
        held = ", ".join(f"{column!r} ({reason})" for column, reason in dropped[:NAMED])
        more = ", ..." if len(dropped) > NAMED else ""
        raise DataError(f"{source}: no numeric column" + (f"; found {held}{more}" if held else ""))
    return chosen, dropped


def _missing(bad: NDArray[np.bool_], holes: Any, labels: list[str], columns: list[str]) -> str:
    rows = np.flatnonzero(bad)
    shown = ", ".join(labels[i] for i in rows[:NAMED]) + (", ..." if rows.size > NAMED else "")
    hint = "leave them out with --missing drop, or fill in medians with --missing median"
    shares = np.asarray(holes.mean(axis=0))
    worst = int(np.argmax(shares))
    if shares[worst] > 0.2:
        hint += (
            f", or choose --columns without {columns[worst]!r}, which is missing in "
            f"{shares[worst]:.0%} of the rows"
        )
    return f"{rows.size} rows have missing or infinite values ({shown}); {hint}"


def separator_of(name: str, delimiter: str | None) -> str:
    """Return what stands between the cells of a text file, by its name if it is not given."""
    return delimiter or ("\t" if name.lower().endswith((".tsv", ".tab")) else ",")


def read_header(lines: Iterable[str], source: str, separator: str) -> list[str]:
    """Return the names of the columns of a text file; refuse those that do not tell them apart.

    Parameters
    ----------
    lines : iterable of str
        Of the file, from its beginning.
    source, separator : str
    """
    rows = csv.reader(lines, delimiter=separator)
    filled = (cells for cells in rows if len(cells) > 1 or "".join(cells).strip())
    header, first = next(filled, []), next(filled, [])
    if not header:
        raise DataError(f"{source}: the file is empty")
    if len(header) == 1:
        for other, called in _SEPARATORS.items():
            if other != separator and other in header[0]:
                shown = "'\\t'" if other == "\t" else repr(other)
                raise DataError(
                    f"{source}: one column only; the cells seem to be separated by {called}: "
                    f"use --delimiter {shown}"
                )
    twice = [column for column, count in Counter(header).items() if count > 1]
    if twice:
        raise DataError(f"{source}: more than one column is called {listed(twice)}; rename them")
    if len(header) > 1 and all(is_number(cell) for cell in header):
        raise DataError(
            f"{source}: the first line holds numbers and no names; a header with a name for each "
            "column is needed"
        )
    if len(first) > len(header):
        # Readers would take the first cell for the name of the row and shift the others.
        raise DataError(
            f"{source}: the rows have more cells than the header has names; the header needs a "
            "name for every column"
        )
    return header


def is_number(cell: str) -> bool:
    """Return whether text is a number."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


def refuse_unknown(source: str, wanted: Wanted, known: Sequence[str]) -> None:
    """Refuse columns that a file does not have."""
    named = [*(wanted.columns or ()), *([wanted.id_column] if wanted.id_column else ())]
    unknown = [column for column in named if column not in known]
    if unknown:
        few = ", ".join(map(repr, known[:8])) + (", ..." if len(known) > 8 else "")
        raise DataError(f"{source}: no column is called {listed(unknown)}; there are {few}")


def listed(names: Sequence[str]) -> str:
    """Return a few names, quoted."""
    return ", ".join(map(repr, names[:NAMED])) + (", ..." if len(names) > NAMED else "")


def one_line(error: BaseException) -> str:
    """Return what an error says, on one line of moderate length."""
    return " ".join(str(error).split())[:200]
