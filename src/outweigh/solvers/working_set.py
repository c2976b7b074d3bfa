"""Descend on the few features that carry the evidence, verify on all of them, repeat.

A full pass over all pairs of features costs a covariance. The descent needs only the features in
which the weighted data looks unclean, so it runs on those columns alone; a full pass then verifies
the weights and names the features that were missed. Any solver can run inside.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import gammainccinv

from outweigh.forms import Form
from outweigh.protocols import (
    Array,
    Indices,
    Iterate,
    Objective,
    Reached,
    Result,
    Status,
    Survey,
    SurveyableObjective,
)

__all__ = ["POLISHED_MAY_SCORE", "WorkingSet", "descend_on_working_set"]

# Polished weights remove outliers along one direction and keep clean rows that a descent trims for
# their share of the norm; they are the better ones unless they score this much more.
POLISHED_MAY_SCORE = 1.25
# Weights that move less than this share of the mass are the same.
_SAME = 0.01
# Energy that noise would give to any of the features this rarely is evidence. The rows it is summed
# over were chosen for being large, by which noise was seen to gain up to 0.4 of it: beyond, it is
# clear.
_BY_CHANCE = 0.05
_CLEAR = 1.5

InnerSolver = Callable[[Objective, Array, int], Result]
"""Called with the restricted objective, the weights to start from and its number of features."""

Polish = Callable[[Array, Indices], Array]
"""From the weights of a descent, and its features, to the weights worth verifying."""


@dataclass(frozen=True, slots=True, eq=False)
class WorkingSet:
    """How the working set grows and when the rounds end.

    Parameters
    ----------
    n_coordinates : int
        Features added by the first full pass, besides the rows of the maximiser.
    growth : int, default=2
        Each later pass adds this many times as many as the one before: evidence that is spread
        over most features is met in a few passes.
    max_rounds : int, default=8
        Full passes allowed.
    sufficient_decrease : float, default=0.03
        A round that lowers the full objective by less than this fraction is the last, unless it
        names new features.
    initial : ndarray of int, optional
        Features known to carry evidence: the first descent runs on them without a pass before it.
    begin : ndarray of shape (n,), optional
        Weights to begin from, found by another descent; by default the untouched ones.
    noise : callable, optional
        From weights to the variance that noise gives to an entry of the matrix. With it, the first
        descent runs on all features that show evidence, unless most do, and the rounds end where a
        descent has come to its end and no feature shows any clearly.
    """

    n_coordinates: int
    growth: int = 2
    max_rounds: int = 8
    sufficient_decrease: float = 0.03
    initial: Indices | None = None
    begin: Array | None = None
    noise: Callable[[Array], float] | None = None

    def evident(self, survey: Survey, weights: Array, clear: bool = False) -> Indices:
        """Return the features that show more energy than noise explains, or clearly more."""
        if self.noise is None or survey.energy is None:
            return np.empty(0, dtype=np.intp)
        rare = _BY_CHANCE / survey.energy.size
        explained = self.noise(weights) * 2.0 * float(gammainccinv(survey.n_rows / 2.0, rare))
        return np.flatnonzero(survey.energy > (_CLEAR if clear else 1.0) * explained)


def descend_on_working_set(
    objective: SurveyableObjective,
    inner: InnerSolver,
    start: Array,
    reached: Reached,
    working_set: WorkingSet,
    polish: Polish | None = None,
    exhausted: Callable[[], bool] | None = None,
) -> Result:
    """Alternate full passes and descents on the features they name.

    Parameters
    ----------
    objective : SurveyableObjective
    inner : callable
        Solves the restricted problem.
    start : ndarray of shape (n,)
        The untouched weights.
    reached : callable
        Whether a full value at given weights is at the clean level.
    working_set : WorkingSet
    polish : callable, optional
        Improves the weights of each descent before they are verified; the next descent goes on
        from the weights before.
    exhausted : callable, optional
        Whether the inner solver has spent its budget, after which no further round begins.

    Returns
    -------
    Result
        Its value is that of a full pass at the returned weights.
    """
    if working_set.max_rounds < 1:
        raise ValueError("max_rounds must be at least 1")
    begin = start if working_set.begin is None else working_set.begin
    rounds = _Rounds(objective, inner, begin)
    if working_set.initial is not None:
        rounds.descend_on(working_set.initial)
    best: Result | None = None
    settled: Array | None = None
    status = Status.EXHAUSTED
    n_coordinates = working_set.n_coordinates
    for _ in range(working_set.max_rounds):
        previous = np.inf if best is None else best.value
        enough = (1.0 - working_set.sufficient_decrease) * previous

        def suffices(value: float, weights: Array, enough: float = enough) -> bool:
            return value <= enough < np.inf or reached(value, weights)

        polished = None
        if polish is not None and rounds.weights is not start:
            polished = polish(rounds.weights, rounds.coordinates)
            if settled is not None and np.abs(polished - settled).sum() <= 2.0 * _SAME:
                # The descent went on and the polish came back: nothing new was learnt.
                status = Status.STALLED
                break
        tested, survey = _survey(objective, rounds.weights, polished, suffices, n_coordinates)
        settled = tested if tested is polished else None
        n_coordinates = min(working_set.growth * n_coordinates, objective.n_features)
        rounds.trace.append(Iterate(len(rounds.trace), survey.value, 0.0, True))
        # Single precision may colour the last digits; an earlier point is as good as an equal one.
        clean = reached(survey.value, tested)
        # Weights at the clean level are the answer even where others, with more rows and so a lower
        # level to reach, scored a little less.
        if best is None or clean or survey.value < (1.0 - 1e-6) * previous:
            best = rounds.result(tested, survey)
        if clean:
            status = Status.REACHED
            break
        if exhausted is not None and exhausted():
            break
        if working_set.noise is not None and rounds.ended:
            clear = working_set.evident(survey, tested, clear=True)
            if clear.size == 0:
                # What is left above the clean level is noise that no weights remove.
                status = Status.STALLED
                break
        grown = np.union1d(rounds.coordinates, survey.coordinates)
        evident = working_set.evident(survey, tested)
        if 2 * evident.size <= objective.n_features:
            # Where most features show evidence, any few of them will do.
            grown = np.union1d(grown, evident)
        if survey.value > enough and grown.size == rounds.coordinates.size:
            status = Status.STALLED
            break
        rounds.descend_on(grown)
    assert best is not None
    trace = tuple(rounds.trace)
    return replace(best, status=status, n_iter=len(trace), trace=trace)


def _survey(
    objective: SurveyableObjective,
    weights: Array,
    polished: Array | None,
    suffices: Reached,
    n_coordinates: int,
) -> tuple[Array, Survey]:
    """Return the polished weights and a full pass at them, or the weights before if far cleaner.

    Those before are only looked at, which costs another pass, where the polished do not suffice.
    """
    if polished is None:
        return weights, objective.survey(weights, n_coordinates)
    survey = objective.survey(polished, n_coordinates)
    if suffices(survey.value, polished):
        return polished, survey
    before = objective.survey(weights, n_coordinates)
    if before.value < survey.value / POLISHED_MAY_SCORE:
        return weights, before
    return polished, survey


class _Rounds:
    """The weights between two full passes, and the forces that led to them."""

    def __init__(self, objective: SurveyableObjective, inner: InnerSolver, start: Array) -> None:
        self.weights = start
        self.coordinates: Indices = np.empty(0, dtype=np.intp)
        self.trace: list[Iterate] = []
        self.ended = False
        self._objective = objective
        self._inner = inner
        self._force = Form.zero(objective.n_features)
        self._drift = np.zeros(objective.n_features)
        self._pushed: Array | None = np.zeros(start.size)

    def descend_on(self, coordinates: Indices) -> None:
        self.coordinates = coordinates
        restricted = self._objective.restrict(coordinates)
        found = self._inner(restricted, self.weights, coordinates.size)
        first = len(self.trace)
        self.trace.extend(replace(line, iteration=first + i) for i, line in enumerate(found.trace))
        self.weights = found.weights
        self.ended = found.status is not Status.EXHAUSTED
        self._force = self._force + found.force.lift(coordinates, self._objective.n_features)
        self._drift = self._drift.copy()
        self._drift[coordinates] += found.drift
        if self._pushed is None or found.pushed is None:
            self._pushed = None
        else:
            self._pushed = self._pushed + found.pushed

    def result(self, weights: Array, survey: Survey) -> Result:
        return Result(
            weights,
            survey.value,
            Status.EXHAUSTED,
            len(self.trace),
            (),
            survey.form,
            self._force,
            self._drift,
            self.coordinates,
            self._pushed,
        )
