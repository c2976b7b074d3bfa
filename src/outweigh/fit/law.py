r"""The law of clean rows along a direction, learned from the features.

Noise is independent over the features, so along a unit direction v a clean row is
:math:`\sum_j v_j \xi_j` with :math:`\xi_j` of the law of feature j. Those laws are not known, and
outliers are in some of them. But most features have none: the *typical* law, of which each quantile
is the median of that quantile over all features, is that of clean rows. What it is along v is a
convolution, and where v is spread over many features it is nearly Gaussian, whatever it was before.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import expit, gammaln, ndtr, stdtr

from outweigh.protocols import Array

# A law is kept at so many points, so many deviations out: the rounding of linear interpolation.
_POINTS, _REACH = 2048, 16.0
_STEP = 2.0 * _REACH / _POINTS
_GRID: Array = np.arange(_POINTS, dtype=np.float64) * _STEP - _REACH
_FREQUENCIES = 2.0 * np.pi * np.fft.rfftfreq(_POINTS, _STEP)
# Levels of the quantiles, and the share beyond which a convolution has only rounding.
_LEVELS = 400
_ROUNDING = 1e-7
# Features of a direction beyond these add a Gaussian: each has less than 1/30 of the variance.
_LARGEST = 30
LOG_ROOT_2PI = 0.5 * math.log(2.0 * math.pi)


@dataclass(frozen=True, slots=True)
class Student:
    """Student's t law of some degrees of freedom; a Gaussian where they are infinite.

    Attributes
    ----------
    freedom : float
    step : float
        Half the distance between the values of features that have few, else 0: groups narrower
        than that would each be one of the values.
    """

    freedom: float
    step: float = 0.0

    def standard(self, z: Array) -> Array:
        """Return the log density at z, about zero and of spread one."""
        nu, squares = self.freedom, z * z
        if math.isinf(nu):
            squares *= -0.5
            squares -= LOG_ROOT_2PI
            return squares
        constant = gammaln((nu + 1.0) / 2.0) - gammaln(nu / 2.0) - 0.5 * np.log(nu * np.pi)
        return np.asarray(constant - (nu + 1.0) / 2.0 * np.log1p(squares / nu))

    def log_density(self, y: Array, centre: float | Array, spread: float | Array) -> Array:
        """Return the log density at y of the law moved to a centre, multiplied by a spread."""
        return np.asarray(self.standard((y - centre) / spread) - np.log(spread))

    def below(self, z: Array) -> Array:
        """Return the probability of less than z, about zero and of spread one."""
        return np.asarray(ndtr(z) if math.isinf(self.freedom) else stdtr(self.freedom, z))

    def along(self, direction: Array) -> Student:
        """Return that of a direction: the same, which is exact for a Gaussian."""
        return replace(self, step=_step_along(self.step, direction))


GAUSSIAN = Student(np.inf)


@dataclass(frozen=True, eq=False)
class Learned:
    """A law of mean zero and variance one that was read off rows.

    Attributes
    ----------
    log_densities : ndarray of shape (2048,)
        At points between -16 and 16; farther out the density falls exponentially.
    step : float
        How far it was smoothed: groups narrower than that may be what it lacks.
    """

    log_densities: Array
    step: float

    def standard(self, z: Array) -> Array:
        """Return the log density at z, about zero and of spread one."""
        at_zero, slopes = self._lines
        # Beyond the points the first and the last line go on.
        line = np.clip(z * (1.0 / _STEP) + _REACH / _STEP, 0.0, _POINTS - 2.0).astype(np.intp)
        found = slopes[line]
        found *= z
        found += at_zero[line]
        return np.asarray(found)

    def log_density(self, y: Array, centre: float | Array, spread: float | Array) -> Array:
        """Return the log density at y of the law moved to a centre, multiplied by a spread."""
        return np.asarray(self.standard((y - centre) / spread) - np.log(spread))

    def below(self, z: Array) -> Array:
        """Return the probability of less than z, about zero and of spread one."""
        total = np.cumsum(np.exp(self.log_densities))
        return np.asarray(np.interp(z, _GRID, total / total[-1]))

    def along(self, direction: Array) -> Learned:
        """Return the law of sum_j v_j xi_j for independent xi_j of this law and a unit v."""
        v = direction[np.argsort(-np.abs(direction))]
        rest = float(np.sum(v[_LARGEST:] ** 2))
        found = np.exp(-0.5 * _FREQUENCIES**2 * rest).astype(np.complex128)
        # Masses moved to the points: a transform read off between its frequencies has echoes.
        mass = np.exp(self.log_densities) * _STEP
        for part in v[:_LARGEST][v[:_LARGEST] != 0.0]:
            moved = masses_at((part * _GRID + _REACH) / _STEP, mass, _POINTS)
            found *= np.fft.rfft(np.fft.ifftshift(moved))
        density = np.fft.fftshift(np.fft.irfft(found, _POINTS))
        return _of_density(density, _ROUNDING, _step_along(self.step, direction))

    @cached_property
    def _lines(self) -> tuple[Array, Array]:
        """What the lines between the points are at zero, and their slopes."""
        slopes = np.diff(self.log_densities) / _STEP
        return self.log_densities[:-1] - slopes * _GRID[:-1], slopes


Law = Student | Learned


class TypicalLaw:
    """The law of a typical column under given weights of the rows.

    Its quantiles are the medians of those of the columns, each in its own units, smoothed by a
    Gaussian of the width 1.06 m^(-1/5) that suits the density of m values best (Silverman 1986),
    or of half the distance between the values of columns that have few.

    Parameters
    ----------
    rows : ndarray of shape (n, d)
    counts : ndarray of shape (n,)
        How many rows each stands for.
    """

    def __init__(self, rows: Array, counts: Array) -> None:
        # In one order for all weights: sorting takes most of the time.
        columns = np.ascontiguousarray(rows.T)
        self._order = np.argsort(columns, axis=1)
        self._ranked = np.take_along_axis(columns, self._order, axis=1)
        self._counts = counts

    def __call__(self, weights: Array) -> Law:
        """Return it, or a Gaussian where rows of these weights do not tell it from one.

        So many rows do not tell a law from a Gaussian whose divergence from it is below log(n)/2n.
        """
        weights = weights / weights.sum()
        n = 1.0 / float(weights**2 @ (1.0 / self._counts))
        # Evenly spaced in log odds: the tails are known as well as the middle.
        ends = expit(np.linspace(-1.0, 1.0, _LEVELS + 1) * np.log(n))
        ends[0], ends[-1] = 0.0, 1.0
        levels, mass = (ends[1:] + ends[:-1]) / 2.0, np.diff(ends)
        quantiles, n_columns = self._typical_quantiles(weights, levels)
        if n < 2.0 or n_columns == 0:
            return GAUSSIAN
        # Values that no column takes between those that it does are not evidence against a row.
        middle = (levels > 0.05) & (levels < 0.95)
        half_gap = 0.5 * float(np.diff(quantiles[middle]).max(initial=0.0))
        smoothed = 1.06 * (n * n_columns) ** -0.2
        width = max(smoothed, half_gap)
        quantiles -= mass @ quantiles
        quantiles /= np.sqrt(mass @ quantiles**2 + width**2)
        smooth = np.fft.rfft(masses_at((quantiles + _REACH) / _STEP, mass, _POINTS)) * np.exp(
            -0.5 * (width * _FREQUENCIES) ** 2
        )
        law = _of_density(np.fft.irfft(smooth, _POINTS), 10.0 / n, width)
        logs = law.log_densities
        divergence = _STEP * float(np.exp(logs) @ (logs - GAUSSIAN.standard(_GRID)))
        if n * divergence < 0.5 * np.log(n):
            return Student(np.inf, half_gap if half_gap > smoothed else 0.0)
        return law

    def _typical_quantiles(self, weights: Array, levels: Array) -> tuple[Array, int]:
        """Return the medians over columns that vary of their quantiles, and how many these are."""
        shares = weights[self._order]
        means = np.einsum("ij,ij->i", shares, self._ranked)
        away = self._ranked - means[:, None]
        deviations = np.sqrt(np.einsum("ij,ij,ij->i", shares, away, away))
        reached = np.cumsum(shares, axis=1, out=shares)
        # A share that is reached but for rounding is reached.
        levels = levels * (1.0 - 1e-12)
        varying = np.flatnonzero(deviations > 0.0)
        found = [
            away[j, np.minimum(reached[j].searchsorted(levels), away.shape[1] - 1)] / deviations[j]
            for j in varying
        ]
        return np.median(found, axis=0) if found else levels, varying.size


def masses_at(places: Array, mass: Array, count: int) -> Array:
    """Return masses at 0, 1, ..., count - 1: that of each place, shared by its two neighbours.

    So no answer hangs on the last digit of a place. What is beyond the ends counts there.
    """
    places = np.clip(places, 0.0, count - 1.001)
    lower = places.astype(np.intp)
    upper = mass * (places - lower)
    found = np.bincount(lower, mass - upper, count)
    return np.asarray(found + np.bincount(lower + 1, upper, count))


def _step_along(step: float, direction: Array) -> float:
    """Return the step along a unit direction: that of its largest feature, or 0 if others blur it.

    Sums of several features take many values.
    """
    largest = float(np.abs(direction).max(initial=0.0))
    others = float(np.sqrt(max(1.0 - largest**2, 0.0)))
    return step * largest if others < step * largest else 0.0


def _of_density(density: Array, last: float, step: float) -> Learned:
    """Return the law of a density at the points; beyond a share `last` its tails are exponential.

    That share is known too badly. An exponential of the same mean excess takes its place.
    """
    density = np.maximum(density, 0.0)
    density = density / (density.sum() * _STEP)
    below = np.cumsum(density) * _STEP
    logs = np.log(np.maximum(density, np.finfo(np.float64).tiny))
    last = min(last, 0.25)
    low = max(int(np.searchsorted(below, last)), 1)
    high = min(int(np.searchsorted(below, 1.0 - last)), _POINTS - 2)
    for end, tail in ((low, slice(0, low)), (high, slice(high + 1, None))):
        away = np.abs(_GRID[tail] - _GRID[end])
        excess = float(density[tail] @ away) / max(float(density[tail].sum()), 1e-300)
        logs[tail] = logs[end] - away / max(excess, _STEP)
    return Learned(logs, step)
