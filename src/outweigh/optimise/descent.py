"""The one loop: budget, finiteness, best point so far, trace, callback and status."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from outweigh.forms import Form
from outweigh.protocols import Array, Evaluation, Objective, Status, StepRule, Update

_BITS = 30


@dataclass(frozen=True, slots=True)
class Iterate:
    """One line of a trace."""

    iteration: int
    value: float
    step: float
    accepted: bool


Callback = Callable[[Iterate], bool | None]
"""Called after each evaluation; returning True stops the descent at the best point so far."""


Reached = Callable[[float, Array], bool]
"""Whether an objective value at given weights is at the level of clean data."""


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """What a descent returns.

    ``force`` and ``drift`` record the descent as a function of x: a row was pushed down by x'Fx -
    x'b with F = sum step_t Z_t and b = sum step_t (Z_t + Z_t') mu_t. ``pushed`` is that function at
    the rows descended on, sum step_t g_t.
    """

    weights: Array
    value: float
    status: Status
    n_iter: int
    trace: tuple[Iterate, ...]
    force: Form
    drift: Array
    pushed: Array


def descend(
    objective: Objective,
    update: Update,
    rule: StepRule,
    start: Array,
    *,
    max_iter: int,
    reached: Reached | None = None,
    callback: Callback | None = None,
) -> Result:
    """Minimise an objective over weights and return the best point seen.

    Parameters
    ----------
    objective : Objective
    update : Update
        Moves against a subgradient and back into the set of weights.
    rule : StepRule
        A fresh one: rules keep state.
    start : ndarray of shape (n,)
        A point of the set.
    max_iter : int
        Evaluations allowed, at least 1.
    reached : callable, optional
        Whether a value at given weights is at the clean level, where the descent ends.
    callback : callable, optional
        Called with an `Iterate` after each evaluation; a true return value stops the descent.

    Returns
    -------
    Result

    Raises
    ------
    FloatingPointError
        If the objective is not finite at the start, where nothing better is known.
    """
    candidate = current = direction = start
    evaluation: Evaluation | None = None
    best: Result | None = None
    force, drift, pushed = Form.zero(0), np.empty(0), np.empty(0)
    trace: list[Iterate] = []
    step = 0.0
    status = Status.EXHAUSTED
    for iteration in range(max_iter):
        trial = objective.evaluate(candidate)
        if not math.isfinite(trial.value):
            if evaluation is None:
                raise FloatingPointError(
                    "the objective is not finite at the starting weights; rescale X"
                )
            step, accepted = step / 2.0, False
        else:
            ahead, norm_sq = update.direction(candidate, _rounded(trial.subgradient))
            next_step, accepted = rule.decide(trial, norm_sq)
            if accepted:
                if evaluation is None:
                    force = Form.zero(trial.form.n_features)
                    drift, pushed = np.zeros(trial.form.n_features), np.zeros(start.size)
                else:
                    force = force + step * evaluation.form
                    drift = drift + step * evaluation.drift
                    pushed = pushed + step * evaluation.subgradient
                current, evaluation, direction = candidate, trial, ahead
                # Differences of rounding do not make a point better: the earlier one is kept.
                if best is None or trial.value < (1.0 - 1e-9) * best.value:
                    best = Result(current, trial.value, status, 0, (), force, drift, pushed)
            # To seven digits, for the reason that `_rounded` gives.
            step = float(f"{next_step:.6e}")
        iterate = Iterate(iteration, trial.value, step, accepted)
        trace.append(iterate)
        stop = callback is not None and callback(iterate)
        if accepted and reached is not None and reached(trial.value, current):
            status = Status.REACHED
            break
        if rule.finished is not None:
            status = rule.finished
            break
        if stop or evaluation is None:
            break
        candidate = update.move(current, direction, step)
    if best is None:
        raise ValueError("max_iter must be at least 1")
    return replace(best, status=status, n_iter=len(trace), trace=tuple(trace))


def _rounded(subgradient: Array) -> Array:
    """Return a subgradient to nine digits of its largest entry.

    Descents at kinks amplify the last digits, and those depend on the order of summation: on the
    number of threads, on the order of the rows, on whether a row is repeated or counted twice.
    Rounded, two such descents take the same steps.
    """
    largest = float(np.abs(subgradient).max(initial=0.0))
    unit = 2.0 ** (math.frexp(largest)[1] - _BITS)
    if unit == 0.0 or not largest < math.inf:
        # So small that nine digits of it are no number, or not finite.
        return subgradient
    return np.asarray(np.round(subgradient / unit) * unit)
