"""What clean data scores: the level of each norm that sampling noise alone explains.

The second moments of n clean samples differ from their expectation, so no weights bring an
objective to zero. The level they do reach is known before any optimisation. At the floor, second
moments hold no further evidence against any sample; that does not mean that the data is clean.

Entries of a clean sample covariance are close to N(0, 1/n) off the diagonal and to
N(0, (kurtosis - 1)/n) on it. Their largest order statistics are drawn by exponential spacings in
O(d k) time and memory, without a d x d matrix. Eigenvalue edges follow the Tracy-Widom law.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, singledispatch

import numpy as np
from scipy.special import ndtri

from outweigh.norms import KyFan, LargestEntries, RowwiseLargest
from outweigh.protocols import Array

__all__ = ["NoiseFloor", "noise_floor"]

_UPPER_QUANTILE = 0.99
_MAX_DRAWS = 400
# Entries drawn per floor: many draws of small matrices, few of large ones, whose spread is small.
_DRAW_BUDGET = 200_000
_MIN_DRAWS = 12
_SIMULATE_SPECTRUM_BELOW = 16

# Median and 0.99 quantile of the Tracy-Widom law (beta = 1), of the largest eigenvalue (Bornemann,
# "On the numerical evaluation of distributions in random matrix theory", 2010).
_TW_FIRST = (-1.2687, 2.0234)


@dataclass(frozen=True, slots=True)
class NoiseFloor:
    """The level of clean data under one norm.

    Attributes
    ----------
    median : float
        Half of all clean samples score below it.
    upper : float
        99 in 100 clean samples score below it.
    """

    median: float
    upper: float

    @property
    def clean(self) -> float:
        """The level at or below which weights count as clean: near the median, or not unusual."""
        return max(self.upper, 1.05 * self.median)

    def scaled(self, factor: float) -> NoiseFloor:
        """Return the floor for noise whose second moments are `factor` times as large."""
        return NoiseFloor(self.median * factor, self.upper * factor)


@singledispatch
def noise_floor(
    norm: object, n_effective: float, n_features: int, kurtosis: float = 3.0
) -> NoiseFloor:
    """Return the level that clean data of unit variance reaches under `norm`.

    Parameters
    ----------
    norm : RowwiseLargest, LargestEntries or KyFan
    n_effective : float
        The number of samples, 1 / sum w_i^2 for a weighted one.
    n_features : int
    kurtosis : float, default=3.0
        Of the features: heavier tails than the Gaussian's put more noise on the diagonal.

    Returns
    -------
    NoiseFloor

    Examples
    --------
    >>> from outweigh.norms import LargestEntries
    >>> round(noise_floor(LargestEntries(400), 1000, 20).median, 2)  # sqrt(20 * 21 / 1000) = 0.65
    0.65
    """
    raise TypeError(
        f"norm: no noise floor is known for {type(norm).__name__}; register one with "
        "outweigh.norms.floor.noise_floor.register"
    )


@noise_floor.register
def _(norm: RowwiseLargest, n: float, d: int, kurtosis: float = 3.0) -> NoiseFloor:
    if norm.n_nonzero >= d:
        return _frobenius(n, d, kurtosis)
    return _drawn(_rowwise_draw, n, d, norm.n_nonzero, kurtosis)


@noise_floor.register
def _(norm: LargestEntries, n: float, d: int, kurtosis: float = 3.0) -> NoiseFloor:
    if norm.n_entries >= d**2:
        return _frobenius(n, d, kurtosis)
    return _drawn(_largest_draw, n, d, norm.n_entries, kurtosis)


@noise_floor.register
def _(norm: KyFan, n: float, d: int, kurtosis: float = 3.0) -> NoiseFloor:
    rank = min(norm.rank, d)
    if d < _SIMULATE_SPECTRUM_BELOW:
        return _drawn(_spectrum_draw, n, d, rank, kurtosis)
    freedom = max(n - 1.0, 1.0)
    edge = (np.sqrt(freedom) + np.sqrt(d)) ** 2
    width = (np.sqrt(freedom) + np.sqrt(d)) * (freedom**-0.5 + d**-0.5) ** (1 / 3)
    # The mean of the k-th eigenvalue, from the second on: 2/(3 pi) x^(3/2) of them are within x of
    # the edge, and the k-th is the one at k - 3/4 (-3.2615 for the second, which has -3.2624).
    later = np.sum((0.375 * np.pi * (4.0 * np.arange(2, rank + 1) - 3.0)) ** (2.0 / 3.0))
    levels = ((rank * edge + (first - later) * width) / n - rank for first in _TW_FIRST)
    return NoiseFloor(*(float(level) for level in levels))


Draw = Callable[[np.random.Generator, int, float, int, int, float], Array]


def _drawn(draw: Draw, n: float, d: int, size: int, kurtosis: float) -> NoiseFloor:
    """Return the level of simulated norms; nearly equal requests share one simulation."""
    # Beyond the 1/sqrt(n) law, a floor hardly depends on n: one serves a factor of 1.2.
    near = float(1.2 ** round(float(np.log(max(n, 1.0)) / np.log(1.2))))
    floor = _drawn_cached(draw, near, d, size, float(f"{max(kurtosis, 1.5):.3g}"))
    return floor.scaled(float(np.sqrt(near / n)))


@lru_cache(maxsize=512)
def _drawn_cached(draw: Draw, n: float, d: int, size: int, kurtosis: float) -> NoiseFloor:
    n_draws = int(np.clip(_DRAW_BUDGET // (d * min(size, d)), _MIN_DRAWS, _MAX_DRAWS))
    # Seeded by the problem, never by the user's random_state: a floor is a constant of nature. The
    # same draws serve every n, so that floors fall smoothly as n grows.
    rng = np.random.default_rng([d, size])
    draws = draw(rng, n_draws, n, d, size, kurtosis)
    median = float(np.median(draws))
    if n_draws >= 200:
        return NoiseFloor(median, float(np.quantile(draws, _UPPER_QUANTILE)))
    # Too few draws for a tail quantile; with so many entries the level is close to Gaussian.
    spread = float(ndtri(_UPPER_QUANTILE)) * draws.std(ddof=1)
    return NoiseFloor(median, float(median + spread))


def _rowwise_draw(
    rng: np.random.Generator, n_draws: int, n: float, d: int, k: int, kurtosis: float
) -> Array:
    diagonal = _diagonal_draw(rng, (n_draws, d), n, kurtosis)
    if d == 1:
        return np.abs(diagonal[:, 0])
    off = min(k, d - 1)
    # All off-diagonal entries of a row share the factor |x_j|: rows of large variance stand out.
    shared = (1.0 + diagonal) / n
    entries = _largest_normals(rng, (n_draws, d, off), d - 1, n) ** 2 * shared[..., None]
    energy = entries.sum(axis=-1) + diagonal**2
    if off == k:
        # The diagonal entry takes the place of the smallest off-diagonal one where it is larger.
        energy -= np.minimum(entries[..., -1], diagonal**2)
    return np.asarray(np.sqrt(np.sort(energy, axis=1)[:, -k:].sum(axis=1)))


def _largest_draw(
    rng: np.random.Generator, n_draws: int, n: float, d: int, m: int, kurtosis: float
) -> Array:
    pairs = d * (d - 1) // 2
    count = min((m + 1) // 2, pairs)
    diagonal = _diagonal_draw(rng, (n_draws, d), n, kurtosis) ** 2
    off = np.empty((n_draws, 0))
    if count:
        off = _largest_normals(rng, (n_draws, count), pairs, n) ** 2 / n
    entries = np.sort(np.concatenate([off, off, diagonal], axis=1), axis=1)
    return np.asarray(np.sqrt(entries[:, -m:].sum(axis=1)))


def _diagonal_draw(
    rng: np.random.Generator, shape: tuple[int, ...], n: float, kurtosis: float
) -> Array:
    """Return variances less one: chi-squared (Wilson-Hilferty), widened for heavier tails."""
    freedom = max(n - 1.0, 1.0)
    spread = 2.0 / (9.0 * freedom)
    cube = 1.0 - spread + np.sqrt(spread) * rng.standard_normal(shape)
    gaussian = np.maximum(cube, 0.0) ** 3 * freedom / n - 1.0
    return np.asarray(np.maximum(gaussian * np.sqrt((kurtosis - 1.0) / 2.0), -1.0))


def _largest_normals(
    rng: np.random.Generator, shape: tuple[int, ...], population: int, n: float
) -> Array:
    """Return the largest magnitudes among `population` sample covariances times sqrt(n).

    The last axis of `shape` counts the order statistics, in decreasing order.
    """
    count = shape[-1]
    spacings = np.cumsum(rng.standard_exponential(shape), axis=-1)
    rest = rng.standard_gamma(population + 1 - count, shape[:-1])
    uniform = spacings / (spacings[..., -1] + rest)[..., None]
    z = -ndtri(uniform / 2.0)
    # Cornish-Fisher: a mean of n products of two Gaussians has excess kurtosis 6/n.
    return np.asarray(z * (1.0 + np.maximum(z * z - 3.0, 0.0) / (4.0 * n)))


def _frobenius(n: float, d: int, kurtosis: float) -> NoiseFloor:
    """Return the floor of the Frobenius norm: a sum of d(d+1)/2 nearly independent squares."""
    diagonal = max(kurtosis, 1.5) - 1.0
    mean = (d * (d - 1) + diagonal * d) / n
    variance = (4.0 * d * (d - 1) + 2.0 * d * diagonal**2) / n**2
    # Wilson-Hilferty with the matching degrees of freedom.
    freedom = 2.0 * mean**2 / variance

    def quantile(p: float) -> float:
        cube = 1.0 - 2.0 / (9.0 * freedom) + ndtri(p) * np.sqrt(2.0 / (9.0 * freedom))
        return float(np.sqrt(mean * max(cube, 0.0) ** 3))

    return NoiseFloor(quantile(0.5), quantile(_UPPER_QUANTILE))


def _spectrum_draw(
    rng: np.random.Generator, n_draws: int, n: float, d: int, rank: int, kurtosis: float
) -> Array:
    # Wishart matrices by Bartlett's decomposition, all at once.
    lower = np.tril(rng.standard_normal((n_draws, d, d)), -1)
    freedom = np.maximum(n - 1.0 - np.arange(d), 0.5)
    lower[:, np.arange(d), np.arange(d)] = np.sqrt(rng.chisquare(freedom, (n_draws, d)))
    noise = lower @ lower.transpose(0, 2, 1) / n
    extra = np.sqrt(max(kurtosis - 3.0, 0.0) / n) * rng.standard_normal((n_draws, d))
    noise[:, np.arange(d), np.arange(d)] += extra - 1.0
    values = np.sort(np.abs(np.linalg.eigvalsh(noise)), axis=1)
    return np.asarray(values[:, -rank:].sum(axis=1))
