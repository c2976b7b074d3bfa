"""Leading eigenvectors of a covariance, dense or with few nonzero entries."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from outweigh.fit.readers import best_sparse, projected_out, top_eigenvectors
from outweigh.protocols import Array


def top_eigenpair(matrix: Array) -> tuple[float, Array]:
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


def leading_directions(covariance: Array, n_components: int, n_nonzero: int) -> Array:
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
        return top_eigenvectors(covariance, n_components).T
    left, found = covariance, np.zeros((n_components, n_features))
    for direction in found:
        noise = np.median(np.diag(left)) * np.eye(n_features)
        direction[:] = best_sparse(left - noise, n_nonzero)
        left = projected_out(left, direction[:, None])
    return found
