"""Mean and covariance of weighted rows, and the half of them that has the least volume."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from outweigh.fit.columns import MAD_TO_SD, column_quantiles, weighted_quantile
from outweigh.fit.groups import principal_axes
from outweigh.fit.tuning import TUNING
from outweigh.protocols import Array

Mask = NDArray[np.bool_]

_TINY = 1e-300
# Of a variance where all rows are equal: distances from it stay within floating point.
_LEAST = 1e-100
# So large a share of the identity makes a covariance invertible beyond rounding.
_SOLID = 1e-6
# Lengths closer than this, relatively, differ by rounding alone, as many do on a lattice.
_TIED = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Scatter:
    """Mean and covariance of weighted rows, with distances that leave each row out.

    Attributes
    ----------
    mean : ndarray of shape (r,)
    whitener : ndarray of shape (r, r)
        W with W'SW = I.
    outside : float
        The variance beyond the span of the rows, where they are fewer than the features.
    count : float
        The sum m of the weights.
    shrinkage : float
        The share rho of S that is a multiple of the identity (Ledoit and Wolf, 2004); 0 where there
        are rows enough.
    """

    mean: Array
    whitener: Array
    outside: float
    count: float
    shrinkage: float

    @classmethod
    def of(cls, rows: Array, weight: Array, n_features: int, shrink: bool) -> Scatter:
        """Return that of rows of positive weight, in at most `n_features` coordinates."""
        kept = weight > 0
        Y, weight = rows[kept], weight[kept]
        m, d = float(weight.sum()), n_features
        mean = weight @ Y / m
        Y = Y - mean
        S = (Y * weight[:, None]).T @ Y / m
        rho, level = 0.0, float(np.trace(S)) / d
        if shrink:
            squares = float((S**2).sum())
            norms = np.einsum("ij,ij->i", Y, Y)
            error = (float(weight @ norms**2) / m - squares) / m
            away = squares - d * level**2
            rho = float(np.clip(error / max(away, _TINY), 0.0, 1.0))
        S *= m / max(m - 1.0, 1.0)
        if rho > _SOLID:
            S *= 1.0 - rho
            S.flat[:: len(S) + 1] += rho * level
            # A tenth of the time of the eigenvectors.
            root = np.linalg.cholesky(S)
            whitener = solve_triangular(root, np.eye(len(S)), lower=True, check_finite=False).T
            outside = rho * level
        else:
            values, vectors = np.linalg.eigh(S)
            values = (1.0 - rho) * np.maximum(values, 0.0) + rho * level
            values = np.maximum(values, max(1e-10 * values[-1], _LEAST))
            whitener = vectors / np.sqrt(values)
            outside = float(values[0])
        return cls(mean, whitener, outside, m, rho)

    def white(self, rows: Array) -> Array:
        """Return rows about the mean, in coordinates in which the covariance is I."""
        return np.asarray((rows - self.mean) @ self.whitener)

    def leaving_out(self, squared: Array) -> Array:
        """Return what S^-1 (x - mean) is multiplied by when x itself is left out of both.

        For a row that was counted, whose squared distance is given: m/(m-1) for the mean, and
        (m-2)/(m-1) / (1 - c D) for the covariance (Sherman and Morrison); exact but for shrinkage.
        """
        # One row leaves nothing to compare it with; two are the least that do.
        m = max(self.count, 2.0)
        c = (1.0 - self.shrinkage) * m / (m - 1.0) ** 2
        fewer = max(m - 2.0, 1.0) / (m - 1.0)
        return np.asarray(fewer * m / (m - 1.0) / np.maximum(1.0 - c * squared, 1e-6))

    def distances(self, rows: Array, counted: NDArray[np.bool_]) -> Array:
        """Return squared distances; those of the rows counted as if each had been left out."""
        white = self.white(rows)
        squared = np.einsum("ij,ij->i", white, white)
        own = squared[counted]
        m = max(self.count, 2.0)
        squared[counted] = m / (m - 1.0) * self.leaving_out(own) * own
        return np.asarray(squared)


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

    def __init__(self, entries: Array, weight: Array) -> None:
        self.entries, self.weight = entries, weight
        self.n, self.d = float(weight.sum()), entries.shape[1]
        self.shrink = self.n < TUNING.rows_per_feature * self.d
        self.basis = principal_axes(entries, weight)[1].T if self.d > self.n else None
        self.Z = entries if self.basis is None else entries @ self.basis.T

    def count(self, some: Mask) -> float:
        """Return the weight of some rows."""
        return float(self.weight @ some)

    def measured_by(self, some: Mask, clean: Array | float = 1.0) -> tuple[Scatter, Array]:
        """Return the scatter of some rows, weighed by how clean each is, and all rows from it.

        By squared distances.
        """
        scatter = Scatter.of(self.Z, self.weight * clean * some, self.d, self.shrink)
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
        """Return half of the rows, of those left, that lie closest together, by concentration.

        From a rough robust scatter, which has the axes of the correlation of the directions of the
        rows, and robust variances along them (one start of DetMCD, Hubert et al. 2012).
        """
        rows, weight = self.entries[left], self.weight[left]
        share = weight / weight.sum()
        signs = rows / np.maximum(np.linalg.norm(rows, axis=1), _TINY)[:, None]
        signs -= share @ signs
        signs /= np.maximum(np.sqrt(share @ signs**2), _TINY)
        along = self.entries @ principal_axes(signs, weight)[1]
        along -= column_quantiles(along[left], weight, [0.5])[0]
        variance = np.square(MAD_TO_SD * column_quantiles(np.abs(along[left]), weight, [0.5])[0])
        variance = np.maximum(variance, 1e-12 * variance.max() + _TINY)
        if self.shrink:
            variance = variance + self.d / self.n * variance.mean()
        held = min(self.n / 2.0, TUNING.core * self.count(left))
        with np.errstate(over="ignore"):
            # Where half of the rows are equal, the others are infinitely far.
            core = self.nearest(np.square(along) @ (1.0 / variance), left, held)
        for _ in range(20):
            last, core = core, self.nearest(self.measured_by(core)[1], left, held)
            if np.array_equal(core, last):
                break
        return core
