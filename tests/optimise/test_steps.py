"""The step rules, each by its formula."""

from __future__ import annotations

import numpy as np
import pytest

from outweigh.forms import Form
from outweigh.optimise.capped_simplex import CappedSimplex
from outweigh.optimise.steps import (
    Backtracking,
    Constant,
    EntropicMirror,
    Polyak,
    ProjectedSubgradient,
)
from outweigh.protocols import Evaluation, Status
from tests.reference.projections import project


def at(value: float, attained: float | None = None) -> Evaluation:
    attained = value if attained is None else attained
    return Evaluation(value, np.zeros(1), attained, Form.zero(1), np.zeros(1))


def test_the_constant_step_is_constant() -> None:
    rule = Constant(0.3)
    assert [rule.decide(at(v), 1.0) for v in (3.0, 5.0)] == [(0.3, True), (0.3, True)]


def test_the_polyak_step_is_the_gap_over_the_squared_gradient() -> None:
    assert Polyak(1.0).decide(at(3.0), 8.0) == (pytest.approx(0.25), True)


def test_the_polyak_step_uses_the_gap_of_the_lower_model() -> None:
    assert Polyak(1.0).decide(at(3.0, attained=2.0), 8.0)[0] == pytest.approx(0.125)


def test_polyak_raises_a_target_out_of_reach_until_it_meets_the_best_value() -> None:
    rule = Polyak(1.0, tol=1e-3)
    for _ in range(200):
        rule.decide(at(2.0), 1.0)
        if rule.finished:
            break
    assert rule.finished is Status.STALLED


def test_polyak_without_a_target_ends_stationary() -> None:
    rule = Polyak(0.0, tol=1e-3)
    for _ in range(200):
        rule.decide(at(2.0), 1.0)
    assert rule.finished is Status.STATIONARY


def test_polyak_never_steps_backwards() -> None:
    rule = Polyak(1.0)
    assert all(rule.decide(at(v), 1.0)[0] >= 0.0 for v in (3.0, 0.5, 2.0, 1.0))


def test_backtracking_halves_the_step_after_a_failure() -> None:
    rule = Backtracking()
    step, _ = rule.decide(at(2.0), 4.0)
    assert rule.decide(at(2.5), 4.0) == (step / 2.0, False)


def test_backtracking_lets_the_step_grow_after_a_success() -> None:
    rule = Backtracking()
    step, _ = rule.decide(at(2.0), 4.0)
    grown, accepted = rule.decide(at(1.0), 4.0)
    assert accepted
    assert grown > step


def test_backtracking_ends_when_no_step_helps() -> None:
    rule = Backtracking()
    for _ in range(250):
        rule.decide(at(2.0), 4.0)
    assert rule.finished is Status.STATIONARY


EVERY_UPDATE = pytest.mark.parametrize("update", [ProjectedSubgradient, EntropicMirror])


@EVERY_UPDATE
def test_a_constant_added_to_the_subgradient_does_not_count(update: type) -> None:
    rule = update(CappedSimplex.from_contamination(4, 0.5))
    g, w = np.array([1.0, -2.0, 0.5, 0.0]), np.full(4, 0.25)
    lengths = [rule.direction(w, g + shift)[1] for shift in (0.0, 100.0)]
    assert lengths[0] == pytest.approx(lengths[1])


def test_inside_the_set_the_euclidean_direction_is_the_centred_gradient() -> None:
    rule = ProjectedSubgradient(CappedSimplex.from_contamination(4, 0.5))
    g = np.array([1.0, -2.0, 0.5, 0.0])
    direction, length = rule.direction(np.full(4, 0.25), g)
    np.testing.assert_allclose(direction, g.mean() - g, atol=1e-12)
    assert length == pytest.approx(np.sum((g - g.mean()) ** 2))


def test_the_euclidean_direction_does_not_leave_the_set() -> None:
    # One row at its cap asks for more and one at zero for less; only the two others may move.
    domain = CappedSimplex.from_contamination(4, 0.5)
    w = np.array([0.5, 0.0, 0.25, 0.25])
    direction, _ = ProjectedSubgradient(domain).direction(w, np.array([-9.0, 9.0, 1.0, -1.0]))
    np.testing.assert_allclose(direction, [0.0, 0.0, -1.0, 1.0], atol=1e-12)


def test_the_euclidean_update_is_the_projection() -> None:
    domain = CappedSimplex.from_contamination(4, 0.25)
    w, h = np.full(4, 0.25), np.array([0.5, -0.2, 0.1, -0.4])
    expected = project(w + 0.3 * h, np.asarray(domain.caps))
    np.testing.assert_allclose(ProjectedSubgradient(domain).move(w, h, 0.3), expected, atol=1e-12)


def test_the_mirror_update_multiplies_by_exponentials() -> None:
    rule = EntropicMirror(CappedSimplex.from_contamination(3, 0.9))
    g, w = np.array([1.0, 0.0, -0.5]), np.array([0.2, 0.5, 0.3])
    expected = w * np.exp(-0.3 * g)
    found = rule.move(w, rule.direction(w, g)[0], 0.3)
    np.testing.assert_allclose(found, expected / expected.sum(), rtol=1e-12)


@EVERY_UPDATE
def test_integer_sample_weights_move_as_repeated_rows_do(update: type) -> None:
    repeats = np.array([1, 2, 3, 1])
    g = np.array([1.0, -2.0, 0.5, 0.1])
    weighted = update(CappedSimplex.from_contamination(repeats.astype(float), 0.3))
    repeated = update(CappedSimplex.from_contamination(7, 0.3))
    many, few = np.full(7, 1 / 7), repeats / 7.0
    by_rows = repeated.move(many, repeated.direction(many, np.repeat(g, repeats))[0], 0.02)
    by_weight = weighted.move(few, weighted.direction(few, g)[0], 0.02)
    np.testing.assert_allclose(np.repeat(by_weight / repeats, repeats), by_rows, rtol=1e-12)


@EVERY_UPDATE
def test_integer_sample_weights_measure_directions_as_repeated_rows_do(update: type) -> None:
    repeats = np.array([1, 2, 3, 1])
    g = np.array([1.0, -2.0, 0.5, 0.1])
    weighted = update(CappedSimplex.from_contamination(repeats.astype(float), 0.3))
    repeated = update(CappedSimplex.from_contamination(7, 0.3))
    by_rows = repeated.direction(np.full(7, 1 / 7), np.repeat(g, repeats))[1]
    assert weighted.direction(repeats / 7.0, g)[1] == pytest.approx(by_rows, rel=1e-12)


def test_a_value_equal_to_the_best_is_no_progress_whatever_its_last_digit() -> None:
    # For such a number 0.9 v + 0.1 v exceeds v by rounding.
    value = next(v for v in np.linspace(1.0, 2.0, 1000) if 0.9 * v + 0.1 * v > v)
    # Below the level, where the gap that progress is a share of is nil.
    rule = Polyak(3.0, patience=2)
    for _ in range(20):
        rule.decide(at(value), 1.0)
    assert rule.finished is Status.STALLED
