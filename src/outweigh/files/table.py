"""A table of numbers with names, and the rules by which every reader makes one."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from outweigh.protocols import Array

logger = logging.getLogger("outweigh")

NAMED = 5
"""How many rows or columns a message names."""

ID_NAMES = frozenset({"", "id", "index", "row", "row_id", "rowid", "unnamed: 0"})
"""First columns of these names, in small letters, name the rows if their values differ."""


# Numbers that many people write for missing values, without their sign.
_SENTINELS = frozenset({99.0, 999.0, 9999.0, 99999.0, 999999.0, 99.9, 999.9, 9999.9})


class DataError(ValueError):
    """A file that cannot be used; the message is one line that says what and what to do."""


@contextmanager
def named(source: str) -> Iterator[None]:
    """Put the name of a file before what is wrong with it."""
    try:
        yield
    except DataError as error:
        raise DataError(f"{source}: {error}") from error


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
    recognised : list of str
        How the file is written, where it was recognised and not told; a sentence each.
    """

    values: Array
    columns: list[str]
    labels: list[str]
    id_column: str | None
    dropped: list[tuple[str, str]]
    n_missing: int
    source: str
    numbered: bool = False
    recognised: list[str] = field(default_factory=list)

    @property
    def lazy(self) -> bool:
        """Whether the values are yet to be read."""
        return not isinstance(self.values, np.ndarray)


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What of a file is asked for, and how it is written, where that is not to be recognised.

    Parameters
    ----------
    columns : sequence of str, optional
        The columns to use; all numeric ones by default. Patterns such as "gene_*" are names of all
        columns that match.
    id_column : str, optional
        The column that names the rows. By default a first column of distinct values is taken that
        is called id or index, or whose values are all words.
    missing : {"drop", "median"} or None, default=None
        None refuses rows with missing or infinite values, "drop" leaves them out, "median" returns
        them with NaN, for an estimator with this parameter to fill in.
    delimiter : str, optional
        Between the cells of a text file; a tab, semicolon, bar, comma or space is recognised.
    decimal : {".", ","}, optional
        In the numbers of a text file; recognised by default.
    encoding : str, optional
        Of a text file; UTF-8 and UTF-16 are recognised, and what is neither is read as Latin-1.
    exclude : sequence of str, default=()
        Columns, or patterns of columns, not to use.
    na : sequence of str, default=()
        What else stands for a missing value, such as "ERR" or "-999".
    min_rows : int, default=2
        Fewer usable rows are refused.
    """

    columns: Sequence[str] | None = None
    id_column: str | None = None
    missing: str | None = None
    delimiter: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    exclude: Sequence[str] = ()
    na: Sequence[str] = ()
    min_rows: int = 2

    @property
    def words(self) -> list[str]:
        """What stands for a missing value and is no number."""
        return [word for word in self.na if not is_number(word)]

    def refuse_writing(self) -> None:
        """Refuse what is said of how text is written, for a file that holds none."""
        said = {name: getattr(self, name) for name in ("delimiter", "decimal", "encoding")}
        for name, value in {**said, "na": ",".join(self.words) or None}.items():
            if value is not None:
                raise DataError(f"--{name} {value!r} has no effect on what is not a text file")


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
    recognised : list of str
        As in `Table`.
    """

    columns: list[str]
    not_numeric: Callable[[str], str | None]
    cells: Callable[[str], Iterable[object]]
    numbers: Callable[[list[str]], Any]
    row_names: list[str] | None = None
    recognised: list[str] = field(default_factory=list)


def table_from(found: Found, source: str, wanted: Wanted) -> Table:
    """Choose the numeric columns, name the rows, and refuse or drop rows with missing values."""
    columns = wanted_columns(wanted, found.columns)
    id_column, labels = wanted.id_column, found.row_names
    if id_column is not None:
        labels = [str(cell) for cell in found.cells(id_column)]
    elif labels is None and len(found.columns) > 1:
        labels = _names_in_first(found, wanted)
        id_column = None if labels is None else found.columns[0]
    chosen, dropped = _numeric(found, columns, wanted.columns or (), id_column)
    values = found.numbers(chosen)
    sentinels = [float(word) for word in wanted.na if is_number(word)]
    if sentinels:
        values = np.where(np.isin(values, sentinels), np.nan, values)
    if not isinstance(values, np.ndarray):
        logger.info("%s: looking for missing values", source, extra={"a_pass": "begins"})
    holes = ~np.isfinite(values)
    bad = np.asarray(holes.any(axis=1))
    numbered = labels is None
    labels = labels or [str(number) for number in range(1, bad.size + 1)]
    if bad.any():
        if wanted.missing is None:
            raise DataError(_missing(bad, holes, labels, chosen))
        if wanted.missing == "median":
            # For the estimator to fill in.
            values = np.where(holes, np.nan, values)
            bad = np.zeros_like(bad)
        values = values[~bad]
        labels = [label for label, left in zip(labels, bad, strict=True) if not left]
    if len(labels) < wanted.min_rows:
        raise DataError(f"{len(labels)} usable rows; at least {wanted.min_rows} are needed")
    n_missing = int(bad.sum())
    recognised = [*found.recognised, *islice(_sentinels(values, chosen), NAMED)]
    return Table(
        values, chosen, labels, id_column, dropped, n_missing, source, numbered, recognised
    )


