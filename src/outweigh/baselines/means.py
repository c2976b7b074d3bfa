"""Means of each feature, of the rows as points, and of the rows that look genuine."""

from __future__ import annotations

import numpy as np
from scipy.stats import trim_mean
from sklearn.covariance import MinCovDet
from sklearn.metrics.pairwise import euclidean_distances

from outweigh.adversaries.sample import BoolArray, RandomState
from outweigh.baselines.base import CentredMean, Found, MeanBaseline, Oracle
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

    def _find(self, X: Array) -> Found:
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

    def _find(self, X: Array) -> Found:
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

    def _find(self, X: Array) -> Found:
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

    def _find(self, X: Array) -> Found:
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


class NaivePruning(MeanBaseline, name="naive_pruning"):
    """The mean of the rows that are close to the median in every feature ("NP").

    A row is dropped when some feature is sqrt(2 ln(n d / tau)) or more from that feature's
    median, which happens to a genuine row with chance about tau / n.

    Assumptions: noise of unit variance with Gaussian tails. Sees only outliers that are far in
    one feature; its error is of the order contamination * sqrt(n_nonzero). Cost: O(n d).

    Parameters
    ----------
    {{n_nonzero}}
    failure_probability : float, default=0.2
        The tau above.

    Attributes
    ----------
    {{location_ ... support_}}
    {{inliers_}}

    Examples
    --------
    >>> NaivePruning().fit([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [90.0, 0.0]]).inliers_
    array([ True,  True,  True, False])
    """

    failure_probability: float = 0.2

    def _find(self, X: Array) -> Found:
        kept = naive_prune(X - np.median(X, axis=0), self.failure_probability)
        return Found(X[kept].mean(axis=0), inliers=kept)


