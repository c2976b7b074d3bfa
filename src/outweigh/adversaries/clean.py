"""Clean samples around a sparse mean, for an adversary to spoil."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from outweigh.adversaries.arguments import Shape, choose_rows, choose_support, random_signs
from outweigh.adversaries.sample import BoolArray, Sample
from outweigh.protocols import Array, Indices


class CleanSample(NamedTuple):
    """Clean samples around a mean, and the rows of them that are to stay."""

    mean: Array
    X: Array
    kept: BoolArray

    def shift_outliers(self, shift: Array) -> Sample:
        """Add ``shift``, one row for all or one row each, to the rows that do not stay."""
        self.X[~self.kept] += shift
        return Sample(self.X, self.kept, self.mean)

    def replace_outliers(self, outliers: Array) -> Sample:
        """Put ``outliers`` in the place of the rows that do not stay."""
        self.X[~self.kept] = outliers
        return Sample(self.X, self.kept, self.mean)


def draw_clean(rng: Generator, shape: Shape) -> CleanSample:
    """Draw a sparse mean and clean samples around it, and choose the rows to spoil."""
    mean = sparse_mean(rng, shape)
    X = shape.noise(rng)
    X += mean
    return CleanSample(mean, X, choose_rows(rng, shape))


def sparse_mean(rng: Generator, shape: Shape, avoid: Indices | None = None) -> Array:
    """Draw a mean of random signs and sizes uniform between 0.5 and 2 on its support."""
    mean = np.zeros(shape.n_features)
    support = choose_support(rng, shape.n_features, shape.n_nonzero, avoid)
    mean[support] = random_signs(rng, support.size) * rng.uniform(0.5, 2.0, support.size)
    return mean


def sparse_shift(rng: Generator, shape: Shape, size: float) -> Array:
    """Draw a vector of random signs and one size on a random support."""
    shift = np.zeros(shape.n_features)
    support = choose_support(rng, shape.n_features, shape.n_nonzero)
    shift[support] = size * random_signs(rng, support.size)
    return shift


def uniform_ball(rng: Generator, n_rows: int, n_features: int, radius: float) -> Array:
    """Draw points uniform in a ball about zero."""
    ball = rng.standard_normal((n_rows, n_features))
    ball /= np.linalg.norm(ball, axis=1, keepdims=True)
    ball *= radius * rng.random((n_rows, 1)) ** (1.0 / n_features)
    return ball
