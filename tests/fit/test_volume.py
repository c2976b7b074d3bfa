"""Weights of least volume: never more than before, and outliers of any shape left out."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from outweigh.estimators.pca import RobustPCA
from outweigh.fit.distances import beyond_limits, folds_of
from outweigh.fit.problem import Problem
from outweigh.fit.volume import concentrated, least_volume, n_leading, start_directions
from outweigh.norms import KyFan
from outweigh.objectives import MomentObjective
from outweigh.optimise.capped_simplex import CappedSimplex
from outweigh.samples import DenseSamples

Array = NDArray[np.float64]
N = 300


def test_the_leading_directions_leave_rows_to_estimate_them_from() -> None:
    assert n_leading(40, np.ones(39)) == 8
    assert n_leading(20, np.ones(39)) == 4
    assert n_leading(1000, np.array([1.0, 1e-9, 1e-9, 0.0])) == 3


def coloured(n_wrong: int, seed: int = 0) -> Problem:
    """Return rows of very uneven variances of which the first are wrong in the smallest ones."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, 6)) * 3.0 ** -np.arange(6)
    X[:n_wrong, 4:] += 1.0
    objective = MomentObjective(DenseSamples(X), KyFan(2), True, 0.0)
    return Problem(objective, np.ones(N), np.empty(0, dtype=np.intp), 3.0, 6)


@pytest.mark.parametrize("seed", range(3))
def test_outliers_in_directions_of_little_variance_are_left_out(seed: int) -> None:
    weights = least_volume(coloured(60, seed), np.eye(6), 0.3)
    assert weights[:60].sum() < 0.02


@pytest.mark.parametrize("bound", [0.0, 0.1, 0.3])
def test_no_more_is_removed_than_the_bound(bound: float) -> None:
    problem = coloured(60)
    weights = least_volume(problem, np.eye(6), bound)
    assert problem.domain(bound).contains(weights, atol=1e-9)


def test_a_bound_of_zero_leaves_every_row_its_weight() -> None:
    np.testing.assert_allclose(least_volume(coloured(60), np.eye(6), 0.0), 1.0 / N, rtol=1e-12)


@pytest.mark.parametrize("n_wrong", [0, 30, 90])
def test_the_rows_beyond_the_limits_are_the_outliers(n_wrong: int) -> None:
    problem = coloured(n_wrong)
    weights = least_volume(problem, np.eye(6), 0.4)
    folds = folds_of(problem.samples.project(np.ones((6, 1)))[:, 0])
    limits = beyond_limits(problem.objective, weights, np.ones(N), folds, 6)
    flagged = limits.combined(problem.samples) > 1.0
    assert flagged[:n_wrong].all()
    # Of those flagged one in a hundred is expected to be clean, and one more in a table; from too
    # few rows, at the first look, three times as many.
    assert flagged[n_wrong:].sum() <= 9


def test_no_row_of_the_vertex_reached_would_better_be_left_out() -> None:
    weights = least_volume(coloured(60), np.eye(6), 0.3)
    rows = coloured(60).samples.project(np.eye(6))
    away = rows - weights @ rows
    covariance = (away * weights[:, None]).T @ away
    distances = np.einsum("ij,ij->i", away @ np.linalg.inv(covariance), away)
    assert distances[weights > 0.0].max() <= distances[weights == 0.0].min() + 1e-9


def test_concentration_steps_never_raise_the_volume() -> None:
    rows = np.random.default_rng(0).standard_normal((60, 3))
    domain = CappedSimplex.from_contamination(60, 0.25)
    start = domain.reference()
    volumes = [
        concentrated(rows, domain, start, lambda w: w @ rows, steps)[1] for steps in range(1, 6)
    ]
    assert np.all(np.diff(volumes) <= 1e-9)


def test_the_starts_do_not_depend_on_the_order_of_rows() -> None:
    problem = coloured(60)
    order = np.random.default_rng(1).permutation(N)
    samples = DenseSamples(problem.samples.project(np.eye(6))[order])
    shuffled = problem.with_objective(MomentObjective(samples, KyFan(2), True, 0.0))
    expected = least_volume(problem, np.eye(6), 0.3)[order]
    np.testing.assert_allclose(least_volume(shuffled, np.eye(6), 0.3), expected, atol=1e-12)


def test_directions_are_the_axes_and_all_diagonals_between_two() -> None:
    assert len(start_directions(4)) == 4 + 2 * 6


def test_a_clump_within_the_limits_is_left_out_and_flagged_wherever_it_is_drawn() -> None:
    rng = np.random.default_rng(5)
    X = rng.standard_normal((400, 10))
    X[:20] = 6.0 * np.ones(10) / np.sqrt(10.0) + 0.1 * rng.standard_normal((20, 10))
    for contamination in ("auto", 0.05):
        est = RobustPCA(2, contamination=contamination).fit(X)
        flagged = est.predict(X) == -1
        np.testing.assert_array_equal(flagged, np.arange(400) < 20)
        np.testing.assert_array_equal(est.score_distances(X) > est.score_cutoff_, flagged)


