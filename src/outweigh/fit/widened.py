r"""Rows that are farther out than white noise explains, in all features alike.

Rows whose deviations are all somewhat too large hide in many features at once: none of these, and
no pair, shows much. Their squared distances do. White noise is independent over the features, so
that of a clean row is a sum :math:`D = \sum_j z_j^2` of independent terms. The law of each is that
of its column, in which a few wrong rows change little, and the law of D is their convolution,
however heavy-tailed the columns are. Widened rows are of the same law, times a factor above one.
"""

from __future__ import annotations

from functools import cache, cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from outweigh.fit.law import Law, TypicalLaw, masses_at
from outweigh.fit.noise import Noise, spread_places
from outweigh.fit.posterior import groups_apart
from outweigh.fit.radial import radial_law
from outweigh.fit.tuning import TUNING
from outweigh.optimise.capped_simplex import CappedSimplex
from outweigh.protocols import Array, Indices
from outweigh.samples.dense import DenseSamples

# Laws are read off so many rows, more where they have fewer columns, and columns.
_LAW_ROWS, _LAW_COLUMNS = 2000, 200

# A law of distances is kept at so many points, and a pair of them fitted in at most so many steps,
# which end where the share of widened rows stays. One that still moves by so much is none: steps
# along a law without a density, as that of rows mostly zero, follow rounding for ever.
_POINTS, _STEPS, _STAYS, _MOVES = 2048, 200, 1e-13, 1e-3
_MANY = 1e6
# Times log(n), the nats, or rows, that widened rows must be worth: their share, factor and scale.
_PRICE = 1.5
# No density is less than this part of an even one: what rounding leaves of a convolution.
_LEAST = 1e-12


class Widened(NamedTuple):
    """Rows that are likely widened.

    Attributes
    ----------
    beyond : float
        The squared distance beyond which they are.
    chance : ndarray of shape (n,)
        That of each row to be one.
    to_one_side : bool
        Whether they lie to one side, as a group does.
    """

    beyond: float
    chance: Array
    to_one_side: bool


class LawOfRows:
    """The law of clean rows, read off some rows and features: of one feature, and of distances.

    Each feature in units of its own at the first look, whatever those of a search are.
    """

    def __init__(self, noise: Noise) -> None:
        self._noise = noise

    def __call__(self, weights: Array) -> Law:
        """Return the law of a typical feature under given weights."""
        places, times, _ = self._some
        return self._typical(times * weights[places] / self._noise.sample_weight[places])

    def widened(self, among: NDArray[np.bool_]) -> Widened | None:
        """Return which of the rows named are widened; None where none are."""
        noise = self._noise
        assert noise.far is not None
        # Rows may be too far out and kept all the same, where the bound allows no more.
        among = among & (noise.kept > 0.0) & (noise.far <= noise.radius_sq)
        squared, weight, d = noise.far[among], noise.sample_weight[among], noise.samples.n_features
        if not may_be_widened(squared, weight, d) or not among[self._some[0]].any():
            return None
        places, times, rows = self._some
        some, chance = among[places], np.zeros(among.size)
        found = widened_beyond(squared, weight, rows[some], times[some], d)
        if found is None:
            return None
        chance[among] = found[1]
        return Widened(found[0], chance, to_one_side(rows, times * chance[places]))

    def beside_group(self, widened: Widened, bound: float) -> Widened | None:
        """Return which rows are widened beside the group at which those to one side point.

        The group is told in some rows and features, and only where rows beside it may be widened
        are all rows seen along its direction. None where none are.
        """
        noise, (places, times, rows) = self._noise, self._some
        assert noise.far is not None
        left = times * noise.kept[places] / noise.sample_weight[places]
        start = left / left.sum()
        _, groups, wrong = groups_apart(
            DenseSamples(rows),
            CappedSimplex.from_contamination(times, bound),
            start,
            start * (1.0 - widened.chance[places]),
            lambda direction: direction,
            cache(lambda: self._typical(left)),
            sparse=False,
            features=False,
            most=1,
        )
        others = (wrong < 0.5) & (left > 0.0)
        d = noise.samples.n_features
        if not groups or not may_be_widened(noise.far[places[others]], left[others], d):
            return None
        direction = np.zeros(d)
        direction[:: -(-d // _LAW_COLUMNS)] = groups[0].direction
        group = groups[0].moved(direction, float(noise.anchor @ direction))
        return self.widened(group.wrong(group.seen(noise.samples)) < 0.5)

    @cached_property
    def _some(self) -> tuple[Indices, Array, Array]:
        """Their places, how often each counts, and the rows about the centre."""
        noise, d = self._noise, self._noise.samples.n_features
        places, times = spread_places(
            noise.sample_weight, noise.keys, max(_LAW_ROWS, _LAW_ROWS * _LAW_COLUMNS // d)
        )
        some = slice(None, None, -(-d // _LAW_COLUMNS))
        return places, times, noise.rows_at(places, some) - noise.anchor[some]

    @cached_property
    def _typical(self) -> TypicalLaw:
        _, times, rows = self._some
        return TypicalLaw(rows, times)


def to_one_side(rows: Array, chance: Array) -> bool:
    r"""Tell whether rows about the centre, each with its chance, lie to one side of it.

    Their mean has the expected square :math:`\sum p_i^2 |z_i|^2 / (\sum p_i)^2` if they lie to
    none; that of a group is more than twice as long.
    """
    share = chance / max(float(chance.sum()), _LEAST)
    away = share @ rows
    return bool(away @ away > TUNING.excess * (share**2 @ np.square(rows).sum(axis=1)))


def may_be_widened(squared: Array, weight: Array, n_features: int) -> bool:
    """Tell by the distances alone whether more rows are far out than their quartiles foretell.

    So many more than twice as many, somewhere: else a look at the columns is not worth its pass.
    """
    n = float(weight.sum())
    # Of two rows one is half of them, which widened rows never are.
    if n <= 2.0 or squared.max() == 0.0:
        return False
    law = radial_law(squared, weight, n_features, _MANY, 0.0, shrink=False)
    # Of the nearer half never: there are no more rows than all.
    far = squared > law.beyond(0.5)
    order = np.argsort(-squared[far])
    excess = np.cumsum(weight[far][order]) - TUNING.excess * n * law.exceeded(squared[far][order])
    return bool(excess.max(initial=0.0) > _PRICE * np.log(n))


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
    # A law with so much of it at one distance has no density that this grid shows, nor widens.
    if (clean[1:] + clean[:-1]).max() > TUNING.at_one:
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
    if abs(share - before) > _MOVES * share:
        return None
    heavy = radial_law(steps, weight, n_features, _MANY, 0.0, shrink=False)
    by_columns = float(seen @ np.log(law(one)))
    by_tails = float(seen @ heavy.log_density(np.maximum(x, 0.5)))
    alone = max(by_columns, by_tails)
    gain = float(seen @ np.log(near + far)) - alone
    more = (odds > 0.5) & (x > scale * mean)
    if gain < _PRICE * np.log(n) or wide <= scale or share >= 0.5 or not more.any():
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
