"""The location of scikit-learn's minimum covariance determinant."""

from __future__ import annotations

from dataclasses import dataclass

from sklearn.covariance import MinCovDet

from outweigh.baselines.base import FloatArray, Found, MeanBaseline


@dataclass(eq=False, repr=False)
class MinCovDetMean(MeanBaseline):
    """scikit-learn's MinCovDet: the mean of the half of the rows of smallest covariance.

    Found by FastMCD and reweighted once. Assumptions: elliptical rows; n_samples well above
    n_features, five times at least. Affinely equivariant, so it needs no scale. Cost:
    O(n d^2 + d^3) for each of hundreds of concentration steps.

    Parameters
    ----------
    n_nonzero : int or None, default=None
        Number of largest entries to keep; None keeps all.
    support_fraction : float or None, default=None
        Share of the rows in the raw estimate; None is the smallest, most robust one.
    random_state : int or None, default=0
        Seed of scikit-learn's MinCovDet.

    Attributes
    ----------
    location_ : ndarray of shape (n_features,)
    support_ : ndarray
        Indices of the entries kept.
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

    def _find(self, X: FloatArray, n_nonzero: int) -> Found:
        mcd = MinCovDet(support_fraction=self.support_fraction, random_state=self.random_state)
        mcd.fit(X)
        return Found(mcd.location_, inliers=mcd.support_)
