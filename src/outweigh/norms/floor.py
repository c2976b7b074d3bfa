"""What clean data scores: the level of each norm that sampling noise alone explains.

The second moments of n clean samples differ from their expectation, so no weights bring an
objective to zero. The level they do reach is known before any optimisation. At the floor, second
moments hold no further evidence against any sample; that does not mean that the data is clean.

Entries of a clean sample covariance are close to N(0, 1/n) off the diagonal and to
N(0, (kurtosis - 1)/n) on it. What the largest of them add up to follows from the law of their
squares by `_sum_of_largest`, in a millisecond whatever the size. Eigenvalue edges follow the
Tracy-Widom law. Nothing is drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, singledispatch

import numpy as np
from scipy.optimize import brentq
from scipy.special import betaincinv, gammainc, gammaincc, ndtr, ndtri

from outweigh.norms import KyFan, LargestEntries, RowwiseLargest
from outweigh.protocols import Array

_UPPER_QUANTILE = 0.99
# Points at which laws are tabulated, values that a threshold takes, and deviations, of a Gaussian,
# beyond which no entry lies: in twice as many of each, floors agree to a thousandth.
_POINTS, _THRESHOLDS, _DEVIATIONS = 300, 16, np.linspace(-7.0, 7.0, 43)
_MAGNITUDES = np.linspace(0.0, 14.0, 500)
_NEVER = 1e-300

# Shape, scale and origin of the gamma law that the Tracy-Widom law (beta = 1) is within 0.1 % of
# (Chiani, "Distribution of the largest eigenvalue for real Wishart and Gaussian random matrices and
# a simple approximation for the Tracy-Widom distribution", 2014), its mean and its 0.99 quantile.
_TW_SHAPE, _TW_SCALE, _TW_ORIGIN = 46.446, 0.186054, -9.84801
_TW_MEAN = -1.2065
_TW_UPPER = 2.0234


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
    if norm.n_nonzero == 1:
        return _shared(_of_entries, n, d, 1, kurtosis)
    return _shared(_of_rows, n, d, norm.n_nonzero, kurtosis)


@noise_floor.register
def _(norm: LargestEntries, n: float, d: int, kurtosis: float = 3.0) -> NoiseFloor:
    if norm.n_entries >= d**2:
        return _frobenius(n, d, kurtosis)
    return _shared(_of_entries, n, d, norm.n_entries, kurtosis)


@noise_floor.register
def _(norm: KyFan, n: float, d: int, kurtosis: float = 3.0) -> NoiseFloor:
    return _remembered(_of_spectrum, n, d, min(norm.rank, d), kurtosis)


def _shared(find: Callable[..., NoiseFloor], n: float, *arguments: float) -> NoiseFloor:
    """Return a floor that serves all n within a factor of 1.1 but for the law 1/sqrt(n)."""
    near = float(1.1 ** round(float(np.log(max(n, 1.0)) / np.log(1.1))))
    return _remembered(find, near, *arguments).scaled(float(np.sqrt(near / n)))


@lru_cache(maxsize=512)
def _remembered(find: Callable[..., NoiseFloor], *arguments: float) -> NoiseFloor:
    return find(*arguments)


@dataclass(frozen=True, slots=True, eq=False)
class _Law:
    """The law of a nonnegative value: how likely it is to exceed each of some sizes.

    ``sizes`` increase from the least that the value can be.
    """

    sizes: Array
    exceeds: Array

    def quantile(self, exceeded: Array) -> Array:
        """Return the sizes that are exceeded with these probabilities."""
        return np.interp(-np.log(exceeded), -np.log(np.maximum(self.exceeds, _NEVER)), self.sizes)

    def survival(self, sizes: Array) -> Array:
        """Return how likely each size is to be exceeded."""
        log_exceeds = np.log(np.maximum(self.exceeds, _NEVER))
        return np.exp(np.interp(sizes, self.sizes, log_exceeds, right=np.log(_NEVER)))

    def level(self, n: float) -> NoiseFloor:
        """Return the floor of a norm whose square, times n, has this law."""
        median, upper = self.quantile(np.array([0.5, 1.0 - _UPPER_QUANTILE]))
        return NoiseFloor(float(np.sqrt(median / n)), float(np.sqrt(upper / n)))


def _sum_of_largest(law: _Law, count: int, population: int, equal: float = 1.0) -> _Law:
    r"""Return the law of the sum of the `count` largest of `population` values.

    They are independent, but for `equal` at a time.

    Given the next largest, s, they are `count` independent values beyond s. Their sum has a mean
    and a variance that follow from :math:`\int_s^\infty P(x > t)\,dt` and its integral, and is
    close to a gamma law above `count` times s. The probability of exceeding s has a Beta law, over
    whose quantiles that is averaged.
    """
    step, exceeds = np.diff(law.sizes), law.exceeds
    integrals = []
    for _ in range(2):
        exceeds = np.append(np.cumsum((step * (exceeds[1:] + exceeds[:-1]))[::-1])[::-1] / 2.0, 0.0)
        integrals.append(np.log(np.maximum(exceeds, _NEVER)))
    chances = np.ones(1)
    if count < population:
        ranks = (np.arange(_THRESHOLDS) + 0.5) / _THRESHOLDS
        chances = betaincinv(count / equal + 1.0, (population - count) / equal, ranks)
    least = law.quantile(chances)
    mean, square = (np.exp(np.interp(least, law.sizes, each)) / chances for each in integrals)
    variance = equal * (2.0 * square - mean**2)
    shape, scale = count * mean**2 / variance, variance / mean
    reach = scale * (shape + 10.0 * np.sqrt(shape) + 40.0)
    sizes = np.linspace(count * least.min(), float((count * least + reach).max()), _POINTS)
    above = np.maximum(sizes[:, None] - count * least, 0.0) / scale
    return _Law(sizes, gammaincc(shape, above).mean(axis=1))


def _off_diagonal(n: float) -> _Law:
    """Return the law of n times the square of an entry off the diagonal."""
    z = _MAGNITUDES
    # Cornish-Fisher: a mean of n products of two Gaussians has excess kurtosis 6/n.
    sizes = np.square(z * (1.0 + np.maximum(z * z - 3.0, 0.0) / (4.0 * n)))
    return _Law(sizes, 2.0 * ndtr(-z))


def _diagonal(deviations: Array, n: float, kurtosis: float) -> Array:
    """Return variances less one: chi-squared (Wilson-Hilferty), widened for heavier tails."""
    freedom = max(n - 1.0, 1.0)
    spread = 2.0 / (9.0 * freedom)
    cube = 1.0 - spread + np.sqrt(spread) * deviations
    gaussian = np.maximum(cube, 0.0) ** 3 * freedom / n - 1.0
    widened = gaussian * np.sqrt((max(kurtosis, 1.5) - 1.0) / 2.0)
    return np.asarray(np.maximum(widened, -1.0))


def _diagonal_exceeds(sizes: Array, n: float, kurtosis: float) -> Array:
    """Return how likely an entry on the diagonal is to be larger in magnitude than each size."""
    freedom = max(n - 1.0, 1.0)
    spread = 2.0 / (9.0 * freedom)
    gaussian = sizes / np.sqrt((max(kurtosis, 1.5) - 1.0) / 2.0)

    def deviations(values: Array) -> Array:
        cube = np.cbrt(np.maximum(1.0 + values, 0.0) * n / freedom)
        return np.asarray((cube - 1.0 + spread) / np.sqrt(spread))

    # No variance is below zero.
    below = np.where(sizes < 1.0, ndtr(deviations(-gaussian)), 0.0)
    return np.asarray(ndtr(-deviations(gaussian)) + below)


def _of_rows(n: float, d: int, k: int, kurtosis: float) -> NoiseFloor:
    """Return the floor of k rows with the k largest entries of each, 1 < k < d.

    All entries of a row off the diagonal share the factor |x_j|: rows of large variance 1 + v stand
    out. That on the diagonal, v, takes the place of the smallest where it is larger.
    """
    entry = _off_diagonal(n)
    others = _sum_of_largest(entry, k, d - 1)
    smallest = float(entry.quantile(np.array([k / (d - 1)]))[0])
    v = _diagonal(_DEVIATIONS, n, kurtosis)
    likely = np.exp(-(_DEVIATIONS**2) / 2.0)
    shared = np.maximum(1.0 + v, 1e-6)
    own = np.maximum(n * v**2 - smallest * shared, 0.0)
    low, high = (
        float((shared * others.sizes[0]).min()),
        float((shared * others.sizes[-1] + own).max()),
    )
    sizes = np.geomspace(max(low, 1e-3), high, _POINTS)
    exceeds = others.survival((sizes[:, None] - own) / shared) @ likely / likely.sum()
    return _sum_of_largest(_Law(sizes, exceeds), k, d).level(n)


def _of_entries(n: float, d: int, m: int, kurtosis: float) -> NoiseFloor:
    """Return the floor of the m < d^2 largest entries anywhere.

    Those off the diagonal come in pairs: of those that are among the largest, on average so many
    are equal.
    """
    entry = _off_diagonal(n)
    largest = n * float(np.square(_diagonal(np.array([-14.0, 14.0]), n, kurtosis)).max())
    sizes = np.union1d(entry.sizes, np.linspace(0.0, largest, _POINTS))
    pairs = d * (d - 1.0) / 2.0 * entry.survival(sizes)
    own = d * _diagonal_exceeds(np.sqrt(sizes / n), n, kurtosis)
    if m == 1:
        # How many exceed a size has a Poisson law.
        return _Law(sizes, -np.expm1(-pairs - own)).level(n)
    place = int(np.argmin(2.0 * pairs + own > m))
    equal = float((2.0 * pairs[place] + own[place]) / (pairs[place] + own[place]))
    return _sum_of_largest(_Law(sizes, (2.0 * pairs + own) / d**2), m, d**2, equal).level(n)


def _of_spectrum(n: float, d: int, rank: int, kurtosis: float) -> NoiseFloor:
    r"""Return the floor of the sum of the `rank` eigenvalues of largest magnitude.

    Those at either edge of the spectrum follow the Tracy-Widom law, at the centre and scale of Ma
    ("Accuracy of the Tracy-Widom limits for the extreme eigenvalues in white Wishart matrices",
    2012), good from two features on; the largest magnitude is below a level where both ends are,
    and then so is the diagonal. Heavier tails than the Gaussian's add kurtosis - 3 to the d + 1 of
    the variance of a row.
    """
    a, b = float(np.sqrt(max(n - 1.5, 0.5))), float(np.sqrt(d - 0.5))
    wider = float(np.sqrt(1.0 + max(kurtosis - 3.0, 0.0) / (d + 1.0)))
    upper = (a + b) ** 2 / n - 1.0, (a + b) * (1.0 / a + 1.0 / b) ** (1 / 3) / n
    lower = 1.0, 0.0
    if a > b:
        lower = 1.0 - (a - b) ** 2 / n, (a - b) * (1.0 / b - 1.0 / a) ** (1 / 3) / n
    if rank > 1:
        # Terms at opposite edges are independent, neighbours nearly so.
        # The mean of the k-th eigenvalue: 2/(3 pi) x^(3/2) of them are within x of the edge, and
        # the k-th is the one at k - 3/4 (-3.2615 for the second, which has -3.2624).
        later = (0.375 * np.pi * (4.0 * np.arange(2, rank + 1) - 3.0)) ** (2.0 / 3.0)
        means = [_TW_MEAN, *(-later).tolist()]
        places = [mean * width + edge for edge, width in (upper, lower) for mean in means]
        mean = sum(sorted(places)[-rank:])
        offset = float(np.sqrt(rank)) * (_TW_UPPER - _TW_MEAN) * upper[1]
        return NoiseFloor(wider * mean, wider * (mean + offset))

    def below(level: float) -> float:
        on_diagonal = max(1.0 - float(_diagonal_exceeds(np.array([level]), n, kurtosis)[0]), 0.0)
        if d == 1:
            return on_diagonal
        at_edges = 1.0 if lower[1] or level >= wider else 0.0
        for edge, width in (upper, lower):
            if width:
                at_edges *= _tracy_widom((level / wider - edge) / width)
        return min(at_edges, on_diagonal**d)

    most = wider * (upper[0] + 1.0 + 40.0 * upper[1]) + 20.0 * float(
        np.sqrt(max(kurtosis, 3.0) / n)
    )
    levels = (
        float(brentq(lambda level, p=p: below(level) - p, 0.0, most, xtol=1e-6 * most))
        for p in (0.5, _UPPER_QUANTILE)
    )
    return NoiseFloor(*levels)


def _tracy_widom(value: float) -> float:
    """Return the probability that the Tracy-Widom law (beta = 1) is below a value."""
    return float(gammainc(_TW_SHAPE, max(value - _TW_ORIGIN, 0.0) / _TW_SCALE))


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
