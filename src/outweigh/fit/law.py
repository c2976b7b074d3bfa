r"""The law of clean rows along a direction, learned from the features.

Noise is independent over the features, so along a unit direction v a clean row is
:math:`\sum_j v_j \xi_j` with :math:`\xi_j` of the law of feature j. Those laws are not known, and
outliers are in some of them. But most features have none: the *typical* law, of which each quantile
is the median of that quantile over all features, is that of clean rows. What it is along v is a
convolution, and where v is spread over many features it is nearly Gaussian, whatever it was before.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import expit

from outweigh.fit.columns import column_quantiles
from outweigh.protocols import Array

__all__ = ["GAUSSIAN", "Law", "typical_law"]

# Laws are kept at so many points, so far out on either side; farther out the density falls on as
# it does at the last quantiles read.
_POINTS, _REACH = 2048, 16.0
_LEVELS = 400
_GRID = np.linspace(-_REACH, _REACH, _POINTS, endpoint=False)
_STEP = 2.0 * _REACH / _POINTS
_FINER = 8
_FINE = 2.0 * np.pi * np.fft.rfftfreq(_FINER * _POINTS, _STEP)
_FREQUENCIES = 2.0 * np.pi * np.fft.rfftfreq(_POINTS, _STEP)


@dataclass(frozen=True, eq=False)
class Law:
    """A law of mean zero and variance one.

    Attributes
    ----------
    log_densities : ndarray of shape (m,)
        At evenly spaced points; empty for a Gaussian.
    """

    log_densities: Array

    def log_density(self, y: Array, centre: float | Array, spread: float | Array) -> Array:
        """Return the log density at y of the law moved to a centre, multiplied by a spread."""
        z = (y - centre) / spread
        if self.log_densities.size == 0:
            return np.asarray(-0.5 * z * z - np.log(spread) - 0.5 * np.log(2.0 * np.pi))
        within = np.clip((z + _REACH) / _STEP, 0.0, _POINTS - 1.001)
        lower = within.astype(np.intp)
        part = within - lower
        known = self.log_densities
        found = known[lower] * (1.0 - part) + known[lower + 1] * part
        slopes = (known[1] - known[0]) / _STEP, (known[-1] - known[-2]) / _STEP
        found += slopes[0] * np.minimum(z + _REACH, 0.0) + slopes[1] * np.maximum(z - _GRID[-1], 0)
        return np.asarray(found - np.log(spread))

    @cached_property
    def _transform(self) -> Array:
        padded = np.zeros(_FINER * _POINTS)
        padded[: _POINTS] = np.exp(self.log_densities)
        found = np.fft.rfft(padded) * _STEP
        t = 2.0 * np.pi * np.fft.rfftfreq(padded.size, _STEP)
        return found * np.exp(1j * t * _REACH)

    def along(self, direction: Array) -> Law:
        """Return the law of sum_j v_j xi_j for independent xi_j of this law and a unit v."""
        if self.log_densities.size == 0:
            return self
        v = direction[np.abs(direction) > 0.0]
        order = np.argsort(-np.abs(v))
        few, rest = v[order[:30]], v[order[30:]]
        # log of the characteristic function at v_j t
        found = np.exp(-0.5 * _FREQUENCIES**2 * float(rest @ rest))
        for each in few:
            at = np.abs(each) * _FREQUENCIES
            real = np.interp(at, _FINE, self._transform.real)
            imaginary = np.interp(at, _FINE, self._transform.imag)
            found = found * (real + 1j * np.sign(each) * imaginary)
        density = np.fft.fftshift(np.fft.irfft(found, _POINTS)) / _STEP
        return _tidied(density, 1e-7)


GAUSSIAN = Law(np.empty(0))


def _tidied(density: Array, last: float) -> Law:
    """Return the law of a density that rounding has left noise in, of variance one."""
    density = np.maximum(density, 0.0)
    density /= density.sum() * _STEP
    upper = np.cumsum(density) * _STEP
    logs = np.log(np.maximum(density, 1e-300))
    # What is beyond reach of the rows that it was read off follows an exponential.
    low, high = int(np.searchsorted(upper, last)), int(np.searchsorted(upper, 1.0 - last))
    low, high = max(low, 1), min(high, _POINTS - 2)
    below = float(density[: low + 1] @ (_GRID[low] - _GRID[: low + 1])) / float(density[: low + 1].sum())
    above = float(density[high:] @ (_GRID[high:] - _GRID[high])) / float(density[high:].sum())
    below, above = max(below, _STEP), max(above, _STEP)
    logs[:low] = logs[low] - (_GRID[low] - _GRID[:low]) / below
    logs[high + 1 :] = logs[high] - (_GRID[high + 1 :] - _GRID[high]) / above
    return Law(logs)


def typical_law(rows: Array, weights: Array) -> Law:
    """Return the law of a typical column of rows."""
    d = rows.shape[1]
    n = float(weights.sum()) ** 2 / float(weights @ weights)
    weights = weights / weights.sum()
    ends = expit(np.linspace(-1.0, 1.0, _LEVELS + 1) * np.log(n))
    ends[0], ends[-1] = 0.0, 1.0
    levels, mass = (ends[1:] + ends[:-1]) / 2.0, np.diff(ends)
    mean = weights @ rows
    away = rows - mean
    away /= np.sqrt(weights @ np.square(away))
    quantiles = np.median(column_quantiles(away, weights, levels.tolist()), axis=1)
    width = 1.06 * (n * d) ** -0.2
    quantiles -= mass @ quantiles
    quantiles /= np.sqrt(mass @ quantiles**2 + width**2)
    z = (_GRID[:, None] - quantiles) / width
    density = np.exp(-0.5 * z * z) @ mass / (width * np.sqrt(2 * np.pi))
    found = _tidied(density, 10.0 / n)
    return GAUSSIAN if n * _divergence(found) < 0.5 * np.log(n) else found


def _divergence(law: Law) -> float:
    """Return the mean log likelihood, under a law, of it over that of a Gaussian."""
    away = law.log_densities - GAUSSIAN.log_density(_GRID, 0.0, 1.0)
    return float(np.exp(law.log_densities) @ away) * _STEP
