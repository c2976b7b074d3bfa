"""Means from weights that are lowered where rows have too much variance: descents and rounds."""

from __future__ import annotations

from typing import Any

import numpy as np

from outweigh.baselines.base import CentredMean, Found
from outweigh.baselines.means import naive_prune
from outweigh.forms import Form
from outweigh.libraries import library
from outweigh.norms import KyFan
from outweigh.norms.spectral import largest_eigenpairs
from outweigh.objectives import MomentObjective
from outweigh.optimise.capped_simplex import CappedSimplex
from outweigh.optimise.descent import Result, descend
from outweigh.optimise.steps import Polyak, Subgradient
from outweigh.protocols import Array, Maximum, MomentMatrix, StepRule
from outweigh.samples import DenseSamples
from outweigh.samples.matrices import as_array


class WeightDescent(CentredMean):
    """Template: the mean under weights at which an objective is small.

    The weights sum to one and are at most 1 / ((1 - contamination) n).
    """

    contamination: float = 0.1
    max_iter: int = 100
    tol: float = 0.01

    def _objective(self, samples: DenseSamples) -> MomentObjective:
        """Return what to lower: the top variance."""
        return MomentObjective(samples, KyFan(1), centred=True, reference=0.0)

    def _rule(self) -> StepRule:
        return Polyak(0.0, self.tol, patience=3)

    def _find(self, Z: Array) -> Found:
        objective = self._objective(DenseSamples(Z))
        found = descended(objective, self.contamination, self._rule(), self.max_iter)
        return Found(found.weights @ Z, weights=found.weights, n_iter=found.n_iter)


def descended(
    objective: MomentObjective, contamination: float, rule: StepRule, max_iter: int
) -> Result:
    """Return what a descent from equal weights reaches."""
    domain = CappedSimplex.from_contamination(objective.samples.n_samples, contamination)
    return descend(objective, Subgradient(domain), rule, domain.reference(), max_iter=max_iter)


