"""Variance and scatter in a few directions that a share of wrong rows cannot decide.

A redescending M-estimator (minimum gamma-divergence for the Gaussian): rows far from the bulk count
for nothing, however many they are, so a cluster or a second spike along a direction does not pass
for variance of the clean rows. Used on a handful of candidate directions, where n is much larger
than their number.
"""

from __future__ import annotations

import numpy as np

from outweigh.fit.columns import MAD_TO_SD, weighted_quantile
from outweigh.fit.tuning import TUNING
from outweigh.protocols import Array

_MAX_ITER = 300
_COLUMN_STEPS = 5
_RTOL = 1e-11
_TINY = 1e-300


def robust_variance(values: Array, sample_weight: Array) -> float:
    """Return the variance of the Gaussian bulk of one weighted sample.

    Parameters
    ----------
    values : ndarray of shape (n,)
    sample_weight : ndarray of shape (n,)

    References
    ----------
    Fujisawa and Eguchi, "Robust parameter estimation with a small bias against heavy
    contamination", Journal of Multivariate Analysis 99 (2008).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> values = np.concatenate([rng.normal(size=1600), np.full(400, 6.0)])
    >>> bool(abs(robust_variance(values, np.ones(2000)) - 1.0) < 0.15)
    True
    """
    return float(robust_scatter(values[:, None], sample_weight)[0, 0])


def robust_scatter(rows: Array, sample_weight: Array) -> Array:
    """Return the covariance of the Gaussian bulk of weighted rows in a few dimensions.

    Parameters
    ----------
    rows : ndarray of shape (n, m)
        With n much larger than m.
    sample_weight : ndarray of shape (n,)

    Returns
    -------
    ndarray of shape (m, m)
        The starting value, from medians and spatial signs, where the iteration breaks down: so it
        does where it shrinks to rows that are equal or lie in a subspace.
    """
    share = sample_weight / sample_weight.sum()
    centre = np.array([weighted_quantile(column, share, [0.5])[0] for column in rows.T])
    scatter = start = _sign_scatter(rows - centre, share)
    largest, steep = float(np.linalg.eigvalsh(start)[-1]), TUNING.bulk
    for _ in range(_MAX_ITER):
        root = _inverse_root(scatter, largest)
        if root is None:
            return start
        weight = share * np.exp(-0.5 * steep * np.square((rows - centre) @ root).sum(axis=1))
        total = float(weight.sum())
        if total <= 0.0:
            return start
        centre = weight @ rows / total
        away = rows - centre
        updated = (1.0 + steep) * (away * weight[:, None]).T @ away / total
        change = float(np.abs(updated - scatter).max())
        scatter = updated
        if change <= _RTOL * float(np.abs(scatter).max()):
            break
    return scatter


def column_bulks(Z: Array, sample_weight: Array) -> tuple[Array, Array]:
    """Return the centre and the variance of the bulk of each column, all columns at once.

    A few steps of the iteration above, from a start that is near.

    Parameters
    ----------
    Z : ndarray of shape (n, d)
        Columns about a robust centre, in units of a robust scale.
    sample_weight : ndarray of shape (n,)
    """
    centre, variance, steep = np.zeros(Z.shape[1]), np.ones(Z.shape[1]), TUNING.bulk
    for _ in range(_COLUMN_STEPS):
        near = np.exp(-steep / 2.0 * (Z - centre) ** 2 / variance) * sample_weight[:, None]
        # All rows may be far from where the bulk was thought to be.
        total = np.maximum(near.sum(axis=0), _TINY)
        centre = (near * Z).sum(axis=0) / total
        new = (1.0 + steep) * (near * (Z - centre) ** 2).sum(axis=0) / total
        variance = np.where(new > 1e-6, new, variance)
    return centre, variance


def _sign_scatter(away: Array, share: Array) -> Array:
    """Return a scatter with the axes of the spatial signs and median deviations along them."""
    length = np.linalg.norm(away, axis=1)
    signs = away / np.where(length > 0, length, 1.0)[:, None]
    axes = np.linalg.eigh((signs * share[:, None]).T @ signs)[1]
    deviations = [
        MAD_TO_SD * weighted_quantile(np.abs(column), share, [0.5])[0] for column in (away @ axes).T
    ]
    return np.asarray((axes * np.square(deviations)) @ axes.T)


def _inverse_root(scatter: Array, largest: float) -> Array | None:
    """Return its root, unless it has shrunk to nothing beside a variance that it had."""
    values, vectors = np.linalg.eigh(scatter)
    if not values[0] > 1e-12 * max(float(values[-1]), largest, np.finfo(float).tiny):
        return None
    return np.asarray(vectors / np.sqrt(values))