def _sentinels(values: Any, columns: list[str]) -> Iterator[str]:
    """Yield a sentence for each column in which a number seems to stand for a missing value.

    It seems so where the number farthest from zero is one such as -999, occurs twice at least, and
    is more than twice as far out as any other.
    """
    if not isinstance(values, np.ndarray):
        return
    for name, column in zip(columns, values.T, strict=True):
        sizes = np.abs(column)
        largest = sizes.max(initial=0.0, where=np.isfinite(sizes))
        often = sizes == largest
        rest = sizes[sizes < largest]
        if largest in _SENTINELS and often.sum() > 1 and rest.size and 2.0 * rest.max() < largest:
            word = f"{column[often][0]:g}"
            yield (
                f"{name!r} is {word} in {often.sum()} rows: use --na={word} if it means a missing "
                "value"
            )


def _names_in_first(found: Found, wanted: Wanted) -> list[str] | None:
    """Return the cells of the first column if they are likely to name the rows.

    They are distinct, and the column is called so, or all of them are words.
    """
    first = found.columns[0]
    named = is_id(first)
    if not named and (first in (wanted.columns or ()) or found.not_numeric(first) is None):
        return None
    if not any(found.not_numeric(column) is None for column in found.columns[1:]):
        return None
    cells = [str(cell) for cell in found.cells(first)]
    # Numbers are no names: also those with a comma or %, and nan, which is a missing cell.
    words = named or not any(is_number(re.sub("[,%]", "", cell)) for cell in cells)
    return cells if words and len(set(cells)) == len(cells) else None


def is_id(name: str) -> bool:
    """Return whether a first column of this name is likely to name the rows."""
    return name.strip().lower() in ID_NAMES


def _numeric(
    found: Found, columns: Sequence[str], named: Sequence[str], id_column: str | None
) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the columns of numbers, and the others with what they hold; named ones must be."""
    reasons = {column: found.not_numeric(column) for column in columns if column != id_column}
    chosen = [column for column, reason in reasons.items() if reason is None]
    dropped = [(column, reason) for column, reason in reasons.items() if reason is not None]
    for column, reason in dropped:
        if column in named:
            raise DataError(f"column {column!r} cannot be used: it holds {reason}")
    if not chosen:
        held = listed([f"{column!r} ({reason})" for column, reason in dropped])
        raise DataError("no numeric column" + (f"; found {held}" if held else ""))
    return chosen, dropped


def _missing(bad: NDArray[np.bool_], holes: Any, labels: list[str], columns: list[str]) -> str:
    rows = np.flatnonzero(bad)
    shown = listed([labels[i] for i in rows[: NAMED + 1]])
    hint = (
        "leave them out with --missing drop, or fill in medians with --missing median (in score "
        "where the model was fitted so)"
    )
    shares = np.asarray(holes.mean(axis=0))
    worst = int(np.argmax(shares))
    if shares[worst] > 0.2:
        hint += (
            f", or choose --columns without {columns[worst]!r}, which is missing in "
            f"{shares[worst]:.0%} of the rows"
        )
    have = "1 row has" if rows.size == 1 else f"{rows.size} rows have"
    return f"{have} missing or infinite values ({shown}); {hint}"


def is_number(cell: str) -> bool:
    """Return whether text is a number."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


def wanted_columns(wanted: Wanted, known: Sequence[str]) -> list[str]:
    """Return the columns that are asked for, in the order asked; refuse those that there are not.

    A name with ``*``, ``?`` or ``[...]`` that no column has is a pattern, and stands for all that
    match.
    """

    def matching(name: str) -> list[str]:
        if name in known:
            return [name]
        return [column for column in known if fnmatchcase(column, name)]

    asked = [*(wanted.columns or ()), *wanted.exclude]
    unknown = [name for name in asked if not matching(name)]
    if wanted.id_column and wanted.id_column not in known:
        unknown.append(wanted.id_column)
    if unknown:
        few, named = listed([*map(repr, known)], most=8), listed([*map(repr, unknown)])
        raise DataError(f"no column is called {named}; there are {few}")
    columns = list(known)
    if wanted.columns is not None:
        columns = [column for name in wanted.columns for column in matching(name)]
    excluded = {column for name in wanted.exclude for column in matching(name)}
    return [column for column in dict.fromkeys(columns) if column not in excluded]


def listed(names: Sequence[str], most: int = NAMED) -> str:
    """Return the first few names; dots stand for the others."""
    return ", ".join([*names[:most], "..."] if len(names) > most else names)


def one_line(error: BaseException) -> str:
    """Return what an error says, on one line of moderate length."""
    return " ".join(str(error).split())[:200]


def refuse_other_arrays(shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Refuse what is not an array of numbers with rows and columns."""
    if len(shape) != 2 or 0 in shape or dtype.kind not in "fiu":
        raise DataError(f"needs numbers in rows and columns; got {dtype} of shape {shape}")
