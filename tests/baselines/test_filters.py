"""The parts of the filters against brute force."""

from __future__ import annotations

import numpy as np
import pytest

from outweigh.adversaries import constant_bias, linear_hiding
from outweigh.baselines import FilterMean, FilterSparseMean, NaivePruning
from outweigh.baselines.filters import SurvivingRows, _form_values, _largest_excess, unlikely


def test_the_covariance_of_the_survivors_is_numpy_s_after_every_drop() -> None:
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((200, 6))
    rows = SurvivingRows(Z, rng.random(200) < 0.9)
    for share in (0.05, 0.0, 0.3, 0.8):
        rejected = rng.random(len(rows)) < share
        assert rows.drop(rejected) == np.count_nonzero(rejected)
        alive = Z[rows.mask()]
        np.testing.assert_allclose(rows.covariance(), np.cov(alive, rowvar=False), atol=1e-12)
        np.testing.assert_allclose(rows.mean, alive.mean(axis=0), atol=1e-12)
        np.testing.assert_allclose(rows.second_moment(), alive.T @ alive / len(alive), atol=1e-12)


@pytest.mark.parametrize("rate", [0.01, 0.1, 0.3])
def test_rejection_is_that_of_benjamini_and_hochberg(rate: float) -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        tail = np.concatenate([rng.random(60), rng.random(15) * 0.01])
        ordered, ranks = np.sort(tail), np.arange(1, tail.size + 1)
        small = ordered[ordered <= rate * ranks / tail.size]
        expected = tail <= small.max(initial=-np.inf)
        np.testing.assert_array_equal(unlikely(tail, rate), expected)


def test_nothing_is_rejected_when_most_rows_would_be() -> None:
    assert not unlikely(np.full(10, 1e-9), 0.1).any()


def test_tails_above_one_reject_nothing() -> None:
    assert not unlikely(np.full(10, np.inf), 0.1).any()


@pytest.mark.parametrize("k", [1, 2, 4, 7])
def test_the_form_holds_k_diagonal_and_k_squared_minus_k_other_entries(k: int) -> None:
    noise = np.random.default_rng(0).standard_normal((7, 7))
    covariance = np.eye(7) + (noise + noise.T) / 2
    features, form = _largest_excess(covariance, k)
    dense = form.toarray()
    assert np.count_nonzero(dense) == k * k
    assert np.count_nonzero(np.diag(dense)) == k
    np.testing.assert_array_equal(dense, dense.T)
    excess = covariance - np.eye(7)
    np.testing.assert_allclose(dense[dense != 0], excess[dense != 0])
    left_out = abs(excess[(dense == 0) & ~np.eye(7, dtype=bool)])
    kept = abs(dense[(dense != 0) & ~np.eye(7, dtype=bool)])
    assert kept.size == 0 or left_out.size == 0 or kept.min() >= left_out.max()
    assert sorted(features) == sorted(np.argsort(abs(np.diag(excess)))[7 - k :])


def test_the_quadratic_form_is_standardised_row_by_row() -> None:
    Z = np.random.default_rng(0).standard_normal((50, 6))
    rows = SurvivingRows(Z, np.ones(50, dtype=bool))
    form = _largest_excess(rows.covariance(), 3)[1]
    M = form.toarray()
    expected = [
        ((z - Z.mean(axis=0)) @ M @ (z - Z.mean(axis=0)) - np.trace(M)) / np.linalg.norm(M)
        for z in Z
    ]
    np.testing.assert_allclose(_form_values(rows, form), expected)


def test_the_quadratic_filter_sees_what_the_linear_one_does_not() -> None:
    sample = linear_hiding(6000, 200, 40, 0.1, random_state=0)
    both = FilterSparseMean(40).fit(sample.X)
    linear = FilterSparseMean(40, quadratic=False).fit(sample.X)
    assert np.linalg.norm(both.location_) < 0.8 * np.linalg.norm(linear.location_)


@pytest.mark.parametrize("baseline", [FilterSparseMean, FilterMean])
def test_without_contamination_the_filter_is_naive_pruning(baseline: type) -> None:
    X = constant_bias(300, 10, 4, 0.1, random_state=0).X
    np.testing.assert_allclose(
        baseline(contamination=0.0).fit(X).location_, NaivePruning().fit(X).location_
    )


@pytest.mark.parametrize("baseline", [FilterSparseMean(10), FilterMean()])
def test_a_filter_drops_the_outliers_and_few_others(baseline: object) -> None:
    sample = constant_bias(2000, 40, 10, 0.1, random_state=0)
    dropped = ~baseline.fit(sample.X).inliers_
    assert dropped[~sample.inliers].mean() > 0.95
    assert dropped[sample.inliers].mean() < 0.02
