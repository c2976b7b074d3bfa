"""A known covariance of the noise: components beyond it, as accurate as in white noise."""

from __future__ import annotations

import io
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.covariance import LedoitWolf

from outweigh import RobustPCA, RobustSparsePCA
from outweigh.files.model import load_model, save_model

Array = NDArray[np.float64]

N, D, K, N_WRONG = 1200, 40, 5, 120
SUPPORT = [3, 11, 20, 28, 35]
KINDS = {"dense": RobustPCA, "sparse": RobustSparsePCA}
both = pytest.mark.parametrize("kind", KINDS)
SEEDS = range(4)


def ar1(rho: float) -> Array:
    return rho ** np.abs(np.subtract.outer(np.arange(D), np.arange(D)))


def truth(kind: str) -> Array:
    v = np.zeros(D)
    v[SUPPORT] = [1.0, -1.0, 1.0, 1.0, -1.0]
    if kind == "dense":
        v = np.cos(1.7 * np.arange(D)) + 0.5
    return v / np.linalg.norm(v)


def rows(kind: str, rho: float, seed: int) -> Array:
    """A spike that stands 3 above the noise and, in one row of ten, another of height 15."""
    rng = np.random.default_rng([82, seed])
    root, inverse = np.linalg.cholesky(ar1(rho)), np.linalg.inv(ar1(rho))
    v, f = truth(kind), np.zeros(D)
    f[[7, 8, 16, 31, 32]] = [1.0, 1.0, 1.0, -1.0, 1.0]
    X = rng.standard_normal((N, D)) @ root.T
    heights = np.sqrt([3.0 / (v @ inverse @ v), 15.0 / (f @ inverse @ f)])
    X[N_WRONG:] += heights[0] * np.outer(rng.standard_normal(N - N_WRONG), v)
    X[:N_WRONG] += heights[1] * np.outer(rng.standard_normal(N_WRONG), f)
    return X


def estimator(kind: str, covariance: object, **options: object):
    if kind == "sparse":
        options.setdefault("n_nonzero", K)
    return KINDS[kind](covariance=covariance, **options)


def error(component: Array, v: Array) -> float:
    return float(np.sqrt(max(1.0 - float(component @ v) ** 2, 0.0)))


@cache
def error_over_oracle(kind: str, rho: float) -> float:
    """The error in units of that of the same read-out on the clean rows alone."""
    errors, oracles = [], []
    for seed in SEEDS:
        X = rows(kind, rho, seed)
        est = estimator(kind, ar1(rho)).fit(X)
        oracle = estimator(kind, ar1(rho), contamination=0.0).fit(X[N_WRONG:])
        errors.append(error(est.components_[0], truth(kind)))
        oracles.append(error(oracle.components_[0], truth(kind)))
    return float(np.mean(errors) / np.mean(oracles))


@both
@pytest.mark.parametrize("rho", [0.3, 0.6, 0.9])
def test_with_the_true_covariance_correlated_noise_is_no_harder_than_white(
    kind: str, rho: float
) -> None:
    assert error_over_oracle(kind, rho) <= 1.05 * error_over_oracle(kind, 0.0) + 0.05


@both
def test_with_the_true_covariance_the_clean_level_is_reached(kind: str) -> None:
    est = estimator(kind, ar1(0.9)).fit(rows(kind, 0.9, 0))
    assert est.certificate_.noise == "given"
    assert est.certificate_.clean


def test_without_it_strong_correlation_passes_for_a_component() -> None:
    X, v = rows("sparse", 0.9, 0), truth("sparse")
    assert error(estimator("sparse", ar1(0.9)).fit(X).components_[0], v) < 0.1
    assert error(estimator("sparse", None).fit(X).components_[0], v) > 0.9


def test_a_spike_too_weak_for_the_leading_direction_is_found_in_its_few_features() -> None:
    n, d, errors = 400, 200, []
    covariance = 0.6 ** np.abs(np.subtract.outer(np.arange(d), np.arange(d)))
    for seed in range(5):
        rng = np.random.default_rng([83, seed])
        v = np.zeros(d)
        v[rng.choice(d, K, replace=False)] = rng.choice([-1.0, 1.0], K) / np.sqrt(K)
        X = rng.standard_normal((n, d)) @ np.linalg.cholesky(covariance).T
        X += np.sqrt(0.4) * np.outer(rng.standard_normal(n), v)
        found = RobustSparsePCA(n_nonzero=K, covariance=covariance).fit(X).components_[0]
        errors.append(error(found, v))
    assert np.median(errors) < 0.6


@both
def test_the_identity_changes_nothing(kind: str) -> None:
    X = rows(kind, 0.0, 0)
    plain, known = estimator(kind, None).fit(X), estimator(kind, np.eye(D)).fit(X)
    assert abs(float(plain.components_[0] @ known.components_[0])) > 1.0 - 1e-3
    np.testing.assert_allclose(known.explained_variance_, plain.explained_variance_, rtol=2e-2)


