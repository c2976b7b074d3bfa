"""The one error that a user of the experiments is meant to read."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class ExperimentError(Exception):
    """Something the user gave cannot be used; the message is one line that says what and why.

    Examples
    --------
    >>> raise ExperimentError("mine.toml: trials: must be at least 1, got 0")
    Traceback (most recent call last):
        ...
    outweigh.experiments.errors.ExperimentError: mine.toml: trials: must be at least 1, got 0
    """


def unknown(what: str, value: object, choices: Iterable[str]) -> str:
    """Say that ``value`` is not among the choices, which is near to it, and what the choices are.

    Examples
    --------
    >>> unknown("adversary", "linear_hidding", ["linear_hiding", "mimic"])
    "unknown adversary 'linear_hidding' (did you mean 'linear_hiding'?); choose from linear_hiding, mimic"
    """  # noqa: E501
    names = list(choices)
    near = difflib.get_close_matches(str(value), names, n=1)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    return f"unknown {what} {value!r}{hint}; choose from {', '.join(names)}"
