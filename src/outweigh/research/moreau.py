"""The gradient of the Moreau envelope: a stationarity that is well defined at kinks."""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import LinearConstraint, minimize

from outweigh.fit.certificate import Moreau
from outweigh.norms.spectral import largest_eigenpairs
from outweigh.objectives import MomentObjective
from outweigh.optimise.capped_simplex import CappedSimplex
from outweigh.protocols import Array, Evaluation


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
    total = float(domain.metric.sum())
    second = objective.samples.moment(domain.metric / total, centred=False)
    spectral_sq = total * max(float(largest_eigenpairs(second, 1)[0][0]), np.finfo(float).tiny)
    bundle = _Bundle(objective, domain, weights, 2.0 * spectral_sq)
    for _ in range(max_evaluations):
        norm, accuracy = bundle.refine()
        if accuracy <= rtol * norm or norm == 0.0:
            break
    return Moreau(norm, accuracy, bundle.beta)


class _Bundle:
    """Cutting planes for the proximal problem around a centre."""

    def __init__(
        self, objective: MomentObjective, domain: CappedSimplex, centre: Array, beta: float
    ) -> None:
        self.beta = beta
        self._objective = objective
        self._domain = domain
        self._centre = centre
        counted = domain.metric > 0
        self._inverse_metric = np.where(counted, 1.0 / np.where(counted, domain.metric, 1.0), 0.0)
        self._offsets: list[float] = []
        self._slopes: list[Array] = []
        self._best = math.inf
        self._candidate = centre

    def refine(self) -> tuple[float, float]:
        """Evaluate at the model's minimiser, add its plane, and return (norm, accuracy)."""
        self._add_plane(self._candidate, self._objective.evaluate(self._candidate))
        bound, self._candidate = self._solve_model()
        gap = max(self._best - bound, 0.0)
        norm = 2.0 * self.beta * math.sqrt(self._square(self._candidate - self._centre))
        # The model is beta-strongly convex: a gap moves its minimiser by at most sqrt(2 gap/beta).
        return norm, 2.0 * self.beta * math.sqrt(2.0 * gap / self.beta)

    def _add_plane(self, point: Array, evaluation: Evaluation) -> None:
        shift = point - self._centre
        square = self._square(shift)
        self._best = min(self._best, evaluation.value + self.beta * square)
        slope = evaluation.subgradient + self.beta * self._inverse_metric * shift
        convexified = evaluation.value + 0.5 * self.beta * square
        self._slopes.append(slope)
        self._offsets.append(convexified - float(slope @ shift))

    def _solve_model(self) -> tuple[float, Array]:
        """Maximise the dual over mixtures of planes; the primal point is one projection away."""
        slopes, offsets = np.array(self._slopes), np.array(self._offsets)

        def primal(mixture: Array) -> Array:
            step = self._domain.metric * (mixture @ slopes) / self.beta
            return self._domain.project(self._centre - step)

        def negative_dual(mixture: Array) -> tuple[float, Array]:
            shift = primal(mixture) - self._centre
            values = offsets + slopes @ shift
            return -float(mixture @ values + 0.5 * self.beta * self._square(shift)), -values

        count = len(offsets)
        start = np.full(count, 1.0 / count)
        if count == 1:
            return -negative_dual(start)[0], primal(start)
        solution = minimize(
            negative_dual,
            start,
            jac=True,
            method="SLSQP",
            bounds=[(0.0, 1.0)] * count,
            constraints=LinearConstraint(np.ones((1, count)), 1.0, 1.0),
            options={"ftol": 1e-14, "maxiter": 200},
        )
        mixture = np.clip(solution.x, 0.0, None)
        mixture /= mixture.sum()
        return -negative_dual(mixture)[0], primal(mixture)

    def _square(self, shift: Array) -> float:
        return float(self._inverse_metric @ (shift * shift))
