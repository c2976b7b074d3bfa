"""Typed reading of a TOML table, with errors that name the file, the key and the value."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
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
        self.keys = tuple(values)
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
        value = self._get(key, None if required else {})
        if not isinstance(value, dict):
            self.fail(key, f"must be a table, got {value!r}")
        return Fields(value, self._file, allowed, f"{self._prefix}{key}.")

    def text(self, key: str, default: str) -> str:
        """Return a string."""
        value = self._get(key, default)
        if not isinstance(value, str):
            self.fail(key, f"must be a string, got {value!r}")
        return " ".join(value.split())

    def name(self, key: str, default: str) -> str:
        """Return a string that can be the name of a file."""
        value = self.text(key, default)
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}", value):
            self.fail(key, f"must be letters, digits, '-', '_' and '.' only, got {value!r}")
        return value

    def flag(self, key: str, default: bool) -> bool:
        """Return a boolean."""
        value = self._get(key, default)
        if not isinstance(value, bool):
            self.fail(key, f"must be true or false, got {value!r}")
        return value

    def count(self, key: str, default: int | None = None, least: int = 1) -> int:
        """Return an integer of at least ``least``."""
        value = self._get(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            self.fail(key, f"must be an integer of at least {least}, got {value!r}")
        return value

    def number(self, key: str) -> float:
        """Return a finite number as a float."""
        value = self._get(key, None)
        if not _is_number(value):
            self.fail(key, f"must be a number, got {value!r}")
        return float(value)

    def numbers(self, key: str, whole: bool) -> tuple[float, ...]:
        """Return a list of different finite numbers: integers if ``whole``, else floats."""
        values = self._get(key, None)
        if not isinstance(values, list) or not values:
            self.fail(key, f"must be a list of numbers, got {values!r}")
        for value in values:
            if not _is_number(value) or (whole and not isinstance(value, int)):
                self.fail(key, f"must hold {'integers' if whole else 'numbers'}, got {value!r}")
        if len(set(values)) < len(values):
            self.fail(key, f"must not hold a value twice, got {values!r}")
        return tuple(values) if whole else tuple(float(value) for value in values)

    def choice(self, key: str, choices: Iterable[str], default: str | None = None) -> str:
        """Return a string that is one of the choices."""
        value = self._get(key, default)
        names = list(choices)
        if value not in names:
            self.fail(key, unknown(key, value, names))
        return str(value)

    def choices(self, key: str, choices: Iterable[str], what: str) -> tuple[str, ...]:
        """Return a list of different strings, each one of the choices."""
        values = self._get(key, None)
        if not isinstance(values, list) or not values:
            self.fail(key, f"must be a list of names, got {values!r}")
        names = list(choices)
        for value in values:
            if value not in names:
                self.fail(key, unknown(what, value, names))
        if len(set(values)) < len(values):
            self.fail(key, f"must not hold a name twice, got {values!r}")
        return tuple(values)

    def _get(self, key: str, default: Any) -> Any:
        if key not in self.values and default is None:
            self.fail(key, "is missing")
        return self.values.get(key, default)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