def test_the_support_is_that_of_the_features_also_where_it_is_counted() -> None:
    X = rows("sparse", 0.6, 1)
    for count in (K, "auto"):
        est = RobustSparsePCA(n_nonzero=count, covariance=ar1(0.6)).fit(X)
        assert np.flatnonzero(est.components_[0]).tolist() == SUPPORT
        assert np.linalg.norm(est.components_[0]) == pytest.approx(1.0)


def test_dense_components_beyond_the_noise_are_orthonormal_and_span_the_planted_ones() -> None:
    rng = np.random.default_rng(3)
    planted = np.linalg.qr(rng.standard_normal((D, 2)))[0]
    X = rng.standard_normal((3000, D)) @ np.linalg.cholesky(ar1(0.6)).T
    X += rng.standard_normal((3000, 2)) * [5.0, 3.0] @ planted.T
    est = RobustPCA(2, covariance=ar1(0.6)).fit(X)
    np.testing.assert_allclose(est.components_ @ est.components_.T, np.eye(2), atol=1e-10)
    assert np.linalg.svd(est.components_ @ planted)[1].min() > 0.99


@both
def test_a_common_factor_of_the_covariance_does_not_matter(kind: str) -> None:
    X = rows(kind, 0.6, 0)
    one, other = (estimator(kind, c * ar1(0.6)).fit(X) for c in (1.0, 49.0))
    np.testing.assert_allclose(one.components_, other.components_, atol=1e-8)
    np.testing.assert_allclose(one.weights_, other.weights_, atol=1e-10)


@both
def test_units_of_the_covariance_are_those_of_the_rows(kind: str) -> None:
    units = np.geomspace(0.1, 10.0, D)
    X = rows(kind, 0.6, 0)
    plain = estimator(kind, ar1(0.6)).fit(X)
    scaled = estimator(kind, ar1(0.6) * units * units[:, None]).fit(X * units)
    expected = plain.components_[0] * units
    expected /= np.linalg.norm(expected)
    assert abs(float(scaled.components_[0] @ expected)) == pytest.approx(1.0, abs=1e-8)
    np.testing.assert_allclose(scaled.mean_ / units, plain.mean_, atol=1e-8)
    np.testing.assert_allclose(scaled.scale_ / units, plain.scale_, rtol=1e-8)


def test_an_estimator_fitted_on_noise_serves_as_well() -> None:
    noise = np.random.default_rng(9).standard_normal((1500, D)) @ np.linalg.cholesky(ar1(0.8)).T
    est = estimator("sparse", LedoitWolf().fit(noise)).fit(rows("sparse", 0.8, 0))
    assert np.flatnonzero(est.components_[0]).tolist() == SUPPORT


@both
def test_fewer_rows_than_columns(kind: str) -> None:
    rng = np.random.default_rng(4)
    R = 0.6 ** np.abs(np.subtract.outer(np.arange(120), np.arange(120)))
    v = np.zeros(120)
    v[[5, 40, 80]] = 3**-0.5
    X = rng.standard_normal((80, 120)) @ np.linalg.cholesky(R).T
    X += 5.0 * np.outer(rng.standard_normal(80), v)
    est = estimator(kind, R, **({"n_nonzero": 3} if kind == "sparse" else {})).fit(X)
    assert abs(float(est.components_[0] @ v)) > 0.8


@both
def test_reasons_name_the_planted_features_and_scores_survive_a_file(kind: str) -> None:
    X = rows(kind, 0.6, 0)
    X[:N_WRONG, [10, 25]] += 9.0
    est = estimator(kind, ar1(0.6)).fit(X)
    found = est.explain(X, top=2)
    planted = [set(f) == {10, 25} for r, f in zip(found.rows, found.features.tolist(), strict=True)
               if r < N_WRONG]  # fmt: skip
    assert len(planted) >= 0.95 * N_WRONG
    assert np.mean(planted) >= 0.9
    file = io.BytesIO()
    save_model(est, file)
    file.seek(0)
    again = load_model(file)
    np.testing.assert_allclose(again.score_samples(X), est.score_samples(X), rtol=1e-12)
    np.testing.assert_allclose(again.transform(X), est.transform(X), rtol=1e-12)


def test_a_wrong_covariance_is_told_by_the_certificate() -> None:
    est = RobustPCA(covariance=ar1(0.95)).fit(rows("dense", 0.0, 0))
    assert est.certificate_.noise == "other"
    assert not est.certificate_.clean
    assert "nor as `covariance` says" in est.certificate_.verdict


@pytest.mark.parametrize(
    ("covariance", "message"),
    [
        (np.eye(3), r"one row and one column per feature, shape \(40, 40\); got shape \(3, 3\)"),
        (np.ones((D, D)), "positive definite"),
        (LedoitWolf(), "LedoitWolf is not fitted"),
    ],
)
def test_a_covariance_that_cannot_be_one_is_refused(covariance: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RobustPCA(covariance=covariance).fit(rows("dense", 0.0, 0))