def test_a_share_of_less_than_a_row_is_a_bound_of_the_rows_that_were_pruned() -> None:
    X = np.random.default_rng(0).standard_normal((40, 20)) * np.arange(1.0, 21.0)
    X[0] = 1e4
    est = RobustPCA(contamination=0.01).fit(X)
    assert est.certificate_.noise == "other"
    assert est.contamination_bound_ == pytest.approx(1.0 / 40.0)
    assert est.weights_.max() <= 1.0 / (40.0 * (1.0 - est.contamination_bound_)) + 1e-12


@pytest.mark.parametrize("rate", [0.5, 0.16])
def test_rare_rows_of_zeros_and_ones_are_not_distrusted(rate: float) -> None:
    rng = np.random.default_rng(0)
    latent = rng.standard_normal((400, 8)) + rng.standard_normal((400, 1))
    X = (latent > np.quantile(latent, 1.0 - rate)).astype(np.float64)
    est = RobustPCA(2).fit(X)
    assert np.all(est.predict(X) == 1)
    assert "too few values" in est.certificate_.verdict


def test_another_digit_is_told_though_its_distances_could_be_a_tail() -> None:
    X, y = load_digits(return_X_y=True)
    X = np.vstack([X[y == 7], X[y == 4][:16]])
    X = X[:, np.ptp(X, axis=0) > 0.0]
    flagged = RobustPCA(5).fit_predict(X) == -1
    assert flagged[-16:].mean() >= 0.9
    assert flagged[:-16].mean() <= 0.1


@pytest.mark.parametrize("contamination", ["auto", 0.1])
def test_rows_without_weight_are_those_flagged(contamination: float | str) -> None:
    # Far along the direction of most variance: pruned at the first look, but not far from a bulk
    # that varies so much along it.
    rng = np.random.default_rng(3)
    X = rng.standard_normal((500, 60)) * np.sqrt(20.0 * 0.85 ** np.arange(60.0) + 0.01)
    X[:50, 0] += 8.0 * np.sqrt(20.0)
    est = RobustPCA(5, contamination=contamination).fit(X)
    np.testing.assert_array_equal(est.predict(X) == -1, est.weights_ == 0.0)


@pytest.mark.parametrize("seed", range(3))
def test_a_far_group_is_found_among_a_hundred_skewed_columns(seed: int) -> None:
    rng = np.random.default_rng([8, seed])
    X = rng.standard_normal((1000, 100)) + rng.standard_normal((1000, 3)) @ rng.standard_normal(
        (3, 100)
    )
    X = np.where(X > 0.0, 1.8, 0.7) * X
    X[:300] += 40.0 * rng.standard_normal(100) / 10.0
    flagged = RobustPCA(5).fit_predict(X) == -1
    assert flagged[:300].all()
    assert flagged[300:].mean() <= 0.03


@pytest.mark.parametrize("seed", range(6))
def test_few_rows_of_zeros_and_ones_that_repeat_are_not_distrusted(seed: int) -> None:
    rng = np.random.default_rng(seed)
    patterns = rng.integers(0, 2, (4, 10)).astype(float)
    X = patterns[rng.choice(4, 200, p=[0.5, 0.25, 0.15, 0.1])]
    X = X[:, np.ptp(X, axis=0) > 0]
    est = RobustPCA(2).fit(X)
    assert np.all(est.predict(X) == 1)
    assert "too few values" in est.certificate_.verdict


def test_few_rows_that_repeat_are_judged_in_their_span() -> None:
    # Twelve rows in forty columns, of which six have more than two values.
    rng = np.random.default_rng(4)
    kinds = np.where(rng.standard_normal((12, 40)) > 0.0, 1.0, 0.0)
    kinds[:, :6] = rng.integers(0, 7, (12, 6))
    X = kinds[rng.integers(0, 12, 1000)]
    est = RobustPCA(2).fit(X)
    assert est.certificate_.noise == "other"
    assert np.isfinite(est.score_samples(X)).all()


def test_rows_are_told_by_the_columns_judged_and_reasons_name_them() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 7)) @ rng.standard_normal((7, 7))
    X[:, 2] = rng.random(300) < 0.1
    X[:5, 4] += 60.0
    est = RobustPCA(2).fit(X)
    np.testing.assert_array_equal(np.flatnonzero(est.predict(X) == -1), np.arange(5))
    assert all(row[0] == 4 for row in est.explain(X).features)
    # Nothing is minimised step by step there.
    assert est.n_iter_ == 1
    rare = X.copy()
    rare[:, 2] = 1e9
    np.testing.assert_array_equal(est.predict(rare), est.predict(X))


@pytest.mark.parametrize("seed", range(3))
def test_the_tail_of_clean_heavy_rows_is_no_group(seed: int) -> None:
    rng = np.random.default_rng([77, seed])
    X = rng.standard_normal((200, 3)) @ rng.standard_normal((3, 50)) * 2.0
    X += rng.standard_normal((200, 50)) * np.geomspace(0.5, 2.0, 50)
    X *= np.sqrt(3.0 / rng.chisquare(3.0, 200))[:, None]
    assert np.mean(RobustPCA(3).fit_predict(X) == -1) <= 0.04
