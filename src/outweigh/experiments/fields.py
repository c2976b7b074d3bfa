"""Typed reading of a TOML table, with errors that name the file, the key and the value."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn

from outweigh.experiments.errors import ExperimentError, unknown


class Fields:
    """A table of a TOML file.

    Parameters
    ----------
    values : mapping
        The table.
    file : str
        How messages call the file.
    allowed : iterable of str
        The keys that it may have.
    prefix : str, default=""
        The path of the table in the file, with a closing dot.

    Examples
    --------
    >>> Fields({"trials": 0}, "mine.toml", allowed=["trials"]).count("trials")
    Traceback (most recent call last):
        ...
    outweigh.experiments.errors.ExperimentError: mine.toml: trials: must be an integer of at least 1, got 0
    """  # noqa: E501

    def __init__(
        self, values: Mapping[str, Any], file: str, allowed: Iterable[str], prefix: str = ""
    ) -> None:
        self.values = values
        self._file = file
        self._prefix = prefix
        choices = list(allowed)
        for key in values:
            if key not in choices:
                self.fail(key, unknown("key", key, choices))

    def fail(self, key: str, problem: str) -> NoReturn:
        """Raise the one-line error about ``key``."""
        raise ExperimentError(f"{self._file}: {self._prefix}{key}: {problem}")

    def table(self, key: str, allowed: Iterable[str], required: bool = False) -> Fields:
        """Return a table inside this one; one that is missing is empty."""
        missing: dict[str, Any] | None = None if required else {}
        value = self._read(key, missing, "a table", lambda value: isinstance(value, dict))
        return Fields(value, self._file, allowed, f"{self._prefix}{key}.")

    def text(self, key: str, default: str) -> str:
        """Return a string, its white space made single blanks."""
        value = self._read(key, default, "a string", lambda value: isinstance(value, str))
        return " ".join(value.split())

    def name(self, key: str, default: str) -> str:
        """Return a string that can be the name of a file."""
        value = self.text(key, default)
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}", value):
            self.fail(key, f"must be letters, digits, '-', '_' and '.' only, got {value!r}")
        return value

    def flag(self, key: str, default: bool) -> bool:
        """Return a boolean."""
        return bool(self._read(key, default, "true or false", lambda v: isinstance(v, bool)))

    def count(self, key: str, default: int | None = None, least: int = 1) -> int:
        """Return an integer of at least ``least``."""
        wanted = f"an integer of at least {least}"
        return int(self._read(key, default, wanted, lambda v: _is_whole(v) and v >= least))

    def number(self, key: str) -> float:
        """Return a finite number as a float."""
        return float(self._read(key, None, "a number", _is_number))

    def numbers(self, key: str, whole: bool) -> tuple[float, ...]:
        """Return a list of different finite numbers: integers if ``whole``, else floats."""
        fits, wanted = (_is_whole, "integers") if whole else (_is_number, "numbers")
        values = self._list(key, "number", fits, lambda v: f"must hold {wanted}, got {v!r}")
        return tuple(values) if whole else tuple(float(value) for value in values)

    def choice(self, key: str, choices: Iterable[str], default: str | None = None) -> str:
        """Return a string that is one of the choices."""
        value, names = self._read(key, default), list(choices)
        if value not in names:
            self.fail(key, unknown(key, value, names))
        return str(value)

    def choices(self, key: str, choices: Iterable[str], what: str) -> tuple[str, ...]:
        """Return a list of different strings, each one of the choices."""
        names = list(choices)
        return tuple(self._list(key, "name", names.__contains__, lambda v: unknown(what, v, names)))

    def _read(
        self,
        key: str,
        default: Any,
        wanted: str = "",
        fits: Callable[[Any], bool] = lambda value: True,
    ) -> Any:
        """Return a value that fits; a key that is missing needs a default."""
        if key not in self.values and default is None:
            self.fail(key, "is missing")
        value = self.values.get(key, default)
        if not fits(value):
            self.fail(key, f"must be {wanted}, got {value!r}")
        return value

    def _list(
        self, key: str, what: str, fits: Callable[[Any], bool], problem: Callable[[Any], str]
    ) -> list[Any]:
        """Return a list of different values that all fit; ``problem`` says why one does not."""
        values = self._read(key, None)
        if not isinstance(values, list) or not values:
            self.fail(key, f"must be a list of {what}s, got {values!r}")
        for value in values:
            if not fits(value):
                self.fail(key, problem(value))
        if len(set(values)) < len(values):
            self.fail(key, f"must not hold a value twice, got {values!r}")
        return values


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_whole(value: object) -> bool:
    return _is_number(value) and isinstance(value, int)
