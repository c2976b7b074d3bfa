"""The two distances of robust PCA, their cut-offs, and rows judged by a fit without them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2

from outweigh import RobustPCA
from outweigh.fit.distances import (
    Distances,
    DistanceScore,
    beyond_limits,
    fitted_distances,
    folds_of,
    leading_directions,
)
from outweigh.fit.noise import Standardizer
from outweigh.norms import KyFan
from outweigh.objectives import MomentObjective
from outweigh.samples import DenseSamples

Array = NDArray[np.float64]
N, D, R = 4000, 12, 3


def rows(seed: int = 0) -> Array:
    X = np.random.default_rng(seed).standard_normal((N, D))
    return np.asarray(X * np.r_[5.0, 4.0, 3.0, np.ones(D - R)] + 7.0)


def uniform(n: int = N) -> Array:
    return np.full(n, 1.0 / n)


def fitted(X: Array, centred: bool = True) -> Distances:
    centre = X.mean(axis=0) if centred else np.zeros(D)
    samples, weights = DenseSamples(X), uniform(len(X))
    return Distances.of(samples, weights, np.eye(D)[:, :R], centre).calibrated(samples, weights)


def test_the_distance_inside_is_mahalanobis_and_the_other_euclidean() -> None:
    X = rows()
    found = fitted(X)
    away = X - X.mean(axis=0)
    S = away[:, :R].T @ away[:, :R] / N
    inside = np.sqrt(np.einsum("ij,jk,ik->i", away[:, :R], np.linalg.inv(S), away[:, :R]))
    np.testing.assert_allclose(found.score(DenseSamples(X)), inside, rtol=1e-9)
    outside = np.linalg.norm(away[:, R:], axis=1)
    np.testing.assert_allclose(found.orthogonal(DenseSamples(X)), outside, rtol=1e-9)


def test_one_clean_row_in_forty_is_beyond_each_cut_off() -> None:
    X = rows()
    found = fitted(X)
    beyond = found.both(DenseSamples(X)) > found.cutoffs[:, None]
    # Of 4000 rows the share has a deviation of 0.0025.
    np.testing.assert_allclose(beyond.mean(axis=1), 0.025, atol=0.01)


def test_the_combined_distance_is_the_larger_in_units_of_the_cut_offs() -> None:
    X = rows()
    found, samples = fitted(X), DenseSamples(X)
    expected = (found.both(samples) / found.cutoffs[:, None]).max(axis=0)
    np.testing.assert_allclose(found.combined(samples), expected)


def test_variances_under_trimming_weights_are_brought_to_the_median_of_all_rows() -> None:
    X = rows()
    order = np.argsort(np.linalg.norm((X - 7.0) / X.std(axis=0), axis=1))
    w = np.zeros(N)
    w[order[: N // 2]] = 2.0 / N
    found = Distances.of(DenseSamples(X), w, np.eye(D)[:, :R], w @ X)
    found = found.at_median(DenseSamples(X), np.ones(N))
    middle = float(np.median(found.score(DenseSamples(X)) ** 2))
    assert middle == pytest.approx(float(chi2.ppf(0.5, R)), rel=0.01)


@pytest.mark.parametrize("kind", [0, 1])
def test_rows_to_one_side_are_those_of_no_symmetric_law(kind: int) -> None:
    X = rows()
    found, samples = fitted(X), DenseSamples(X)
    direction = np.eye(D)[(0, R + 1)[kind]]
    # Of clean rows the farthest, which lie all round, and those of one side.
    along = (X - 7.0) @ direction
    distance = found.both(samples)[kind]
    far = (distance > np.quantile(distance, 0.95)).astype(np.float64)
    all_round = found.to_one_side(samples, far, kind)
    one_side = found.to_one_side(samples, far * (along > 0.0), kind)
    # Half a squared deviation, of mean one half at most.
    assert all_round < 5.0
    assert one_side > 3.0 * np.log(N)


def test_the_nats_of_one_side_are_those_of_the_pairs_of_rows() -> None:
    X = rows()[:40]
    found, far = fitted(X), (np.arange(40) < 15) * 1.0
    away = X[:15] - found.centre
    away -= away @ found.components @ found.components.T
    cosines = (away @ away.T) / np.outer(*[np.linalg.norm(away, axis=1)] * 2)
    pairs = cosines[~np.eye(15, dtype=bool)]
    expected = max(pairs.sum(), 0.0) ** 2 / (4.0 * np.square(pairs).sum())
    nats = found.to_one_side(DenseSamples(X), far, 1)
    assert nats == pytest.approx(expected, rel=1e-6, abs=1e-12)


def test_rows_that_coincide_have_finite_distances() -> None:
    X = np.tile(np.arange(float(D)), (20, 1))
    X[0] += 1.0
    w = np.r_[0.0, np.full(19, 1 / 19)]
    found = Distances.of(DenseSamples(X), w, np.eye(D)[:, :R], w @ X)
    found = found.calibrated(DenseSamples(X), w)
    assert np.isfinite(found.combined(DenseSamples(X))).all()


def test_the_score_is_minus_the_combined_distance_in_units_of_the_noise() -> None:
    X = rows()
    standardizer = Standardizer(np.arange(D), np.full(D, 7.0), np.full(D, 2.0))
    found = fitted((X - 7.0) / 2.0)
    score = DistanceScore(standardizer, found)
    np.testing.assert_allclose(score(X), -found.combined(DenseSamples((X - 7.0) / 2.0)))


def test_the_columns_in_which_a_row_is_far_out_count_against_it() -> None:
    X = rows()
    standardizer = Standardizer(np.arange(D), np.zeros(D), np.ones(D))
    score = DistanceScore(standardizer, fitted(X))
    one = np.full((1, D), 7.0)
    one[0, 5] += 30.0
    contributions, away = score.contributions(one)
    assert np.argmax(contributions[0]) == 5
    assert np.all(contributions > 0.0)
    assert away[0, 5] == pytest.approx(30.0, abs=0.2)


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
