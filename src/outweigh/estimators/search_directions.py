"""The search along directions: descend where eigenvalues are largest, verify on all features."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from outweigh.directions import SPARE, DirectionSet
from outweigh.estimators.stepping import (
    ABOVE_MEDIAN,
    NEAR,
    Counted,
    SearchOptions,
    floor_at,
    rule_for,
    update_for,
)
from outweigh.norms import KyFan
from outweigh.objectives import MomentObjective
from outweigh.optimise import Rounds, descend, descend_in_rounds
from outweigh.optimise.capped_simplex import CappedSimplex
from outweigh.optimise.rounds import POLISHED_MAY_SCORE
from outweigh.protocols import Array, Callback, Indices, Objective, Result, Span, Status, Survey

__all__ = ["Polish", "descend_on_directions", "is_spectral", "use_directions"]

# Passes over all features that a working set of directions may take.
_MAX_ROUNDS = 5
# One direction more moves few weights, and may be worth it.
_SAME = 0.001
# Below this dimension the directions of a working set are not few beside all features, and what
# they leave out is soon missed.
_FEWEST_FEATURES = 8 * SPARE


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


def use_directions(objective: MomentObjective, options: SearchOptions) -> bool:
    """Whether a descent should run on the leading directions instead of on all features."""
    # Without a level to end at, a descent flattens its directions below all others, in vain.
    wanted = options.working_set > 0 and options.stop_at_floor and options.solver != "constant"
    few = objective.n_features >= _FEWEST_FEATURES and objective.removed is None
    return wanted and few and is_spectral(objective)


def is_spectral(objective: MomentObjective) -> bool:
    """Whether the evidence of an objective lies in directions."""
    return isinstance(objective.norm, KyFan) and objective.norm.rank == 1


def descend_on_directions(
    objective: MomentObjective,
    domain: CappedSimplex,
    options: SearchOptions,
    begin: Array | None,
    callback: Callback | None,
    polish: Polish | None,
    span: Span | None,
    look_first: bool = False,
) -> Result:
    """Descend along the directions of largest eigenvalues, and verify on all features.

    The directions are those in which noise, too, is largest. So the level on them is that of all
    features, and not the lower one of as many directions chosen blindly.

    Parameters
    ----------
    objective, domain, options, callback, polish, span, look_first
        As for `find_weights`.
    begin : ndarray of shape (n,), optional
        Weights to begin from; by default the untouched ones.
    """
    start = domain.reference()
    begin = start if begin is None else begin
    counted = Counted(callback, options.max_iter)

    def level(weights: Array) -> float:
        return floor_at(objective, domain, weights, options.kurtosis).median

    directions = DirectionSet(objective, level, span, look_first)
    state = _OnSpan()

    def inner(restricted: Objective, weights: Array) -> Result:
        assert isinstance(restricted, MomentObjective)
        found = descend(
            replace(restricted, norm=KyFan(1, level=level(start))),
            update_for(options, domain),
            rule_for(objective, domain, options, weights, objective),
            weights,
            # A direction that is there for the polish alone is none to descend along.
            max_iter=1 if state.only_polish else counted.left,
            reached=lambda value, weights: value <= NEAR * level(weights),
            callback=counted,
        )
        state.ended(found, restricted)
        return found

    def polished(weights: Array) -> Array:
        assert polish is not None
        trimmed = polish(weights, span=directions.span)
        allowed = floor_at(objective, domain, trimmed, options.kurtosis).upper
        return state.better(trimmed, allowed)

    def reached(value: float, weights: Array) -> bool:
        floor = floor_at(objective, domain, weights, options.kurtosis)
        if weights is start:
            return value <= floor.upper
        within = value <= ABOVE_MEDIAN * state.value(weights)
        state.stuck = within and not state.reached
        # What polished weights leave above the clean level, within the span, was weighed there.
        weighed = within and polish is not None
        clean = state.reached and (weighed or value <= ABOVE_MEDIAN * floor.median)
        state.clean = weights if clean else state.clean
        if polish is None or directions.span is None or state.looked_outside:
            return clean
        if clean or state.stuck:
            direction = polish.outside(weights, directions.span)
            state.looked_outside = True
            state.only_polish = direction is not None
            if direction is not None:
                directions.add(direction)
        return clean and not state.only_polish

    def ended(survey: Survey, weights: Array, descent: Status | None) -> Status | None:
        del survey, weights, descent
        if counted.exhausted():
            return Status.EXHAUSTED
        # What is out of reach on a part of the space is so on the whole.
        return Status.STALLED if state.stuck and not state.only_polish else None

    rounds = Rounds(
        inner,
        reached,
        polished if polish is not None else None,
        ended,
        max_rounds=_MAX_ROUNDS,
        look_back=False,
        same=_SAME,
        may_rise=ABOVE_MEDIAN - 1.0,
        descend_first=span is not None and not look_first,
        verify=options.verify,
    )
    found = descend_in_rounds(directions, rounds, start, begin)
    # Clean weights stay so where a look outside the span has found nothing better.
    return replace(found, status=Status.REACHED) if found.weights is state.clean else found


class _OnSpan:
    """What is known of weights on the directions descended on, without a pass."""

    def __init__(self) -> None:
        self.reached = False
        self.stuck = False
        self.clean: Array | None = None
        self.looked_outside = False
        self.only_polish = False
        self._restricted: MomentObjective | None = None
        self._values: list[tuple[Array, float]] = []

    def ended(self, found: Result, restricted: MomentObjective) -> None:
        if not self.only_polish:
            self.reached = found.status is Status.REACHED
        self.only_polish = False
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
        worse = self.value(trimmed) > max(allowed, POLISHED_MAY_SCORE * value)
        return before if worse else trimmed
