"""How far weights are from stationary: along one subgradient, and by the Moreau envelope."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.optimize import LinearConstraint, minimize

from outweigh.fit.certificate import Moreau
from outweigh.norms.spectral import largest_eigenpairs
from outweigh.objectives import MomentObjective
from outweigh.optimise.capped_simplex import CappedSimplex
from outweigh.protocols import Array


def moreau_gradient(
    objective: MomentObjective,
    domain: CappedSimplex,
    weights: Array,
    *,
    rtol: float = 0.01,
    max_evaluations: int = 40,
) -> Moreau:
    r"""Return the gradient norm of the Moreau envelope at w, with its accuracy.

    The proximal problem :math:`\min_v f(v) + \beta |v - w|^2` over D is convex for
    :math:`\beta \ge \tfrac12 \|\nabla^2\|`, here :math:`\beta = 2 |X|_2^2`. It is solved by cutting
    planes: each evaluation adds a lower model of :math:`f + \tfrac{\beta}{2}|\cdot - w|^2`, and the
    gap between model and value bounds the error by strong convexity.

    Parameters
    ----------
    objective : MomentObjective
    domain : CappedSimplex
    weights : ndarray of shape (n,)
        A point of the domain.
    rtol : float, default=0.01
        Stop when the accuracy is this fraction of the norm.
    max_evaluations : int, default=40

    Returns
    -------
    Moreau

    Examples
    --------
    `certify` of an estimator calls it at the weights of a fit:

    >>> import numpy as np
    >>> from outweigh import RobustMean
    >>> X = np.random.default_rng(0).standard_normal((100, 5))
    >>> X[:10] += 3.0
    >>> est = RobustMean(scale=None, covariance=None).fit(X)
    >>> moreau = est.certify(X).moreau
    >>> bool(moreau.accuracy < moreau.gradient_norm)
    True
    """
    metric = domain.metric
    # Rows that can have no weight do not bend the objective; pruned ones are zeros by that alone.
    counted = np.where(domain.caps > 0.0, metric, 0.0)
    total = float(counted.sum())
    second = objective.samples.moment(counted / total, centred=False)
    spectral_sq = total * max(float(largest_eigenpairs(second, 1)[0][0]), np.finfo(float).tiny)
    beta = 2.0 * spectral_sq
    inverse = np.divide(1.0, metric, out=np.zeros_like(metric), where=metric > 0)
    slopes, offsets = np.empty((0, weights.size)), np.empty(0)
    best, candidate = math.inf, weights

    def square(shift: Array) -> float:
        return float(inverse @ (shift * shift))

    def primal(mixture: Array) -> Array:
        return domain.project(weights - metric * (mixture @ slopes) / beta)

    def negative_dual(mixture: Array) -> tuple[float, Array]:
        shift = primal(mixture) - weights
        values = offsets + slopes @ shift
        return -float(mixture @ values + 0.5 * beta * square(shift)), -values

    for _ in range(max_evaluations):
        found, shift = objective.evaluate(candidate), candidate - weights
        best = min(best, found.value + beta * square(shift))
        slope = found.subgradient + beta * inverse * shift
        slopes = np.vstack([slopes, slope])
        offsets = np.append(offsets, found.value + 0.5 * beta * square(shift) - slope @ shift)
        # The dual over mixtures of planes; the primal point is one projection away.
        mixture = _minimised_on_simplex(negative_dual, len(offsets))
        gap, candidate = max(best + negative_dual(mixture)[0], 0.0), primal(mixture)
        norm = 2.0 * beta * math.sqrt(square(candidate - weights))
        # The model is beta-strongly convex: a gap moves its minimiser by at most sqrt(2 gap/beta).
        accuracy = 2.0 * beta * math.sqrt(2.0 * gap / beta)
        if accuracy <= rtol * norm or norm == 0.0:
            break
    return Moreau(norm, accuracy, beta)


def stationarity(domain: CappedSimplex, weights: Array, subgradient: Array) -> float:
    """Return the length of the projection of -g on the tangent cone of D at w.

    It is 0 exactly where no feasible direction descends along this subgradient.
    """
    direction = domain.project_tangent(weights, -domain.metric * subgradient)
    counted = domain.metric > 0
    return float(np.sqrt(np.sum(direction[counted] ** 2 / domain.metric[counted])))


def theorem_stationarity(n_samples: float, contamination: float) -> float:
    """Return n^(1/2) delta^2 eps^(-3/2) with delta = eps sqrt(log(1/eps)); Theorems 3.1 and D.1."""
    if contamination <= 0.0:
        return 0.0
    delta_sq = contamination**2 * math.log(1.0 / contamination)
    return math.sqrt(n_samples) * delta_sq / contamination / math.sqrt(contamination)


def _minimised_on_simplex(function: Callable[[Array], tuple[float, Array]], count: int) -> Array:
    """Return the nonnegative numbers of sum one at which a function with a gradient is least."""
    start = np.full(count, 1.0 / count)
    if count == 1:
        return start
    solution = minimize(
        function,
        start,
        jac=True,
        method="SLSQP",
        bounds=[(0.0, 1.0)] * count,
        constraints=LinearConstraint(np.ones((1, count)), 1.0, 1.0),
        options={"ftol": 1e-14, "maxiter": 200},
    )
    mixture = np.clip(solution.x, 0.0, None)
    return np.asarray(mixture / mixture.sum())
