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
from scipy.special import betaln, fdtrc, fdtri, log_expit

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
    u = x + np.log(k / nu)
    return np.asarray(
        k / 2.0 * u - (k + nu) / 2.0 * np.logaddexp(0.0, u) - betaln(k / 2.0, nu / 2.0)
    )


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
    lowest = np.log([0.3, 1.0])
    highest = np.log([max(3.0 * n_features, 3.0), 1e4])

    def law_of(t: Array) -> RadialLaw:
        k, nu = np.exp(np.clip(t[1:3], lowest, highest))
        return RadialLaw(float(np.exp(t[0])), float(k), float(nu))

    def outside(t: Array) -> float:
        return 100.0 * float(np.sum((t[1:3] - np.clip(t[1:3], lowest, highest)) ** 2))

    def log_bulk(t: Array, x: Array) -> Array:
        bulk = law_of(t)
        return _log_f(x - t[0], bulk.k, bulk.nu)

    def log_parts(t: Array, x: Array) -> tuple[Array, Array]:
        spread = max(float(np.exp(t[5])), TUNING.narrowest)
        group = -0.5 * ((x - t[4]) / spread) ** 2 - np.log(spread * np.sqrt(2.0 * np.pi))
        return log_expit(-t[3]) + log_bulk(t, x), log_expit(t[3]) + group

    def one(t: Array) -> float:
        return outside(t) - each * float(log_bulk(t, x).sum())

    def two(t: Array) -> float:
        return outside(t) - each * float(np.logaddexp(*log_parts(t, x)).sum())

    def least(function: Callable[[Array], float], start: Array, evaluations: int) -> Any:
        options: Any = {"xatol": 1e-2, "fatol": 0.1, "maxfev": evaluations}
        return minimize(function, start, method="Nelder-Mead", options=options)

    start = np.array([middle, np.log(max(law.k, 0.5)), np.log(5.0)])
    alone = least(one, start, 250)
    share = weight[far] / weight[far].sum()
    centre = float(share @ x_all[far])
    spread = float(np.sqrt(share @ (x_all[far] - centre) ** 2))
    part = float(np.clip(weight[far].sum() / weight.sum(), 1e-6, 1.0 - 1e-6))
    second = [np.log(part / (1.0 - part)), centre, np.log(max(spread, 0.1))]
    # Both laws have many parameters and more than one optimum.
    pairs = [least(two, np.r_[t, second], 500) for t in (start, alone.x)]
    pair = min(pairs, key=lambda result: float(result.fun))
    # From the middle of the bulk outward, the first point where the group has the greater part.
    x = np.linspace(middle, max(float(pair.x[4]), middle), 400)
    bulk, group = log_parts(pair.x, x)
    parting = float(np.exp(x[int(np.argmax(group > bulk))])) if np.any(group > bulk) else np.inf
    return FarGroup(float(alone.fun - pair.fun), law_of(alone.x), law_of(pair.x), parting)
