"""Distributions of the inliers' noise: independent entries of mean zero and variance one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
from numpy.random import Generator

from outweigh.protocols import Array

Shape2 = tuple[int, int]


# With the kurtosis of each. Student's law of 3 degrees of freedom has no fourth moment; mean and
# median of the exponential law differ.
INLIERS: Mapping[str, Callable[[Generator, Shape2], Array]] = MappingProxyType(
    {
        "gaussian": lambda rng, shape: rng.standard_normal(shape),  # 3
        "laplace": lambda rng, shape: rng.laplace(scale=np.sqrt(0.5), size=shape),  # 6
        "uniform": lambda rng, shape: rng.uniform(-np.sqrt(3.0), np.sqrt(3.0), shape),  # 1.8
        "rademacher": lambda rng, shape: 2.0 * rng.integers(0, 2, shape).astype(float) - 1.0,  # 1
        "exponential": lambda rng, shape: rng.standard_exponential(shape) - 1.0,  # 9
        "t5": lambda rng, shape: rng.standard_t(5.0, shape) * float(np.sqrt(3.0 / 5.0)),  # 9
        "t3": lambda rng, shape: rng.standard_t(3.0, shape) * float(np.sqrt(1.0 / 3.0)),
    }
)


def draw_noise(inliers: str, rng: Generator, shape: Shape2) -> Array:
    """Draw noise of zero mean and identity covariance from the distribution named ``inliers``.

    Examples
    --------
    >>> draw_noise("uniform", np.random.default_rng(0), (2, 3)).shape
    (2, 3)
    """
    if inliers not in INLIERS:
        raise ValueError(f"inliers must be one of {', '.join(INLIERS)}; got {inliers!r}")
    return INLIERS[inliers](rng, shape)
