"""What all adversaries share: their arguments, the checks of them, and random choices."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from outweigh.adversaries.inliers import draw_noise
from outweigh.adversaries.sample import BoolArray, Sample
from outweigh.protocols import Array, Indices

RandomState = int | Generator | None


class Shape(NamedTuple):
    """Checked sizes of a sample, the rows the adversary may touch, and the noise of the others.

    The first two are the shape of the data, ``shape[:2]``; the first four are the arguments that
    every adversary takes, in their order, ``shape[:4]``.
    """

    n_samples: int
    n_features: int
    n_nonzero: int
    contamination: float
    n_outliers: int
    inliers: str = "gaussian"

    def noise(
        self, rng: Generator, n_rows: int | None = None, n_features: int | None = None
    ) -> Array:
        """Draw noise for so many rows and features, by default those of the sample."""
        sizes = self.n_samples if n_rows is None else n_rows, n_features or self.n_features
        return draw_noise(self.inliers, rng, sizes)


Adversary = Callable[..., Sample]
"""A function that draws contaminated data: it takes the five arguments of
:func:`outweigh.adversaries.make` that follow the name, and keyword options of its own."""


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
        rng = as_generator(random_state)
        shape = check_shape(n_samples, n_features, n_nonzero, contamination)
        return attack(rng, shape._replace(inliers=inliers), **options)

    shared = inspect.signature(draw)
    # help() and options_of() read this signature: what all have, and between them the own options.
    *five, noise, _ = shared.parameters.values()
    own = [*inspect.signature(attack).parameters.values()][2:]
    functools.update_wrapper(draw, attack)
    draw.__signature__ = shared.replace(  # type: ignore[attr-defined]
        parameters=[*five, *own, noise]
    )
    return draw


def as_generator(random_state: RandomState) -> Generator:
    """Return the generator that ``random_state`` stands for.

    A generator is used as it is, so that its state advances; an integer seeds a new one; None
    takes fresh entropy.

    Examples
    --------
    >>> as_generator(0).integers(10) == as_generator(0).integers(10)
    np.True_
    """
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"random_state must be a nonnegative int, a numpy.random.Generator or None; "
            f"got {random_state!r}"
        ) from error


def check_shape(n_samples: int, n_features: int, n_nonzero: int, contamination: float) -> Shape:
    """Check the four arguments of every adversary and count its outliers.

    The count is ``round(contamination * n_samples)``, kept below half of the rows.

    Raises
    ------
    TypeError, ValueError
        Naming the argument, what it was and what it should be.

    Examples
    --------
    >>> check_shape(100, 20, 5, 0.1).n_outliers
    10
    """
    n = check_count("n_samples", n_samples)
    d = check_count("n_features", n_features)
    k = check_count("n_nonzero", n_nonzero)
    if k > d:
        raise ValueError(
            f"n_nonzero must be at most n_features={d}, got {k}; "
            f"use n_nonzero=n_features for a dense truth"
        )
    share = check_share("contamination", contamination)
    return Shape(n, d, k, share, min(round(share * n), (n - 1) // 2))


def check_share(name: str, value: float) -> float:
    """Return ``value`` as a float in [0, 0.5), or say that it must be one."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number in [0, 0.5), got {type(value).__name__}")
    if not 0.0 <= value < 0.5:
        raise ValueError(
            f"{name} must be in [0, 0.5), got {value!r}; pass the fraction of rows that are wrong, "
            f"such as 0.1"
        )
    return float(value)


def check_between(name: str, value: float, low: float = 0.0, high: float = np.inf) -> float:
    """Return ``value`` as a float strictly between two bounds, or say that it must be there."""
    if isinstance(value, bool) or not isinstance(value, Real) or not low < value < high:
        raise ValueError(f"{name} must be a number between {low:g} and {high:g}, got {value!r}")
    return float(value)


def check_count(name: str, value: int) -> int:
    """Return ``value`` as an int, or say that it must be a positive integer."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be an integer, got {type(value).__name__}")
    if value < 1:
        raise ValueError(f"{name} must be at least 1, got {value}")
    return int(value)


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