class GradientDescentMean(WeightDescent, name="gradient_descent"):
    """Projected gradient descent on the top variance of the weighted sample.

    Over weights w_i <= 1 / ((1 - eps) n) that sum to one, the largest eigenvalue of the weighted
    covariance is lowered by projected subgradient steps of Polyak's length; the weighted mean is
    the answer. Every approximate stationary point is near the true mean.

    Assumptions: a bound on the covariance of the genuine rows; none on its scale; n of the order
    n_features / contamination^2. Cost: O(n d^2) an iteration.

    Parameters
    ----------
    {{n_nonzero}}
    {{contamination}}
    max_iter : int, default=100
        Largest number of evaluations of the objective.
    tol : float, default=0.01
        It ends where the variance aimed at is less than this share below the one reached.

    Attributes
    ----------
    {{location_ ... support_}}
    {{weights_}}
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


class MultiplicativeWeightsMean(CentredMean, name="multiplicative_weights"):
    """Multiplicative weights against the direction of top variance.

    After naive pruning, each round finds the top eigenvector v of the weighted covariance,
    multiplies the weight of row i by 1 - t_i / (2 max t) with t_i = (v'(x_i - mean))^2, and
    projects in relative entropy onto the weights w_i <= 1 / ((1 - eps) n). It ends when the
    smallest top variance has not fallen by one per cent in five rounds; its weights are kept.

    Assumptions: noise of unit variance, for the pruning only; the contamination known.
    Cost: O(n d^2) a round.

    Parameters
    ----------
    {{n_nonzero}}
    {{contamination}}
    {{max_iter}}
    {{failure_probability}}

    Attributes
    ----------
    {{location_ ... support_}}
    {{weights_ ... n_iter_}}

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

    contamination: float = 0.1
    max_iter: int = 100
    failure_probability: float = 0.2

    def _find(self, Z: Array) -> Found:
        eps = self.contamination
        kept = naive_prune(Z, self.failure_probability)
        Z = Z[kept]
        samples, n_samples = DenseSamples(Z), len(Z)
        domain = CappedSimplex.from_contamination(n_samples, eps)
        weights = best = np.full(n_samples, 1.0 / n_samples)
        smallest, mark = np.inf, np.inf
        n_iter = last_gain = 0
        for n_iter in range(1, self.max_iter + 1):
            values, vectors = largest_eigenpairs(samples.moment(weights, centred=True), 1)
            value = float(values[0])
            if value < smallest:
                best, smallest = weights, value
            if value < 0.99 * mark:
                mark, last_gain = value, n_iter
            squares = ((Z - weights @ Z) @ vectors[:, 0]) ** 2
            if n_iter - last_gain >= 5 or eps == 0.0 or not squares.any():
                break
            with np.errstate(divide="ignore"):
                logs = np.log(weights)
            weights = domain.project_kl(logs + np.log1p(-squares / (2.0 * squares.max())))
        everywhere = np.zeros(len(kept))
        everywhere[kept] = best
        return Found(best @ Z, weights=everywhere, n_iter=n_iter)


class QuantumEntropyMean(CentredMean, name="quantum_entropy"):
    """The filter by quantum entropy scores, "QUE".

    With the mean and the covariance S of the weighted rows, the score of a row x is
    ``(x - mean)' U (x - mean)`` where ``U = exp(a E) / tr exp(a E)``, ``E = (S - I) / |S - I|``.
    For a = 0 it is the squared distance, for large a the square along the top eigenvector, and
    between them it weighs all directions in which there is too much variance. While the top
    eigenvalue of S is above 1 + eps ln(1/eps), the rows of largest scores that hold 2 eps of the
    weight are multiplied by 1 - score / largest score.

    Assumptions: noise of identity covariance; the contamination known. Cost: O(n d^2 + d^3) a
    round; the paper has a way to approximate the scores in nearly linear time.

    Parameters
    ----------
    {{n_nonzero}}
    {{contamination}}
        With 0 there is only the naive pruning.
    sharpness : float, default=4.0
        The a above; 4 is that of the paper's experiments.
    {{failure_probability}}
    max_iter : int, default=100
        Largest number of rounds; it also ends when 2 eps of the weight is gone.

    Attributes
    ----------
    {{location_ ... support_}}
    {{weights_ ... n_iter_}}

    References
    ----------
    .. [1] Y. Dong, S. Hopkins and J. Li, "Quantum entropy scoring for fast robust mean estimation
       and improved outlier detection", NeurIPS 2019, arXiv:1906.11366.

    Examples
    --------
    >>> from outweigh.adversaries import multi_direction
    >>> sample = multi_direction(800, 20, 20, 0.1, random_state=0)
    >>> found = QuantumEntropyMean().fit(sample.X)
    >>> bool(np.linalg.norm(found.location_ - sample.truth) < 0.4)
    True
    """

    contamination: float = 0.1
    sharpness: float = 4.0
    failure_probability: float = 0.2
    max_iter: int = 100

    def _find(self, Z: Array) -> Found:
        eps = self.contamination
        weights = naive_prune(Z, self.failure_probability) / 1.0
        weights /= weights.sum()
        least, n_iter = 1.0 - 2.0 * eps, 0
        while n_iter < self.max_iter and weights.sum() > least:
            share = weights / weights.sum()
            centred = Z - share @ Z
            values, vectors = np.linalg.eigh((centred * share[:, None]).T @ centred)
            if eps == 0.0 or values[-1] <= 1.0 + eps * np.log(1.0 / eps):
                break
            n_iter += 1
            excess = (values - 1.0) / np.abs(values - 1.0).max()
            spectrum = np.exp(self.sharpness * (excess - excess[-1]))
            scores = (centred @ vectors) ** 2 @ (spectrum / spectrum.sum())
            scores[weights == 0.0] = 0.0
            order = np.argsort(-scores, kind="stable")
            # At least the first, whose weight becomes zero: so it ends.
            far = order[np.cumsum(share[order]) - share[order] < 2.0 * eps]
            weights[far] *= 1.0 - scores[far] / scores.max()
        weights /= weights.sum()
        return Found(weights @ Z, weights=weights, n_iter=n_iter)


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

    def _objective(self, samples: DenseSamples) -> MomentObjective:
        d = samples.n_features
        if d > self.max_features:
            limit = f"max_features={self.max_features}"
            raise ValueError(f"X has {d} features, more than {limit}: it would take very long")
        norm: Any = SparseVariance(d, self._kept(d))
        return MomentObjective(samples, norm, centred=True, reference=0.0)


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
