"""Without contamination the components are those of scikit-learn's PCA, for any shape."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.decomposition import PCA

from outweigh.estimators.pca import RobustPCA, RobustSparsePCA

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*features are constant"),
    pytest.mark.filterwarnings("ignore:X. only . rows count"),
]


def table(shape: tuple[int, int], kind: str) -> np.ndarray:
    rng = np.random.default_rng(list(shape))
    n, d = shape
    X = rng.standard_normal(shape) * np.geomspace(5.0, 0.5, d) + 3.0
    if kind == "rank deficient":
        X = X[:, :2] @ rng.standard_normal((2, d)) + 1.0
    elif kind == "constant columns":
        X[:, 1::3] = 7.0
    elif kind == "equal rows":
        X[n // 2 :] = X[0]
    return X


SHAPES = [(200, 12), (60, 20), (30, 30), (20, 50), (400, 15), (12, 3)]
KINDS = ["full", "rank deficient", "constant columns", "equal rows"]
ATTRIBUTES = ("explained_variance_", "explained_variance_ratio_", "singular_values_", "mean_")


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_components", [1, 3, None, 0.9])
def test_it_is_the_pca_of_scikit_learn(shape, kind: str, n_components) -> None:
    X = table(shape, kind)
    plain = PCA(n_components, svd_solver="full").fit(X)
    est = RobustPCA(n_components, contamination=0.0).fit(X)
    assert est.n_components_ == plain.n_components_
    unit = float(plain.explained_variance_[0])
    for name in ATTRIBUTES:
        # The root of a variance that is rounding is the root of rounding.
        atol = 1e-6 if name == "singular_values_" else 1e-10
        np.testing.assert_allclose(getattr(est, name), getattr(plain, name), atol=atol * unit)
    assert est.noise_variance_ == pytest.approx(plain.noise_variance_, abs=1e-10 * unit)
    gram = est.components_ @ est.components_.T
    np.testing.assert_allclose(gram, np.eye(est.n_components_), atol=1e-8)
    told = plain.explained_variance_ > 1e-9 * unit
    np.testing.assert_allclose(est.components_[told], plain.components_[told], atol=1e-7)
    np.testing.assert_allclose(est.transform(X)[:, told], plain.transform(X)[:, told], atol=1e-6)
    np.testing.assert_allclose(est.get_covariance(), plain.get_covariance(), atol=1e-8 * unit)
    np.testing.assert_array_equal(
        est.get_feature_names_out(), [f"robustpca{j}" for j in range(est.n_components_)]
    )


@pytest.mark.parametrize("shape", [(200, 12), (60, 20)], ids=str)
def test_precision_whitening_and_the_way_back_are_those_of_scikit_learn(shape) -> None:
    X = table(shape, "full")
    plain, est = PCA(3, whiten=True).fit(X), RobustPCA(3, contamination=0.0, whiten=True).fit(X)
    np.testing.assert_allclose(est.transform(X), plain.transform(X), atol=1e-8)
    scores = plain.transform(X)
    np.testing.assert_allclose(
        est.inverse_transform(scores), plain.inverse_transform(scores), atol=1e-8
    )
    # Scores that are whitened do not change what the rows are taken to be.
    np.testing.assert_allclose(est.get_precision(), PCA(3).fit(X).get_precision(), atol=1e-8)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("contamination", ["auto", 0.1])
@pytest.mark.parametrize("estimator", [RobustPCA, RobustSparsePCA])
def test_components_are_finite_unit_vectors_whatever_the_rank(
    estimator, shape, kind: str, contamination
) -> None:
    X = table(shape, kind)
    est = estimator(min(3, *shape), contamination=contamination).fit(X)
    assert np.isfinite(est.components_).all()
    np.testing.assert_allclose(np.linalg.norm(est.components_, axis=1), 1.0)
    if estimator is RobustPCA:
        gram = est.components_ @ est.components_.T
        np.testing.assert_allclose(gram, np.eye(len(gram)), atol=1e-8)
    assert np.isfinite(est.transform(X)).all()


def test_the_correlation_matrix_is_decomposed_where_columns_are_scaled() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 6)) @ rng.standard_normal((6, 6)) * np.logspace(-2, 3, 6)
    scale = X.std(axis=0)
    est, plain = RobustPCA(2, contamination=0.0, scale=scale).fit(X), PCA(2).fit(X / scale)
    np.testing.assert_allclose(est.components_, plain.components_, atol=1e-8)
    np.testing.assert_allclose(est.explained_variance_, plain.explained_variance_)
    np.testing.assert_allclose(est.transform(X), plain.transform(X / scale), atol=1e-8)
    scores = plain.transform(X / scale)
    expected = plain.inverse_transform(scores) * scale
    np.testing.assert_allclose(est.inverse_transform(scores), expected, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(est.scale_, scale)
    model = plain.get_covariance() * np.outer(scale, scale)
    np.testing.assert_allclose(est.get_covariance(), model, rtol=1e-7)


def test_robust_scales_do_not_let_one_column_be_the_component() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 6)) + 2.0 * rng.standard_normal((300, 1))
    X[:, 0] *= 1000.0
    raw, scaled = RobustPCA().fit(X), RobustPCA(scale="mad").fit(X)
    assert raw.components_[0, 0] > 0.99
    np.testing.assert_allclose(scaled.components_[0], 6**-0.5, atol=0.1)


@pytest.mark.parametrize("n_factors", [1, 3, 5])
def test_as_many_factors_are_counted_as_there_are(n_factors: int) -> None:
    rng = np.random.default_rng(n_factors)
    X = rng.standard_normal((600, 25))
    X[:, :n_factors] *= np.linspace(5.0, 3.0, n_factors)
    X[:30] += 50.0
    est = RobustPCA("auto").fit(X)
    assert est.n_components_ == n_factors
    assert est.certificate_.factors == n_factors
    assert f"{n_factors} factor" in est.certificate_.verdict
    assert RobustSparsePCA("auto", 3).fit(X).n_components_ == n_factors
