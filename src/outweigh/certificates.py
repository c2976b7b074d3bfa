"""How good a weight vector is: stationarity, level, and a verdict a person can read."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import LinearConstraint, minimize

from outweigh.norms.floor import NoiseFloor
from outweigh.norms.spectral import largest_eigenpairs
from outweigh.objectives import MomentObjective
from outweigh.optimise.capped_simplex import CappedSimplex
from outweigh.protocols import Array, Evaluation, Status

__all__ = ["Certificate", "Moreau", "moreau_gradient", "stationarity", "theorem_stationarity"]


@dataclass(frozen=True, slots=True)
class Moreau:
    r"""The gradient of the Moreau envelope at a point.

    Attributes
    ----------
    gradient_norm : float
        :math:`2\beta |w - \mathrm{prox}(w)|`; small only near a stationary point.
    accuracy : float
        By at most how much the norm may be off, from the gap of the proximal problem.
    beta : float
    """

    gradient_norm: float
    accuracy: float
    beta: float


@dataclass(frozen=True, slots=True)
class Certificate:
    """What is known about fitted weights.

    Attributes
    ----------
    objective : float
        The objective over all features at the weights.
    noise_floor : NoiseFloor
        What clean data of as many effective samples scores.
    stationarity : float
        The norm of the steepest feasible descent for one subgradient: an upper bound on the
        stationarity of the paper (Definition 2.4), which at a kink need not vanish.
    theorem_stationarity : float
        The level n^(1/2) delta^2 eps^(-3/2), with delta = eps sqrt(log 1/eps) and constant one,
        below which the paper's theorem guarantees the estimate.
    removed : float
        The share of the sample weight taken away.
    contamination_bound : float
        The share that could have been taken away.
    status : Status
    moreau : Moreau or None
        Only where it was asked for: it costs many evaluations.
    """

    objective: float
    noise_floor: NoiseFloor
    stationarity: float
    theorem_stationarity: float
    removed: float
    contamination_bound: float
    status: Status
    moreau: Moreau | None = None

    @property
    def ratio(self) -> float:
        """The objective in units of the median of clean data."""
        return self.objective / self.noise_floor.median if self.noise_floor.median > 0 else 1.0

    @property
    def clean(self) -> bool:
        """Whether the objective is at the level of clean data."""
        return self.objective <= self.noise_floor.clean

    @property
    def verdict(self) -> str:
        """One sentence for a person."""
        if self.clean:
            if self.removed == 0.0:
                return "clean level reached: nothing had to be removed"
            return f"clean level reached: {self.removed:.1%} of the weight removed"
        if self.status is Status.EXHAUSTED:
            return "budget exhausted: raise max_iter, or accept the level reached"
        advice = (
            "the features may be correlated (see covariance) or not of unit noise (see scale), "
            "or more rows than contamination allows are wrong"
        )
        return f"stalled above the clean level, at {self.ratio:.2f} times it: {advice}"

    def __str__(self) -> str:
        lines = [
            self.verdict,
            f"  objective     {self.objective:.4g} ({self.ratio:.2f} x clean median, "
            f"clean up to {self.noise_floor.clean:.4g})",
            f"  removed       {self.removed:.2%} of at most {self.contamination_bound:.2%}",
            f"  stationarity  {self.stationarity:.4g} "
            f"(the theorem's scale is {self.theorem_stationarity:.4g})",
        ]
        if self.moreau is not None:
            lines.append(
                f"  Moreau        {self.moreau.gradient_norm:.4g} +- {self.moreau.accuracy:.2g}"
            )
        return "\n".join(lines)


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
