"""What all readers need: one kind of error, and the libraries that are loaded when needed."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType

__all__ = ["NAMED", "DataError", "listed", "one_line", "pandas_for", "refuse_unknown"]

NAMED = 5
"""How many rows or columns a message names."""


class DataError(ValueError):
    """A file that cannot be used; the message is one line that says what and what to do."""


def refuse_unknown(name: str, wanted: Sequence[str], known: Sequence[str]) -> None:
    """Refuse columns that a file does not have."""
    unknown = [column for column in wanted if column not in known]
    if unknown:
        few = ", ".join(map(repr, known[:8])) + (", ..." if len(known) > 8 else "")
        raise DataError(f"{name}: no column is called {listed(unknown)}; there are {few}")


def listed(names: Sequence[str]) -> str:
    """Return a few names, quoted."""
    return ", ".join(map(repr, names[:NAMED])) + (", ..." if len(names) > NAMED else "")


def one_line(error: BaseException) -> str:
    """Return what an error says, on one line of moderate length."""
    return " ".join(str(error).split())[:200]


def pandas_for(what: str) -> ModuleType:
    """Return pandas, or say what needs it."""
    try:
        import pandas
    except ImportError as error:
        raise DataError(f"{what} needs pandas: pip install 'outweigh[io]'") from error
    return pandas
