"""Steps of a descent over weights.

Rules say how far to go and whether the point just evaluated is kept; updates move weights against a
subgradient, in Euclidean or entropic geometry, and back into their set.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from outweigh.optimise.capped_simplex import CappedSimplex
from outweigh.protocols import Array, Evaluation, Status, StepRule, Update

SOLVERS = ("polyak", "backtracking", "mirror")
"""The names under which a user chooses how to descend."""


def steps_for(solver: str, domain: CappedSimplex) -> tuple[Callable[[float], StepRule], Update]:
    """Return what a name in `SOLVERS` stands for, in all four estimators.

    Returns
    -------
    make_rule : callable
        From the level that clean data reaches to a fresh step rule.
    update : Update
        How weights move against a subgradient and back into the domain.
    """
    if solver == "backtracking":
        return lambda target: Backtracking(), ProjectedSubgradient(domain)
    update = EntropicMirror(domain) if solver == "mirror" else ProjectedSubgradient(domain)
    return Polyak, update


@dataclass(slots=True)
class Constant:
    """The same step every time, as the paper's convergence theorems prescribe.

    How long it is says `outweigh.research.algorithms.constant_step`.

    Parameters
    ----------
    step : float
    """

    step: float
    finished: Status | None = field(default=None, init=False)

    def decide(self, evaluation: Evaluation, gradient_norm_sq: float) -> tuple[float, bool]:
        """Accept every point."""
        if gradient_norm_sq == 0.0:
            self.finished = Status.STATIONARY
        return self.step, True


@dataclass(slots=True)
class Backtracking:
    """Halve the step until the objective falls; let it grow again after a success.

    A descent of a nonsmooth function that insists on decrease jams at the first kink. After a jam
    every step is accepted, at lengths that diminish like 1/sqrt(t) from the longest that worked;
    the loop keeps the best point.

    Parameters
    ----------
    tol : float, default=1e-3
        Ten steps that lower the best value by less than this fraction are a jam; a hundred after
        it are the end.
    """

    tol: float = 1e-3
    finished: Status | None = field(default=None, init=False)
    _step: float = field(default=math.nan, init=False)
    _best: float = field(default=math.inf, init=False)
    _checkpoint: float = field(default=math.inf, init=False)
    _accepted: int = field(default=0, init=False)
    _rejected_in_a_row: int = field(default=0, init=False)
    _longest: float = field(default=0.0, init=False)
    _since_jam: int = field(default=-1, init=False)

    def decide(self, evaluation: Evaluation, gradient_norm_sq: float) -> tuple[float, bool]:
        """Accept a decrease, else retry from the last point with half the step."""
        value = evaluation.value
        if gradient_norm_sq == 0.0 and (self._since_jam >= 0 or value < self._best):
            self.finished = Status.STATIONARY
            return 0.0, True
        if self._since_jam >= 0:
            return self._diminishing(value, gradient_norm_sq), True
        if value < self._best:
            return self._accept(value, gradient_norm_sq), True
        self._step /= 2.0
        self._rejected_in_a_row += 1
        if self._rejected_in_a_row > 8:
            self._since_jam = 0
        return self._step, False

    def _accept(self, value: float, gradient_norm_sq: float) -> float:
        if math.isnan(self._step):
            # The first step aims at zero, the value no norm is below.
            self._step = value / gradient_norm_sq
        else:
            length = self._step * math.sqrt(gradient_norm_sq)
            self._longest = max(self._longest, length)
            self._step *= 1.5
        self._best = value
        self._rejected_in_a_row = 0
        if self._slow(10):
            self._since_jam = 0
        return self._step

    def _diminishing(self, value: float, gradient_norm_sq: float) -> float:
        self._since_jam += 1
        self._best = min(self._best, value)
        if self._slow(100):
            self.finished = Status.STATIONARY
        length = self._longest / math.sqrt(self._since_jam)
        return length / math.sqrt(gradient_norm_sq)

    def _slow(self, period: int) -> bool:
        """Tell, once in `period` steps, whether they lowered the best value by too little."""
        self._accepted += 1
        if self._accepted % period:
            return False
        slow = self._checkpoint - self._best <= self.tol * self._best
        self._checkpoint = self._best
        return slow


@dataclass(slots=True)
class Polyak:
    r"""Polyak's step toward a known level, :math:`(f - \text{target}) / |g|^2`.

    The level that clean data scores is known in advance (`outweigh.norms.floor`), which is what
    makes this rule applicable. If it turns out to be out of reach (a wrong scale, too small a
    contamination) the target moves half-way up to the best value each time `patience` steps pass
    without progress, so the method still ends near a minimum: the nearer the more patience.

    Parameters
    ----------
    target : float
        The level to reach.
    tol : float, default=1e-3
        Stop when the rising target is within this fraction of the best value.
    patience : int, default=5
        Steps without progress before the target moves up.

    References
    ----------
    Polyak, "Minimization of unsmooth functionals", 1969; level control as in Brännlund, Kiwiel and
    Lindberg, "A descent proximal level bundle method", 1995.
    """

    target: float
    tol: float = 1e-3
    patience: int = 5
    finished: Status | None = field(default=None, init=False)
    _level: float = field(default=math.nan, init=False)
    _best: float = field(default=math.inf, init=False)
    _waiting: int = field(default=0, init=False)

    def decide(self, evaluation: Evaluation, gradient_norm_sq: float) -> tuple[float, bool]:
        """Accept every point and aim at the current level."""
        if math.isnan(self._level):
            self._level = self.target
        value = evaluation.value
        if gradient_norm_sq == 0.0:
            self.finished = Status.STATIONARY
            return 0.0, True
        # Progress counts when it closes a tenth of the gap to the level.
        # Below the level there is no gap, and a value equal to the best is no progress, by rounding
        # or otherwise.
        gap = max(self._best - self._level, 0.0)
        if self._best == math.inf or value < self._best - 0.1 * gap:
            self._waiting = 0
        else:
            self._waiting += 1
        self._best = min(self._best, value)
        raised = self._waiting >= self.patience
        if raised:
            self._waiting = 0
            self._level = (self._level + self._best) / 2.0
        if raised and self._best - self._level <= self.tol * self._best:
            self.finished = Status.STALLED if self.target > 0 else Status.STATIONARY
        gap = evaluation.attained - min(self._level, evaluation.attained)
        if gap == 0.0:
            gap = value - min(self._level, value)
        return gap / gradient_norm_sq, True


@dataclass(frozen=True, slots=True, eq=False)
class ProjectedSubgradient:
    """The Euclidean update w <- P(w + step p), p the part of -g that does not leave the set.

    With p = -g it is the update of the paper's lemma on projected descent; taking out what the
    projection would undo leaves the same guarantee and allows a longer step. A row that stands for
    s samples moves s times as far, so that integer sample weights equal repeated rows.
    """

    domain: CappedSimplex

    def direction(self, weights: Array, subgradient: Array) -> tuple[Array, float]:
        """Return the feasible descent direction and its squared length."""
        metric = self.domain.metric
        moved = self.domain.project_tangent(weights, -metric * subgradient)
        counted = metric > 0
        return moved, float(np.sum(moved[counted] ** 2 / metric[counted]))

    def move(self, weights: Array, direction: Array, step: float) -> Array:
        """Return the next weights."""
        return self.domain.project(weights + step * direction)


@dataclass(frozen=True, slots=True, eq=False)
class Subgradient(ProjectedSubgradient):
    """The update of the paper's lemma on projected descent, w <- P(w - step g), to the letter."""

    def direction(self, weights: Array, subgradient: Array) -> tuple[Array, float]:
        """Return -g, a row of weight s moving s times as far, and its squared length."""
        metric = self.domain.metric
        return -metric * subgradient, float(metric @ subgradient**2)


@dataclass(frozen=True, slots=True, eq=False)
class EntropicMirror:
    """The multiplicative update w <- argmin KL(. | w exp(-step g)), exact for capped weights."""

    domain: CappedSimplex

    def direction(self, weights: Array, subgradient: Array) -> tuple[Array, float]:
        """Return the centred -g and its variance under the weights: the local dual norm."""
        centred = weights @ subgradient - subgradient
        return centred, float(weights @ (centred * centred))

    def move(self, weights: Array, direction: Array, step: float) -> Array:
        """Return the next weights."""
        with np.errstate(divide="ignore"):
            return self.domain.project_kl(np.log(weights) + step * direction)
