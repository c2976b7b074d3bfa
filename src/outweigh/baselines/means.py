"""Means that look at each feature, or each row, by itself."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from outweigh.baselines.base import FloatArray, Found, MeanBaseline, Oracle


class OracleMean(Oracle, MeanBaseline):
    """The mean of the genuine rows, for whoever knows which they are.

    The yardstick: no estimator that does not know them can be expected to be better.

    Assumptions: the truth is known. Cost: O(n d).

    Parameters
    ----------
    n_nonzero : int or None, default=None
        Number of largest entries to keep; None keeps all.

    Attributes
    ----------
    location_ : ndarray of shape (n_features,)
    support_ : ndarray
        Indices of the entries kept.
    inliers_ : ndarray of bool, shape (n_samples,)

    Examples
    --------
    >>> X = [[0.0, 1.0], [0.0, 3.0], [90.0, 90.0]]
    >>> OracleMean().fit(X, inliers=[True, True, False]).location_
    array([0., 2.])
    """

    def _find(self, X: FloatArray, n_nonzero: int) -> Found:
        return Found(X.mean(axis=0))


class EmpiricalMean(MeanBaseline):
    """The plain mean of all rows.

    Assumptions: no outliers; one far row moves it anywhere. Cost: O(n d).

    Parameters
    ----------
    n_nonzero : int or None, default=None
        Number of largest entries to keep; None keeps all.

    Attributes
    ----------
    location_ : ndarray of shape (n_features,)
    support_ : ndarray
        Indices of the entries kept.

    Examples
    --------
    >>> EmpiricalMean(n_nonzero=1).fit([[0.0, 1.0], [1.0, 3.0]]).location_
    array([0., 2.])
    """

    def _find(self, X: FloatArray, n_nonzero: int) -> Found:
        return Found(X.mean(axis=0))


class CoordinatewiseMedian(MeanBaseline):
    """The median of each feature.

    Assumptions: symmetric noise, for the median to be the mean. Its error is of the order
    contamination * sqrt(n_features). Cost: O(n d).

    Parameters
    ----------
    n_nonzero : int or None, default=None
        Number of largest entries to keep; None keeps all.

    Attributes
    ----------
    location_ : ndarray of shape (n_features,)
    support_ : ndarray
        Indices of the entries kept.

    Examples
    --------
    >>> CoordinatewiseMedian().fit([[0.0, 1.0], [1.0, 3.0], [90.0, 2.0]]).location_
    array([1., 2.])
    """

    def _find(self, X: FloatArray, n_nonzero: int) -> Found:
        return Found(np.median(X, axis=0))


@dataclass(eq=False, repr=False)
class TrimmedMean(MeanBaseline):
    """The mean of each feature without its smallest and its largest values.

    Assumptions: symmetric noise, and a bound on the contamination. Its error is of the order
    contamination * sqrt(n_features). Cost: O(n d), by partition.

    Parameters
    ----------
    n_nonzero : int or None, default=None
        Number of largest entries to keep; None keeps all.
    contamination : float, default=0.1
        Share of the values dropped at *each* end of every feature.

    Attributes
    ----------
    location_ : ndarray of shape (n_features,)
    support_ : ndarray
        Indices of the entries kept.

    Examples
    --------
    >>> TrimmedMean(contamination=0.25).fit([[0.0], [1.0], [2.0], [90.0]]).location_
    array([1.5])
    """

    contamination: float = 0.1

    def _find(self, X: FloatArray, n_nonzero: int) -> Found:
        return Found(trimmed_mean(X, self.contamination))


@dataclass(eq=False, repr=False)
class GeometricMedian(MeanBaseline):
    """The point with the smallest sum of distances to the rows, by Weiszfeld's iteration.

    Assumptions: none on the scale; half of the rows must be genuine. Its error is of the order
    contamination * sqrt(n_features). Cost: O(n d) an iteration.

    Parameters
    ----------
    n_nonzero : int or None, default=None
        Number of largest entries to keep; None keeps all.
    max_iter : int, default=200
        Largest number of iterations.
    tol : float, default=1e-8
        Stop when a step is shorter than this share of the mean distance to the rows.

    Attributes
    ----------
    location_ : ndarray of shape (n_features,)
    support_ : ndarray
        Indices of the entries kept.
    n_iter_ : int

    References
    ----------
    .. [1] Y. Vardi and C.-H. Zhang, "The multivariate L1-median and associated data depth",
       PNAS 97 (2000): the iteration that may pass through a row.

    Examples
    --------
    >>> X = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.5, 0.5]]
    >>> GeometricMedian().fit(X).location_
    array([0.5, 0.5])
    """

    max_iter: int = 200
    tol: float = 1e-8

    def _find(self, X: FloatArray, n_nonzero: int) -> Found:
        centre = np.median(X, axis=0)
        n_iter = 0
        for n_iter in range(1, self.max_iter + 1):  # noqa: B007
            distances = np.linalg.norm(X - centre, axis=1)
            apart = distances > 0.0
            if not apart.any():
                break
            inverse = np.divide(1.0, distances, out=np.zeros_like(distances), where=apart)
            target = inverse @ X / inverse.sum()
            pull = inverse.sum() * (target - centre)
            n_here = distances.size - np.count_nonzero(apart)
            strength = float(np.linalg.norm(pull))
            # Rows at the centre hold it there unless the others pull harder.
            move = max(0.0, 1.0 - n_here / strength) if strength > 0.0 else 0.0
            step = move * (target - centre)
            centre = centre + step
            if np.linalg.norm(step) <= self.tol * distances.mean():
                break
        return Found(centre, n_iter=n_iter)


def trimmed_mean(X: FloatArray, contamination: float) -> FloatArray:
    """Average each column without ``ceil(contamination * n)`` values at either end.

    Examples
    --------
    >>> trimmed_mean(np.array([[0.0], [1.0], [5.0], [90.0]]), 0.25)
    array([3.])
    """
    n_samples = X.shape[0]
    cut = min(int(np.ceil(contamination * n_samples)), (n_samples - 1) // 2)
    if cut == 0:
        return np.asarray(X.mean(axis=0), dtype=np.float64)
    ordered = np.partition(X, (cut, n_samples - cut - 1), axis=0)
    return np.asarray(ordered[cut : n_samples - cut].mean(axis=0), dtype=np.float64)
