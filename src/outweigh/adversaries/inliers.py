"""Distributions of the inliers' noise: independent entries of mean zero and variance one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
from numpy.random import Generator

from outweigh.protocols import Array

Shape2 = tuple[int, int]


def gaussian(rng: Generator, shape: Shape2) -> Array:
    """Draw standard normal entries, kurtosis 3."""
    return rng.standard_normal(shape)


def laplace(rng: Generator, shape: Shape2) -> Array:
    """Draw double exponential entries, kurtosis 6."""
    return rng.laplace(scale=np.sqrt(0.5), size=shape)


def uniform(rng: Generator, shape: Shape2) -> Array:
    """Draw entries uniform between -sqrt(3) and sqrt(3), kurtosis 1.8."""
    return rng.uniform(-np.sqrt(3.0), np.sqrt(3.0), size=shape)


def rademacher(rng: Generator, shape: Shape2) -> Array:
    """Draw random signs, of the smallest kurtosis there is: 1."""
    return 2.0 * rng.integers(0, 2, size=shape).astype(np.float64) - 1.0


def exponential(rng: Generator, shape: Shape2) -> Array:
    """Draw exponential entries less their mean: skewed, so that mean and median differ."""
    return rng.standard_exponential(shape) - 1.0


def t5(rng: Generator, shape: Shape2) -> Array:
    """Draw Student entries with 5 degrees of freedom, kurtosis 9."""
    return rng.standard_t(5.0, size=shape) * float(np.sqrt(3.0 / 5.0))


def t3(rng: Generator, shape: Shape2) -> Array:
    """Draw Student entries with 3 degrees of freedom: variance one, no fourth moment."""
    return rng.standard_t(3.0, size=shape) * float(np.sqrt(1.0 / 3.0))


INLIERS: Mapping[str, Callable[[Generator, Shape2], Array]] = MappingProxyType(
    {draw.__name__: draw for draw in (gaussian, laplace, uniform, rademacher, exponential, t5, t3)}
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
