"""From samples to weights: the descent that every estimator runs, at a known contamination."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from outweigh.estimators.search_directions import (
    Polish,
    descend_on_directions,
    is_spectral,
    use_directions,
)
from outweigh.estimators.stepping import (
    ABOVE_MEDIAN,
    NEAR,
    SOLVERS,
    Counted,
    SearchOptions,
    clean_level,
    floor_at,
    rule_for,
    spread_over_ties,
    update_for,
)
from outweigh.norms import RowwiseLargest
from outweigh.norms.floor import largest_row
from outweigh.objectives import MomentObjective
from outweigh.optimise import WorkingSet, descend, descend_on_working_set
from outweigh.optimise.capped_simplex import CappedSimplex
from outweigh.optimise.rounds import POLISHED_MAY_SCORE
from outweigh.protocols import Array, Callback, Indices, Objective, Result, Span

__all__ = ["SOLVERS", "SearchOptions", "find_weights", "floor_at", "is_clean"]

# A descent on a working set ends after this many steps: the next full pass is better informed.
_STEPS_PER_ROUND = 15
# On a working set, a step that leaves more than this much of the best value is a slow one.
_SLOW = 0.98
# Noise of a larger kurtosis puts single large entries anywhere: the energy of a row tells little.
_HEAVY = 5.0


def find_weights(
    objective: MomentObjective,
    domain: CappedSimplex,
    options: SearchOptions,
    callback: Callback | None = None,
    *,
    polish: Polish | None = None,
    coordinates: Indices | None = None,
    span: Span | None = None,
    earlier: Result | None = None,
    look_first: bool = False,
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
    span : Span, optional
        Directions known to carry evidence, in the same way.
    earlier : Result, optional
        Of a descent over a larger set of weights, from whose end this one sets out. The forces of
        both led to where it ends.
    look_first : bool, default=False
        Make a pass over all features before a descent on known features or directions.

    Returns
    -------
    Result
    """
    start = domain.reference()
    begin = start if earlier is None else domain.project(earlier.weights)
    update = update_for(options, domain)
    if _use_working_set(objective, options):
        found = _descend_in_rounds(
            objective,
            domain,
            options,
            WorkingSet(
                options.working_set,
                initial=coordinates,
                look_first=look_first,
                verify=options.verify,
                begin=None if earlier is None else begin,
                noise=_noise(domain) if objective.centred else None,
                own_noise=options.kurtosis - 1.0,
                row_noise=_row_noise(objective, domain, options.kurtosis),
            ),
            callback,
            polish,
        )
        return found if earlier is None else _after(earlier, found)

    objective = replace(objective, samples=objective.samples.at_hand())
    # A descent before this one that has no span needed all features.
    if use_directions(objective, options) and (earlier is None or span is not None):
        since = begin if earlier is not None else None
        found = descend_on_directions(
            objective, domain, options, since, callback, polish, span, look_first
        )
        return found if earlier is None else _after(earlier, found)

    def reached(value: float, weights: Array) -> bool:
        return options.stop_at_floor and _is_clean(
            value, weights, start, objective, domain, options, NEAR
        )

    found = descend(
        spread_over_ties(objective, domain, options, start),
        update,
        rule_for(objective, domain, options, begin, objective),
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
    return fits and options.solver != "constant" and not is_spectral(objective)


def _noise(domain: CappedSimplex) -> Callable[[Array], float]:
    """Return the variance of what noise puts off the diagonal of S_w, as a function of w."""
    return lambda weights: 1.0 / domain.n_effective(weights)


def _row_noise(objective: MomentObjective, domain: CappedSimplex, kurtosis: float) -> float | None:
    """Return what noise of variance one hardly ever puts into a row, if the norm reads rows."""
    if not isinstance(objective.norm, RowwiseLargest) or kurtosis > _HEAVY:
        return None
    n = domain.n_effective(domain.reference())
    return largest_row(n, objective.n_features, objective.norm.n_nonzero)


def _descend_in_rounds(
    objective: MomentObjective,
    domain: CappedSimplex,
    options: SearchOptions,
    working_set: WorkingSet,
    callback: Callback | None,
    polish: Polish | None,
) -> Result:
    start, update = domain.reference(), update_for(options, domain)
    counted = Counted(callback, options.max_iter)

    def inner(restricted: Objective, weights: Array, n_features: int) -> Result:
        assert isinstance(restricted, MomentObjective)
        steps = _STEPS_PER_ROUND if options.stop_at_floor else options.max_iter
        level = floor_at(restricted, domain, weights, options.kurtosis).median
        return descend(
            restricted,
            update,
            rule_for(restricted, domain, options, weights, objective),
            weights,
            max_iter=min(steps, counted.left),
            reached=_NearOrSlow(NEAR * level) if options.stop_at_floor else None,
            callback=counted,
        )

    def reached(value: float, weights: Array) -> bool:
        return options.stop_at_floor and _is_clean(
            value, weights, start, objective, domain, options, ABOVE_MEDIAN
        )

    return descend_on_working_set(
        objective, inner, start, reached, working_set, polish, counted.exhausted
    )


def is_clean(
    value: float,
    weights: Array,
    objective: MomentObjective,
    domain: CappedSimplex,
    options: SearchOptions,
) -> bool:
    """Whether a full value at weights that have moved is at the clean level."""
    floor = floor_at(objective, domain, weights, options.kurtosis)
    return value <= clean_level(floor, moved=True)


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
    return value <= clean_level(floor, weights is not start, slack)
