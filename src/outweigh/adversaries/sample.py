"""What an adversary hands over: the contaminated data and the truth behind it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from outweigh.protocols import Array, Indices

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Sample:
    """Contaminated data together with the truth that an estimator must not see.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features)
        The data as an estimator receives it. Rows are in random order.
    inliers : ndarray of bool, shape (n_samples,)
        True for the rows that the adversary did not touch.
    truth : ndarray of shape (n_features,) or (n_components, n_features)
        The true mean, or the true components as unit rows.
    spikes : ndarray of shape (n_components,), optional
        Variance added along each true component; None when the truth is a mean.

    Examples
    --------
    >>> from outweigh.adversaries import constant_bias
    >>> sample = constant_bias(50, 8, 3, 0.1, random_state=0)
    >>> sample.X.shape, sample.n_outliers, sample.support.size
    ((50, 8), 5, 3)
    """

    X: Array
    inliers: BoolArray
    truth: Array
    spikes: Array | None = None

    @property
    def n_outliers(self) -> int:
        """Number of rows the adversary touched."""
        return int(self.inliers.size - np.count_nonzero(self.inliers))

    @property
    def support(self) -> Indices:
        """Indices of the features on which the truth is not zero, ascending."""
        return np.flatnonzero(np.atleast_2d(self.truth).any(axis=0))
