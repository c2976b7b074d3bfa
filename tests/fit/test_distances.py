"""The two distances of robust PCA, and their cut-offs."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2

from outweigh.fit.distances import Distances, DistanceScore, distances_for
from outweigh.fit.noise import Standardizer
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
    return distances_for(DenseSamples(X), uniform(len(X)), np.eye(D)[:, :R], centre)


def test_the_distance_inside_is_mahalanobis_and_the_other_euclidean() -> None:
    X = rows()
    found = fitted(X)
    away = X - X.mean(axis=0)
    S = away[:, :R].T @ away[:, :R] / N
    inside = np.sqrt(np.einsum("ij,jk,ik->i", away[:, :R], np.linalg.inv(S), away[:, :R]))
    np.testing.assert_allclose(found.score(DenseSamples(X)), inside, rtol=1e-9)
    outside = np.linalg.norm(away[:, R:], axis=1)
    np.testing.assert_allclose(found.orthogonal(DenseSamples(X)), outside, rtol=1e-9)


@pytest.mark.parametrize("which", ["score", "orthogonal"])
def test_one_clean_row_in_forty_is_beyond_each_cut_off(which: str) -> None:
    X = rows()
    found = fitted(X)
    beyond = getattr(found, which)(DenseSamples(X)) > getattr(found, f"{which}_cutoff")
    # Of 4000 rows the share has a deviation of 0.0025.
    assert np.mean(beyond) == pytest.approx(0.025, abs=0.01)


def test_the_combined_distance_is_the_larger_in_units_of_the_cut_offs() -> None:
    X = rows()
    found, samples = fitted(X), DenseSamples(X)
    inside = found.score(samples) / found.score_cutoff
    outside = found.orthogonal(samples) / found.orthogonal_cutoff
    np.testing.assert_allclose(found.combined(samples), np.maximum(inside, outside))


def test_variances_under_trimming_weights_are_brought_to_the_median_of_all_rows() -> None:
    X = rows()
    order = np.argsort(np.linalg.norm((X - 7.0) / X.std(axis=0), axis=1))
    w = np.zeros(N)
    w[order[: N // 2]] = 2.0 / N
    found = distances_for(DenseSamples(X), w, np.eye(D)[:, :R], w @ X, np.ones(N))
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
    found = distances_for(DenseSamples(X), w, np.eye(D)[:, :R], w @ X)
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
