"""What an estimate of a mean is measured against."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def sparse_part(v: Array, k: int) -> Array:
    """Return v with all but its k entries of largest magnitude set to zero."""
    order = sorted(range(v.size), key=lambda i: -abs(v[i]))
    kept = np.zeros(v.size)
    kept[order[:k]] = v[order[:k]]
    return kept


def oracle_error(X: Array, inliers: NDArray[np.bool_], truth: Array, k: int | None) -> float:
    """Return the error of the mean of the genuine rows, k-sparse if k is given."""
    estimate = X[inliers].mean(axis=0)
    estimate = estimate if k is None else sparse_part(estimate, k)
    return float(np.linalg.norm(estimate - truth))


def empirical_error(X: Array, truth: Array, k: int | None) -> float:
    """Return the error of the mean of all rows, k-sparse if k is given."""
    return oracle_error(X, np.ones(len(X), dtype=bool), truth, k)
