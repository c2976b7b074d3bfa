"""Weights of least volume: never more than before, and outliers of any shape left out."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from outweigh.fit.held_out import beyond_limits, folds_of
from outweigh.fit.problem import Problem
from outweigh.fit.volume import _concentrate, _directions, least_volume, n_leading
from outweigh.norms import KyFan
from outweigh.objectives import MomentObjective
from outweigh.optimise.capped_simplex import CappedSimplex
from outweigh.samples import DenseSamples

Array = NDArray[np.float64]
N = 300


def test_concentration_steps_never_raise_the_volume() -> None:
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((60, 3))
    domain = CappedSimplex.from_contamination(60, 0.25)
    volumes = [
        _concentrate(rows, domain, domain.reference(), True, steps)[1] for steps in range(1, 6)
    ]
    assert np.all(np.diff(volumes) <= 1e-9)


def test_the_leading_directions_leave_rows_to_estimate_them_from() -> None:
    assert n_leading(40, 5, np.ones(39)) == 8
    assert n_leading(1000, 2, np.array([1.0, 1e-9, 1e-9])) == 3


def coloured(n_wrong: int, seed: int = 0) -> Problem:
    """Return rows of very uneven variances of which the first are wrong in the smallest ones."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, 6)) * 3.0 ** -np.arange(6)
    X[:n_wrong, 4:] += 1.0
    objective = MomentObjective(DenseSamples(X), KyFan(2), True, 0.0)
    return Problem(objective, np.ones(N), np.empty(0, dtype=np.intp), 3.0, 6)


@pytest.mark.parametrize("seed", range(3))
def test_outliers_in_directions_of_little_variance_are_left_out(seed: int) -> None:
    found = least_volume(coloured(60, seed), 2, 0.3)
    assert found.weights[:60].sum() < 0.02
    np.testing.assert_allclose(found.leading.T @ found.leading, np.eye(6), atol=1e-10)


@pytest.mark.parametrize("bound", [0.0, 0.1, 0.3])
def test_no_more_is_removed_than_the_bound(bound: float) -> None:
    problem = coloured(60)
    weights = least_volume(problem, 2, bound).weights
    assert problem.domain(bound).contains(weights, atol=1e-9)


def test_a_bound_of_zero_leaves_every_row_its_weight() -> None:
    np.testing.assert_allclose(least_volume(coloured(60), 2, 0.0).weights, 1.0 / N, rtol=1e-12)


@pytest.mark.parametrize("n_wrong", [0, 30, 90])
def test_the_rows_beyond_the_limits_are_the_outliers(n_wrong: int) -> None:
    problem = coloured(n_wrong)
    found = least_volume(problem, 2, 0.4)
    folds = folds_of(problem.samples.project(np.ones((6, 1)))[:, 0])
    limits = beyond_limits(problem.samples, found.weights, np.ones(N), folds, 6, True)
    flagged = limits.combined(problem.samples) > 1.0
    assert flagged[:n_wrong].all()
    # Of those flagged one in a hundred is expected to be clean, and one more in a table; from too
    # few rows, at the first look, three times as many.
    assert flagged[n_wrong:].sum() <= 9


def test_the_starts_do_not_depend_on_the_order_of_rows() -> None:
    problem = coloured(60)
    order = np.random.default_rng(1).permutation(N)
    samples = DenseSamples(problem.samples.project(np.eye(problem.samples.n_features))[order])
    shuffled = problem.with_objective(MomentObjective(samples, KyFan(2), True, 0.0))
    expected = least_volume(problem, 2, 0.3).weights[order]
    np.testing.assert_allclose(least_volume(shuffled, 2, 0.3).weights, expected, atol=1e-12)


def test_directions_are_the_axes_and_all_diagonals_between_two() -> None:
    assert len(_directions(4)) == 4 + 2 * 6
