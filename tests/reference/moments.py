"""Weighted moments by their definition, one sample at a time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def mean(X: Array, w: Array) -> Array:
    """Return the weighted sum of the rows."""
    return np.asarray(sum((w[i] * X[i] for i in range(len(X))), np.zeros(X.shape[1])))


def second_moment(X: Array, w: Array) -> Array:
    """Return the weighted sum of the outer products of the rows."""
    d = X.shape[1]
    return np.asarray(sum((w[i] * np.outer(X[i], X[i]) for i in range(len(X))), np.zeros((d, d))))


def covariance(X: Array, w: Array) -> Array:
    """Return the weighted second moment less the outer product of the weighted mean."""
    mu = mean(X, w)
    return np.asarray(second_moment(X, w) - np.outer(mu, mu))


def as_matrix(reference: float | Array, d: int) -> Array:
    """Return a scalar, diagonal or matrix reference as a matrix."""
    if np.ndim(reference) == 2:
        return np.asarray(reference)
    return np.diag(np.broadcast_to(reference, (d,)).astype(float))


def deviation(X: Array, w: Array, *, centred: bool, reference: float | Array = 1.0) -> Array:
    """Return S_w - R or M_w - R."""
    moment = covariance(X, w) if centred else second_moment(X, w)
    return np.asarray(moment - as_matrix(reference, X.shape[1]))
