"""The one loop: budget, finiteness, best point so far, trace, callback and status."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from outweigh.forms import Form
from outweigh.protocols import Array, Evaluation, Objective, Status, StepRule, Update

__all__ = ["Callback", "Iterate", "Reached", "Result", "descend"]

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

    ``form`` attains the value at the weights; ``force`` and ``drift`` record the descent as a
    function of x: a row was pushed down by x'Fx - x'b with F = sum step_t Z_t and b = sum step_t
    (Z_t + Z_t') mu_t. ``pushed`` is that function at the rows descended on, sum step_t g_t.
    """

    weights: Array
    value: float
    status: Status
    n_iter: int
    trace: tuple[Iterate, ...]
    form: Form
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
    recorder = _Recorder()
    candidate = current = direction = start
    evaluation: Evaluation | None = None
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
            next_step = _few_digits(next_step)
            if accepted:
                if evaluation is not None:
                    recorder.moved(step, evaluation)
                current, evaluation, direction = candidate, trial, ahead
                recorder.visited(current, trial)
            step = next_step
        iterate = Iterate(iteration, trial.value, step, accepted)
        recorder.trace.append(iterate)
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
    return recorder.result(status)


def _rounded(subgradient: Array) -> Array:
    """Return a subgradient to nine digits of its largest entry.

    Descents at kinks amplify the last digits, and those depend on the order of summation: on the
    number of threads, on the order of the rows, on whether a row is repeated or counted twice.
    Rounded, two such descents take the same steps.
    """
    largest = float(np.abs(subgradient).max(initial=0.0))
    if not 0.0 < largest < math.inf:
        return subgradient
    unit = 2.0 ** (math.frexp(largest)[1] - _BITS)
    return np.asarray(np.round(subgradient / unit) * unit)


def _few_digits(step: float) -> float:
    """Return a step to seven digits, for the same reason."""
    return float(f"{step:.6e}")


class _Recorder:
    """Keeps the best point and the forces that led to it."""

    def __init__(self) -> None:
        self.trace: list[Iterate] = []
        self._force = Form.zero(0)
        self._drift = np.empty(0)
        self._pushed = np.empty(0)
        self._best: tuple[Array, float, Form, Form, Array, Array] | None = None

    def visited(self, weights: Array, evaluation: Evaluation) -> None:
        if self._best is None:
            self._force = Form.zero(evaluation.form.n_features)
            self._drift = np.zeros(evaluation.form.n_features)
            self._pushed = np.zeros(weights.size)
        # Differences of rounding do not make a point better: the earlier one is kept.
        if self._best is None or evaluation.value < (1.0 - 1e-9) * self._best[1]:
            so_far = self._force, self._drift, self._pushed
            self._best = (weights, evaluation.value, evaluation.form, *so_far)

    def moved(self, step: float, evaluation: Evaluation) -> None:
        self._force = self._force + step * evaluation.form
        self._drift = self._drift + step * evaluation.drift
        self._pushed = self._pushed + step * evaluation.subgradient

    def result(self, status: Status) -> Result:
        if self._best is None:
            raise ValueError("max_iter must be at least 1")
        weights, value, form, force, drift, pushed = self._best
        trace = tuple(self.trace)
        return Result(weights, value, status, len(trace), trace, form, force, drift, pushed)
