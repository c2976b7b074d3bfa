"""Correlated rows, and a cluster among them that second moments do not show."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def series(d: int, correlation: float = 0.8) -> Array:
    return np.asarray(correlation ** np.abs(np.subtract.outer(range(d), range(d))))


def correlated(n: int, d: int, seed: int = 0) -> Array:
    noise = np.random.default_rng(seed).standard_normal((n, d))
    return np.asarray(noise @ np.linalg.cholesky(series(d)).T)


def with_cluster(n: int, d: int, share: float, distance: float, seed: int = 0) -> Array:
    """Rows of which the first lie apart along the direction of least variance."""
    X = correlated(n, d, seed)
    values, vectors = np.linalg.eigh(series(d))
    X[: int(share * n)] += distance * np.sqrt(values[0]) * vectors[:, 0]
    return X
