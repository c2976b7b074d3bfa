"""A sample with its truth, the arguments of all adversaries, and what they make a sample of."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from outweigh.constraints import COUNT, POSITIVE, SHARE, Number, StrOptions, check
from outweigh.protocols import Array, Indices

BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Sample:
    """Contaminated data together with the truth that an estimator must not see.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features)
        The data as an estimator receives it. Rows are in random order.
    inliers : ndarray of bool, shape (n_samples,)
        True for the rows that the adversary did not touch.
    truth : ndarray of shape (n_features,) or (n_components, n_features)
        The true mean, or the true components as unit rows.
    spikes : ndarray of shape (n_components,), optional
        Variance added along each true component; None when the truth is a mean.

    Examples
    --------
    >>> from outweigh.adversaries import constant_bias
    >>> sample = constant_bias(50, 8, 3, 0.1, random_state=0)
    >>> sample.X.shape, sample.n_outliers, sample.support.size
    ((50, 8), 5, 3)
    """

    X: Array
    inliers: BoolArray
    truth: Array
    spikes: Array | None = None

    @property
    def n_outliers(self) -> int:
        """Number of rows the adversary touched."""
        return int(self.inliers.size - np.count_nonzero(self.inliers))

    @property
    def support(self) -> Indices:
        """Indices of the features on which the truth is not zero, ascending."""
        return np.flatnonzero(np.atleast_2d(self.truth).any(axis=0))


# Noise of mean zero and variance one, with the kurtosis of each. Student's law of 3 degrees of
# freedom has no fourth moment; mean and median of the exponential law differ.
INLIERS: Mapping[str, Callable[[Generator, tuple[int, int]], Array]] = MappingProxyType(
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


class Shape(NamedTuple):
    """The sizes of a sample, and the noise of the rows that the adversary does not touch.

    The first two are the shape of the data, ``shape[:2]``; the first four are the arguments that
    every adversary takes, in their order, ``shape[:4]``.

    Examples
    --------
    >>> Shape(100, 20, 5, 0.1).n_outliers
    10
    """

    n_samples: int
    n_features: int
    n_nonzero: int
    contamination: float
    inliers: str = "gaussian"

    @property
    def n_outliers(self) -> int:
        """The rows that the adversary may touch, fewer than half of them."""
        return min(round(self.contamination * self.n_samples), (self.n_samples - 1) // 2)

    def noise(
        self, rng: Generator, n_rows: int | None = None, n_features: int | None = None
    ) -> Array:
        """Draw noise for so many rows and features, by default those of the sample."""
        sizes = self.n_samples if n_rows is None else n_rows, n_features or self.n_features
        return INLIERS[self.inliers](rng, sizes)


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


RandomState = int | Generator | None

Adversary = Callable[..., Sample]
"""A function that draws contaminated data: it takes the five arguments of
:func:`outweigh.adversaries.make` that follow the name, and keyword options of its own."""

RANDOM_STATE = [Number(Integral, 0, None, closed="left"), Generator, None]

# An argument or option means the same in every adversary that has it.
_MAY_BE: dict[str, list[Any]] = {
    "n_samples": [COUNT],
    "n_features": [COUNT],
    "n_nonzero": [COUNT],
    "contamination": SHARE,
    "random_state": RANDOM_STATE,
    "inliers": [StrOptions({*INLIERS})],
    "distance": [POSITIVE],
    "n_components": [COUNT],
    "n_directions": [COUNT],
    "n_outlier_spikes": [COUNT],
    "outlier_nonzero": [COUNT],
    "outlier_norm": [StrOptions({"ones", "unit"})],
    "outlier_spike": [POSITIVE],
    "radius": [POSITIVE],
    "signs": [StrOptions({"positive", "random"})],
    "smallest_scale": [Number(Real, 0.0, 1.0, closed="right")],
}


def adversary(attack: Callable[..., Sample], inliers: str = "gaussian") -> Adversary:
    """Make an adversary of ``attack(rng, shape, *, options)``: a decorator.

    The adversary takes the arguments that all have in common, the distribution of the inliers
    among them, checks them once for all, and hands a generator and what was checked to the attack.
    Its signature shows the attack's options.

    Examples
    --------
    >>> @adversary
    ... def harmless(rng, shape, *, level=1.0):
    ...     X = np.full(shape[:2], level)
    ...     return Sample(X, choose_rows(rng, shape), X[0])
    >>> harmless(50, 4, 2, 0.1, random_state=0, level=3.0).n_outliers
    5
    >>> list(inspect.signature(harmless).parameters)[3:]
    ['contamination', 'random_state', 'level', 'inliers']
    """

    def draw(
        n_samples: int,
        n_features: int,
        n_nonzero: int,
        contamination: float,
        random_state: RandomState = None,
        *,
        inliers: str = inliers,
        **options: Any,
    ) -> Sample:
        shape = Shape(n_samples, n_features, n_nonzero, contamination, inliers)
        given = {**shape._asdict(), "random_state": random_state, **options}
        check(attack.__name__, _MAY_BE, given)
        if n_nonzero > n_features:
            raise ValueError(f"n_nonzero={n_nonzero} is more than n_features={n_features}")
        return attack(np.random.default_rng(random_state), shape, **options)

    shared = inspect.signature(draw)
    # help() and options_of() read this signature: what all have, and between them the own options.
    *five, noise, _ = shared.parameters.values()
    own = [*inspect.signature(attack).parameters.values()][2:]
    functools.update_wrapper(draw, attack)
    draw.__signature__ = shared.replace(  # type: ignore[attr-defined]
        parameters=[*five, *own, noise]
    )
    return draw


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


def choose_rows(rng: Generator, shape: Shape) -> BoolArray:
    """Choose the rows that the adversary replaces; True marks the ones it leaves alone."""
    inliers = np.ones(shape.n_samples, dtype=np.bool_)
    inliers[rng.choice(shape.n_samples, shape.n_outliers, replace=False)] = False
    return inliers


def choose_support(
    rng: Generator, n_features: int, size: int, avoid: Indices | None = None
) -> Indices:
    """Choose ``size`` features at random, those of ``avoid`` only when no others are left."""
    order = rng.permutation(n_features)
    if avoid is not None:
        order = order[np.argsort(np.isin(order, avoid), kind="stable")]
    return order[:size]


def random_signs(rng: Generator, size: int) -> Array:
    """Draw ``size`` signs, -1.0 or +1.0 with equal chance."""
    return 2.0 * rng.integers(0, 2, size).astype(np.float64) - 1.0
