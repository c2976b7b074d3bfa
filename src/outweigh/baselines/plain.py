"""The plain algorithms of the paper, for comparison with what this library does by default.

Both assume unit noise and a known contamination, and a step costs a covariance, O(n d^2).
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from outweigh.fit.result import Fit
from outweigh.fit.task import Settings, Task
from outweigh.norms.entrywise import hard_threshold
from outweigh.research.algorithms import fit_paper
from outweigh.samples import ArrayRows


@dataclass(eq=False, repr=False)
class _PaperDescent(BaseEstimator):
    """What both have in common: their parameters, and the descent."""

    n_nonzero: int | None
    _: KW_ONLY
    contamination: float
    solver: str = "backtracking"
    max_iter: int = 200

    def _descended(self, rows: np.ndarray, task: Task) -> Fit:
        if self.n_nonzero is not None:
            task = replace(task, n_nonzero=(self.n_nonzero,))
        settings = Settings(self.contamination, None, None, "paper", self.max_iter)
        ones = np.ones(len(rows))
        found = fit_paper(ArrayRows(rows), ones, task, settings, steps=self.solver)
        self.n_iter_: int = len(found.found.trace)
        return found


class SparseGradientDescent(_PaperDescent):
    """Algorithm 1 as the paper states it: a stationary point on all features, then the k largest.

    Parameters
    ----------
    n_nonzero : int or None
        None is for the dense form of Appendix D.
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

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Estimate the mean of X."""
        rows = np.asarray(X, dtype=np.float64)
        mean = np.asarray(self._descended(rows, Task()).weights @ rows)
        kept = mean if self.n_nonzero is None else hard_threshold(mean, self.n_nonzero)
        self.location_: np.ndarray = kept
        return self


class SparseComponentsDescent(_PaperDescent):
    """Algorithm 2 as the paper states it: a stationary point, then the component read off there.

    Second moments are about zero.

    Parameters
    ----------
    n_nonzero : int or None
        None is for the dense form of Appendix E.
    contamination : float
    solver : {"backtracking", "constant"}, default="backtracking"
    max_iter : int, default=200

    Attributes
    ----------
    components_ : ndarray of shape (1, n_features)
    n_iter_ : int

    References
    ----------
    As for `SparseGradientDescent`.

    Examples
    --------
    >>> from outweigh.adversaries import spiked_mixture
    >>> sample = spiked_mixture(300, 30, 3, 0.1, 0)
    >>> SparseComponentsDescent(3, contamination=0.1).fit(sample.X).components_.shape
    (1, 30)
    """

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Estimate the leading component of X."""
        rows = np.asarray(X, dtype=np.float64)
        found = self._descended(rows, Task(1, centred=False))
        self.components_: np.ndarray = found.components.T
        return self
