"""Descend on the few features that carry the evidence, verify on all of them, repeat.

A full pass over all pairs of features costs a covariance. The descent needs only the features in
which the weighted data looks unclean, so it runs on those columns alone; a full pass then verifies
the weights and names the features that were missed. Any solver can run inside.
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
    SurveyableObjective,
)

__all__ = ["WorkingSet", "descend_on_working_set"]

InnerSolver = Callable[[Objective, Array, int], Result]
"""Called with the restricted objective, the weights to start from and its number of features."""


@dataclass(frozen=True, slots=True)
class WorkingSet:
    """How the working set grows and when the rounds end.

    Parameters
    ----------
    n_coordinates : int
        Features added by a full pass, besides the rows of the maximiser.
    max_rounds : int, default=8
        Full passes allowed.
    sufficient_decrease : float, default=0.03
        A round that lowers the full objective by less than this fraction is the last.
    """

    n_coordinates: int
    max_rounds: int = 8
    sufficient_decrease: float = 0.03


def descend_on_working_set(
    objective: SurveyableObjective,
    inner: InnerSolver,
    start: Array,
    reached: Reached,
    working_set: WorkingSet,
) -> Result:
    """Alternate full passes and descents on the features they name.

    Parameters
    ----------
    objective : SurveyableObjective
    inner : callable
        Solves the restricted problem.
    start : ndarray of shape (n,)
    reached : callable
        Whether a full value at given weights is at the clean level.
    working_set : WorkingSet

    Returns
    -------
    Result
        Its value is that of a full pass at the returned weights.
    """
    weights = start
    coordinates = np.empty(0, dtype=np.intp)
    force, drift = Form.zero(objective.n_features), np.zeros(objective.n_features)
    best: Result | None = None
    trace: list[Iterate] = []
    status = Status.EXHAUSTED
    for _ in range(working_set.max_rounds):
        survey = objective.survey(weights, working_set.n_coordinates)
        trace.append(Iterate(len(trace), survey.value, 0.0, True))
        previous = np.inf if best is None else best.value
        if best is None or survey.value < (1.0 - 1e-6) * previous:
            best = Result(weights, survey.value, status, 0, (), force, drift)
        if reached(survey.value, weights):
            status = Status.REACHED
            break
        grown = np.union1d(coordinates, survey.coordinates)
        stuck = survey.value > (1.0 - working_set.sufficient_decrease) * previous
        if stuck and grown.size == coordinates.size:
            status = Status.STALLED
            break
        coordinates = grown
        found = inner(objective.restrict(coordinates), weights, coordinates.size)
        trace.extend(
            Iterate(len(trace) + i, line.value, line.step, line.accepted)
            for i, line in enumerate(found.trace)
        )
        weights = found.weights
        force = force + found.force.lift(coordinates, objective.n_features)
        drift = drift.copy()
        drift[coordinates] += found.drift
    if best is None:
        raise ValueError("max_rounds must be at least 1")
    return replace(best, status=status, n_iter=len(trace), trace=tuple(trace))
