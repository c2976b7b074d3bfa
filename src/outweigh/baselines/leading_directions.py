"""Leading eigenvectors of a covariance, dense or with few nonzero entries."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.linalg

from outweigh.baselines.base import FloatArray, IndexArray
from outweigh.norms.entrywise import top_k_indices


def top_eigenpair(matrix: FloatArray) -> tuple[float, FloatArray]:
    """Return the largest eigenvalue of a symmetric matrix and its unit eigenvector.

    Examples
    --------
    >>> value, vector = top_eigenpair(np.diag([1.0, 3.0]))
    >>> value, abs(vector)
    (3.0, array([0., 1.]))
    """
    last = len(matrix) - 1
    values, vectors = scipy.linalg.eigh(matrix, subset_by_index=(last, last))
    return float(values[0]), np.asarray(vectors[:, 0], dtype=np.float64)


def leading_directions(covariance: FloatArray, n_components: int, n_nonzero: int) -> FloatArray:
    """Return the leading directions of a covariance as unit rows with few nonzero entries.

    Without sparsity they are eigenvectors. With it each is found by truncated power iteration
    from several starts, the best kept, and projected out before the next.

    Parameters
    ----------
    covariance : ndarray of shape (d, d)
        Positive semidefinite.
    n_components : int
    n_nonzero : int
        Largest number of nonzero entries in a row; d or more means no limit.

    References
    ----------
    .. [1] X.-T. Yuan and T. Zhang, "Truncated power method for sparse eigenvalue problems",
       JMLR 14 (2013).

    Examples
    --------
    >>> abs(leading_directions(np.diag([1.0, 3.0, 2.0]), 2, 1))
    array([[0., 1., 0.],
           [0., 0., 1.]])
    """
    n_features = len(covariance)
    if n_nonzero >= n_features:
        chosen = (n_features - n_components, n_features - 1)
        vectors = scipy.linalg.eigh(covariance, subset_by_index=chosen)[1]
        return np.asarray(vectors.T[::-1], dtype=np.float64)
    left = covariance.copy()
    found = np.zeros((n_components, n_features))
    for j in range(n_components):
        found[j] = leading_sparse_direction(left, n_nonzero)
        along = left @ found[j]
        left -= np.outer(found[j], along)
        left -= np.outer(left @ found[j], found[j])
    return found


def leading_sparse_direction(covariance: FloatArray, n_nonzero: int) -> FloatArray:
    """Return the best unit vector found with ``n_nonzero`` nonzero entries.

    Examples
    --------
    >>> abs(leading_sparse_direction(np.diag([1.0, 3.0, 2.0]), 1))
    array([0., 1., 0.])
    """
    climbed = [_truncated_power(covariance, u, n_nonzero) for u in _starts(covariance, n_nonzero)]
    return max(climbed, key=lambda u: float(u @ covariance @ u))


def _starts(covariance: FloatArray, n_nonzero: int) -> Iterator[FloatArray]:
    yield top_eigenpair(covariance)[1]
    yield _on_support(covariance, top_k_indices(np.diag(covariance), n_nonzero))
    excess = covariance - np.eye(len(covariance)) * np.median(np.diag(covariance))
    entries = top_k_indices(excess.ravel(), n_nonzero**2)
    largest = np.zeros_like(excess)
    largest.flat[entries] = excess.flat[entries]
    yield top_eigenpair(largest + largest.T)[1]


def _truncated_power(covariance: FloatArray, start: FloatArray, n_nonzero: int) -> FloatArray:
    """Climb u'Cu over sparse unit vectors; each step keeps the largest entries of Cu."""
    support = top_k_indices(start, n_nonzero)
    u = _on_support(covariance, support)
    for _ in range(50):
        image = covariance @ u
        support_next = top_k_indices(image, n_nonzero)
        if np.array_equal(support, support_next) or not image.any():
            break
        candidate = _on_support(covariance, support_next)
        if candidate @ covariance @ candidate <= u @ covariance @ u:
            break
        u, support = candidate, support_next
    return u


def _on_support(covariance: FloatArray, support: IndexArray) -> FloatArray:
    """Return the unit vector on ``support`` of largest u'Cu."""
    u = np.zeros(len(covariance))
    u[support] = top_eigenpair(covariance[np.ix_(support, support)])[1]
    return u
