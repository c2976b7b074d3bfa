"""What a fit ends with."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from outweigh.fit.certificate import Certificate
from outweigh.fit.distances import DistanceScore
from outweigh.fit.noise import Noise
from outweigh.fit.problem import Problem
from outweigh.fit.readers import count_factors
from outweigh.fit.score import EllipticalScore, RowScore
from outweigh.fit.search import Found
from outweigh.fit.task import Task
from outweigh.fit.workspace import coordinates
from outweigh.protocols import Array, Status
from outweigh.samples.matrices import as_array


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """What a fit ends with.

    Attributes
    ----------
    noise : Noise
    problem : Problem
        The objective that the weights were searched for last, on all features.
    found : Found
        The weights, with forces and groups in the coordinates of ``noise.samples``.
    certificate : Certificate
    score : RowScore, DistanceScore or EllipticalScore
    scores : ndarray of shape (n,)
        Of the rows of the fit.
    components : ndarray of shape (d, r)
        In units of the noise, columns of unit length; r is 0 for a mean.
    aside : ndarray of shape (d, m)
        Orthonormal directions that the objective leaves out: those of the components and of what
        else the bulk varies along; m is 0 for a mean.
    copies : float
        How many rows of X stand for one of evidence, in the mean: repeated ones are no more.
    """

    noise: Noise
    problem: Problem
    found: Found
    certificate: Certificate
    score: RowScore | DistanceScore | EllipticalScore
    scores: Array
    components: Array
    aside: Array
    copies: float = 1.0

    @property
    def weights(self) -> Array:
        """The weight of each row."""
        return self.found.weights.values

    @property
    def unbiased(self) -> float:
        """The factor n / (n - 1) of a variance about the mean, n the effective rows of X."""
        n = self.n_rows
        return n / max(n - 1.0, 1.0)

    @property
    def n_rows(self) -> float:
        """How many rows of X, of equal weight, the weights are worth."""
        return self.copies * self.problem.n_effective(self.weights)

    def in_doubt(self, share: float) -> Fit:
        """Return the same, in doubt of rows kept that are wrong if columns are uncorrelated."""
        status = Status.STATIONARY
        certificate = replace(self.certificate, doubtful=share, doubt="white", status=status)
        return replace(self, found=replace(self.found, status=status), certificate=certificate)

    def spectrum(self) -> Array:
        """Return the eigenvalues of the second moments that may be positive, largest first.

        In units of the noise; unbiased for equal weights where they are about the mean.
        """
        centred = self.problem.objective.centred
        samples = coordinates(self.noise, Task(1, centred=centred))[1]
        values = np.linalg.eigvalsh(as_array(samples.moment(self.weights, centred=centred)))
        unbiased = self.unbiased if centred else 1.0
        return np.asarray(unbiased * np.maximum(values[::-1], 0.0))

    def n_factors(self) -> int:
        """Return how many directions stand out from white noise under the weights."""
        n = self.problem.n_effective(self.weights)
        return count_factors(self.spectrum(), n, self.noise.samples.n_features)

    def covariance(self) -> Array:
        """Return the covariance of the columns that vary under the weights, in the units of X.

        Unbiased for equal weights: n / (n - 1), n the effective number of rows.
        """
        noise, weights, samples = self.noise, self.weights, self.noise.samples
        if noise.standardizer.whitener is not None:
            # A whitener mixes columns of large and small numbers, and digits of the small are lost.
            apart = replace(noise.standardizer, whitener=None)
            samples = noise.rows.samples(apart.view, apart.columns.size, apart.affine)
        scale = noise.standardizer.scale
        with np.errstate(over="ignore", invalid="ignore"):
            covariance = as_array(samples.moment(weights, centred=True)) * np.outer(scale, scale)
            covariance *= self.unbiased
            # To the last digit symmetric and of no negative variance, which sums of products are
            # not.
            covariance = covariance / 2.0 + covariance.T / 2.0
        np.fill_diagonal(covariance, np.maximum(np.diagonal(covariance), 0.0))
        return np.asarray(covariance)
