"""Dense means from weights that make the top variance small."""

from __future__ import annotations

import numpy as np

from outweigh.baselines.base import (
    FloatArray,
    Located,
    MeanBaseline,
    check_between,
    check_contamination,
    check_count,
)
from outweigh.baselines.pruning import naive_prune
from outweigh.baselines.weighted_spectrum import descend, top_variance
from outweigh.optimise.capped_simplex import CappedSimplex


class GradientDescentMean(MeanBaseline):
    """Projected gradient descent on the top variance of the weighted sample.

    Over weights w_i <= 1 / ((1 - eps) n) that sum to one, the largest eigenvalue of the weighted
    covariance is lowered by projected subgradient steps of adaptive length; the weighted mean is
    the answer. Every approximate stationary point is near the true mean.

    Assumptions: a bound on the covariance of the genuine rows; none on its scale; n of the order
    n_features / contamination^2. Cost: O(n d) a matrix-vector product, tens of products an
    iteration.

    Parameters
    ----------
    n_nonzero : int or None, default=None
        Number of largest entries to keep; None keeps all.
    contamination : float, default=0.1
        The eps above.
    max_iter : int, default=100
        Largest number of evaluations of the objective.
    tol : float, default=1e-3
        Relative gain below which a step counts as small; three small steps end the descent.

    Attributes
    ----------
    location_ : ndarray of shape (n_features,)
    support_ : ndarray
        Indices of the entries kept.
    weights_ : ndarray of shape (n_samples,)
    n_iter_ : int
        Number of evaluations.

    References
    ----------
    .. [1] Y. Cheng, I. Diakonikolas, R. Ge and M. Soltanolkotabi, "High-dimensional robust mean
       estimation via gradient descent", ICML 2020, arXiv:2005.01378.

    Examples
    --------
    >>> from outweigh.adversaries import constant_bias
    >>> sample = constant_bias(800, 20, 20, 0.1, random_state=0)
    >>> found = GradientDescentMean().fit(sample.X)
    >>> bool(np.linalg.norm(found.location_ - sample.truth) < 0.3)
    True
    """

    def __init__(
        self,
        n_nonzero: int | None = None,
        contamination: float = 0.1,
        max_iter: int = 100,
        tol: float = 1e-3,
    ) -> None:
        self.n_nonzero = n_nonzero
        self.contamination = contamination
        self.max_iter = max_iter
        self.tol = tol

    def _locate(self, X: FloatArray, n_nonzero: int) -> Located:
        eps = check_contamination(self.contamination)
        budget = check_count("max_iter", self.max_iter)
        origin = np.median(X, axis=0)
        Z = X - origin
        top = np.ones(X.shape[1])

        def value_and_gradient(weights: FloatArray) -> tuple[float, FloatArray]:
            nonlocal top
            value, top, mean = top_variance(Z, weights, start=top)
            along = Z @ top
            return value, along * (along - 2.0 * (mean @ top))

        domain = CappedSimplex.from_contamination(len(Z), eps)
        uniform = np.full(len(Z), 1.0 / len(Z))
        weights, n_iter = descend(
            value_and_gradient, domain, uniform, max_iter=budget, tol=self.tol
        )
        return Located(origin + weights @ Z, weights=weights, n_iter=n_iter)


class MultiplicativeWeightsMean(MeanBaseline):
    """Multiplicative weights against the direction of top variance.

    After naive pruning, each round finds the top eigenvector v of the weighted covariance,
    multiplies the weight of row i by 1 - t_i / (2 max t) with t_i = (v'(x_i - mean))^2, and
    projects in relative entropy onto the weights w_i <= 1 / ((1 - eps) n). It ends when the
    smallest top variance has not fallen by one per cent in five rounds; its weights are kept.

    Assumptions: noise of unit variance, for the pruning only; the contamination known.
    Cost: O(n d) a matrix-vector product, tens of products a round.

    Parameters
    ----------
    n_nonzero : int or None, default=None
        Number of largest entries to keep; None keeps all.
    contamination : float, default=0.1
        The eps above.
    max_iter : int, default=100
        Largest number of rounds.
    failure_probability : float, default=0.2
        The tau of :class:`~outweigh.baselines.NaivePruning`.

    Attributes
    ----------
    location_ : ndarray of shape (n_features,)
    support_ : ndarray
        Indices of the entries kept.
    weights_ : ndarray of shape (n_samples,)
    n_iter_ : int
        Number of rounds.

    References
    ----------
    .. [1] S. Hopkins, J. Li and F. Zhang, "Robust and heavy-tailed mean estimation made simple,
       via regret minimization", NeurIPS 2020, arXiv:2007.15839.

    Examples
    --------
    >>> from outweigh.adversaries import constant_bias
    >>> sample = constant_bias(800, 20, 20, 0.1, random_state=0)
    >>> found = MultiplicativeWeightsMean().fit(sample.X)
    >>> bool(np.linalg.norm(found.location_ - sample.truth) < 0.3)
    True
    """

    def __init__(
        self,
        n_nonzero: int | None = None,
        contamination: float = 0.1,
        max_iter: int = 100,
        failure_probability: float = 0.2,
    ) -> None:
        self.n_nonzero = n_nonzero
        self.contamination = contamination
        self.max_iter = max_iter
        self.failure_probability = failure_probability

    def _locate(self, X: FloatArray, n_nonzero: int) -> Located:
        eps = check_contamination(self.contamination)
        budget = check_count("max_iter", self.max_iter)
        tau = check_between("failure_probability", self.failure_probability, 0.0, 1.0)
        origin = np.median(X, axis=0)
        kept = naive_prune(X, origin, tau)
        Z = X[kept] - origin
        n_samples, n_features = Z.shape
        domain = CappedSimplex.from_contamination(n_samples, eps)
        weights = best = np.full(n_samples, 1.0 / n_samples)
        top, smallest, mark = np.ones(n_features), np.inf, np.inf
        n_iter = last_gain = 0
        for n_iter in range(1, budget + 1):
            value, top, mean = top_variance(Z, weights, start=top)
            if value < smallest:
                best, smallest = weights, value
            if value < 0.99 * mark:
                mark, last_gain = value, n_iter
            squares = ((Z - mean) @ top) ** 2
            if n_iter - last_gain >= 5 or eps == 0.0 or not squares.any():
                break
            with np.errstate(divide="ignore"):
                logs = np.log(weights)
            weights = domain.project_kl(logs + np.log1p(-squares / (2.0 * squares.max())))
        everywhere = np.zeros(len(X))
        everywhere[kept] = best
        return Located(origin + best @ Z, weights=everywhere, n_iter=n_iter)
