"""Means that look at each feature, or each row, by itself."""

from __future__ import annotations

import numpy as np
from scipy.stats import trim_mean

from outweigh.baselines.base import Found, MeanBaseline, Oracle
from outweigh.protocols import Array


class EmpiricalMean(MeanBaseline, name="empirical"):
    """The plain mean of all rows.

    Assumptions: no outliers; one far row moves it anywhere. Cost: O(n d).

    Parameters
    ----------
    {{n_nonzero}}

    Attributes
    ----------
    {{location_ ... support_}}

    Examples
    --------
    >>> EmpiricalMean(n_nonzero=1).fit([[0.0, 1.0], [1.0, 3.0]]).location_
    array([0., 2.])
    """

    def _find(self, X: Array, n_nonzero: int) -> Found:
        return Found(X.mean(axis=0))


class OracleMean(Oracle, EmpiricalMean, name="oracle"):
    """The mean of the genuine rows, for whoever knows which they are.

    The yardstick: no estimator that does not know them can be expected to be better.

    Assumptions: the truth is known. Cost: O(n d).

    Parameters
    ----------
    {{n_nonzero}}

    Attributes
    ----------
    {{location_ ... support_}}
    inliers_ : ndarray of bool, shape (n_samples,)

    Examples
    --------
    >>> X = [[0.0, 1.0], [0.0, 3.0], [90.0, 90.0]]
    >>> OracleMean().fit(X, inliers=[True, True, False]).location_
    array([0., 2.])
    """


class CoordinatewiseMedian(MeanBaseline, name="median"):
    """The median of each feature.

    Assumptions: symmetric noise, for the median to be the mean. Its error is of the order
    contamination * sqrt(n_features). Cost: O(n d).

    Parameters
    ----------
    {{n_nonzero}}

    Attributes
    ----------
    {{location_ ... support_}}

    Examples
    --------
    >>> CoordinatewiseMedian().fit([[0.0, 1.0], [1.0, 3.0], [90.0, 2.0]]).location_
    array([1., 2.])
    """

    def _find(self, X: Array, n_nonzero: int) -> Found:
        return Found(np.median(X, axis=0))


class TrimmedMean(MeanBaseline, name="trimmed"):
    """The mean of each feature without its smallest and its largest values.

    Assumptions: symmetric noise, and a bound on the contamination. Its error is of the order
    contamination * sqrt(n_features). Cost: O(n d), by partition.

    Parameters
    ----------
    {{n_nonzero}}
    contamination : float, default=0.1
        Share of the values dropped at *each* end of every feature, rounded up.

    Attributes
    ----------
    {{location_ ... support_}}

    Examples
    --------
    >>> TrimmedMean(contamination=0.25).fit([[0.0], [1.0], [2.0], [90.0]]).location_
    array([1.5])
    """

    contamination: float = 0.1

    def _find(self, X: Array, n_nonzero: int) -> Found:
        n = len(X)
        cut = min(int(np.ceil(self.contamination * n)), (n - 1) // 2)
        # SciPy drops a share of the rows, rounded down.
        return Found(np.asarray(trim_mean(X, (cut + 0.5) / n, axis=0)))


class IterativeTrimmedHardThresholding(TrimmedMean, name="trimmed_thresholding"):
    """Gradient steps on the squared loss, each gradient a trimmed mean, each iterate truncated.

    From b = 0 the iteration is b <- the k largest entries of b - step * trim_i(b - x_i), with
    trim the coordinatewise trimmed mean over the rows. As that moves with its argument,
    trim_i(b - x_i) = b - trim_i(x_i), so that whatever the step, between 0 and 2, the iteration
    ends at the k largest entries of the trimmed mean: they are returned at once.

    Assumptions: symmetric noise; the contamination known, and small: the error is of the order
    contamination * sqrt(n_nonzero), so that only a vanishing share of outliers is tolerated. Cost:
    O(n d), by partition.

    Parameters
    ----------
    n_nonzero : int or None, default=None
        Number of largest entries that an iterate keeps; None keeps all.
    contamination : float, default=0.1
        Share of the values trimmed at each end of every feature.

    Attributes
    ----------
    {{location_ ... support_}}

    References
    ----------
    .. [1] L. Liu, T. Li and C. Caramanis, "High dimensional robust M-estimation: arbitrary
       corruption and heavy tails", arXiv:1901.08237.

    Examples
    --------
    >>> X = [[0.0, 1.0], [0.2, 2.0], [0.1, 3.0], [90.0, 2.0]]
    >>> IterativeTrimmedHardThresholding(1, contamination=0.25).fit(X).location_
    array([0., 2.])
    """


class GeometricMedian(MeanBaseline, name="geometric_median"):
    """The point with the smallest sum of distances to the rows, by Weiszfeld's iteration.

    Assumptions: none on the scale; half of the rows must be genuine. Its error is of the order
    contamination * sqrt(n_features). Cost: O(n d) an iteration.

    Parameters
    ----------
    {{n_nonzero}}
    max_iter : int, default=200
        Largest number of iterations.
    tol : float, default=1e-8
        Stop when a step is shorter than this share of the mean distance to the rows.

    Attributes
    ----------
    {{location_ ... support_}}
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

    def _find(self, X: Array, n_nonzero: int) -> Found:
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
