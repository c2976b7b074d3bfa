"""From samples to weights: the descent that every estimator runs, at a known contamination."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Protocol

import numpy as np

from outweigh.capped_simplex import CappedSimplex
from outweigh.directions import SPARE, DirectionSet
from outweigh.estimators.stepping import (
    SOLVERS,
    SearchOptions,
    floor_at,
    rule_for,
    spread_over_ties,
    update_for,
)
from outweigh.norms import KyFan
from outweigh.objectives import MomentObjective
from outweigh.protocols import (
    Array,
    Callback,
    Indices,
    Iterate,
    Objective,
    Result,
    Span,
    Status,
    Update,
)
from outweigh.solvers import (
    Rounds,
    WorkingSet,
    descend,
    descend_in_rounds,
    descend_on_working_set,
)
from outweigh.solvers.rounds import POLISHED_MAY_SCORE

__all__ = ["SOLVERS", "SearchOptions", "find_weights", "floor_at", "is_clean"]

# A descent on a working set ends after this many steps: the next full pass is better informed.
_STEPS_PER_ROUND = 15
# Verified weights may score this much above the median of clean data.
_ABOVE_MEDIAN = 1.05
# A descent ends this much above the level it steps toward, which it nears ever more slowly.
_NEAR = 1.03
# On a working set, a step that leaves more than this much of the best value is a slow one.
_SLOW = 0.98
# Passes over all features that a working set of directions may take.
_DIRECTION_ROUNDS = 5
# One direction more moves few weights, and may be worth it.
_SAME = 0.001
# Below this dimension the directions of a working set are not few.
_FEWEST_FEATURES = 5 * SPARE


class Polish(Protocol):
    """From the weights of a descent, and where it ran, to weights that may be better."""

    def __call__(
        self, weights: Array, features: Indices | None = None, span: Span | None = None
    ) -> Array:
        """Return the weights worth verifying."""
        ...

    def outside(self, weights: Array, span: Span) -> Array | None:
        """Return a direction outside the span along which rows should be seen, if any."""
        ...


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

    Returns
    -------
    Result
    """
    start = domain.reference()
    begin = start if earlier is None else domain.project(earlier.weights)
    update = update_for(options, domain)
    if _use_working_set(objective, options):
        found = _descend_in_rounds(
            objective, domain, options, update, start, begin, callback, polish, coordinates
        )
        return found if earlier is None else _after(earlier, found)

    objective = replace(objective, samples=objective.samples.at_hand())
    # A descent before this one that has no span needed all features.
    if _use_directions(objective, options) and (earlier is None or span is not None):
        found = _descend_on_directions(
            objective, domain, options, update, start, begin, callback, polish, span
        )
        return found if earlier is None else _after(earlier, found)

    def reached(value: float, weights: Array) -> bool:
        return options.stop_at_floor and _is_clean(
            value, weights, start, objective, domain, options, _NEAR
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
    return fits and options.solver != "constant" and not _is_spectral(objective)


def _use_directions(objective: MomentObjective, options: SearchOptions) -> bool:
    # Without a level to end at, a descent flattens its directions below all others, in vain.
    wanted = options.working_set > 0 and options.stop_at_floor and options.solver != "constant"
    few = objective.n_features >= _FEWEST_FEATURES and objective.removed is None
    return wanted and few and _is_spectral(objective)


def _is_spectral(objective: MomentObjective) -> bool:
    return isinstance(objective.norm, KyFan) and objective.norm.rank == 1


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
    counted = _Counted(callback, options.max_iter)

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
            reached=_NearOrSlow(_NEAR * level) if options.stop_at_floor else None,
            callback=counted,
        )

    def reached(value: float, weights: Array) -> bool:
        return options.stop_at_floor and _is_clean(
            value, weights, start, objective, domain, options, _ABOVE_MEDIAN
        )

    rounds = WorkingSet(options.working_set, initial=coordinates, begin=begin)
    return descend_on_working_set(
        objective, inner, start, reached, rounds, polish, counted.exhausted
    )


