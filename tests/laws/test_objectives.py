"""Every objective obeys one chain rule, for every residual and restriction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from outweigh.objectives import MomentObjective
from outweigh.protocols import Samples
from tests.laws.members import OBJECTIVES
from tests.reference import moments as brute

Array = NDArray[np.float64]
Kind = Callable[[Array], Samples]

N, D = 30, 7
every_objective = pytest.mark.parametrize("name", OBJECTIVES)
both = pytest.mark.parametrize("centred", [True, False], ids=["centred", "uncentred"])
seeds = pytest.mark.parametrize("seed", range(3))


def rows(seed: int) -> Array:
    rng = np.random.default_rng([11, seed])
    X = rng.standard_normal((N, D)) + rng.uniform(-1, 1, D)
    X[:5] += 2.0
    return X


def inner_point(seed: int) -> Array:
    w = np.random.default_rng([12, seed]).uniform(0.5, 1.5, N)
    return np.asarray(w / w.sum())


def direction(seed: int, rank: int = 1) -> Array:
    return np.linalg.qr(np.random.default_rng([13, seed]).standard_normal((D, rank)))[0]


def slopes(objective: MomentObjective, w: Array, seed: int) -> tuple[Array, Array]:
    """Return slopes along the simplex, by the subgradient and by finite differences."""
    rng = np.random.default_rng([14, seed])
    subgradient = objective.evaluate(w).subgradient
    by_rule, by_difference = [], []
    for _ in range(4):
        h = rng.standard_normal(w.size)
        h -= h.mean()
        h *= 1e-6 * w.min() / np.abs(h).max()
        above, below = objective.evaluate(w + h).value, objective.evaluate(w - h).value
        by_rule.append(subgradient @ h / np.linalg.norm(h))
        by_difference.append((above - below) / 2.0 / np.linalg.norm(h))
    return np.array(by_rule), np.array(by_difference)


def assert_slopes_agree(objective: MomentObjective, w: Array, seed: int) -> None:
    by_rule, by_difference = slopes(objective, w, seed)
    scale = np.abs(by_rule).max()
    np.testing.assert_allclose(by_rule, by_difference, atol=1e-5 * scale)


@every_objective
@both
@seeds
def test_the_subgradient_is_the_slope_along_the_simplex(
    any_kind: Kind, name: str, centred: bool, seed: int
) -> None:
    objective = replace(OBJECTIVES[name](any_kind(rows(seed))), centred=centred)
    assert_slopes_agree(objective, inner_point(seed), seed)


@every_objective
@both
@pytest.mark.parametrize("rank", [1, 2])
def test_the_subgradient_of_a_residual_is_its_slope(
    any_kind: Kind, name: str, centred: bool, rank: int
) -> None:
    objective = replace(OBJECTIVES[name](any_kind(rows(0))), centred=centred)
    residual = replace(objective, removed=direction(0, rank))
    assert_slopes_agree(residual, inner_point(0), 0)


@every_objective
@both
@pytest.mark.parametrize("residual", [False, True], ids=["plain", "residual"])
def test_the_subgradient_of_a_restriction_is_its_slope(
    any_kind: Kind, name: str, centred: bool, residual: bool
) -> None:
    objective = replace(OBJECTIVES[name](any_kind(rows(1))), centred=centred)
    if residual:
        objective = replace(objective, removed=direction(1))
    assert_slopes_agree(objective.restrict(np.array([0, 2, 3, 6])), inner_point(1), 1)


@every_objective
@seeds
def test_the_subgradient_is_the_form_and_the_drift(any_kind: Kind, name: str, seed: int) -> None:
    X = rows(seed)
    found = OBJECTIVES[name](any_kind(X)).evaluate(inner_point(seed))
    expected = np.einsum("ij,jk,ik->i", X, found.form.to_array(), X) - X @ found.drift
    np.testing.assert_allclose(found.subgradient, expected, atol=1e-10)


@every_objective
@both
def test_a_restriction_is_the_objective_of_those_columns(
    any_kind: Kind, name: str, centred: bool
) -> None:
    J, X, w = np.array([1, 2, 5]), rows(2), inner_point(2)
    whole = replace(OBJECTIVES[name](any_kind(X)), centred=centred)
    alone = replace(OBJECTIVES[name](any_kind(X[:, J])), centred=centred)
    assert whole.restrict(J).evaluate(w).value == pytest.approx(alone.evaluate(w).value, rel=1e-12)


@every_objective
@both
def test_a_restriction_scores_no_more_than_the_whole(
    any_kind: Kind, name: str, centred: bool
) -> None:
    objective = replace(OBJECTIVES[name](any_kind(rows(2))), centred=centred)
    w = inner_point(2)
    part = objective.restrict(np.array([0, 1, 4, 6])).evaluate(w).value
    assert part <= objective.evaluate(w).value * (1 + 1e-12)


@every_objective
def test_a_residual_has_nothing_left_along_the_direction_taken_out(
    any_kind: Kind, name: str
) -> None:
    u = direction(3)
    residual = replace(OBJECTIVES[name](any_kind(rows(3))), removed=u)
    matrix = residual.moment(inner_point(3)).restrict(np.arange(D))
    assert (u.T @ matrix @ u).item() == pytest.approx(0.0, abs=1e-12)


@every_objective
def test_a_residual_is_the_formula(any_kind: Kind, name: str) -> None:
    X, w, u = rows(3), inner_point(3), direction(3)
    objective = OBJECTIVES[name](any_kind(X))
    A = brute.deviation(X, w, centred=objective.centred)
    expected = A - (u.T @ A @ u) * (u @ u.T)
    matrix = replace(objective, removed=u).moment(w).restrict(np.arange(D))
    np.testing.assert_allclose(matrix, expected, atol=1e-12)


@every_objective
def test_a_direction_that_vanishes_on_the_columns_takes_nothing_out_of_them(
    any_kind: Kind, name: str
) -> None:
    J, w = np.array([1, 2, 5]), inner_point(3)
    objective = OBJECTIVES[name](any_kind(rows(3)))
    elsewhere = np.eye(D)[:, [0]]
    found = replace(objective, removed=elsewhere).restrict(J).evaluate(w).value
    assert found == pytest.approx(objective.restrict(J).evaluate(w).value, rel=1e-12)


@every_objective
@seeds
def test_the_objective_of_covariances_does_not_depend_on_the_origin(
    any_kind: Kind, name: str, seed: int
) -> None:
    X, w = rows(seed), inner_point(seed)
    values = [
        replace(OBJECTIVES[name](any_kind(X + shift)), centred=True).evaluate(w).value
        for shift in (0.0, 7.0)
    ]
    assert values[0] == pytest.approx(values[1], rel=1e-9)


@every_objective
@seeds
def test_objectives_of_second_moments_are_convex(any_kind: Kind, name: str, seed: int) -> None:
    objective = replace(OBJECTIVES[name](any_kind(rows(seed))), centred=False)
    v, w = inner_point(seed), inner_point(seed + 10)
    at_v, at_w = objective.evaluate(v), objective.evaluate(w)
    assert at_w.value >= at_v.value + at_v.subgradient @ (w - v) - 1e-12


@pytest.mark.parametrize("name", [name for name in OBJECTIVES if "sparse" in name])
def test_a_survey_has_the_value_of_a_full_evaluation(any_kind: Kind, name: str) -> None:
    objective, w = OBJECTIVES[name](any_kind(rows(4))), inner_point(4)
    value = objective.survey(w, 3).value
    assert value == pytest.approx(objective.evaluate(w).value, rel=1e-5)


@every_objective
def test_evaluating_twice_gives_the_same_answer(any_kind: Kind, name: str) -> None:
    objective, w = OBJECTIVES[name](any_kind(rows(4))), inner_point(4)
    first, second = objective.evaluate(w), objective.evaluate(w)
    np.testing.assert_array_equal(first.subgradient, second.subgradient)
