"""From samples to weights: the descent that every estimator runs, at a known contamination."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from outweigh.capped_simplex import CappedSimplex
from outweigh.noise_floor import NoiseFloor, noise_floor
from outweigh.norms import KyFan
from outweigh.norms.spectral import largest_eigenpairs
from outweigh.objectives import MomentObjective
from outweigh.protocols import (
    Array,
    Callback,
    Indices,
    Iterate,
    Objective,
    Result,
    StepRule,
    Update,
)
from outweigh.solvers import (
    Backtracking,
    Constant,
    EntropicMirror,
    Polyak,
    ProjectedSubgradient,
    WorkingSet,
    descend,
    descend_on_working_set,
)
from outweigh.solvers.working_set import POLISHED_MAY_SCORE, Polish

__all__ = ["SOLVERS", "SearchOptions", "find_weights", "floor_at", "is_clean"]

SOLVERS = ("polyak", "backtracking", "constant", "mirror")

# A descent on a working set ends after this many steps: the next full pass is better informed.
_STEPS_PER_ROUND = 15
# Verified weights may score this much above the median of clean data.
_ABOVE_MEDIAN = 1.05
# A descent ends this much above the level it steps toward, which it nears ever more slowly.
_NEAR = 1.03
# On a working set, a step that leaves more than this much of the best value is a slow one.
_SLOW = 0.98


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
        Features added by each full pass; 0 descends on all features at once.
    kurtosis : float
        Of a typical clean feature, for the level of clean data.
    """

    solver: str = "polyak"
    max_iter: int = 300
    tol: float = 1e-3
    stop_at_floor: bool = True
    working_set: int = 0
    kurtosis: float = 3.0


def floor_at(
    objective: MomentObjective, domain: CappedSimplex, weights: Array, kurtosis: float
) -> NoiseFloor:
    """Return the level of clean data for as many effective samples as `weights` leave."""
    n_effective = domain.n_effective(weights)
    return noise_floor(objective.norm, n_effective, objective.n_features, kurtosis)


def find_weights(
    objective: MomentObjective,
    domain: CappedSimplex,
    options: SearchOptions,
    callback: Callback | None = None,
    *,
    polish: Polish | None = None,
    coordinates: Indices | None = None,
    earlier: Result | None = None,
) -> Result:
    """Descend from the reference weights to the level of clean data, or as far as it goes.

    Parameters
    ----------
    objective : MomentObjective
    domain : CappedSimplex
    options : SearchOptions
    callback : callable, optional
        Sees every iterate, also those on a working set.
    polish : callable, optional
        From the weights of a descent to weights that may be better; kept where they verify.
    coordinates : ndarray of int, optional
        Features known to carry evidence, for the first descent on a working set.
    earlier : Result, optional
        Of a descent over a larger set of weights, from whose end this one sets out. The forces of
        both led to where it ends.

    Returns
    -------
    Result
    """
    start = domain.reference()
    begin = start if earlier is None else domain.project(earlier.weights)
    update = _update(options, domain)
    if _use_working_set(objective, options):
        found = _descend_in_rounds(
            objective, domain, options, update, start, begin, callback, polish, coordinates
        )
        return found if earlier is None else _after(earlier, found)

    objective = replace(objective, samples=objective.samples.at_hand())

    def reached(value: float, weights: Array) -> bool:
        return options.stop_at_floor and _is_clean(
            value, weights, start, objective, domain, options, _NEAR
        )

    found = descend(
        _spread_over_ties(objective, domain, options, start),
        update,
        _rule(objective, domain, options, begin, objective),
        begin,
        max_iter=options.max_iter,
        reached=reached,
        callback=callback,
    )
    found = found if earlier is None else _after(earlier, found)
    if polish is None or found.weights is start:
        return found
    return _polished(found, polish, objective, domain, options)


def _after(earlier: Result, found: Result) -> Result:
    """Return a result with the forces of the descent before it added to its own."""
    pushed = None
    if earlier.pushed is not None and found.pushed is not None:
        pushed = earlier.pushed + found.pushed
    return replace(
        found,
        force=earlier.force + found.force,
        drift=earlier.drift + found.drift,
        pushed=pushed,
    )


