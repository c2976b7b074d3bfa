"""How many rows a robust mean needs, before any of them is measured."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from scipy.optimize import brentq

from outweigh.constraints import COUNT, POSITIVE, SHARE, check
from outweigh.norms import KyFan, RowwiseLargest
from outweigh.norms.floor import noise_floor
from outweigh.protocols import Norm
from outweigh.research.stability import rows_in_theory

_MOST_ROWS = 1e15


@dataclass(frozen=True, slots=True)
class RowsNeeded:
    """How many rows a robust mean needs.

    Attributes
    ----------
    shift : float
        The error of the mean that the numbers are about, in units of the noise.
    visible : int
        From about so many rows on, outliers that move the plain mean by `shift` score above what 99
        of 100 clean samples score: the fit starts to see them.
    theory : int
        From so many rows on, up to a constant that nobody knows, the theorems of the paper hold:
        k^2 log(d) / shift^2 for a sparse mean, d / shift^2 for another.
    """

    shift: float
    visible: int
    theory: int


def rows_needed(
    n_features: int,
    contamination: float,
    n_nonzero: int | None = None,
    *,
    shift: float | None = None,
) -> RowsNeeded:
    r"""Return how many rows are needed to estimate a mean of which a share of the rows is wrong.

    Outliers that are a share :math:`\epsilon` of the rows, lie together and move the mean by s add
    the variance :math:`s^2 (1 - \epsilon) / \epsilon` along the direction of the move. They are
    visible where this is more than clean rows of unit noise score by chance.

    Parameters
    ----------
    n_features : int
        The d of the paper.
    contamination : float in (0, 0.5)
        The share :math:`\epsilon` of wrong rows.
    n_nonzero : int, optional
        The number k of nonzero entries of a sparse mean; a mean that is not sparse by default.
    shift : float, optional
        How far the mean may be off, in units of the noise. By default
        :math:`\epsilon \sqrt{\log 1/\epsilon}`: less is not to be had in the worst case.

    Returns
    -------
    RowsNeeded

    Examples
    --------
    >>> from outweigh.research.plan import rows_needed
    >>> sparse, dense = rows_needed(1000, 0.1, 10), rows_needed(1000, 0.1)
    >>> sparse.visible < dense.visible
    True
    """
    may_be: dict[str, list[Any]] = {
        "n_features": [COUNT],
        "n_nonzero": [COUNT, None],
        "contamination": SHARE[:1],
        "shift": [POSITIVE, None],
    }
    given = {"n_features": n_features, "n_nonzero": n_nonzero, "shift": shift}
    check("rows_needed", may_be, {**given, "contamination": contamination})
    if n_nonzero is not None and n_nonzero > n_features:
        raise ValueError(f"n_nonzero={n_nonzero} is more than n_features={n_features}")
    if shift is None:
        shift = contamination * math.sqrt(math.log(1.0 / contamination))
    norm: Norm = KyFan(1) if n_nonzero is None else RowwiseLargest(n_nonzero)
    excess = shift**2 * (1.0 - contamination) / contamination

    def above_noise(log_rows: float) -> float:
        return math.log(excess / noise_floor(norm, math.exp(log_rows), n_features).upper)

    few, many = math.log(2.0), math.log(_MOST_ROWS)
    if above_noise(many) < 0.0:
        raise ValueError(f"shift: {shift:g} takes more than {_MOST_ROWS:g} rows; ask for less")
    rows = 2.0 if above_noise(few) > 0.0 else math.exp(brentq(above_noise, few, many, xtol=1e-3))
    theory = rows_in_theory(n_features, n_nonzero, shift)
    return RowsNeeded(float(shift), math.ceil(rows), math.ceil(theory))
