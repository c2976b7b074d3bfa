r"""How far out clean rows of an elliptical table are: the law of their squared distances.

Squared Mahalanobis distances of rows that did not help to estimate the covariance follow a multiple
of F,

.. math:: D \sim c F(d, \nu), \qquad \nu \le m - d,

with equality for Gaussian rows measured by m others. Heavy tails have a smaller :math:`\nu`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize
from scipy.special import betaln, digamma, expit, fdtrc, fdtri, log_expit

from outweigh.fit.columns import weighted_quantile
from outweigh.fit.tuning import TUNING
from outweigh.protocols import Array

_TINY = 1e-300
_MANY = 1e6


@dataclass(frozen=True, slots=True)
class RadialLaw:
    """Squared distances of clean rows: scale times F(k, nu)."""

    scale: float
    k: float
    nu: float

    def beyond(self, level: float) -> float:
        """Return the squared distance that a clean row exceeds with this probability."""
        return self.scale * float(fdtri(self.k, self.nu, 1.0 - level))

    def exceeded(self, squared: Array) -> Array:
        """Return the probability that a clean row exceeds each squared distance."""
        with np.errstate(over="ignore"):
            return np.asarray(fdtrc(self.k, self.nu, squared / self.scale))

    def log_density(self, squared: Array) -> Array:
        """Return the log density of positive squared distances."""
        x = np.log(squared / self.scale)
        return np.asarray(_log_f(x, self.k, self.nu) - np.log(squared))

    @property
    def freedom(self) -> float:
        """Those of the t law along any direction; infinite where it is as good as a Gaussian."""
        # With 2 or fewer it has no variance, from which its spread is known.
        return max(self.nu, 2.5) if self.nu < 200.0 else np.inf

    def at_median(self, median: float) -> RadialLaw:
        """Return the law of the same shape with another median."""
        return RadialLaw(max(median, _TINY) / float(fdtri(self.k, self.nu, 0.5)), self.k, self.nu)

    def read_off(self, count: float) -> RadialLaw:
        r"""Return the law of a row where the median, and so the scale, was read off so many others.

        The logarithm of their median has the variance :math:`1 / (4 n f^2)`, f its density there,
        as that of a scale with :math:`8 n f^2` degrees of freedom has: fewer, and heavier tails.
        """
        median = self.scale * float(fdtri(self.k, self.nu, 0.5))
        density = median * float(np.exp(self.log_density(np.array(median))))
        nu = 1.0 / (1.0 / self.nu + 1.0 / max(8.0 * count * density**2, _TINY))
        return RadialLaw(1.0, self.k, nu).at_median(median)


def _log_f(x: Array, k: float, nu: float) -> Array:
    """Return the log density of x = log F, F of the law F(k, nu)."""
    return _log_f_and_slopes(x, k, nu)[0]


def radial_law(
    squared: Array, weight: Array, n_features: int, count: float, share: float, shrink: bool
) -> RadialLaw:
    """Return the law of clean rows from the quartiles of all but the `share` farthest.

    Where rows are many k = d, and nu is at most m - d, its value for Gaussian rows. Where they are
    few, the metric is shrunk and the law not known: nu is infinite and k, at most d, is free.
    """
    levels = [p * (1.0 - share) for p in (0.25, 0.5, 0.75)]
    first, median, third = np.maximum(weighted_quantile(squared, weight, levels), _TINY)
    seen = float(np.log(third) - np.log(first))

    def law(x: float) -> tuple[float, float]:
        return (np.exp(x), _MANY) if shrink else (float(n_features), np.exp(x))

    def excess(x: float) -> float:
        k, nu = law(x)
        return float(np.log(fdtri(k, nu, 0.75) / fdtri(k, nu, 0.25))) - seen

    low, high = (
        (np.log(0.3), np.log(n_features)) if shrink else (0.0, np.log(max(count - n_features, 2.0)))
    )
    # The spread of log D falls with either parameter.
    x = high if excess(high) >= 0.0 else low if excess(low) <= 0.0 else brentq(excess, low, high)
    return RadialLaw(1.0, *law(float(x))).at_median(float(median))


def discovered(law: RadialLaw, squared: Array, weight: Array, level: float, rate: float) -> float:
    """Return the probability beyond which clean rows are taken for far ones.

    Where no row is far that is the level. Where many are, more is known of where they begin: of all
    that are taken for far this rate is expected to be clean (Benjamini and Hochberg, 1995).
    """
    chance = law.exceeded(squared)
    order = np.argsort(chance, kind="stable")
    levels = np.maximum(level, rate * np.cumsum(weight[order]) / weight.sum())
    far = np.flatnonzero(chance[order] <= levels)
    return float(levels[far[-1]]) if far.size else level


@dataclass(frozen=True, slots=True)
class FarGroup:
    """Whether far rows are a group of their own or the tail of one law.

    Attributes
    ----------
    gain : float
        Nats by which a second group explains the distances better than one law does.
    alone : RadialLaw
        The one law.
    parting : float
        The squared distance at which a row is as likely of the group as of the bulk.
    """

    gain: float
    alone: RadialLaw
    bulk: RadialLaw
    parting: float


def second_group(
    squared: Array, weight: Array, far: NDArray[np.bool_], law: RadialLaw, n_features: int
) -> FarGroup:
    """Compare one radial law with two, both fitted to all distances.

    x = log D of one law F(k, nu) times a scale, and the same mixed with a Gaussian group of x.
    Three hundred quantiles stand for the rows.
    """
    x_all = np.log(np.maximum(squared, _TINY))
    x = weighted_quantile(x_all, weight, list((np.arange(300) + 0.5) / 300.0))
    each, middle = float(weight.sum()) / 300.0, float(np.median(x))
    of_one = [(None, None), tuple(np.log([0.3, max(3.0 * n_features, 3.0)])), (0.0, np.log(1e4))]
    of_group = [(-14.0, 14.0), (None, None), (np.log(TUNING.narrowest), None)]

    def law_of(t: Array) -> RadialLaw:
        return RadialLaw(*map(float, np.exp(t[:3])))

    def one(t: Array) -> tuple[float, Array]:
        value, slopes = _log_f_and_slopes(x - t[0], *np.exp(t[1:3]))
        return -each * float(value.sum()), -each * slopes.sum(axis=1)

    def parts(t: Array, x: Array) -> tuple[Array, Array, Array, Array]:
        away, spread = x - t[4], np.exp(t[5])
        group = log_expit(t[3]) - 0.5 * (away / spread) ** 2 - t[5] - 0.5 * np.log(2.0 * np.pi)
        bulk, slopes = _log_f_and_slopes(x - t[0], *np.exp(t[1:3]))
        return log_expit(-t[3]) + bulk, group, slopes, away / spread

    def two(t: Array) -> tuple[float, Array]:
        bulk, group, slopes, away = parts(t, x)
        chance = expit(group - bulk)
        gradient = [
            *((1.0 - chance) @ slopes.T),
            float((chance - expit(t[3])).sum()),
            float(chance @ away) / np.exp(t[5]),
            float(chance @ (away**2 - 1.0)),
        ]
        return -each * float(np.logaddexp(bulk, group).sum()), -each * np.array(gradient)

    def least(function: Callable[[Array], Any], start: Array, bounds: list[Any]) -> Any:
        found = minimize(function, start, jac=True, method="L-BFGS-B", bounds=bounds)
        # A thousandth is more than is known of a law; the rest is the order of summation.
        found.x = np.round(found.x, 3)
        return found

    start = np.array([middle, np.log(max(law.k, 0.5)), np.log(5.0)])
    alone = least(one, start, of_one)
    share = weight[far] / weight[far].sum()
    centre = float(share @ x_all[far])
    spread = float(np.sqrt(share @ (x_all[far] - centre) ** 2))
    part = float(np.clip(weight[far].sum() / weight.sum(), 1e-6, 1.0 - 1e-6))
    second = [np.log(part / (1.0 - part)), centre, np.log(max(spread, 0.1))]
    # Both laws have many parameters and more than one optimum.
    pairs = [least(two, np.r_[t, second], of_one + of_group) for t in (start, alone.x)]
    pair = min(pairs, key=lambda result: float(result.fun))
    # From the middle of the bulk outward, the first point where the group has the greater part.
    x = np.linspace(middle, max(float(pair.x[4]), middle), 400)
    bulk, group, _, _ = parts(pair.x, x)
    parting = float(np.exp(x[int(np.argmax(group > bulk))])) if np.any(group > bulk) else np.inf
    return FarGroup(float(alone.fun - pair.fun), law_of(alone.x), law_of(pair.x), parting)


def _log_f_and_slopes(x: Array, k: float, nu: float) -> tuple[Array, Array]:
    r"""Return the log density of x = log F, and its slopes in a shift of F, in log k and log nu.

    With :math:`a = k/2`, :math:`b = \nu/2` and :math:`u = x + \log(k/\nu)` the slope along u is
    :math:`g = a - (a + b)/(1 + e^{-u})`. A shift moves u by -1, log k by 1 and log nu by -1.
    """
    a, b = k / 2.0, nu / 2.0
    u = x + np.log(k / nu)
    soft, along = np.logaddexp(0.0, u), a - (a + b) * expit(u)
    of_k = a * (u - soft - digamma(a) + digamma(a + b)) + along
    of_nu = b * (digamma(a + b) - digamma(b) - soft) - along
    return a * u - (a + b) * soft - betaln(a, b), np.stack([-along, of_k, of_nu])
