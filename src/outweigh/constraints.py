"""What parameters may be, declared as scikit-learn does it, for estimators and functions alike."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

from sklearn.utils._param_validation import (
    HasMethods,
    Interval,
    Options,
    StrOptions,
    validate_parameter_constraints,
)

__all__ = ["AUTO", "COUNT", "POSITIVE", "SHARE", "HasMethods", "Number", "StrOptions", "check"]


class Number(Interval):
    """A range of numbers; true and false are none."""

    def is_satisfied_by(self, val: object) -> bool:
        """Tell whether a value is a number of the range."""
        return not isinstance(val, bool) and bool(super().is_satisfied_by(val))


class _Zero(Options):
    """Zero, of which False is none."""

    def is_satisfied_by(self, val: object) -> bool:
        """Tell whether a value is zero."""
        return not isinstance(val, bool) and bool(super().is_satisfied_by(val))


AUTO = StrOptions({"auto"})
COUNT = Number(Integral, 1, None, closed="left")
POSITIVE = Number(Real, 0.0, None, closed="neither")
# Zero stands apart: checks of scikit-learn ask for an interval of contamination that is open there.
SHARE = [Number(Real, 0.0, 0.5, closed="neither"), _Zero(Real, {0.0})]


def check(caller: str, constraints: Mapping[str, list[Any]], values: Mapping[str, Any]) -> None:
    """Refuse values that are not what is declared for their names; others may be anything.

    Parameters
    ----------
    caller : str
        What the values are arguments of.
    constraints : mapping of str to list
        For each name what it may be, as in ``_parameter_constraints`` of scikit-learn.
    values : mapping

    Raises
    ------
    ValueError
        Which is a TypeError as well, and names the argument, what it may be, and what it was.

    Examples
    --------
    >>> check("draw", {"n_samples": [COUNT]}, {"n_samples": 0})
    Traceback (most recent call last):
        ...
    sklearn.utils._param_validation.InvalidParameterError: The 'n_samples' parameter of draw must be an int in the range [1, inf). Got 0 instead.
    """  # noqa: E501
    validate_parameter_constraints(constraints, values, caller)
