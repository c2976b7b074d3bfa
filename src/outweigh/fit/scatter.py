"""Mean and covariance of weighted rows, with distances that leave each row out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from outweigh.protocols import Array

_TINY = 1e-300
# Of a variance where all rows are equal: distances from it stay within floating point.
_LEAST = 1e-100
# So large a share of the identity makes a covariance invertible beyond rounding.
_SOLID = 1e-6


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
    log_det : float
        Over all features, also those beyond the span of the rows.
    count : float
        The sum m of the weights.
    shrinkage : float
        The share rho of S that is a multiple of the identity (Ledoit and Wolf, 2004); 0 where there
        are rows enough.
    """

    mean: Array
    whitener: Array
    outside: float
    log_det: float
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
            outside, log_det = rho * level, 2.0 * float(np.log(np.diagonal(root)).sum())
        else:
            values, vectors = np.linalg.eigh(S)
            values = (1.0 - rho) * np.maximum(values, 0.0) + rho * level
            values = np.maximum(values, max(1e-10 * values[-1], _LEAST))
            whitener = vectors / np.sqrt(values)
            outside, log_det = float(values[0]), float(np.log(values).sum())
        log_det += (d - len(S)) * float(np.log(outside))
        return cls(mean, whitener, outside, log_det, m, rho)

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
