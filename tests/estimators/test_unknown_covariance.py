"""Means of rows of unknown covariance: quiet on correlated rows, sure where a group is apart."""

from __future__ import annotations

import io
import warnings

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.covariance import EmpiricalCovariance
from sklearn.datasets import load_diabetes
from sklearn.exceptions import ConvergenceWarning

from outweigh import RobustMean, RobustSparseMean, load_model, save_model
from outweigh.adversaries import make

N, D = 1000, 12
ROOT = np.linalg.cholesky(0.8 ** np.abs(np.subtract.outer(np.arange(D), np.arange(D))))
Array = NDArray[np.float64]


def correlated(seed: int) -> Array:
    return np.random.default_rng([5, seed]).standard_normal((N, D)) @ ROOT.T


def with_cluster(seed: int) -> Array:
    """A tenth of the rows six deviations away along the direction of least variance."""
    values, vectors = np.linalg.eigh(ROOT @ ROOT.T)
    X = correlated(seed)
    X[: N // 10] += 6.0 * np.sqrt(values[0]) * vectors[:, 0]
    return X


@pytest.mark.parametrize("seed", range(5))
def test_clean_correlated_rows_are_left_alone(seed: int) -> None:
    X = correlated(seed)
    est = RobustMean().fit(X)
    assert est.certificate_.noise == "elliptical"
    assert np.mean(est.predict(X) < 0) <= 0.01
    assert est.certificate_.clean


@pytest.mark.parametrize("seed", range(5))
def test_a_cluster_along_the_least_variable_direction_is_found(seed: int) -> None:
    X = with_cluster(seed)
    est = RobustMean().fit(X)
    flagged = est.predict(X) < 0
    assert flagged[: N // 10].mean() >= 0.95
    assert flagged[N // 10 :].mean() <= 0.01
    clean = X[N // 10 :].mean(axis=0)
    assert np.linalg.norm(est.location_ - clean) <= 0.1 * np.linalg.norm(X.mean(axis=0) - clean)


def test_white_rows_take_the_white_road() -> None:
    X = np.random.default_rng(6).standard_normal((N, D))
    X[:100, 0] += 8.0
    found, plain = RobustMean().fit(X), RobustMean(covariance=None).fit(X)
    assert found.certificate_.noise == "white"
    np.testing.assert_array_equal(found.weights_, plain.weights_)


@pytest.mark.parametrize("seed", range(2))
def test_units_do_not_matter(seed: int) -> None:
    X = with_cluster(seed)
    found = RobustMean().fit(X * np.logspace(-3, 3, D))
    np.testing.assert_allclose(found.weights_, RobustMean().fit(X).weights_, atol=1e-6 / N)


def test_the_covariance_is_that_of_the_trusted_rows() -> None:
    X = with_cluster(0)
    est = RobustMean().fit(X)
    clean = EmpiricalCovariance().fit(X[N // 10 :])
    assert est.error_norm(clean.covariance_) < 1e-3
    np.testing.assert_allclose(est.get_precision() @ est.covariance_, np.eye(D), atol=1e-8)
    np.testing.assert_allclose(est.mahalanobis(X), clean.mahalanobis(X), rtol=0.05, atol=0.05)


def test_a_model_file_scores_as_the_estimator_does() -> None:
    X = with_cluster(1)
    est = RobustMean().fit(X)
    file = io.BytesIO()
    save_model(est, file)
    file.seek(0)
    np.testing.assert_array_equal(load_model(file).score_samples(X), est.score_samples(X))
    assert len(est.explain(X)) == np.count_nonzero(est.predict(X) < 0)


def test_a_group_that_only_uncorrelated_columns_would_show_is_not_passed_over() -> None:
    """Skewed columns: along the group the cloud has no valley, and its shape tells nothing."""
    rng = np.random.default_rng(0)
    X = rng.lognormal(0.0, 0.5, (20_000, 20))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    X[:4000, :3] += 3.0 / np.sqrt(3.0)
    X[:400, :3] += 3.0 / np.sqrt(3.0)
    found = RobustMean().fit(X)
    assert not found.certificate_.clean


def test_a_fit_that_stalls_warns() -> None:
    X = np.random.default_rng(0).standard_normal((200, 5)) * 3.0
    with pytest.warns(ConvergenceWarning, match="stalled above the clean level"):
        RobustMean(scale=None, covariance=None).fit(X)


def test_a_spent_budget_at_the_level_of_clean_rows_does_not_warn() -> None:
    """What is warned is what is said: the verdict is that the clean level was reached."""
    X = make("tail_flipping", 50, 10, 1, 0.1, 0).X
    model = RobustSparseMean(
        1, contamination=0.1, solver="paper", scale=None, covariance=None, max_iter=1
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        model.fit(X)
    assert model.certificate_.clean


def test_a_twentieth_of_one_column_in_other_units_is_found_in_a_real_table() -> None:
    X = np.delete(load_diabetes(scaled=False).data, 1, axis=1)
    wrong = np.random.default_rng(0).choice(len(X), 22, replace=False)
    X[wrong, 3] /= 38.67
    flagged = RobustMean().fit(X).predict(X) < 0
    assert flagged[wrong].all()
    assert np.delete(flagged, wrong).mean() < 0.05


def test_new_rows_are_flagged_beyond_the_limit_however_far_the_outliers_were() -> None:
    rng = np.random.default_rng(77)
    root = np.linalg.cholesky(0.8 ** np.abs(np.subtract.outer(np.arange(8), np.arange(8)))).T
    X = rng.standard_normal((500, 8)) @ root
    X[:25] += 1000.0 * rng.standard_normal((25, 8))
    est = RobustMean().fit(X)
    np.testing.assert_array_equal(est.predict(X) == -1, np.arange(500) < 25)
    new = rng.standard_normal((500, 8)) @ root
    assert np.mean(est.predict(new) == -1) <= 0.01
    assert np.mean(est.predict(new + 10.0 * rng.standard_normal((500, 8))) == -1) >= 0.99
