"""The arguments that all adversaries share, what they and the options may be."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.random import Generator

from outweigh.adversaries.sample import INLIERS, Sample, Shape
from outweigh.constraints import COUNT, POSITIVE, SHARE, Number, StrOptions, check

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
    >>> from outweigh.adversaries.sample import choose_rows
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
        return attack(as_generator(random_state), shape, **options)

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
    return np.random.default_rng(random_state)
