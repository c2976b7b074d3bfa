"""What a search minimises: the weights allowed, the level of clean rows, and what clean is."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from outweigh import objectives
from outweigh.fit.problem import Problem, typical_kurtosis
from outweigh.norms.floor import noise_floor
from outweigh.optimise.capped_simplex import CappedSimplex
from outweigh.samples import DenseSamples

Array = NDArray[np.float64]
NOTHING = np.empty(0, dtype=np.intp)


def problem(
    n: int = 300, d: int = 20, weight: Array | None = None, pruned: NDArray[np.intp] = NOTHING
) -> Problem:
    X = np.random.default_rng([n, d]).standard_normal((n, d))
    X[pruned] = 0.0
    weight = np.ones(n) if weight is None else weight
    return Problem(objectives.sparse_mean(DenseSamples(X), 3), weight, pruned, 3.0, d)


def test_untouched_weights_are_the_sample_weights_without_the_pruned_rows() -> None:
    found = problem(4, 3, np.array([1.0, 2.0, 3.0, 4.0]), np.array([2])).untouched
    np.testing.assert_allclose(found, np.array([1.0, 2.0, 0.0, 4.0]) / 7.0)


@pytest.mark.parametrize("bound", [0.1, 0.3])
def test_no_weights_allowed_use_pruned_rows_or_remove_more_than_the_bound(bound: float) -> None:
    case = problem(10, 3, pruned=np.array([7]))
    domain = case.domain(bound)
    assert domain.caps[7] == 0.0
    np.testing.assert_allclose(np.delete(domain.caps, 7), 1.0 / ((1.0 - bound) * 10))


def test_without_pruned_rows_the_bound_is_taken_to_the_last_digit() -> None:
    caps = problem(10, 3).domain(0.2).caps
    np.testing.assert_array_equal(caps, CappedSimplex.from_contamination(np.ones(10), 0.2).caps)


def test_one_pruned_row_is_as_much_as_its_share_allows() -> None:
    weight = np.array([0.1, 0.7, 0.7])
    case = problem(3, 2, weight, np.array([0]))
    assert case.domain(0.0).caps.sum() > 1.0


def test_as_many_rows_may_be_pruned_as_the_bound_allows() -> None:
    case = problem(10, 3, pruned=np.array([0, 1, 2]))
    np.testing.assert_allclose(case.domain(0.3).reference(), case.untouched, atol=1e-12)


def test_a_share_that_is_no_whole_number_of_rows_allows_the_pruned_ones() -> None:
    case = problem(10, 3, pruned=np.array([0, 1, 2]))
    np.testing.assert_allclose(case.domain(0.25).reference(), case.untouched, atol=1e-12)
    assert (case.in_whole_rows(0.25), case.in_whole_rows(0.4)) == (0.3, 0.4)


def test_half_of_the_rows_at_equal_weights_are_worth_half_of_the_rows() -> None:
    case = problem(10, 3)
    assert case.n_effective(np.repeat([0.2, 0.0], 5)) == pytest.approx(5.0)


def test_a_row_that_counts_twice_is_worth_two() -> None:
    weight = np.array([1.0, 2.0, 3.0])
    assert problem(3, 2, weight).n_effective(weight / 6.0) == pytest.approx(6.0)


def test_the_level_is_that_of_the_norm_for_as_many_rows_as_the_weights_amount_to() -> None:
    case = problem()
    half = np.repeat([1 / 150, 0.0], 150)
    assert case.floor(half) == noise_floor(case.objective.norm, case.n_effective(half), 20, 3.0)
    on_few = case.floor(half, case.objective.norm, 5)
    assert on_few == noise_floor(case.objective.norm, case.n_effective(half), 5, 3.0)


def test_clean_is_what_the_floor_says_it_is() -> None:
    case = problem()
    clean = case.floor(case.untouched).clean
    assert case.is_clean(clean, case.untouched)
    assert not case.is_clean(np.nextafter(clean, np.inf), case.untouched)


def test_the_share_removed_is_the_total_variation_from_the_sample_weights() -> None:
    weight = np.array([1.0, 1.0, 2.0])
    assert problem(3, 2, weight).removed(np.array([0.5, 0.5, 0.0])) == pytest.approx(0.5)


def test_the_least_bound_is_that_of_the_row_whose_weight_grew_most() -> None:
    case = problem(4, 2, np.array([1.0, 1.0, 2.0, 4.0]))
    # Of four parts of eight half is gone, and the others have twice their share: w/s = 1/4.
    assert case.least_bound(np.array([0.25, 0.25, 0.5, 0.0])) == pytest.approx(0.5)
    assert case.least_bound(case.untouched) == pytest.approx(0.0, abs=1e-15)


def test_no_least_bound_is_negative_by_rounding() -> None:
    # Of two rows of any weights the largest w/s is below one over their sum now and then.
    for seed in range(20):
        case = problem(2, 2, np.random.default_rng(seed).uniform(0.1, 1.0, 2))
        assert case.least_bound(case.untouched) >= 0.0


def test_rounding_removes_nothing() -> None:
    case = problem()
    assert case.removed(case.untouched * (1.0 + 1e-15)) == 0.0


def test_another_objective_is_seen_on_the_same_rows() -> None:
    case = problem()
    other = case.with_objective(objectives.mean(case.samples))
    assert other.objective.norm != case.objective.norm
    assert other.samples is case.samples


@pytest.mark.parametrize(("factor", "expected"), [(0.0, 1.5), (1.0, 3.0), (1e6, 50.0)])
def test_the_kurtosis_of_a_typical_column_is_told_in_halves_within_bounds(
    factor: float, expected: float
) -> None:
    rng = np.random.default_rng(0)
    signs = np.where(np.arange(4000) % 2 == 0, 1.0, -1.0)[:, None] * np.ones(5)
    X = {0.0: signs, 1.0: rng.standard_normal((4000, 5)), 1e6: rng.standard_normal((4000, 5))}
    rows = X[factor].copy()
    rows[:4] *= max(factor, 1.0)
    found = typical_kurtosis(DenseSamples(rows), np.full(4000, 1 / 4000))
    assert found == expected
