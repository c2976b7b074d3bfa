"""Adversaries against a mean.

Each is a function of ``(n_samples, n_features, n_nonzero, contamination, random_state)`` and of
keyword options with defaults; it returns a :class:`~outweigh.adversaries.Sample` whose ``truth``
is the true mean. Common to all:

- ``round(contamination * n_samples)`` rows are outliers, at random places among the rows.
- ``n_nonzero`` features carry the mean, chosen at random; ``n_nonzero=n_features`` is the dense
  problem. Unless a function says otherwise the entries of the mean have random signs and sizes
  uniform between 0.5 and 2.
- ``inliers`` names the distribution of the noise (see :data:`~outweigh.adversaries.INLIERS`).
  Outliers have noise of the same distribution unless they have none, so that their shape does
  not give them away.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.random import Generator

from outweigh.adversaries.sample import (
    CleanSample,
    Sample,
    Shape,
    adversary,
    choose_rows,
    choose_support,
    draw_clean,
    sparse_mean,
    sparse_shift,
    uniform_ball,
)


@adversary
def linear_hiding(rng: Generator, shape: Shape) -> Sample:
    """Hide a shift on S behind extra variance off S; the true mean is zero.

    With S a random set of ``n_nonzero`` features, half of the outliers have mean 1 on S, and the
    other half have mean zero and covariance 2I - I_S, which raises the variance of the features
    off S as much as the shift raises it on S. ``sample.truth`` is zero; S is not kept.

    Examples
    --------
    >>> sample = linear_hiding(200, 30, 5, 0.1, random_state=0)
    >>> sample.n_outliers, sample.support.size
    (20, 0)
    """
    X = shape.noise(rng)
    kept = choose_rows(rng, shape)
    hidden = choose_support(rng, shape.n_features, shape.n_nonzero)
    shifted, widened = np.array_split(rng.permutation(np.flatnonzero(~kept)), 2)
    X[np.ix_(shifted, hidden)] += 1.0
    scale = np.full(shape.n_features, np.sqrt(2.0))
    scale[hidden] = 1.0
    X[widened] *= scale
    return Sample(X, kept, np.zeros(shape.n_features))


@adversary
def tail_flipping(rng: Generator, shape: Shape) -> Sample:
    """Negate the samples lowest along a random sparse direction; the true mean is zero.

    The direction is Gaussian on ``n_nonzero`` random features. The negated rows keep their second
    moments, so no method that reads second moments can see them. ``sample.inliers`` marks the
    rows left as they were, whose own mean is already off by the removed tail.

    Examples
    --------
    >>> sample = tail_flipping(200, 30, 5, 0.1, random_state=0)
    >>> bool(sample.X.mean(axis=0) @ sample.X[~sample.inliers].mean(axis=0) > 0)
    True
    """
    X = shape.noise(rng)
    support = choose_support(rng, shape.n_features, shape.n_nonzero)
    along = X[:, support] @ rng.standard_normal(shape.n_nonzero)
    lowest = np.argsort(along, kind="stable")[: shape.n_outliers]
    X[lowest] *= -1.0
    kept = np.ones(shape.n_samples, dtype=np.bool_)
    kept[lowest] = False
    return Sample(X, kept, np.zeros(shape.n_features))


@adversary
def constant_bias(rng: Generator, shape: Shape, *, bias: float = -2.0) -> Sample:
    """Add one constant to every feature of the outliers; the true mean is one on its support.

    Parameters
    ----------
    bias : float, default=-2.0
        The constant. As the true mean is positive, -2 and +2 are different attacks: the paper's
        text says +2, the program behind its figures used -2.

    Examples
    --------
    >>> sample = constant_bias(200, 30, 5, 0.1, random_state=0)
    >>> sample.truth.sum(), sample.support.size
    (np.float64(5.0), 5)
    """
    mean = np.zeros(shape.n_features)
    mean[choose_support(rng, shape.n_features, shape.n_nonzero)] = 1.0
    X = shape.noise(rng) + mean
    kept = choose_rows(rng, shape)
    X[~kept] += bias
    return Sample(X, kept, mean)


@adversary
def wrong_support(rng: Generator, shape: Shape) -> Sample:
    """Give the outliers a sparse mean of the same kind on other features.

    The two supports are disjoint when ``2 * n_nonzero <= n_features``, else they overlap as
    little as they can.

    Examples
    --------
    >>> sample = wrong_support(2000, 30, 5, 0.1, random_state=0)
    >>> bool(np.all(abs(sample.X[~sample.inliers].mean(axis=0)[sample.support]) < 0.3))
    True
    """
    return _on_other_features(rng, shape, draw_clean(rng, shape))


@adversary
def hidden_at_zero(rng: Generator, shape: Shape) -> Sample:
    """Centre the outliers at zero, so that they shrink the mean on its own support.

    Examples
    --------
    >>> hidden_at_zero(200, 30, 5, 0.1, random_state=0).n_outliers
    20
    """
    case = draw_clean(rng, shape)
    return case.shift_outliers(-case.mean)


@adversary
def doubled_mean(rng: Generator, shape: Shape) -> Sample:
    """Centre the outliers at twice the mean, so that they stretch it on its own support.

    Examples
    --------
    >>> doubled_mean(200, 30, 5, 0.1, random_state=0).n_outliers
    20
    """
    case = draw_clean(rng, shape)
    return case.shift_outliers(case.mean)


@adversary
def subtractive(rng: Generator, shape: Shape) -> Sample:
    """Only remove: the samples largest along the mean are gone, and nothing replaces them.

    So many clean samples are drawn that ``n_samples`` rows are left when the fraction
    ``contamination`` of them, the largest along the true mean, has been taken away. Every row
    left is genuine and ``sample.inliers`` is all True, yet their mean is too short: the oracle
    is the plain mean, and its error does not vanish with more samples.

    Examples
    --------
    >>> sample = subtractive(2000, 30, 5, 0.1, random_state=0)
    >>> bool(sample.X.mean(axis=0) @ sample.truth < sample.truth @ sample.truth)
    True
    """
    n_removed = round(shape.contamination * shape.n_samples / (1.0 - shape.contamination))
    more = shape._replace(n_samples=shape.n_samples + n_removed, contamination=0.0)
    case = draw_clean(rng, more)
    order = np.argsort(case.X @ case.mean, kind="stable")
    left = np.sort(order[: shape.n_samples])
    return Sample(case.X[left], case.kept[left], case.mean)


@adversary
def mimic(rng: Generator, shape: Shape) -> Sample:
    """Push the mean as far along itself as leaves the covariance of all rows the identity.

    With v the unit vector of the mean, the outliers have no spread along v and sit at
    1 / sqrt(1 - contamination) beyond the mean there; off v they are ordinary. The variance they
    lack makes up for the variance of the shift, so that second moments show nothing, and the
    mean of all rows is off by contamination / sqrt(1 - contamination).

    Examples
    --------
    >>> sample = mimic(2000, 30, 5, 0.1, random_state=0)
    >>> along = sample.X @ sample.truth / np.linalg.norm(sample.truth)
    >>> bool(np.ptp(along[~sample.inliers]) < 1e-9)
    True
    """
    case = draw_clean(rng, shape)
    direction = case.mean / np.linalg.norm(case.mean)
    outliers = case.X[~case.kept]
    excess = 1.0 / np.sqrt(1.0 - shape.n_outliers / shape.n_samples)
    along = (outliers - case.mean) @ direction
    return case.replace_outliers(outliers + np.outer(excess - along, direction))


@partial(adversary, inliers="t3")
def heavy_tailed(rng: Generator, shape: Shape) -> Sample:
    """As :func:`wrong_support`, with noise so heavy-tailed that it has no fourth moment.

    Examples
    --------
    >>> heavy_tailed(200, 30, 5, 0.1, random_state=0).n_outliers
    20
    """
    return _on_other_features(rng, shape, draw_clean(rng, shape))


@adversary
def bounded_covariance(rng: Generator, shape: Shape, *, smallest_scale: float = 0.3) -> Sample:
    """As :func:`wrong_support`, with a covariance that is bounded by the identity, not equal.

    Parameters
    ----------
    smallest_scale : float, default=0.3
        The standard deviation of each feature is uniform between this and 1.

    Examples
    --------
    >>> sample = bounded_covariance(2000, 30, 5, 0.0, random_state=0)
    >>> bool(sample.X.std(axis=0).max() < 1.1 and sample.X.std(axis=0).min() < 0.5)
    True
    """
    case = draw_clean(rng, shape)
    scale = rng.uniform(smallest_scale, 1.0, shape.n_features)
    X = case.mean + (case.X - case.mean) * scale
    return _on_other_features(rng, shape, case._replace(X=X))


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


def _on_other_features(rng: Generator, shape: Shape, case: CleanSample) -> Sample:
    """Move the outliers to a sparse mean on other features, as far as there are enough."""
    other = sparse_mean(rng, shape, avoid=np.flatnonzero(case.mean))
    return case.shift_outliers(other - case.mean)
