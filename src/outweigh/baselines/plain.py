"""The plain Algorithm 1 of the paper, for comparison with what this library does by default."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from outweigh.fit.road import Settings, Task
from outweigh.research.algorithms import fit_paper
from outweigh.samples import ArrayRows
from outweigh.selection import hard_threshold

__all__ = ["SparseGradientDescent"]


@dataclass(eq=False, repr=False)
class SparseGradientDescent(BaseEstimator):
    """Algorithm 1 as the paper states it: a stationary point on all features, then the k largest.

    Assumes unit noise and a known contamination. Each step costs a covariance, O(n d^2).

    Parameters
    ----------
    n_nonzero : int
    contamination : float
    solver : {"backtracking", "constant"}, default="backtracking"
        "constant" is the step of the convergence theorem, too short to be practical.
    max_iter : int, default=200

    Attributes
    ----------
    location_ : ndarray of shape (n_features,)
    n_iter_ : int

    References
    ----------
    Cheng, Diakonikolas, Ge, Gupta, Kane, Soltanolkotabi, "Outlier-Robust Sparse Estimation via
    Non-Convex Optimization", NeurIPS 2022.

    Examples
    --------
    >>> from outweigh.adversaries import constant_bias
    >>> sample = constant_bias(300, 30, 3, 0.1, 0)
    >>> SparseGradientDescent(3, contamination=0.1).fit(sample.X).location_.shape
    (30,)
    """

    n_nonzero: int
    _: KW_ONLY
    contamination: float
    solver: str = "backtracking"
    max_iter: int = 200

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Estimate the mean of X."""
        rows = np.asarray(X, dtype=np.float64)
        settings = Settings(self.contamination, None, None, "paper", self.max_iter)
        task = Task(n_nonzero=(self.n_nonzero,))
        found = fit_paper(ArrayRows(rows), np.ones(len(rows)), task, settings, steps=self.solver)
        self.location_: np.ndarray = hard_threshold(found.weights @ rows, self.n_nonzero)
        self.n_iter_: int = len(found.found.trace)
        return self
