"""Alternate full passes and descents on the part of feature space that they name.

A full pass over all pairs of features costs a covariance. The descent needs only the part of
feature space in which the weighted data looks unclean, so it runs there; a full pass then verifies
the weights and names what was missed. Any solver can run inside.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from outweigh.forms import Form
from outweigh.protocols import (
    Array,
    Iterate,
    Objective,
    Reached,
    Result,
    Status,
    Survey,
    Workspace,
)

__all__ = ["POLISHED_MAY_SCORE", "Rounds", "descend_in_rounds"]

# Polished weights remove outliers along one direction and keep clean rows that a descent trims for
# their share of the norm; they are the better ones unless they score this much more.
POLISHED_MAY_SCORE = 1.25


@dataclass(frozen=True, slots=True, eq=False)
class Rounds:
    """How rounds begin and when they end.

    Parameters
    ----------
    inner : callable
        Solves the restricted problem from given weights.
    reached : callable
        Whether a full value at given weights is at the clean level.
    polish : callable, optional
        Improves the weights of each descent before they are verified; the next descent goes on
        from the weights before. It may return them as they are.
    ended : callable, optional
        Asked after each pass, with what it found, at which weights, and how the descent before it
        ended, if any: a status once no further round should begin, else None.
    max_rounds : int, default=8
        Full passes allowed.
    sufficient_decrease : float, default=0.03
        A round that lowers the full objective by less than this fraction is the last, unless it
        names something new.
    look_back : bool, default=True
        Where polished weights do not suffice, spend a pass on those before them, which may be
        cleaner; needless where `polish` has compared the two.
    same : float, default=0.01
        Polished weights that move less than this share of the mass from one round to the next are
        the same, and the last.
    may_rise : float, default=0.0
        Later weights are preferred while their value is not above the best by this share.
    descend_first : bool, default=False
        Whether the workspace holds evidence already, so that no pass is needed to begin.
    verify : bool, default=True
        Without it, the weights of the first descent are the answer, polished, whatever their value.
    """

    inner: Callable[[Objective, Array], Result]
    reached: Reached
    polish: Callable[[Array], Array] | None = None
    ended: Callable[[Survey, Array, Status | None], Status | None] | None = None
    max_rounds: int = 8
    sufficient_decrease: float = 0.03
    look_back: bool = True
    same: float = 0.01
    may_rise: float = 0.0
    descend_first: bool = False
    verify: bool = True


def descend_in_rounds(
    workspace: Workspace, rounds: Rounds, start: Array, begin: Array | None = None
) -> Result:
    """Descend on a workspace, verify on all features, widen the workspace, repeat.

    Parameters
    ----------
    workspace : Workspace
        Widened on the way.
    rounds : Rounds
    start : ndarray of shape (n,)
        The untouched weights.
    begin : ndarray of shape (n,), optional
        Weights to begin from, found by another descent; by default the untouched ones.

    Returns
    -------
    Result
        Its value is that of a full pass at the returned weights, or of the last one where they
        were not verified.
    """
    if rounds.max_rounds < 1:
        raise ValueError("max_rounds must be at least 1")
    if rounds.descend_first and not rounds.verify:
        raise ValueError(
            "verify=False takes the weights after the first pass; descend_first has none"
        )
    state = _State(workspace, rounds.inner, start if begin is None else begin)
    if rounds.descend_first:
        state.descend()
    best: Result | None = None
    survey: Survey | None = None
    settled: Array | None = None
    status = Status.EXHAUSTED
    for _ in range(rounds.max_rounds):
        previous = np.inf if best is None else best.value
        enough = (1.0 - rounds.sufficient_decrease) * previous

        def suffices(value: float, weights: Array, enough: float = enough) -> bool:
            return value <= enough < np.inf or rounds.reached(value, weights)

        polished = None
        if rounds.polish is not None and state.weights is not start:
            polished = rounds.polish(state.weights)
            if settled is not None and np.abs(polished - settled).sum() <= 2.0 * rounds.same:
                # The descent went on and the polish came back: nothing new was learnt.
                status = Status.STALLED
                break
        if survey is not None and not rounds.verify:
            found = state.weights if polished is None else polished
            best = replace(state.result(found, survey), value=previous)
            break
        tested, survey = _survey(workspace, state.weights, polished, suffices, rounds.look_back)
        settled = tested if tested is polished else None
        state.trace.append(Iterate(len(state.trace), survey.value, 0.0, True))
        # Single precision may colour the last digits; an earlier point is as good as an equal one.
        clean = rounds.reached(survey.value, tested)
        # Weights at the clean level are the answer even where others, with more rows and so a lower
        # level to reach, scored a little less.
        if best is None or clean or survey.value < (1.0 - 1e-6 + rounds.may_rise) * previous:
            best = state.result(tested, survey)
        if clean:
            status = Status.REACHED
            break
        ended = None if rounds.ended is None else rounds.ended(survey, tested, state.ended)
        if ended is not None:
            status = ended
            break
        if not workspace.widen(survey, tested) and survey.value > enough:
            status = Status.STALLED
            break
        state.descend()
    assert best is not None
    trace = tuple(state.trace)
    return replace(best, status=status, n_iter=len(trace), trace=trace)


def _survey(
    workspace: Workspace,
    weights: Array,
    polished: Array | None,
    suffices: Reached,
    look_back: bool,
) -> tuple[Array, Survey]:
    """Return the polished weights and a full pass at them, or the weights before if far cleaner.

    Those before are only looked at, which costs another pass, where the polished do not suffice.
    """
    if polished is None:
        return weights, workspace.survey(weights)
    survey = workspace.survey(polished)
    if not look_back or suffices(survey.value, polished):
        return polished, survey
    before = workspace.survey(weights)
    if before.value < survey.value / POLISHED_MAY_SCORE:
        return weights, before
    return polished, survey


class _State:
    """The weights between two full passes, and the forces that led to them."""

    def __init__(
        self, workspace: Workspace, inner: Callable[[Objective, Array], Result], begin: Array
    ) -> None:
        self.weights = begin
        self.trace: list[Iterate] = []
        self.ended: Status | None = None
        self._workspace = workspace
        self._inner = inner
        self._force = Form.zero(workspace.n_features)
        self._drift = np.zeros(workspace.n_features)
        self._pushed: Array | None = np.zeros(begin.size)

    def descend(self) -> None:
        found = self._inner(self._workspace.restricted(), self.weights)
        first = len(self.trace)
        self.trace.extend(replace(line, iteration=first + i) for i, line in enumerate(found.trace))
        self.weights = found.weights
        self.ended = found.status
        self._force = self._force + self._workspace.lift_form(found.force)
        self._drift = self._drift + self._workspace.lift(found.drift)
        if self._pushed is None or found.pushed is None:
            self._pushed = None
        else:
            self._pushed = self._pushed + found.pushed

    def result(self, weights: Array, survey: Survey) -> Result:
        found = Result(
            weights,
            survey.value,
            Status.EXHAUSTED,
            len(self.trace),
            (),
            survey.form,
            self._force,
            self._drift,
            pushed=self._pushed,
        )
        return self._workspace.recorded(found)
