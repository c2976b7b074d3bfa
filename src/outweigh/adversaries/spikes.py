"""Adversaries against principal components: inliers with spikes, outliers with other spikes.

Each is a function of ``(n_samples, n_features, n_nonzero, contamination, random_state)`` and of
keyword options; it returns a :class:`~outweigh.adversaries.Sample` whose ``truth`` holds the true
components as unit rows, orthogonal to each other, and whose ``spikes`` holds the variance along
each above that of the noise, which is one. All samples have mean zero.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.random import Generator

from outweigh.adversaries.sample import (
    BoolArray,
    Sample,
    Shape,
    adversary,
    choose_rows,
    choose_support,
    random_signs,
    uniform_ball,
)
from outweigh.protocols import Array


@adversary
def spiked_mixture(
    rng: Generator,
    shape: Shape,
    *,
    spike: float | Sequence[float] = 1.0,
    outlier_spike: float = 10.0,
    outlier_norm: str = "ones",
    n_components: int = 1,
    overlapping: bool = False,
    n_outlier_spikes: int = 1,
    signs: str = "positive",
) -> Sample:
    """Give inliers the covariance I + sum_j spike_j v_j v_j', outliers I + outlier_spike f f'.

    Every v_j is flat, n_nonzero entries of size 1/sqrt(n_nonzero), on random features; f is flat
    on n_nonzero features that no v_j uses, as far as there are enough.

    Parameters
    ----------
    spike : float or sequence of float, default=1.0
        Variance added along the true components; one for all, or one for each.
    outlier_spike : float, default=10.0
        The factor of f f' in the covariance of the outliers.
    outlier_norm : {"ones", "unit"}, default="ones"
        Whether f has entries of size one, so that its variance is n_nonzero * outlier_spike, or
        length one.
    n_components : int, default=1
        Number of true components.
    overlapping : bool, default=False
        Whether successive components share about half of their features (and stay orthogonal).
    n_outlier_spikes : int, default=1
        Number of directions f, each on features of its own; the outliers have them all.
    signs : {"positive", "random"}, default="positive"
        Signs of the entries of v and f.

    Examples
    --------
    >>> sample = spiked_mixture(500, 40, 4, 0.1, random_state=0, n_components=2)
    >>> sample.truth.shape, sample.spikes.tolist(), sample.support.size
    ((2, 40), [1.0, 1.0], 8)
    """
    components = _flat_components(rng, shape.n_features, shape.n_nonzero, n_components, overlapping)
    if signs == "random":
        components *= random_signs(rng, shape.n_features)
    wrong = np.zeros((n_outlier_spikes, shape.n_features))
    taken = np.flatnonzero(components.any(axis=0))
    for row in wrong:
        support = choose_support(rng, shape.n_features, shape.n_nonzero, avoid=taken)
        row[support] = 1.0 if signs == "positive" else random_signs(rng, support.size)
        taken = np.union1d(taken, support)
    if outlier_norm == "unit":
        wrong /= np.sqrt(shape.n_nonzero)

    sample = _draw_spiked(rng, shape, components, spike)
    _add_spikes(rng, shape, sample.X, ~sample.inliers, np.sqrt(outlier_spike) * wrong)
    return sample


@adversary
def two_outlier_spikes(
    rng: Generator, shape: Shape, *, spike: float = 1.0, outlier_spike: float = 10.0
) -> Sample:
    """As :func:`spiked_mixture` with two unit outlier directions on features of their own.

    Examples
    --------
    >>> two_outlier_spikes(500, 40, 4, 0.1, random_state=0).n_outliers
    50
    """
    return spiked_mixture(
        *shape[:4],
        rng,
        spike=spike,
        outlier_spike=outlier_spike,
        outlier_norm="unit",
        n_outlier_spikes=2,
        inliers=shape.inliers,
    )


@adversary
def spike_and_cluster(
    rng: Generator, shape: Shape, *, spike: float = 1.0, distance: float = 6.0, radius: float = 0.1
) -> Sample:
    """Put the outliers of a one-component problem into a small ball away from the origin.

    Parameters
    ----------
    spike : float, default=1.0
        Variance added along the true component, which is flat on ``n_nonzero`` features.
    distance : float, default=6.0
        Distance of the ball's centre from the origin, along a flat vector on other features.
    radius : float, default=0.1
        Radius of the ball; the outliers are uniform in it.

    Examples
    --------
    >>> sample = spike_and_cluster(500, 40, 4, 0.1, random_state=0)
    >>> bool(np.ptp(sample.X[~sample.inliers], axis=0).max() <= 0.2)
    True
    """
    components = _flat_components(rng, shape.n_features, shape.n_nonzero, 1, overlapping=False)
    centre = np.zeros(shape.n_features)
    away = choose_support(rng, shape.n_features, shape.n_nonzero, np.flatnonzero(components[0]))
    centre[away] = distance / np.sqrt(shape.n_nonzero)

    sample = _draw_spiked(rng, shape, components, spike)
    ball = uniform_ball(rng, shape.n_outliers, shape.n_features, radius)
    sample.X[~sample.inliers] = centre + ball
    return sample


@adversary
def dense_spike(
    rng: Generator,
    shape: Shape,
    *,
    spike: float = 1.0,
    outlier_spike: float = 10.0,
    outlier_nonzero: int = 10,
) -> Sample:
    """Give inliers a spike in a random direction, outliers one on a few features.

    The true component is uniform on the sphere of ``n_nonzero`` random features: of all of them
    when ``n_nonzero=n_features``, the dense problem.

    Parameters
    ----------
    spike, outlier_spike : float, defaults 1.0 and 10.0
        Variance added along the true component, and along the outliers' unit vector.
    outlier_nonzero : int, default=10
        Number of random features of the outliers' flat unit vector; at most n_features are used.

    Examples
    --------
    >>> sample = dense_spike(500, 40, 40, 0.1, random_state=0)
    >>> round(float(np.linalg.norm(sample.truth)), 12)
    1.0
    """
    width = min(outlier_nonzero, shape.n_features)
    component = np.zeros((1, shape.n_features))
    support = choose_support(rng, shape.n_features, shape.n_nonzero)
    component[0, support] = rng.standard_normal(shape.n_nonzero)
    component /= np.linalg.norm(component)
    wrong = np.zeros((1, shape.n_features))
    wrong[0, choose_support(rng, shape.n_features, width, support)] = 1.0 / np.sqrt(width)

    sample = _draw_spiked(rng, shape, component, spike)
    _add_spikes(rng, shape, sample.X, ~sample.inliers, np.sqrt(outlier_spike) * wrong)
    return sample


def _draw_spiked(
    rng: Generator, shape: Shape, components: Array, spike: float | Sequence[float]
) -> Sample:
    """Draw noise, choose the rows that stay genuine, and give those the spikes of the truth."""
    heights = np.atleast_1d(np.asarray(spike, dtype=np.float64))
    if heights.shape not in ((1,), (len(components),)) or not np.all(
        (heights > 0.0) & np.isfinite(heights)
    ):
        raise ValueError(f"spike must be positive, one for all or for each component; got {spike}")
    heights = np.resize(heights, len(components))
    X = shape.noise(rng)
    kept = choose_rows(rng, shape)
    _add_spikes(rng, shape, X, kept, np.sqrt(heights)[:, None] * components)
    return Sample(X, kept, components, heights)


def _add_spikes(rng: Generator, shape: Shape, X: Array, rows: BoolArray, directions: Array) -> None:
    factors = shape.noise(rng, int(np.count_nonzero(rows)), len(directions))
    used = np.flatnonzero(directions.any(axis=0))
    X[np.ix_(rows, used)] += factors @ directions[:, used]


def _flat_components(
    rng: Generator, n_features: int, n_nonzero: int, n_components: int, overlapping: bool
) -> Array:
    """Rows flat on successive windows of a random order of the features.

    Two windows share an even number of features, on which the later row alternates its sign
    while the earlier one does not: that keeps the rows orthogonal.
    """
    shared = 2 * (n_nonzero // 4) if overlapping else 0
    if overlapping and n_components > 1 and shared == 0:
        raise ValueError(f"overlapping=True needs n_nonzero of 4 or more, got {n_nonzero}")
    stride = n_nonzero - shared
    needed = stride * (n_components - 1) + n_nonzero
    if needed > n_features:
        asked = f"n_components={n_components} with n_nonzero={n_nonzero}"
        raise ValueError(f"{asked} needs {needed} features, got n_features={n_features}")
    order = rng.permutation(n_features)
    components = np.zeros((n_components, n_features))
    for j, row in enumerate(components):
        window = order[stride * j : stride * j + n_nonzero]
        row[window] = 1.0 / np.sqrt(n_nonzero)
        if j > 0:
            row[window[:shared:2]] *= -1.0
    return components
