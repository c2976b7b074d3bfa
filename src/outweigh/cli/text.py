"""Text for a terminal: nothing in a file can move its cursor."""

from __future__ import annotations

__all__ = ["clean", "counted", "indent", "short"]


def indent(text: str) -> str:
    """Return lines moved in by two spaces."""
    return "\n".join(f"  {line}" for line in text.splitlines())


def clean(text: str) -> str:
    """Return text that cannot move a terminal's cursor."""
    return "".join(c if c.isprintable() else "?" for c in text)


def short(name: str, width: int = 28) -> str:
    """Return a name that fits a column."""
    name = clean(name)
    return name if len(name) <= width else name[: width - 1] + "…"


def counted(number: int, what: str) -> str:
    """Return a number of things in words.

    Examples
    --------
    >>> counted(1, "row"), counted(2000, "row")
    ('1 row', '2,000 rows')
    """
    return f"{number:,} {what}{'' if number == 1 else 's'}"
