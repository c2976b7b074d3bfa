"""Sparse means from weights that make a semidefinite bound on sparse variances small."""

from __future__ import annotations

from typing import Any

import numpy as np

from outweigh.baselines.weights import WeightDescent
from outweigh.forms import Form
from outweigh.libraries import library
from outweigh.protocols import Maximum, MomentMatrix
from outweigh.samples.matrices import as_array


class SdpMean(WeightDescent, name="sdp"):
    """Descent on the semidefinite relaxation of the largest sparse variance.

    The objective is the maximum of <A, S_w> over positive semidefinite A of trace one with
    ``sum_ij |A_ij| <= k``, where S_w is the covariance of the weighted sample: a convex bound on
    the variance along k-sparse directions. Each evaluation solves that program; its A gives the
    subgradient with respect to the weights w_i <= 1 / ((1 - eps) n).

    Assumptions: a bound on the covariance of the genuine rows; the contamination known. Cost: a
    semidefinite program with d^2 unknowns for each evaluation, tenths of a second at 50 features
    and growing like d^4 or faster. Needs cvxpy: ``pip install 'outweigh[sdp]'``.

    Parameters
    ----------
    n_nonzero : int or None, default=None
        The k above and the number of largest entries kept; None stands for all features.
    {{contamination}}
    max_iter : int, default=100
        Largest number of semidefinite programs.
    tol : float, default=0.01
        It ends where the variance aimed at is less than this share below the one reached.
    max_features : int, default=60
        Refuse data with more features than this.

    Attributes
    ----------
    {{location_ ... support_}}
    {{weights_}}
    n_iter_ : int
        Number of semidefinite programs solved.

    References
    ----------
    .. [1] S. Balakrishnan, S. Du, J. Li and A. Singh, "Computationally efficient robust sparse
       estimation in high dimensions", COLT 2017, arXiv:1702.07709.
    .. [2] B. Zhu, J. Jiao and J. Steinhardt, "Robust estimation via generalized
       quasi-gradients", arXiv:2005.14073.
    """

    max_features: int = 60

    def _norm(self, n_features: int, n_nonzero: int) -> Any:
        if n_features > self.max_features:
            raise ValueError(
                f"X has {n_features} features, more than max_features={self.max_features}; the "
                f"semidefinite program would take very long: select features or raise max_features"
            )
        return SparseVariance(n_features, n_nonzero)


class SparseVariance:
    """The largest <A, S> over semidefinite A of trace one whose entries add up to k at most.

    Parameters
    ----------
    n_features : int
    k : int
    """

    def __init__(self, n_features: int, k: int) -> None:
        self._cvxpy = cp = library("cvxpy", "SdpMean needs")
        self._A = cp.Variable((n_features, n_features), PSD=True)
        self._S = cp.Parameter((n_features, n_features), symmetric=True)
        constraints = [cp.trace(self._A) == 1.0, cp.sum(cp.abs(self._A)) <= float(k)]
        goal = cp.Maximize(cp.sum(cp.multiply(self._S, self._A)))
        self._program = cp.Problem(goal, constraints)

    def maximize(self, matrix: MomentMatrix) -> Maximum:
        """Return the value at a matrix S, and the A that attains it."""
        covariance = as_array(matrix)
        # Scaled, so that the solver's tolerances do not depend on the units of the data.
        scale = float(np.abs(covariance).max()) or 1.0
        self._S.value = (covariance + covariance.T) / (2.0 * scale)
        self._program.solve(solver=self._cvxpy.SCS, eps=1e-5, max_iters=20_000, warm_start=True)
        if self._A.value is None:
            raise RuntimeError(f"the semidefinite program was not solved: {self._program.status}")
        strengths, directions = np.linalg.eigh((self._A.value + self._A.value.T) / 2.0)
        value = float(strengths @ np.einsum("ij,ij->j", directions, covariance @ directions))
        return Maximum(value, Form.from_directions(directions, strengths), value)
