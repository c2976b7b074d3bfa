"""Rows judged by a fit that they had no part in."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from outweigh import RobustPCA
from outweigh.fit.held_out import (
    beyond_limits,
    fitted_distances,
    folds_of,
    leading_directions,
)
from outweigh.norms import KyFan
from outweigh.objectives import MomentObjective
from outweigh.samples import DenseSamples


def about_mean(X: np.ndarray) -> MomentObjective:
    return MomentObjective(DenseSamples(X), KyFan(1), True, 0.0)


def keys(X: np.ndarray) -> np.ndarray:
    return X @ np.random.default_rng(0).standard_normal(X.shape[1])


@pytest.mark.parametrize("shape", [(25, 40), (60, 30), (200, 10), (400, 5)])
def test_rows_left_out_of_the_fit_seem_no_farther_out_than_the_others(shape) -> None:
    n = shape[0]
    flagged = []
    for seed in range(20):
        X = np.random.default_rng(seed).standard_normal(shape)
        ones = np.ones(n)
        weights = np.where(np.arange(n) < n // 5, 0.0, 1.0)
        weights /= weights.sum()
        limits = beyond_limits(about_mean(X), weights, ones, folds_of(keys(X)), 4, price=np.log(n))
        flagged.append((limits.combined(DenseSamples(X)) > 1.0)[: n // 5].mean())
    # They are a fifth of the rows, so that in truth none is wrong.
    assert np.mean(flagged) <= 0.05


def test_equal_rows_share_a_fold_and_folds_are_of_one_size() -> None:
    X = np.random.default_rng(0).standard_normal((100, 7))
    folds = folds_of(keys(np.vstack([X, X])))
    np.testing.assert_array_equal(folds[:100], folds[100:])
    np.testing.assert_array_equal(np.bincount(folds), 40)


def test_of_directions_of_equal_variance_rounding_does_not_choose() -> None:
    # Two features of variance 8/12, three of 2/12, and one that does not vary.
    X = np.vstack([np.diag([2.0, 2.0, 1.0, 1.0, 1.0, 0.0]), -np.diag([2.0, 2.0, 1.0, 1.0, 1.0, 0])])
    weights = np.full(12, 1.0 / 12.0)
    rng = np.random.default_rng(0)
    turned = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    for samples, axes in ((X, np.eye(6)), (X @ turned, turned.T)):
        values, here = leading_directions(about_mean(samples), weights)
        np.testing.assert_allclose(values, [2 / 3, 2 / 3, 1 / 6, 1 / 6, 1 / 6, 0.0], atol=1e-12)
        np.testing.assert_allclose(np.abs(here[:, 5]), np.abs(axes[:, 5]), atol=1e-9)
        # Moments of the same rows, summed about another origin and in another order.
        moved = (samples + rng.standard_normal(6))[rng.permutation(12)]
        there = leading_directions(about_mean(moved), weights)[1]
        np.testing.assert_allclose(there, here, atol=1e-9)


def test_the_order_of_rows_does_not_matter() -> None:
    X = np.random.default_rng(0).standard_normal((80, 6))
    order = np.random.default_rng(1).permutation(80)
    np.testing.assert_array_equal(folds_of(keys(X))[order], folds_of(keys(X[order])))


def test_rows_in_a_subspace_are_told_from_those_beside_it() -> None:
    rng = np.random.default_rng(0)
    X = np.zeros((60, 8))
    X[:, :3] = rng.standard_normal((60, 3))
    X[:6, 5] += 1e-3
    weights = np.where(np.arange(60) < 6, 0.0, 1.0 / 54)
    limits = beyond_limits(about_mean(X), weights, np.ones(60), folds_of(keys(X)), 3)
    np.testing.assert_array_equal(limits.combined(DenseSamples(X)) > 1.0, weights == 0.0)


def test_of_small_clean_tables_one_row_is_flagged_in_twenty_tables_as_the_limits_say() -> None:
    flagged = []
    for seed in range(120):
        X = np.random.default_rng([31, seed]).standard_normal((25, 5)) * [4.0, 1.0, 1.0, 1.0, 1.0]
        flagged.append((RobustPCA().fit(X).predict(X) == -1).sum())
    # Twice as many: those beyond in the first of two looks had no part in the second fit.
    assert np.mean(flagged) <= 2.0 * 0.05
    assert max(flagged) <= 1


def test_about_zero_distances_are_from_zero() -> None:
    X = 5.0 + np.random.default_rng(0).standard_normal((50, 4))
    about_zero = replace(about_mean(X), centred=False)
    assert not fitted_distances(about_zero, np.full(50, 0.02), 2).centre.any()
