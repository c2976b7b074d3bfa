"""Reading the rows that a command is given, and saying what became of them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from outweigh.cli.text import counted
from outweigh.io import DataError, Table, read_table

__all__ = ["notes_on", "read_rows", "split_names"]


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
    return read_table(
        arguments.file,
        columns=columns,
        id_column=arguments.id_column,
        drop_missing=arguments.drop_missing,
        delimiter=_unescaped(arguments.delimiter),
        max_gigabytes=arguments.max_gigabytes,
        min_rows=min_rows,
    )


def notes_on(table: Table) -> list[str]:
    """Return what was named, left out or dropped on the way, a sentence each."""
    notes = []
    if table.id_column is not None:
        notes.append(f"rows are named by column {table.id_column!r}")
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
