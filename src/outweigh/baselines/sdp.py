"""Sparse means from weights that make a semidefinite bound on sparse variances small."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from outweigh.baselines.weights import Objective, WeightDescent
from outweigh.libraries import library
from outweigh.protocols import Array


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
    tol : float, default=1e-3
        Relative gain below which a step counts as small; three small steps end the descent.
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

    def _objective(self, Z: Array, n_nonzero: int) -> Objective:
        n_features = Z.shape[1]
        if n_features > self.max_features:
            raise ValueError(
                f"X has {n_features} features, more than max_features={self.max_features}; the "
                f"semidefinite program would take very long: select features or raise max_features"
            )
        maximizer = _sparse_variance_program(n_features, n_nonzero)

        def bound_and_gradient(weights: Array) -> tuple[float, Array]:
            mean = weights @ Z
            covariance = (Z * weights[:, None]).T @ Z - np.outer(mean, mean)
            A = maximizer(covariance)
            images = Z @ A
            gradient = np.einsum("ij,ij->i", images, Z) - 2.0 * (images @ mean)
            return float(np.sum(A * covariance)), gradient

        return bound_and_gradient


def _sparse_variance_program(n_features: int, k: int) -> Callable[[Array], Array]:
    """Return the function that takes S to the A of largest <A, S>."""
    cp = library("cvxpy", "SdpMean needs")
    A = cp.Variable((n_features, n_features), PSD=True)
    S = cp.Parameter((n_features, n_features), symmetric=True)
    constraints = [cp.trace(A) == 1.0, cp.sum(cp.abs(A)) <= float(k)]
    program = cp.Problem(cp.Maximize(cp.sum(cp.multiply(S, A))), constraints)

    def maximizer(covariance: Array) -> Array:
        # Scaled, so that the solver's tolerances do not depend on the units of the data.
        scale = float(np.abs(covariance).max()) or 1.0
        S.value = (covariance + covariance.T) / (2.0 * scale)
        program.solve(solver=cp.SCS, eps=1e-5, max_iters=20_000, warm_start=True)
        if A.value is None:
            raise RuntimeError(f"the semidefinite program was not solved: {program.status}")
        return np.asarray((A.value + A.value.T) / 2.0, dtype=np.float64)

    return maximizer
