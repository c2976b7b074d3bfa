"""The parameters of the estimators: what each means, what it may be, and how it is documented."""

from __future__ import annotations

import re
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from outweigh.constraints import AUTO, COUNT, SHARE, HasMethods, Number, StrOptions
from outweigh.optimise.steps import SOLVERS

Class = TypeVar("Class", bound=type)


@dataclass(eq=False, repr=False, kw_only=True)
class Parameters:
    """What a user may set in all four estimators.

    Parameters
    ----------
    contamination : float in [0, 0.5) or "auto", default="auto"
        The largest share of rows that may be wrong. "auto" estimates it.
    scale : {"auto", "mad"}, array of shape (n_features,) or None, default="auto"
        The noise of each feature. "auto" estimates it robustly, and again with the weights found,
        so that no answer depends on units; "mad" divides by the median absolute deviation; None
        never divides: the noise is of size one.
    covariance : "auto", array of shape (n_features, n_features), fitted estimator or None
        The covariance of clean rows. "auto", the default, tests whether they are uncorrelated;
        where they are not, it is found with the weights, from the shape of the cloud that rows
        form: for tables as they come. None takes the features to be uncorrelated. An array, or an
        estimator with ``covariance_`` fitted on rows that you trust, is taken for known: the
        default scale is then its diagonal; with another scale only its correlations are used.
    missing : {"drop", "median"} or None, default=None
        What to do with missing values: NaN, masked values, None or ``pandas.NA`` in a DataFrame.
        None refuses them. "drop" fits without the rows that have any, as if their sample weight
        were 0; "median" puts the median of the column in their place. Either way new rows are
        scored with the medians of the fit in place of what is missing. For dense rows in memory.
    solver : {"polyak", "backtracking", "mirror", "paper"}, default="polyak"
        "polyak" steps toward the level of clean data, "backtracking" halves steps that fail,
        "mirror" is entropic mirror descent. "paper" is the algorithm of the paper and nothing
        else: its constant step on all features of X as it is, to the end of `max_iter`; it needs a
        `contamination`, `scale=None` and `covariance=None`.
    max_iter : int, default=300
        Evaluations of the objective allowed in a search.
    subsample : int or None, default=1_000_000
        The most rows that weights are searched on, at least 10. Of more, a random sample is fitted,
        all rows are scored with what it taught, and those that the search would have left their
        weight have equal weight, or one in proportion to `sample_weight`. A given `contamination`
        is then exceeded by as much as that of a sample may exceed that of all rows. None: all rows,
        always.
    random_state : int, RandomState or None, default=None
        Draws the sample of `subsample`, which is all that is random; None means 0. An error where
        `subsample` is None.
    verbose : bool or int, default=False
        Log each evaluation at level INFO to the logger ``outweigh``. Where no logging is set up it
        is written to standard error.
    """

    contamination: float | str = "auto"
    scale: str | ArrayLike | None = "auto"
    covariance: object = "auto"
    missing: str | None = None
    solver: str = "polyak"
    max_iter: int = 300
    subsample: int | None = 1_000_000
    random_state: int | np.random.RandomState | None = None
    verbose: int | bool = False


@dataclass(eq=False, repr=False, kw_only=True)
class ComponentsParameters(Parameters):
    """What a user may set in both estimators of components."""

    scale: str | ArrayLike | None = None
    assume_centered: bool = False


# A parameter means the same in every estimator that has it, but for what components add.
MAY_BE: dict[str, Any] = {
    "contamination": [AUTO, *SHARE],
    "scale": [StrOptions({"auto", "mad"}), "array-like", None],
    "covariance": [AUTO, "array-like", HasMethods(["fit"]), None],
    "missing": [StrOptions({"drop", "median"}), None],
    "solver": [StrOptions({*SOLVERS, "paper"})],
    "max_iter": [COUNT],
    # Among fewer rows than ten no outlier is ever looked for, unless the share is given.
    "subsample": [Number(Integral, 10, None, closed="left"), None],
    "random_state": ["random_state"],
    "verbose": ["verbose"],
    "n_nonzero": [AUTO, COUNT],
    "n_components": [COUNT, AUTO],
    "assume_centered": ["boolean"],
    "whiten": ["boolean"],
}

PCA: dict[str, Any] = {
    **MAY_BE,
    "n_components": [COUNT, Number(Real, 0.0, 1.0, closed="neither"), AUTO, None],
}

SPARSE_PCA: dict[str, Any] = {**MAY_BE, "n_nonzero": [AUTO, COUNT, "array-like"]}

_PAPER = """\
Cheng, Diakonikolas, Ge, Gupta, Kane, Soltanolkotabi, "Outlier-Robust Sparse Estimation via
    Non-Convex Optimization", NeurIPS 2022"""

# A name, or several, at the indentation of a class, and below it what is said of it.
_ENTRY = re.compile(r"^    (?P<name>\w+)[\w, ]* : .*(?:\n {8}.*)*", re.MULTILINE)


def documented(cls: Class) -> Class:
    """Fill in the docstring of a class what those of its bases say of parameters and attributes.

    ``{{name}}`` stands for the entry of that name, ``{{first ... last}}`` for all entries from one
    to another, ``{{paper}}`` for the reference.
    """
    said = "\n".join(base.__doc__ or "" for base in cls.__mro__[1:])
    entries = {entry["name"]: entry[0].strip() for entry in _ENTRY.finditer(said)}
    names = list(entries)

    def filled(wanted: re.Match[str]) -> str:
        if wanted[1] == "paper":
            return _PAPER
        first, _, last = wanted[1].partition(" ... ")
        chosen = names[names.index(first) : names.index(last or first) + 1]
        return "\n    ".join(entries[name] for name in chosen)

    if cls.__doc__:
        cls.__doc__ = re.sub(r"{{(.+?)}}", filled, cls.__doc__)
    return cls
