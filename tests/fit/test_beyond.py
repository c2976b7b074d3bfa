"""Components of the features found in whitened rows, against generalised eigenproblems."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
from numpy.typing import NDArray

from outweigh.fit.beyond import Beyond, feature_variances, level_beside
from outweigh.fit.noise import _whitener
from outweigh.samples import ArrayMoment, DenseSamples

Array = NDArray[np.float64]
D = 10
SPIKE = np.r_[0.6, 0.8, np.zeros(D - 2)]


def noise_covariance() -> Array:
    return np.asarray(0.7 ** np.abs(np.subtract.outer(np.arange(D), np.arange(D))))


def whitener() -> Array:
    return _whitener(noise_covariance(), np.arange(D))


def excess(strength: float = 4.0) -> Array:
    """Return what a component of the features beyond the noise is in whitened rows."""
    W = whitener()
    return np.asarray(strength * np.outer(W @ SPIKE, W @ SPIKE))


def beyond() -> Beyond:
    return Beyond(whitener(), np.ones(D))


def test_directions_of_whitened_rows_are_unit_images_of_the_components() -> None:
    found = beyond().whitened(np.column_stack([SPIKE, np.eye(D)[:, 4]]))
    W = whitener()
    np.testing.assert_allclose(np.linalg.norm(found, axis=0), 1.0)
    assert abs(float(found[:, 0] @ W @ SPIKE)) == pytest.approx(np.linalg.norm(W @ SPIKE))


def test_the_dense_component_beyond_the_noise_is_the_one_put_there() -> None:
    u = beyond().whitened(SPIKE[:, None])
    found = beyond().dense(ArrayMoment(excess()), u)[:, 0]
    assert abs(float(found @ SPIKE)) / np.linalg.norm(found) == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("counts", [(2,), ()], ids=["given", "counted"])
def test_the_sparse_component_is_the_one_put_there(counts: tuple[int, ...]) -> None:
    u = beyond().whitened(SPIKE[:, None])
    found = beyond().sparse(excess(), u, counts, limit=0.05)[:, 0]
    assert np.flatnonzero(found).tolist() == [0, 1]
    assert abs(float(found @ SPIKE)) == pytest.approx(1.0, abs=1e-9)


def test_on_given_features_the_component_solves_the_generalised_eigenproblem() -> None:
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((D, D))
    A = excess() + 0.05 * (noise + noise.T)
    kept = np.array([0, 1, 5])
    part = whitener()[:, kept]
    values = scipy.linalg.eigh(part.T @ A @ part, part.T @ part, eigvals_only=True)
    v = beyond()._on_features(A, kept)
    u = beyond().whitened(v[:, None])[:, 0]
    assert float(u @ A @ u) == pytest.approx(values[-1])


def test_the_level_beside_components_is_that_of_the_noise() -> None:
    rng = np.random.default_rng(2)
    u = np.full(D, D**-0.5)
    X = 3.0 * (rng.standard_normal((5000, D)) + 6.0 * rng.standard_normal((5000, 1)) * u)
    weights = np.full(5000, 1 / 5000)
    assert np.sqrt(np.median(DenseSamples(X).variances(weights))) > 5.0
    found = level_beside(DenseSamples(X), weights, u[:, None])
    assert found == pytest.approx(3.0, rel=0.05)


def test_variances_of_the_features_are_found_in_the_whitened_rows() -> None:
    X = np.random.default_rng(3).standard_normal((50, D)) @ np.linalg.cholesky(noise_covariance()).T
    weights = np.full(50, 1 / 50)
    found = feature_variances(DenseSamples(X @ whitener()), weights, whitener())
    np.testing.assert_allclose(found, X.var(axis=0), rtol=1e-9)


@pytest.mark.parametrize("n_nonzero", [(D,) * 4, (3,) * 4])
def test_no_sparse_component_is_found_twice_where_rows_vary_less_than_noise(
    n_nonzero: tuple[int, ...],
) -> None:
    # Rows that vary along three features only, and there less than the noise that was declared.
    image = np.linalg.inv(whitener()) @ np.eye(D)[:, :3]
    less = 0.1 * image @ np.diag([1.0, 0.7, 0.5]) @ image.T - np.eye(D)
    found = beyond().sparse(less, np.eye(D)[:, :4], n_nonzero, 0.1)
    along = beyond().whitened(found)
    overlap = np.abs(along.T @ along - np.eye(4))
    assert overlap.max() < 0.9
    shaken = less + 1e-14 * np.random.default_rng(0).standard_normal((D, D))
    again = beyond().sparse((shaken + shaken.T) / 2.0, np.eye(D)[:, :4], n_nonzero, 0.1)
    np.testing.assert_allclose(np.abs(again), np.abs(found), atol=1e-3)


def test_a_feature_that_a_component_has_taken_is_not_taken_again() -> None:
    u = beyond().whitened(np.eye(D)[:, [4]])
    found = beyond().sparse(9.0 * u @ u.T, np.hstack([u, u, u]), (1, 1, 1), limit=0.05)
    assert len({*np.flatnonzero(found.any(axis=1))}) == 3
