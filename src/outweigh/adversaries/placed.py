"""Adversaries against a mean that place their outliers: in a ball, at a point, far, scattered.

What is common to all adversaries against a mean is said in :mod:`outweigh.adversaries.means`.
"""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from outweigh.adversaries.arguments import adversary
from outweigh.adversaries.clean import Shape, draw_clean, sparse_shift, uniform_ball
from outweigh.adversaries.sample import Sample


@adversary
def tight_cluster(
    rng: Generator, shape: Shape, *, shift: float = 2.0, radius: float = 0.1
) -> Sample:
    """Put all outliers into a small ball whose centre is off by ``shift`` on some features.

    Parameters
    ----------
    shift : float, default=2.0
        Distance of the ball's centre from the true mean, in random sign, on each of ``n_nonzero``
        random features.
    radius : float, default=0.1
        Radius of the ball; the outliers are uniform in it.

    Examples
    --------
    >>> sample = tight_cluster(200, 30, 5, 0.1, random_state=0)
    >>> bool(np.ptp(sample.X[~sample.inliers], axis=0).max() <= 0.2)
    True
    """
    case = draw_clean(rng, shape)
    centre = case.mean + sparse_shift(rng, shape, shift)
    ball = uniform_ball(rng, shape.n_outliers, shape.n_features, radius)
    return case.replace_outliers(centre + ball)


@adversary
def duplicates(rng: Generator, shape: Shape, *, shift: float = 2.0) -> Sample:
    """Make every outlier the same point: an ordinary sample, shifted on some features.

    Parameters
    ----------
    shift : float, default=2.0
        What is added to the sample, in random sign, on each of ``n_nonzero`` random features.

    Examples
    --------
    >>> sample = duplicates(200, 30, 5, 0.1, random_state=0)
    >>> len(np.unique(sample.X[~sample.inliers], axis=0))
    1
    """
    case = draw_clean(rng, shape)
    point = case.mean + sparse_shift(rng, shape, shift)
    point += shape.noise(rng, 1)[0]
    return case.replace_outliers(np.tile(point, (shape.n_outliers, 1)))


@adversary
def far_outliers(rng: Generator, shape: Shape, *, distance: float = 1e6) -> Sample:
    """Move all outliers very far along one sparse direction.

    Parameters
    ----------
    distance : float, default=1e6
        Length of the move, along a unit vector on ``n_nonzero`` random features.

    Examples
    --------
    >>> sample = far_outliers(200, 30, 5, 0.1, random_state=0)
    >>> bool(np.linalg.norm(sample.X[~sample.inliers], axis=1).min() > 9e5)
    True
    """
    case = draw_clean(rng, shape)
    step = distance / np.sqrt(shape.n_nonzero)
    return case.shift_outliers(sparse_shift(rng, shape, step))


@adversary
def multi_direction(
    rng: Generator, shape: Shape, *, n_directions: int = 10, shift: float = 2.0
) -> Sample:
    """Spread the outliers over several sparse directions, so that no one stands out.

    Parameters
    ----------
    n_directions : int, default=10
        Number of directions; each outlier is shifted along one of them.
    shift : float, default=2.0
        Size of the shift, in random sign, on each of a direction's ``n_nonzero`` random features.

    Examples
    --------
    >>> multi_direction(200, 30, 5, 0.1, random_state=0).n_outliers
    20
    """
    case = draw_clean(rng, shape)
    shifts = np.stack([sparse_shift(rng, shape, shift) for _ in range(n_directions)])
    return case.shift_outliers(shifts[np.arange(shape.n_outliers) % n_directions])
