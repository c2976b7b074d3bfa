"""The recursive mean of Lai, Rao and Vempala: half of the directions at a time."""

from __future__ import annotations

import numpy as np

from outweigh.baselines.base import Found, MeanBaseline
from outweigh.protocols import Array


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

    def _find(self, X: Array, n_nonzero: int) -> Found:
        return Found(_agnostic_mean(X, (1.0 - self.contamination) ** 2))


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
