"""Reading the rows that a command is given, and saying what became of them."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from outweigh.cli.text import counted
from outweigh.io import DataError, Table, on_scheduler, open_table, read_table, said_by_dask

__all__ = ["notes_on", "read_beside", "read_rows", "scheduler_of", "split_names"]


def read_rows(
    arguments: argparse.Namespace, columns: Sequence[str] | None, min_rows: int = 2
) -> Table:
    """Read FILE as the options say.

    Parameters
    ----------
    arguments : Namespace
        Of ``fit`` or ``score``.
    columns : sequence of str or None
        The columns to use; None takes all numeric ones.
    min_rows : int, default=2
    """
    options: dict[str, Any] = {
        "columns": columns,
        "id_column": arguments.id_column,
        "drop_missing": arguments.drop_missing,
        "delimiter": _unescaped(arguments.delimiter),
        "decimal": _decimal(arguments.decimal),
        "min_rows": min_rows,
    }
    if arguments.scheduler:
        return open_table(arguments.file, **options)
    return read_table(arguments.file, max_gigabytes=arguments.max_gigabytes, **options)


@contextmanager
def scheduler_of(arguments: argparse.Namespace) -> Iterator[None]:
    """Compute parts of FILE where --scheduler says; nowhere special where it is read at once.

    Raises
    ------
    DataError
        With one line, where a pass over the parts failed.
    """
    if not arguments.scheduler:
        yield
        return
    try:
        with on_scheduler(arguments.scheduler):
            yield
    except (DataError, BrokenPipeError):
        raise
    except Exception as error:
        if not _of_a_part(error):
            raise
        raise DataError(f"{arguments.file}: {said_by_dask(error)}") from error


def _of_a_part(error: Exception) -> bool:
    if isinstance(error, ValueError):
        # Those of the estimators are written for a person; what Dask wraps is not.
        return hasattr(error, "exception") or str(error).startswith("Mismatched dtypes found")
    module = type(error).__module__.partition(".")[0]
    return isinstance(error, (RuntimeError, OSError)) or module == "distributed"


def read_beside(arguments: argparse.Namespace, file: str, columns: Sequence[str]) -> Table:
    """Read another file with the columns of FILE, written in the same manner."""
    return read_table(
        file,
        columns=columns,
        delimiter=_unescaped(arguments.delimiter),
        decimal=_decimal(arguments.decimal),
        max_gigabytes=arguments.max_gigabytes,
    )


def notes_on(table: Table) -> list[str]:
    """Return what was named, left out or dropped on the way, a sentence each."""
    notes = []
    if table.id_column is not None:
        notes.append(f"rows are named by column {table.id_column!r}")
    elif table.numbered:
        notes.append("rows are numbered from 1 (a header is not counted)")
    if table.dropped:
        shown = ", ".join(f"{name!r} ({why})" for name, why in table.dropped[:5])
        more = ", ..." if len(table.dropped) > 5 else ""
        notes.append(f"left out {counted(len(table.dropped), 'column')}: {shown}{more}")
    if table.n_missing:
        left = counted(table.n_missing, "row")
        notes.append(f"left out {left} with missing or infinite values")
    return notes


def split_names(columns: str) -> list[str]:
    """Return the names in a list with commas."""
    return [name.strip() for name in columns.split(",") if name.strip()]


def _unescaped(delimiter: str | None) -> str | None:
    if delimiter is None:
        return None
    delimiter = "\t" if delimiter in ("\\t", "tab") else delimiter
    if len(delimiter) != 1:
        raise DataError(f"--delimiter: must be one character, or tab; got {delimiter!r}")
    return delimiter


def _decimal(mark: str) -> str:
    if mark not in (".", ","):
        raise DataError(f"--decimal: must be a point or a comma; got {mark!r}")
    return mark
