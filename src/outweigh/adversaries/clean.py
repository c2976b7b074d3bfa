"""Clean samples around a sparse mean, for an adversary to spoil."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.random import Generator

from outweigh.adversaries.arguments import Shape, choose_rows, choose_support, random_signs
from outweigh.adversaries.inliers import draw_noise
from outweigh.adversaries.sample import BoolArray, FloatArray, Sample


class CleanSample(NamedTuple):
    """Clean samples around a mean, and the rows of them that are to stay."""

    mean: FloatArray
    X: FloatArray
    kept: BoolArray

    def shift_outliers(self, shift: FloatArray) -> Sample:
        """Add ``shift``, one row for all or one row each, to the rows that do not stay."""
        self.X[~self.kept] += shift
        return Sample(self.X, self.kept, self.mean)

    def replace_outliers(self, outliers: FloatArray) -> Sample:
        """Put ``outliers`` in the place of the rows that do not stay."""
        self.X[~self.kept] = outliers
        return Sample(self.X, self.kept, self.mean)


def draw_clean(rng: Generator, shape: Shape, inliers: str) -> CleanSample:
    """Draw a sparse mean and clean samples around it, and choose the rows to spoil."""
    mean = sparse_mean(rng, shape)
    X = draw_noise(inliers, rng, shape[:2])
    X += mean
    return CleanSample(mean, X, choose_rows(rng, shape))


def sparse_mean(
    rng: Generator, shape: Shape, avoid: npt.NDArray[np.intp] | None = None
) -> FloatArray:
    """Draw a mean of random signs and sizes uniform between 0.5 and 2 on its support."""
    mean = np.zeros(shape.n_features)
    support = choose_support(rng, shape.n_features, shape.n_nonzero, avoid)
    mean[support] = random_signs(rng, support.size) * rng.uniform(0.5, 2.0, support.size)
    return mean


def sparse_shift(rng: Generator, shape: Shape, size: float) -> FloatArray:
    """Draw a vector of random signs and one size on a random support."""
    shift = np.zeros(shape.n_features)
    support = choose_support(rng, shape.n_features, shape.n_nonzero)
    shift[support] = size * random_signs(rng, support.size)
    return shift


def uniform_ball(rng: Generator, n_rows: int, n_features: int, radius: float) -> FloatArray:
    """Draw points uniform in a ball about zero."""
    ball = rng.standard_normal((n_rows, n_features))
    ball /= np.linalg.norm(ball, axis=1, keepdims=True)
    ball *= radius * rng.random((n_rows, 1)) ** (1.0 / n_features)
    return ball
