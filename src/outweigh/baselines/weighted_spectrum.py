"""The top of the spectrum of a weighted covariance, and descent on functions of weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse.linalg

from outweigh.baselines.base import FloatArray
from outweigh.optimise.capped_simplex import CappedSimplex

# Up to here forming the covariance and its eigenvectors is cheaper than products with it.
_SMALL = 150


class TopVariance(NamedTuple):
    """Largest variance of a weighted sample over directions, and where it is."""

    value: float
    direction: FloatArray
    mean: FloatArray


def top_variance(
    X: FloatArray, weights: FloatArray, start: FloatArray | None = None
) -> TopVariance:
    """Return the top eigenvalue and eigenvector of sum_i w_i (x_i - mean)(x_i - mean)'.

    With many features by Lanczos' method, in products with X only.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    weights : ndarray of shape (n,)
        Nonnegative, of sum one.
    start : ndarray of shape (d,), optional
        A guess of the eigenvector.

    Examples
    --------
    >>> X = np.array([[0.0, 1.0], [0.0, -1.0], [5.0, 0.0]])
    >>> top_variance(X, np.array([0.5, 0.5, 0.0])).value
    1.0
    """
    n_features = X.shape[1]
    mean = weights @ X
    if n_features <= _SMALL:
        second = (X * weights[:, None]).T @ X - np.outer(mean, mean)
        last = n_features - 1
        values, vectors = scipy.linalg.eigh(second, subset_by_index=(last, last))
        return TopVariance(float(values[0]), vectors[:, 0], mean)

    def product(v: FloatArray) -> FloatArray:
        v = v.ravel()
        return np.asarray((weights * (X @ v)) @ X - mean * (mean @ v), dtype=np.float64)

    operator = scipy.sparse.linalg.LinearOperator(
        (n_features, n_features), matvec=product, dtype=np.float64
    )
    if start is None:
        start = np.ones(n_features)
    values, vectors = scipy.sparse.linalg.eigsh(operator, k=1, which="LA", v0=start, tol=1e-4)
    return TopVariance(float(values[0]), vectors[:, 0], mean)


def descend(
    value_and_gradient: Callable[[FloatArray], tuple[float, FloatArray]],
    domain: CappedSimplex,
    weights: FloatArray,
    *,
    max_iter: int,
    tol: float,
) -> tuple[FloatArray, int]:
    """Lower a function of weights by projected steps of adaptive length.

    Steps go along the normalised negative gradient; the length doubles after a success and
    falls to a quarter after a failure. Ends after ``max_iter`` evaluations, when three successes
    in a row gain less than ``tol`` of the value, or when steps have become negligible.

    Parameters
    ----------
    value_and_gradient : callable
    domain : CappedSimplex
    weights : ndarray of shape (n,)
        Where to begin.
    max_iter : int
    tol : float

    Returns
    -------
    weights : ndarray of shape (n,)
    n_evaluations : int

    Examples
    --------
    >>> domain = CappedSimplex.from_contamination(4, 0.25)
    >>> cost = np.array([0.0, 0.0, 0.0, 1.0])
    >>> descend(lambda w: (cost @ w, cost), domain, np.full(4, 0.25), max_iter=20, tol=0.01)[0][3]
    np.float64(0.0)
    """
    value, gradient = value_and_gradient(weights)
    length = shortest = 1.0 / np.sqrt(weights.size)
    shortest *= 1e-4
    small_gains = 0
    n_evaluations = 1
    while n_evaluations < max_iter and small_gains < 3 and length > shortest:
        centred = gradient - gradient.mean()
        size = np.linalg.norm(centred)
        if size == 0.0:
            break
        candidate = domain.project(weights - (length / size) * centred)
        new_value, new_gradient = value_and_gradient(candidate)
        n_evaluations += 1
        if new_value < value:
            small_gains = small_gains + 1 if value - new_value < tol * value else 0
            weights, value, gradient = candidate, new_value, new_gradient
            length *= 2.0
        else:
            length *= 0.25
    return weights, n_evaluations
