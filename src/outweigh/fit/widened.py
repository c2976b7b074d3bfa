r"""Rows that are farther out than white noise explains, in all features alike.

Rows whose deviations are all somewhat too large hide in many features at once: none of these, and
no pair, shows much. Their squared distances do. White noise is independent over the features, so
that of a clean row is a sum :math:`D = \sum_j z_j^2` of independent terms. The law of each is that
of its column, in which a few wrong rows change little, and the law of D is their convolution,
however heavy-tailed the columns are. Widened rows are of the same law, times a factor above one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from outweigh.fit.law import masses_at
from outweigh.fit.radial import radial_law
from outweigh.protocols import Array

# A law of distances is kept at so many points, and a pair of them fitted in at most so many steps,
# which end where the share of widened rows stays.
_POINTS, _STEPS, _STAYS = 2048, 200, 1e-13
_MANY = 1e6
# No density is less than this part of an even one: what rounding leaves of a convolution.
_LEAST = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class Widened:
    """Which rows are likely widened.

    Attributes
    ----------
    beyond : float
        The squared distance beyond which rows are.
    chance : ndarray of shape (n,)
        How likely each row is.
    to_one_side : bool
        Whether they lie to one side of the centre, as a group does.
    """

    beyond: float
    chance: Array
    to_one_side: bool


def to_one_side(rows: Array, chance: Array) -> bool:
    r"""Tell whether rows about the centre, each with its chance, lie to one side of it.

    Their mean has the expected square :math:`\sum p_i^2 |z_i|^2 / (\sum p_i)^2` if they lie to
    none; that of a group is more than twice as long.
    """
    share = chance / max(float(chance.sum()), _LEAST)
    away = share @ rows
    return bool(away @ away > 2.0 * (share**2 @ np.square(rows).sum(axis=1)))


def price_of_widened(n: float) -> float:
    """Return the nats, or rows, that widened rows must be worth: their share, factor and scale."""
    return 1.5 * float(np.log(n))


def may_be_widened(squared: Array, weight: Array, n_features: int) -> bool:
    """Tell by the distances alone whether far more rows are far out than their quartiles foretell.

    So many more than twice as many, somewhere: else a look at the columns is not worth its pass.
    """
    n = float(weight.sum())
    # Of two rows one is half of them, which widened rows never are.
    if n <= 2.0 or squared.max() == 0.0:
        return False
    chance = radial_law(squared, weight, n_features, _MANY, 0.0, shrink=False).exceeded(squared)
    order = np.argsort(chance, kind="stable")
    excess = np.cumsum(weight[order]) - 2.0 * n * chance[order]
    return bool(excess.max() > price_of_widened(n))


def widened_beyond(
    squared: Array, weight: Array, rows: Array, row_weight: Array, n_features: int
) -> tuple[float, Array] | None:
    r"""Return the squared distance beyond which a row is likely widened, and each row's chance.

    With f the law of D the distances are of :math:`(1 - p) f_s + p f_{sc}`, where
    :math:`f_s(x) = f(x/s)/s` and c > 1. None where that explains them too little better than
    :math:`f_s` alone does, or one radial law of rows with heavy tails.

    Parameters
    ----------
    squared : ndarray of shape (n,)
        The squared distance of each row from the centre.
    weight : ndarray of shape (n,)
        A whole number counts as that many copies of the row.
    rows : ndarray of shape (m, q)
        Some of the rows about the centre, in evenly spaced features.
    row_weight : ndarray of shape (m,)
    n_features : int
        How many features there are.
    """
    n, step = float(weight.sum()), float(squared.max()) / (_POINTS - 2.0)
    # All distances in steps of the grid: in their own units a density may be out of range.
    x: Array = np.arange(_POINTS, dtype=np.float64)
    steps = squared / step
    seen = masses_at(steps, weight, _POINTS)
    # Each column stands for itself and for those up to the next.
    counts = np.bincount(np.arange(n_features) * rows.shape[1] // n_features)
    clean = _convolved(np.square(rows) / step, row_weight / row_weight.sum(), counts)
    clean /= clean.sum()
    # Of a law with so much of it at the centre this grid shows no density, nor does it widen.
    if clean[:2].sum() > 0.25:
        return None
    mean = float(clean @ x)

    def law(scale: float) -> Array:
        return np.asarray(np.maximum(np.interp(x, scale * x, clean) / scale, _LEAST / _POINTS))

    one = float(seen @ x) / (n * mean)
    share, scale, wide = 0.05, one, 2.0 * one
    for _ in range(_STEPS):
        near, far = (1.0 - share) * law(scale), share * law(wide)
        odds, before = far / (near + far), share
        share = float(np.clip(seen @ odds / n, 1.0 / n, 1.0 - 1.0 / n))
        wide = max(float(seen @ (odds * x)) / (share * n * mean), scale)
        scale = max(float(seen @ ((1.0 - odds) * x)) / ((1.0 - share) * n * mean), 1.0 / mean)
        if abs(share - before) <= _STAYS * share:
            break
    heavy = radial_law(steps, weight, n_features, _MANY, 0.0, shrink=False)
    by_columns = float(seen @ np.log(law(one)))
    by_tails = float(seen @ heavy.log_density(np.maximum(x, 0.5)))
    alone = max(by_columns, by_tails)
    gain = float(seen @ np.log(near + far)) - alone
    more = (odds > 0.5) & (x > scale * mean)
    if gain < price_of_widened(n) or wide <= scale or share >= 0.5 or not more.any():
        return None
    # Below the mean neither law is known to tell a row.
    beyond = step * float(x[np.argmax(more)])
    return beyond, np.interp(steps, x, np.where(x > scale * mean, odds, 0.0))


def _convolved(squares: Array, share: Array, counts: NDArray[np.intp]) -> Array:
    """Return the law of a sum of independent squares as masses at 0, 1, 2, ..."""
    columns = np.ascontiguousarray(squares.T)
    masses = np.stack([masses_at(column, share, _POINTS) for column in columns])
    # Twice as long as the law: what a sum has beyond does not come round.
    transforms = np.fft.rfft(masses, 2 * _POINTS)
    # Columns that stand for equally many are multiplied before they are taken to that power.
    each = [(transforms[counts == count].prod(axis=0), count) for count in np.unique(counts)]
    found = np.prod([part**count for part, count in each], axis=0)
    return np.maximum(np.fft.irfft(found, 2 * _POINTS)[:_POINTS], 0.0)
