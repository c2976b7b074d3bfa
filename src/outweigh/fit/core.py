"""Half of the rows, of least volume: what clean rows are known by at first."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from outweigh.fit.columns import MAD_TO_SD, column_quantiles, weighted_quantile
from outweigh.fit.groups import principal_axes
from outweigh.fit.scatter import Scatter
from outweigh.fit.tuning import TUNING, Tuning
from outweigh.protocols import Array

Mask = NDArray[np.bool_]
_TINY = 1e-300
# Lengths closer than this, relatively, differ by rounding alone, as many do on a lattice.
_TIED = 1e-9


class WeightedRows:
    """Rows with weights, and how far they are from some of them.

    Attributes
    ----------
    entries : ndarray of shape (n, d)
    basis : ndarray of shape (r, d) or None
        Orthonormal rows: coordinates of the span where there are fewer rows than columns.
    Z : ndarray of shape (n, r)
        The rows in these coordinates.
    weight : ndarray of shape (n,)
    n : float
        The sum of the weights.
    shrink : bool
        Whether rows are so few that covariances are shrunk.
    """

    def __init__(self, entries: Array, weight: Array, tuning: Tuning) -> None:
        self.entries, self.weight = entries, weight
        self.n, self.d = float(weight.sum()), entries.shape[1]
        self.shrink = self.n < tuning.rows_per_feature * self.d
        self.basis = principal_axes(entries, weight)[1].T if self.d > self.n else None
        self.Z = entries if self.basis is None else entries @ self.basis.T

    def count(self, some: Mask) -> float:
        """Return the weight of some rows."""
        return float(self.weight @ some)

    def scatter(self, some: Mask, clean: Array | float = 1.0) -> Scatter:
        """Return that of some rows, weighed by how clean each is."""
        return Scatter.of(self.Z, self.weight * clean * some, self.d, self.shrink)

    def measured_by(self, some: Mask, clean: Array | float = 1.0) -> tuple[Scatter, Array]:
        """Return the scatter of some rows, and the squared distances of all rows from it."""
        scatter = self.scatter(some, clean)
        return scatter, scatter.distances(self.Z, some)

    def nearest(self, squared: Array, left: Mask, held: float) -> Mask:
        """Return the nearest rows, of those left, that hold a given weight; equal ones together."""
        cut = weighted_quantile(squared[left], self.weight[left], [held / self.count(left)])
        return np.asarray(left & (squared <= (1.0 + _TIED) * cut[0]))

    def inner(self, core: Mask, trusted: Mask, part: float) -> Mask:
        """Return the part of the rows trusted that is nearest to the core.

        The farthest may be outliers that the rest hides; counted, they would hide one another.
        """
        # Of very few rows none of the core may be trusted.
        core = core & trusted if np.any(core & trusted) else trusted
        return self.nearest(self.measured_by(core)[1], trusted, part * self.count(trusted))

    def core(self, left: Mask) -> Mask:
        """Return half of the rows, of those left, of least volume.

        Concentration from two starts. The better is that whose ellipsoid holds half of *all* rows
        in the least volume, which a tight clump inside the core does not lower.
        """
        held = min(self.n / 2.0, TUNING.core * self.count(left))
        ended = [self._concentrated(start, left, held) for start in self._starts(left)]
        return min(ended, key=lambda pair: pair[1])[0]

    def _concentrated(self, squared: Array, left: Mask, held: float) -> tuple[Mask, float]:
        core = self.nearest(squared, left, held)
        for _ in range(20):
            scatter, squared = self.measured_by(core)
            last, core = core, self.nearest(squared, left, held)
            if np.array_equal(core, last):
                break
        middle = weighted_quantile(squared[left], self.weight[left], [0.5])[0]
        return core, scatter.log_det + self.d * float(np.log(max(middle, _TINY)))

    def _starts(self, left: Mask) -> list[Array]:
        """Return squared distances from two rough robust scatters (as DetMCD, Hubert et al. 2012).

        Each has the axes of a correlation, that of the directions of the rows and that of the half
        nearest to the middle, with robust variances along them.
        """
        rows, weight = self.entries[left], self.weight[left]
        share = weight / weight.sum()
        length = np.linalg.norm(rows, axis=1)
        near = length <= (1.0 + _TIED) * weighted_quantile(length, weight, [0.5])[0]
        found = []
        for part in (rows / np.maximum(length, _TINY)[:, None], np.where(near[:, None], rows, 0.0)):
            part = part - share @ part
            part = part / np.maximum(np.sqrt(share @ part**2), _TINY)
            along = self.entries @ principal_axes(part, weight)[1]
            along -= column_quantiles(along[left], weight, [0.5])[0]
            spread = column_quantiles(np.abs(along[left]), weight, [0.5])[0]
            variance = np.square(MAD_TO_SD * spread)
            variance = np.maximum(variance, 1e-12 * variance.max() + _TINY)
            if self.shrink:
                variance = variance + self.d / self.n * variance.mean()
            with np.errstate(over="ignore"):
                # Where half of the rows are equal, the others are infinitely far.
                found.append(np.square(along) @ (1.0 / variance))
        return found
