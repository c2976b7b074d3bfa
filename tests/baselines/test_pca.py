"""Components: read-outs against brute force, filters against the oracle."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from sklearn.decomposition import PCA

from outweigh.adversaries import dense_spike, spiked_mixture, two_outlier_spikes
from outweigh.baselines import (
    EmpiricalPCA,
    EmpiricalSparsePCA,
    FilterPCA,
    FilterSparsePCA,
    OraclePCA,
    SphericalPCA,
    TylerPCA,
)
from outweigh.baselines.filters import _gaussian_product_covariance, _largest_pairs
from outweigh.baselines.pca import leading_directions

EVERY = pytest.mark.parametrize(
    "baseline",
    [EmpiricalPCA, EmpiricalSparsePCA, FilterPCA, FilterSparsePCA, SphericalPCA, TylerPCA],
    ids=lambda baseline: baseline.__name__,
)


def error(u: np.ndarray, v: np.ndarray) -> float:
    return float(np.linalg.norm(np.outer(u, u) - np.outer(v, v)))


def test_the_sparse_direction_is_nearly_the_best_of_all_supports() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        X = rng.standard_normal((30, 8))
        covariance = X.T @ X / 30
        u = leading_directions(covariance, 1, 3)[0]
        best = max(
            np.linalg.eigvalsh(covariance[np.ix_(s, s)])[-1]
            for s in map(list, combinations(range(8), 3))
        )
        assert np.count_nonzero(u) == 3
        assert u @ u == pytest.approx(1.0)
        assert u @ covariance @ u >= 0.93 * best


def test_dense_directions_are_eigenvectors_in_descending_order() -> None:
    X = np.random.default_rng(0).standard_normal((50, 6)) * np.arange(1, 7)
    covariance = X.T @ X / 50
    rows = leading_directions(covariance, 3, 6)
    values = np.linalg.eigvalsh(covariance)[::-1]
    np.testing.assert_allclose(covariance @ rows.T, rows.T * values[:3], atol=1e-10)


@pytest.mark.parametrize("overlapping", [False, True])
def test_the_oracle_finds_several_sparse_components(overlapping: bool) -> None:
    sample = spiked_mixture(
        8000, 40, 6, 0.1, 0, n_components=2, spike=(4.0, 2.0), overlapping=overlapping
    )
    found = OraclePCA(2, 6).fit(sample.X, inliers=sample.inliers).components_
    np.testing.assert_allclose(abs(found @ sample.truth.T), np.eye(2), atol=0.15)
    assert (np.count_nonzero(found, axis=1) == 6).all()


def test_the_dense_oracle_is_the_pca_of_the_genuine_rows() -> None:
    sample = dense_spike(500, 12, 12, 0.1, 0, spike=3.0)
    found = OraclePCA(2).fit(sample.X, inliers=sample.inliers).components_
    expected = PCA(2).fit(sample.X[sample.inliers]).components_
    np.testing.assert_allclose(abs(np.sum(found * expected, axis=1)), 1.0)


def test_the_empirical_components_are_scikit_learn_s_for_either_shape() -> None:
    for shape in ((60, 8), (8, 60)):
        X = np.random.default_rng(0).standard_normal(shape)
        found = EmpiricalPCA(3).fit(X).components_
        expected = PCA(3, svd_solver="full").fit(X).components_
        np.testing.assert_allclose(abs(np.sum(found * expected, axis=1)), 1.0)


@pytest.mark.parametrize("baseline", [SphericalPCA, TylerPCA])
def test_heavy_tails_do_not_turn_components_that_see_directions_alone(baseline: type) -> None:
    rng = np.random.default_rng(0)
    scale = np.array([4.0, 2.0, 1.0, 1.0, 1.0])
    X = rng.standard_normal((4000, 5)) * scale / rng.uniform(size=(4000, 1)) ** 3
    found = baseline(2).fit(X + 7.0).components_
    np.testing.assert_allclose(abs(found), np.eye(5)[:2], atol=0.1)
    assert error(EmpiricalPCA().fit(X).components_[0], np.eye(5)[0]) > 0.3


@pytest.mark.parametrize("baseline", [SphericalPCA, TylerPCA])
def test_lengths_of_rows_from_a_known_centre_do_not_matter(baseline: type) -> None:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((60, 4)) * [3.0, 2.0, 1.0, 1.0]
    there = baseline(2, assume_centered=True).fit(X * rng.uniform(0.1, 9.0, (60, 1))).components_
    np.testing.assert_allclose(
        baseline(2, assume_centered=True).fit(X).components_, there, atol=1e-6
    )


def test_tyler_s_shape_solves_its_equation() -> None:
    rng = np.random.default_rng(2)
    X, A = (
        rng.standard_normal((300, 3)),
        np.array([[3.0, 0.0, 0.0], [1.0, 2.0, 0.0], [0.0, 1.0, 1.0]]),
    )
    Z = X @ A
    # The shape by its own equation, written row by row.
    V = np.eye(3)
    for _ in range(300):
        V = sum(np.outer(z, z) / (z @ np.linalg.solve(V, z)) for z in Z) / 100.0
        V *= 3.0 / np.trace(V)
    expected = np.linalg.eigh(V)[1][:, ::-1].T
    found = TylerPCA(3, assume_centered=True).fit(Z).components_
    np.testing.assert_allclose(abs(np.sum(found * expected, axis=1)), 1.0, atol=1e-8)


@EVERY
def test_rows_have_length_one_and_a_positive_largest_entry(baseline: type) -> None:
    sample = spiked_mixture(400, 20, 4, 0.1, 0)
    row = baseline(n_nonzero=4).fit(sample.X).components_[0]
    assert np.linalg.norm(row) == pytest.approx(1.0)
    assert row[np.argmax(abs(row))] > 0
    assert np.count_nonzero(row) <= 4


@EVERY
@pytest.mark.parametrize("shape", [(2, 1), (2, 4), (5, 1), (4, 30)])
def test_tiny_data_gives_finite_components(baseline: type, shape: tuple[int, int]) -> None:
    X = np.random.default_rng(0).standard_normal(shape)
    found = baseline().fit(X).components_
    assert found.shape == (1, shape[1])
    assert np.isfinite(found).all()


@EVERY
def test_components_do_not_depend_on_the_origin(baseline: type) -> None:
    X = spiked_mixture(600, 15, 3, 0.1, 0).X
    here = baseline(n_nonzero=3).fit(X).components_
    there = baseline(n_nonzero=3).fit(X + 100.0).components_
    assert error(here[0], there[0]) < 1e-5


def test_the_covariance_of_gaussian_products_is_that_of_a_large_sample() -> None:
    rng = np.random.default_rng(0)
    v = np.array([0.6, 0.8, 0.0])
    covariance = np.eye(3) + 2.0 * np.outer(v, v)
    x = rng.multivariate_normal(np.zeros(3), covariance, 400_000)
    first, second = np.array([0, 0, 1, 2]), np.array([0, 1, 2, 2])
    observed = np.cov(x[:, first] * x[:, second], rowvar=False)
    np.testing.assert_allclose(
        _gaussian_product_covariance(covariance, first, second), observed, atol=0.1
    )


def test_pairs_are_the_largest_entries_by_magnitude() -> None:
    excess = np.array([[0.1, -5.0, 0.3], [-5.0, 2.0, 0.2], [0.3, 0.2, 0.0]])
    first, second = _largest_pairs(excess, 2)
    assert set(zip(first.tolist(), second.tolist(), strict=True)) == {(0, 1), (1, 1), (0, 2)}


@pytest.mark.parametrize("baseline", [FilterSparsePCA(4), FilterPCA(4)])
@pytest.mark.parametrize("attack", [spiked_mixture, two_outlier_spikes])
def test_filters_withstand_strong_spikes_of_the_outliers(baseline: object, attack: object) -> None:
    ratios, plain = [], []
    for seed in range(5):
        sample = attack(4000, 60, 4, 0.1, seed)
        truth = sample.truth[0]
        oracle = OraclePCA(1, 4).fit(sample.X, inliers=sample.inliers).components_[0]
        found = baseline.fit(sample.X).components_[0]
        ratios.append(error(found, truth) / error(oracle, truth))
        plain.append(error(EmpiricalPCA(1, 4).fit(sample.X).components_[0], truth))
    assert np.median(ratios) < 1.5
    assert attack is two_outlier_spikes or np.median(plain) > 1.0


def test_scikit_learn_s_sparse_pca_locks_onto_the_outliers() -> None:
    sample = spiked_mixture(500, 40, 4, 0.1, 0)
    found = EmpiricalSparsePCA(1, 4).fit(sample.X).components_[0]
    assert error(found, sample.truth[0]) > 1.3


@EVERY
def test_bad_parameters_of_component_baselines_are_named(baseline: type) -> None:
    X = np.random.default_rng(0).standard_normal((6, 4))
    with pytest.raises(ValueError, match="n_nonzero"):
        baseline(n_nonzero=0).fit(X)
    for name, value in (("n_components", 5), ("contamination", 0.5), ("spike", 0.0)):
        if name in baseline().get_params():
            with pytest.raises(ValueError, match=name):
                baseline(**{name: value}).fit(X)
    with pytest.raises(ValueError, match="minimum of 2"):
        baseline().fit(X[:1])
