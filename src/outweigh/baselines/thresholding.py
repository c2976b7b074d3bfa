"""Hard thresholding with trimmed gradients."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from outweigh.baselines.base import (
    FloatArray,
    Found,
    MeanBaseline,
)
from outweigh.baselines.means import trimmed_mean
from outweigh.norms.entrywise import hard_threshold


@dataclass(eq=False, repr=False)
class IterativeTrimmedHardThresholding(MeanBaseline):
    """Gradient steps on the squared loss, each gradient a trimmed mean, each iterate truncated.

    From b = 0 the iteration is b <- the k largest entries of b - step * trim_i(b - x_i), with
    trim the coordinatewise trimmed mean over the rows. As that moves with its argument,
    trim_i(b - x_i) = b - trim_i(x_i), and the trimmed mean of the rows is computed once.

    Assumptions: symmetric noise; the contamination known, and small: the error is of the order
    contamination * sqrt(n_nonzero), so that only a vanishing share of outliers is tolerated. Cost:
    O(n d) once, O(d) an iteration.

    Parameters
    ----------
    n_nonzero : int or None, default=None
        Number of largest entries that an iterate keeps; None keeps all.
    contamination : float, default=0.1
        Share of the values trimmed at each end of every feature.
    step_size : float, default=1.0
        The step, between 0 and 2. With 1 the second iterate is the last.
    max_iter : int, default=100
        Largest number of iterations.
    tol : float, default=1e-10
        Stop when an iterate moves by less than this share of its length.

    Attributes
    ----------
    location_ : ndarray of shape (n_features,)
    support_ : ndarray
        Indices of the entries kept.
    n_iter_ : int

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

    contamination: float = 0.1
    step_size: float = 1.0
    max_iter: int = 100
    tol: float = 1e-10

    def _find(self, X: FloatArray, n_nonzero: int) -> Found:
        trimmed = trimmed_mean(X, self.contamination)
        iterate = np.zeros(X.shape[1])
        n_iter = 0
        for n_iter in range(1, self.max_iter + 1):  # noqa: B007
            previous = iterate
            iterate = hard_threshold(previous - self.step_size * (previous - trimmed), n_nonzero)
            if np.linalg.norm(iterate - previous) <= self.tol * np.linalg.norm(iterate):
                break
        return Found(iterate, n_iter=n_iter)
