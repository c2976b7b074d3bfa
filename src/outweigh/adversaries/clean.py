"""Clean samples around a sparse mean, for an adversary to spoil."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from outweigh.adversaries.arguments import (
    RandomState,
    Shape,
    as_generator,
    check_shape,
    choose_rows,
    choose_support,
    random_signs,
)
from outweigh.adversaries.inliers import draw_noise
from outweigh.adversaries.sample import BoolArray, FloatArray, Sample


class CleanSample(NamedTuple):
    """Clean samples, the rows that are to stay, and the generator for what comes next."""

    rng: np.random.Generator
    shape: Shape
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


def draw_clean(
    n_samples: int,
    n_features: int,
    n_nonzero: int,
    contamination: float,
    random_state: RandomState,
    inliers: str,
) -> CleanSample:
    """Draw a sparse mean and clean samples around it, and choose the rows to spoil."""
    rng, shape = (
        as_generator(random_state),
        check_shape(n_samples, n_features, n_nonzero, contamination),
    )
    mean = sparse_mean(rng, shape)
    X = draw_noise(inliers, rng, (shape.n_samples, shape.n_features))
    X += mean
    return CleanSample(rng, shape, mean, X, choose_rows(rng, shape))


def sparse_mean(
    rng: np.random.Generator, shape: Shape, avoid: npt.NDArray[np.intp] | None = None
) -> FloatArray:
    """Draw a mean of random signs and sizes uniform between 0.5 and 2 on its support."""
    mean = np.zeros(shape.n_features)
    support = choose_support(rng, shape.n_features, shape.n_nonzero, avoid)
    mean[support] = random_signs(rng, support.size) * rng.uniform(0.5, 2.0, support.size)
    return mean


def sparse_shift(rng: np.random.Generator, shape: Shape, size: float) -> FloatArray:
    """Draw a vector of random signs and one size on a random support."""
    shift = np.zeros(shape.n_features)
    support = choose_support(rng, shape.n_features, shape.n_nonzero)
    shift[support] = size * random_signs(rng, support.size)
    return shift