def _polished(
    found: Result,
    polish: Polish,
    objective: MomentObjective,
    domain: CappedSimplex,
    options: SearchOptions,
) -> Result:
    """Return the polished weights, unless they look less clean than those they came from."""
    weights = polish(found.weights, np.arange(objective.n_features))
    verified = objective.verify(weights)
    allowed = floor_at(objective, domain, weights, options.kurtosis).upper
    if verified.value > max(allowed, POLISHED_MAY_SCORE * found.value):
        return found
    return replace(found, weights=weights, value=verified.value, form=verified.form)


def _use_working_set(objective: MomentObjective, options: SearchOptions) -> bool:
    # With more than half the features in the working set, restricting them saves nothing; and the
    # paper's step is too short to tell a slow round from the last.
    fits = 0 < 2 * options.working_set <= objective.n_features
    return fits and options.solver != "constant"


def _descend_in_rounds(
    objective: MomentObjective,
    domain: CappedSimplex,
    options: SearchOptions,
    update: Update,
    start: Array,
    begin: Array,
    callback: Callback | None,
    polish: Polish | None,
    coordinates: Indices | None,
) -> Result:
    spent = 0

    def counted(iterate: Iterate) -> bool:
        nonlocal spent
        spent += 1
        wish = callback(replace(iterate, iteration=spent)) if callback is not None else False
        return bool(wish)

    def inner(restricted: Objective, weights: Array, n_features: int) -> Result:
        assert isinstance(restricted, MomentObjective)
        steps = _STEPS_PER_ROUND if options.stop_at_floor else options.max_iter
        level = floor_at(restricted, domain, weights, options.kurtosis).median
        return descend(
            restricted,
            update,
            _rule(restricted, domain, options, weights, objective),
            weights,
            max_iter=max(1, min(steps, options.max_iter - spent)),
            reached=_NearOrSlow(_NEAR * level) if options.stop_at_floor else None,
            callback=counted,
        )

    def reached(value: float, weights: Array) -> bool:
        return options.stop_at_floor and _is_clean(
            value, weights, start, objective, domain, options, _ABOVE_MEDIAN
        )

    def exhausted() -> bool:
        return spent >= options.max_iter

    # Of centred second moments in units of the noise, the entries off the diagonal.
    noise = (lambda weights: 1.0 / domain.n_effective(weights)) if objective.centred else None
    rounds = WorkingSet(options.working_set, initial=coordinates, begin=begin, noise=noise)
    return descend_on_working_set(objective, inner, start, reached, rounds, polish, exhausted)


def is_clean(
    value: float,
    weights: Array,
    objective: MomentObjective,
    domain: CappedSimplex,
    options: SearchOptions,
) -> bool:
    """Whether a full value at weights that have moved is at the clean level."""
    return value <= _ABOVE_MEDIAN * floor_at(objective, domain, weights, options.kurtosis).median


class _NearOrSlow:
    """Ends a descent on a working set at its level, or where two steps hardly lower it.

    The features were chosen where noise is largest, so their level may be out of reach; the next
    full pass knows better what is left to do.
    """

    def __init__(self, level: float) -> None:
        self._level = level
        self._best = math.inf
        self._slow = 0

    def __call__(self, value: float, weights: Array) -> bool:
        self._slow = self._slow + 1 if value > _SLOW * self._best else 0
        self._best = min(self._best, value)
        return value <= self._level or self._slow >= 2


def _is_clean(
    value: float,
    weights: Array,
    start: Array,
    objective: MomentObjective,
    domain: CappedSimplex,
    options: SearchOptions,
    slack: float,
) -> bool:
    floor = floor_at(objective, domain, weights, options.kurtosis)
    # Untouched weights are left alone unless clean data would hardly ever score as high.
    return value <= (floor.upper if weights is start else slack * floor.median)


def _update(options: SearchOptions, domain: CappedSimplex) -> Update:
    return EntropicMirror(domain) if options.solver == "mirror" else ProjectedSubgradient(domain)


def _spread_over_ties(
    objective: MomentObjective, domain: CappedSimplex, options: SearchOptions, start: Array
) -> MomentObjective:
    """Let a spectral norm spread its subgradient over all directions above the clean level."""
    if isinstance(objective.norm, KyFan) and objective.norm.rank == 1 and options.stop_at_floor:
        level = floor_at(objective, domain, start, options.kurtosis).median
        return replace(objective, norm=KyFan(1, level=level))
    return objective


def _rule(
    objective: MomentObjective,
    domain: CappedSimplex,
    options: SearchOptions,
    weights: Array,
    full: MomentObjective,
) -> StepRule:
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