class RansacMean(CentredMean, name="ransac"):
    """The mean of the random half of the rows that most rows are near to.

    After naive pruning the means of ``n_trials - 1`` random halves and the mean of all rows
    compete; the one with most rows within sqrt(d + sqrt(d)) of it wins.

    Assumptions: noise of unit variance with Gaussian tails. A half without outliers is never
    drawn in practice, so it gains little over the plain mean and adds the noise of a half. Cost:
    O(n d n_trials), as two matrix products.

    Parameters
    ----------
    {{n_nonzero}}
    n_trials : int, default=200
        Number of candidates.
    {{failure_probability}}
    random_state : int, numpy.random.Generator or None, default=None
        Draws the halves.

    Attributes
    ----------
    {{location_ ... support_}}
    inliers_ : ndarray of bool, shape (n_samples,)
        The rows near the winner.

    Examples
    --------
    >>> X = np.random.default_rng(0).standard_normal((100, 5))
    >>> float(abs(RansacMean(random_state=0).fit(X).location_).max()) < 0.5
    True
    """

    n_trials: int = 200
    failure_probability: float = 0.2
    random_state: RandomState = None

    def _find(self, Z: Array) -> Found:
        kept = naive_prune(Z, self.failure_probability)
        Z = Z[kept]
        # The mean of all rows, and of random halves of them.
        half = max(1, len(Z) // 2)
        chosen = np.zeros((self.n_trials - 1, len(Z)))
        rng = np.random.default_rng(self.random_state)
        for row in chosen:
            row[rng.choice(len(Z), half, replace=False, shuffle=False)] = 1.0 / half
        centres = np.vstack([Z.mean(axis=0), chosen @ Z])
        radius = Z.shape[1] + np.sqrt(Z.shape[1])
        near = euclidean_distances(Z, centres, squared=True) < radius
        best = int(np.argmax(np.count_nonzero(near, axis=0)))
        inliers = kept.copy()
        inliers[kept] = near[:, best]
        return Found(centres[best], inliers=inliers)


class MinCovDetMean(MeanBaseline, name="min_cov_det"):
    """scikit-learn's MinCovDet: the mean of the half of the rows of smallest covariance.

    Found by FastMCD and reweighted once. Assumptions: elliptical rows; n_samples well above
    n_features, five times at least. Affinely equivariant, so it needs no scale. Cost:
    O(n d^2 + d^3) for each of hundreds of concentration steps.

    Parameters
    ----------
    {{n_nonzero}}
    support_fraction : float or None, default=None
        Share of the rows in the raw estimate; None is the smallest, most robust one.
    random_state : int or None, default=0
        Seed of scikit-learn's MinCovDet.

    Attributes
    ----------
    {{location_ ... support_}}
    inliers_ : ndarray of bool, shape (n_samples,)
        The rows of the reweighted estimate.

    References
    ----------
    .. [1] P. Rousseeuw and K. Van Driessen, "A fast algorithm for the minimum covariance
       determinant estimator", Technometrics 41 (1999).

    Examples
    --------
    >>> from outweigh.adversaries import constant_bias
    >>> sample = constant_bias(300, 4, 4, 0.1, random_state=0, bias=9.0)
    >>> bool(MinCovDetMean().fit(sample.X).inliers_[~sample.inliers].any())
    False
    """

    support_fraction: float | None = None
    random_state: int | None = 0

    def _find(self, X: Array) -> Found:
        mcd = MinCovDet(support_fraction=self.support_fraction, random_state=self.random_state)
        mcd.fit(X)
        return Found(mcd.location_, inliers=mcd.support_)


class AgnosticMean(MeanBaseline, name="agnostic"):
    """The agnostic mean of Lai, Rao and Vempala, "LRV".

    The share (1 - eps)^2 of the rows nearest to the coordinatewise median is kept. Along the half
    of the eigenvectors of their covariance with the smaller eigenvalues outliers have moved the
    mean little, so that the mean of the rows kept serves there. In the span V of the others the
    same is done again with the rows projected to it: ``mean(x) = V mean(V'x) + (I - VV') mean(x)``.
    In one dimension it is the median.

    Assumptions: noise whose covariance is a multiple of the identity; the contamination known. The
    error is of the order eps sqrt(log d). Cost: O(n d^2 + d^3).

    Parameters
    ----------
    {{n_nonzero}}
    {{contamination}}

    Attributes
    ----------
    {{location_ ... support_}}

    References
    ----------
    .. [1] K. Lai, A. Rao and S. Vempala, "Agnostic estimation of mean and covariance", FOCS 2016,
       arXiv:1604.06968.

    Examples
    --------
    >>> from outweigh.adversaries import constant_bias
    >>> sample = constant_bias(800, 20, 20, 0.1, random_state=0)
    >>> found = AgnosticMean().fit(sample.X)
    >>> bool(np.linalg.norm(found.location_ - sample.truth) < 0.4)
    True
    """

    contamination: float = 0.1

    def _find(self, X: Array) -> Found:
        return Found(_agnostic_mean(X, (1.0 - self.contamination) ** 2))


def naive_prune(Z: Array, failure_probability: float) -> BoolArray:
    """Mark the rows within sqrt(2 ln(n d / tau)) of zero in every feature.

    If they are not even half of the rows the noise is not of unit variance, and the half
    nearest to zero in the same sense is marked instead.

    Parameters
    ----------
    Z : ndarray of shape (n, d)
        Rows less a centre.
    failure_probability : float
        The tau above.

    Examples
    --------
    >>> naive_prune(np.array([[0.0], [1.0], [60.0]]), 0.2)
    array([ True,  True, False])
    """
    n_samples, n_features = Z.shape
    reach = np.abs(Z).max(axis=1)
    kept: BoolArray = reach < np.sqrt(2.0 * np.log(n_samples * n_features / failure_probability))
    half = (n_samples + 1) // 2
    if np.count_nonzero(kept) < half:
        kept = np.zeros(n_samples, dtype=np.bool_)
        kept[np.argsort(reach, kind="stable")[:half]] = True
    return kept


def _agnostic_mean(X: Array, kept: float) -> Array:
    n_samples, n_features = X.shape
    median = np.median(X, axis=0)
    if n_features == 1:
        return np.asarray(median, dtype=np.float64)
    Z = X - median
    distances = np.linalg.norm(Z, axis=1)
    last = int(np.ceil(kept * n_samples)) - 1
    near = Z[distances <= np.partition(distances, last)[last]]
    mean = near.mean(axis=0)
    upper = np.linalg.eigh((near - mean).T @ (near - mean))[1][:, (n_features + 1) // 2 :]
    above = _agnostic_mean(Z @ upper, kept)
    return np.asarray(median + mean + upper @ (above - upper.T @ mean), dtype=np.float64)
