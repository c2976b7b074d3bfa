"""The covariance of clean rows where it is known, from an array or a fitted estimator."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError

from outweigh.protocols import Array

__all__ = ["reference_covariance", "whitener_on"]

_RANK_RTOL = 1e-10


def reference_covariance(covariance: object, n_features: int) -> Array | None:
    """Return the covariance as an array, checked, or None if there is none.

    Parameters
    ----------
    covariance : None, array-like of shape (d, d), or an object with ``covariance_``
    n_features : int
        The d it must have.

    Examples
    --------
    >>> reference_covariance([[1.0, 0.5], [0.5, 1.0]], 2)
    array([[1. , 0.5],
           [0.5, 1. ]])
    """
    if covariance is None:
        return None
    if hasattr(covariance, "fit"):
        if not hasattr(covariance, "covariance_"):
            raise NotFittedError(
                f"covariance: {type(covariance).__name__} is not fitted, or has no covariance_; "
                "fit it on rows that you trust, or pass an array"
            )
        covariance = covariance.covariance_
    array = np.asarray(covariance, dtype=np.float64)
    if array.shape != (n_features, n_features):
        raise ValueError(
            f"covariance must have one row and one column per feature, shape "
            f"({n_features}, {n_features}); got shape {array.shape}"
        )
    if not np.all(np.isfinite(array)):
        raise ValueError("covariance must be finite; it holds NaN or infinity")
    if not np.allclose(array, array.T, rtol=1e-6, atol=1e-8 * float(np.abs(array).max())):
        raise ValueError("covariance must be symmetric; pass (C + C.T) / 2 if it nearly is")
    if np.any(np.diagonal(array) <= 0.0):
        raise ValueError("covariance must have a positive diagonal: the variances of the features")
    return np.asarray((array + array.T) / 2.0)


def whitener_on(covariance: Array, columns: NDArray[np.intp]) -> Array:
    """Return R^(-1/2), R the correlations of the named features.

    Of all maps that make the features uncorrelated it changes them least.

    Examples
    --------
    >>> R = np.array([[1.0, 0.6], [0.6, 1.0]])
    >>> W = whitener_on(4.0 * R, np.arange(2))
    >>> bool(np.allclose(W @ R @ W, np.eye(2)))
    True
    """
    part = covariance[np.ix_(columns, columns)]
    deviation = np.sqrt(np.diagonal(part))
    values, vectors = np.linalg.eigh(part / deviation / deviation[:, None])
    if values.size and values[0] <= _RANK_RTOL * values[-1]:
        raise ValueError(
            "covariance must be positive definite; add a little to its diagonal, or use a "
            "shrunk estimate such as sklearn.covariance.LedoitWolf"
        )
    return np.asarray((vectors / np.sqrt(values)) @ vectors.T)
