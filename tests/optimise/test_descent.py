"""The one loop: budget, best point, non-finite values, callbacks, status."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest
from numpy.typing import NDArray

from outweigh.forms import Form
from outweigh.optimise.capped_simplex import CappedSimplex
from outweigh.optimise.descent import Iterate, _rounded, descend
from outweigh.optimise.steps import Backtracking, Constant, Polyak, ProjectedSubgradient
from outweigh.protocols import Evaluation, Status

Array = NDArray[np.float64]

DOMAIN = CappedSimplex.from_contamination(3, 0.5)
START = DOMAIN.reference()


@dataclass
class Scripted:
    """An objective that returns the listed values in turn and records where it was asked."""

    values: list[float]
    seen: list[Array] = field(default_factory=list)

    def evaluate(self, weights: Array) -> Evaluation:
        value = self.values[min(len(self.seen), len(self.values) - 1)]
        self.seen.append(weights.copy())
        return Evaluation(
            value,
            np.array([1.0, 0.0, -1.0]),
            value,
            Form.from_directions(np.ones((1, 1)), np.ones(1)),
            np.ones(1),
        )


def run(
    objective: Scripted,
    *,
    max_iter: int = 5,
    rule: object = None,
    reached: Callable[[float, Array], bool] | None = None,
    callback: Callable[[Iterate], bool | None] | None = None,
):
    return descend(
        objective,
        ProjectedSubgradient(DOMAIN),
        rule or Constant(0.01),
        START,
        max_iter=max_iter,
        reached=reached,
        callback=callback,
    )


@pytest.mark.parametrize("max_iter", [1, 2, 7])
def test_the_budget_counts_evaluations(max_iter: int) -> None:
    objective = Scripted([1.0])
    run(objective, max_iter=max_iter)
    assert len(objective.seen) == max_iter


def test_a_spent_budget_is_reported() -> None:
    assert run(Scripted([3.0, 2.0, 1.0])).status is Status.EXHAUSTED


def test_a_budget_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="max_iter"):
        run(Scripted([1.0]), max_iter=0)


def test_the_first_point_is_the_start() -> None:
    objective = Scripted([1.0])
    run(objective)
    np.testing.assert_array_equal(objective.seen[0], START)


def test_the_best_point_is_returned_not_the_last() -> None:
    objective = Scripted([3.0, 1.0, 2.0, 4.0, 5.0])
    np.testing.assert_array_equal(run(objective).weights, objective.seen[1])


def test_the_value_is_that_of_the_best_point() -> None:
    assert run(Scripted([3.0, 1.0, 2.0])).value == 1.0


def test_the_trace_has_one_line_per_evaluation() -> None:
    result = run(Scripted([3.0, 1.0, 2.0, 4.0, 5.0]))
    assert [line.value for line in result.trace] == [3.0, 1.0, 2.0, 4.0, 5.0]


def test_the_number_of_iterations_is_the_length_of_the_trace() -> None:
    result = run(Scripted([3.0, 1.0]), max_iter=4)
    assert result.n_iter == len(result.trace) == 4


def test_the_trace_counts_from_zero() -> None:
    assert [line.iteration for line in run(Scripted([3.0])).trace] == [0, 1, 2, 3, 4]


def test_all_points_visited_lie_in_the_set() -> None:
    objective = Scripted([1.0])
    run(objective, rule=Constant(10.0))
    assert all(DOMAIN.contains(w) for w in objective.seen)


def test_the_descent_ends_where_the_clean_level_is_reached() -> None:
    result = run(Scripted([3.0, 2.0, 1.0]), reached=lambda value, _: value <= 2.0)
    assert (result.status, result.n_iter, result.value) == (Status.REACHED, 2, 2.0)


def test_a_start_at_the_clean_level_takes_no_step() -> None:
    result = run(Scripted([1.0]), reached=lambda *_: True)
    np.testing.assert_array_equal(result.weights, START)
    assert result.n_iter == 1


def test_a_callback_sees_every_evaluation() -> None:
    seen: list[float] = []
    run(Scripted([3.0, 2.0, 1.0]), max_iter=3, callback=lambda line: seen.append(line.value))
    assert seen == [3.0, 2.0, 1.0]


def test_a_callback_can_stop_the_descent() -> None:
    result = run(Scripted([3.0, 2.0, 1.0]), callback=lambda line: line.iteration == 1)
    assert result.n_iter == 2


def test_a_stopped_descent_returns_the_best_point_so_far() -> None:
    result = run(Scripted([1.0, 2.0, 0.5]), callback=lambda line: line.iteration == 1)
    assert result.value == 1.0


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_start_that_is_not_finite_is_refused(bad: float) -> None:
    with pytest.raises(FloatingPointError, match="not finite"):
        run(Scripted([bad]))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_value_that_is_not_finite_never_becomes_the_best(bad: float) -> None:
    assert run(Scripted([3.0, bad, 2.0, bad, 4.0])).value == 2.0


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_value_that_is_not_finite_is_retried_nearer_to_the_last_point(bad: float) -> None:
    objective = Scripted([3.0, bad, 2.0])
    run(objective, max_iter=3)
    first, retry = (np.linalg.norm(w - START) for w in objective.seen[1:])
    assert retry == pytest.approx(first / 2.0)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_value_that_is_not_finite_is_not_accepted_in_the_trace(bad: float) -> None:
    result = run(Scripted([3.0, bad, 2.0]), max_iter=3)
    assert [line.accepted for line in result.trace] == [True, False, True]


def test_the_force_is_the_sum_of_the_steps_that_led_to_the_best_point() -> None:
    # Three steps of 0.01 lead to the fourth point; each adds 0.01 of the form 1.
    result = run(Scripted([4.0, 3.0, 2.0, 1.0, 5.0]))
    assert result.force.to_array().item() == pytest.approx(0.03)


def test_the_drift_is_the_sum_of_the_steps_that_led_to_the_best_point() -> None:
    result = run(Scripted([4.0, 3.0, 2.0, 1.0, 5.0]))
    assert result.drift.tolist() == pytest.approx([0.03])


def test_steps_of_a_rejected_point_leave_no_force() -> None:
    # The step to the rejected point is halved twice before the third point is accepted.
    objective = Scripted([4.0, 5.0, 5.0, 3.0])
    result = run(objective, max_iter=4, rule=Backtracking())
    steps = [line.step for line in result.trace]
    assert result.force.to_array().item() == pytest.approx(steps[2])


def test_a_descent_without_steps_has_no_force() -> None:
    assert run(Scripted([1.0, 2.0, 3.0])).force.to_array().item() == 0.0


@pytest.mark.parametrize("rule", [Constant(0.1), Backtracking(), Polyak(0.0)], ids=str)
def test_a_vanishing_gradient_is_stationary(rule: object) -> None:
    class Flat(Scripted):
        def evaluate(self, weights: Array) -> Evaluation:
            found = super().evaluate(weights)
            return Evaluation(found.value, np.full(3, 2.0), found.value, found.form, found.drift)

    assert run(Flat([1.0]), rule=rule).status is Status.STATIONARY


@pytest.mark.parametrize("size", [1.0, 1e-300, 5e-324, 0.0])
def test_a_subgradient_is_rounded_to_nine_digits_of_its_largest_entry(size: float) -> None:
    g = size * np.array([1.0, 1.0 / 3.0, -1e-12])
    np.testing.assert_allclose(_rounded(g), g, rtol=0.0, atol=2e-9 * size)
    assert size < 1.0 or _rounded(g)[2] == 0.0