class _Counted:
    """A callback that counts the evaluations of several descents as those of one."""

    def __init__(self, callback: Callback | None, allowed: int) -> None:
        self._callback = callback
        self._allowed = allowed
        self._spent = 0

    def __call__(self, iterate: Iterate) -> bool:
        self._spent += 1
        if self._callback is None:
            return False
        return bool(self._callback(replace(iterate, iteration=self._spent)))

    def exhausted(self) -> bool:
        return self._spent >= self._allowed

    @property
    def left(self) -> int:
        return max(1, self._allowed - self._spent)


def _descend_on_directions(
    objective: MomentObjective,
    domain: CappedSimplex,
    options: SearchOptions,
    update: Update,
    start: Array,
    begin: Array,
    callback: Callback | None,
    polish: Polish | None,
    span: Span | None,
) -> Result:
    """Descend along the directions of largest eigenvalues, and verify on all features.

    The directions are those in which noise, too, is largest. So the level on them is that of all
    features, and not the lower one of as many directions chosen blindly.
    """
    counted = _Counted(callback, options.max_iter)

    def level(weights: Array) -> float:
        return floor_at(objective, domain, weights, options.kurtosis).median

    directions = DirectionSet(objective, level, span)
    on_span = _OnSpan()
    looked_outside = False

    def inner(restricted: Objective, weights: Array) -> Result:
        assert isinstance(restricted, MomentObjective)
        found = descend(
            replace(restricted, norm=KyFan(1, level=level(start))),
            update,
            rule_for(objective, domain, options, weights, objective),
            weights,
            max_iter=counted.left,
            reached=lambda value, weights: value <= _NEAR * level(weights),
            callback=counted,
        )
        on_span.ended(found, restricted)
        return found

    def polished(weights: Array) -> Array:
        assert polish is not None
        trimmed = polish(weights, span=directions.span)
        allowed = floor_at(objective, domain, trimmed, options.kurtosis).upper
        return on_span.better(trimmed, allowed)

    def reached(value: float, weights: Array) -> bool:
        floor = floor_at(objective, domain, weights, options.kurtosis)
        if weights is start:
            return value <= floor.upper
        # What exceeds the clean level within the span has been weighed there.
        allowed = max(floor.clean, _ABOVE_MEDIAN * on_span.value(weights))
        return on_span.reached and value <= allowed and not one_more(weights)

    def one_more(weights: Array) -> bool:
        nonlocal looked_outside
        if polish is None or directions.span is None or looked_outside:
            return False
        looked_outside = True
        found = polish.outside(weights, directions.span)
        if found is not None:
            directions.add(found)
        return found is not None

    rounds = Rounds(
        inner,
        reached,
        polished if polish is not None else None,
        counted.exhausted,
        max_rounds=_DIRECTION_ROUNDS,
        look_back=False,
        same=_SAME,
        descend_first=span is not None,
    )
    return descend_in_rounds(directions, rounds, start, begin)


class _OnSpan:
    """What is known of weights on the directions descended on, without a pass."""

    def __init__(self) -> None:
        self.reached = False
        self._restricted: MomentObjective | None = None
        self._values: list[tuple[Array, float]] = []

    def ended(self, found: Result, restricted: MomentObjective) -> None:
        self.reached = found.status is Status.REACHED
        self._restricted = restricted
        self._values = [(found.weights, found.value)]

    def value(self, weights: Array) -> float:
        """Return the value on the directions; 0 where no descent was."""
        for known, value in self._values:
            if known is weights:
                return value
        if self._restricted is None:
            return 0.0
        value = self._restricted.verify(weights).value
        self._values.append((weights, value))
        return value

    def better(self, trimmed: Array, allowed: float) -> Array:
        """Return trimmed weights, unless they look less clean than those of the descent."""
        before, value = self._values[0]
        return (
            trimmed if self.value(trimmed) <= max(allowed, POLISHED_MAY_SCORE * value) else before
        )


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
