"""Which values each parameter may take; the only use of scikit-learn's private validation."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

from sklearn.utils._param_validation import HasMethods, Interval, Options, StrOptions

from outweigh.estimators.search import SOLVERS

__all__ = ["COMMON", "N_COMPONENTS", "N_NONZERO", "N_NONZERO_EACH", "SEARCH"]


class _Zero(Options):
    """The number zero, which False is not."""

    def is_satisfied_by(self, val: object) -> bool:
        return not isinstance(val, bool) and bool(super().is_satisfied_by(val))


COMMON: dict[str, Any] = {
    "contamination": [
        StrOptions({"auto"}),
        Interval(Real, 0.0, 0.5, closed="neither"),
        _Zero(Real, {0.0}),
    ],
    "scale": [StrOptions({"auto", "mad"}), "array-like", None],
    "covariance": ["array-like", HasMethods(["fit"]), None],
    "solver": [StrOptions(set(SOLVERS))],
    "refit": ["boolean"],
    "stop_at_floor": ["boolean"],
    "working_set": ["boolean"],
    "max_iter": [Interval(Integral, 1, None, closed="left")],
    "tol": [Interval(Real, 0.0, None, closed="neither")],
    "subsample": [Interval(Integral, 2, None, closed="left"), None],
    "random_state": ["random_state"],
    "verbose": ["verbose"],
}

N_NONZERO: dict[str, Any] = {
    "n_nonzero": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")]
}

N_COMPONENTS: dict[str, Any] = {
    "n_components": [Interval(Integral, 1, None, closed="left")],
    "assume_centered": ["boolean"],
}

N_NONZERO_EACH: dict[str, Any] = {
    "n_nonzero": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left"), "array-like"]
}

SEARCH: dict[str, Any] = {
    "estimator": [HasMethods(["fit", "set_params"])],
    "upper": [Interval(Real, 0.0, 0.5, closed="neither")],
    "tol": [Interval(Real, 0.0, None, closed="neither")],
}
