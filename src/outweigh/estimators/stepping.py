"""How a descent steps and toward which level: what the options of a search amount to."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from outweigh.norms import KyFan
from outweigh.norms.floor import NoiseFloor, noise_floor
from outweigh.norms.spectral import largest_eigenpairs
from outweigh.objectives import MomentObjective
from outweigh.optimise import Backtracking, Constant, EntropicMirror, Polyak, ProjectedSubgradient
from outweigh.optimise.capped_simplex import CappedSimplex
from outweigh.protocols import Array, Callback, Iterate, StepRule, Update

__all__ = [
    "ABOVE_MEDIAN",
    "NEAR",
    "SOLVERS",
    "Counted",
    "SearchOptions",
    "clean_level",
    "floor_at",
    "rule_for",
    "spread_over_ties",
    "update_for",
]

SOLVERS = ("polyak", "backtracking", "constant", "mirror")
ABOVE_MEDIAN = 1.05
"""Verified weights may score this much above the median of clean data."""

NEAR = 1.03
"""A descent ends this much above the level it steps toward, which it nears ever more slowly."""


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """How to descend; the defaults are those of the estimators.

    Attributes
    ----------
    solver : {"polyak", "backtracking", "constant", "mirror"}
    max_iter : int
        Evaluations of the objective on all features or on a working set.
    tol : float
        Relative progress below which a descent has converged.
    stop_at_floor : bool
        End at the level of clean data instead of at a stationary point.
    working_set : int
        Features added by each full pass; 0 descends on all features at once. For a spectral norm
        the working set is one of directions, and the data alone says how many.
    verify : bool
        Without it, the first descent on a working set is the only one, and what it ends at is not
        verified on all features: for weights that are to be found again, in better units.
    kurtosis : float
        Of a typical clean feature, for the level of clean data.
    """

    solver: str = "polyak"
    max_iter: int = 300
    tol: float = 1e-3
    stop_at_floor: bool = True
    working_set: int = 0
    verify: bool = True
    kurtosis: float = 3.0


def floor_at(
    objective: MomentObjective, domain: CappedSimplex, weights: Array, kurtosis: float
) -> NoiseFloor:
    """Return the level of clean data for as many effective samples as `weights` leave."""
    n_effective = domain.n_effective(weights)
    return noise_floor(objective.norm, n_effective, objective.n_features, kurtosis)


def clean_level(floor: NoiseFloor, moved: bool, slack: float = ABOVE_MEDIAN) -> float:
    """Return the value at or below which weights are clean.

    Untouched weights are left alone unless clean data would hardly ever score as high.
    """
    return slack * floor.median if moved else floor.upper


def update_for(options: SearchOptions, domain: CappedSimplex) -> Update:
    """Return how weights move."""
    return EntropicMirror(domain) if options.solver == "mirror" else ProjectedSubgradient(domain)


def spread_over_ties(
    objective: MomentObjective, domain: CappedSimplex, options: SearchOptions, start: Array
) -> MomentObjective:
    """Let a spectral norm spread its subgradient over all directions above the clean level."""
    if isinstance(objective.norm, KyFan) and objective.norm.rank == 1 and options.stop_at_floor:
        level = floor_at(objective, domain, start, options.kurtosis).median
        return replace(objective, norm=KyFan(1, level=level))
    return objective


def rule_for(
    objective: MomentObjective,
    domain: CappedSimplex,
    options: SearchOptions,
    weights: Array,
    full: MomentObjective,
) -> StepRule:
    """Return a fresh step rule for a descent from `weights`.

    Parameters
    ----------
    objective : MomentObjective
        Whose clean level is stepped toward.
    domain, options, weights
    full : MomentObjective
        The objective on all features, whose constants the paper's step takes.
    """
    if options.solver == "backtracking":
        return Backtracking(tol=options.tol)
    if options.solver == "constant":
        return _constant_step(full, domain, options, weights)
    target = 0.0
    if options.stop_at_floor:
        target = floor_at(objective, domain, weights, options.kurtosis).median
    # Toward a known level impatience pays; without one, the level must close in with care.
    growth = 1.0 if options.stop_at_floor else 3.0
    # The entropic step has a metric of its own, in which the set has no diameter known here.
    diameter = math.inf if options.solver == "mirror" else domain.diameter
    return Polyak(target, tol=options.tol, growth=growth, diameter=diameter)


def _constant_step(
    objective: MomentObjective, domain: CappedSimplex, options: SearchOptions, weights: Array
) -> Constant:
    """Return the paper's step, with the L and beta of its lemmas evaluated on this data."""
    samples = objective.samples
    total = float(domain.metric.sum())
    second = samples.moment(domain.metric / total, centred=False)
    # |X|_2^2, and the largest |x_i|^2 as the lemmas need it.
    spectral_sq = total * float(largest_eigenpairs(second, 1)[0][0])
    row_sq = float(samples.squared_distances(np.zeros(samples.n_features)).max())
    if spectral_sq <= 0.0 or row_sq <= 0.0:
        return Constant(0.0)
    n = domain.n_effective(weights)
    if not objective.centred:
        # D has radius O(sqrt(eps / n)); eps is what the caps leave above the sample weights.
        slack = max(float(domain.caps.sum()) - 1.0, 0.0)
        radius = math.sqrt(slack / (1.0 + slack) / n)
        return Constant.convex(radius, math.sqrt(n) * row_sq, options.max_iter)
    lipschitz = math.sqrt(n) * row_sq + 2.0 * spectral_sq / math.sqrt(n)
    gap = objective.evaluate(weights).value
    return Constant.weakly_convex(gap, lipschitz, 2.0 * spectral_sq, options.max_iter)


class Counted:
    """A callback that counts the evaluations of several descents as those of one."""

    def __init__(self, callback: Callback | None, allowed: int) -> None:
        self._callback = callback
        self._allowed = allowed
        self._spent = 0

    def __call__(self, iterate: Iterate) -> bool:
        """Count an evaluation; return whether the descent should stop."""
        self._spent += 1
        if self._callback is None:
            return False
        return bool(self._callback(replace(iterate, iteration=self._spent)))

    def exhausted(self) -> bool:
        """Whether no evaluation is left."""
        return self._spent >= self._allowed

    @property
    def left(self) -> int:
        """How many evaluations the next descent may take, at least one."""
        return max(1, self._allowed - self._spent)
