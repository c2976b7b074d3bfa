"""The lemmas of the paper about moments, with the constants that its proofs give."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.reference import moments, norms

Array = NDArray[np.float64]

N, D, K, EPS = 20, 4, 2, 0.1


def in_set(rng: np.random.Generator, n: int = N, eps: float = EPS) -> Array:
    """Return a point of the capped simplex: a mixture of some of its vertices."""
    kept = round((1.0 - eps) * n)
    mixture = rng.dirichlet(np.ones(4))
    vertices = [np.isin(np.arange(n), rng.choice(n, kept, replace=False)) / kept for _ in range(4)]
    return np.asarray(mixture @ np.array(vertices))


@pytest.mark.parametrize("seed", range(5))
def test_lemma_3_6_covariances_of_mixed_weights(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, one, other = rng.standard_normal((N, D)), in_set(rng), in_set(rng)
    alpha = rng.random()
    gap = moments.mean(X, one) - moments.mean(X, other)
    expected = (
        alpha * moments.covariance(X, one)
        + (1.0 - alpha) * moments.covariance(X, other)
        + alpha * (1.0 - alpha) * np.outer(gap, gap)
    )
    mixed = moments.covariance(X, alpha * one + (1.0 - alpha) * other)
    np.testing.assert_allclose(mixed, expected, atol=1e-12)


def stable_for(X: Array, sparse: bool) -> float:
    """Return a delta for which clean rows of mean zero are stable, over all of D(n, 2 eps).

    Both norms are convex in M_w and mu_w, so vertices suffice for these two, and
    |S_w - I| <= |M_w - I| + |mu_w|^2.
    """
    kept = round((1.0 - 2.0 * EPS) * len(X))
    shift = moment = 0.0
    for rows in itertools.combinations(range(len(X)), kept):
        part = X[list(rows)]
        mean, second = part.mean(axis=0), part.T @ part / kept - np.eye(D)
        shift = max(shift, norms.vector_largest(mean, K) if sparse else np.linalg.norm(mean))
        value = norms.rowwise_largest(second, K) if sparse else norms.ky_fan(second, 1)
        moment = max(moment, value)
    return max(shift, float(np.sqrt(EPS * (moment + shift**2))), EPS)


@pytest.mark.parametrize("lemma", ["3.7, sparse", "D.3, dense"])
@pytest.mark.parametrize("distance", [3.0, 10.0, 100.0])
def test_lemmas_3_7_and_d_3_a_shift_of_the_mean_shows_in_the_covariance(
    lemma: str, distance: float
) -> None:
    # f(w) >= (1-2e)/(1-e) (1 - d^2/e) - 1 + (1-2e)/e (|mu_w - mu_w*|^2 / 2 - 4 d^2): the last line
    # but one of either proof, before constants are dropped.
    sparse = lemma.startswith("3.7")
    rng = np.random.default_rng(0)
    original = rng.standard_normal((N, D))
    delta = stable_for(original, sparse)
    X, wrong = original.copy(), np.arange(N) < round(EPS * N)
    X[wrong] += distance
    uniform_on_clean = np.where(wrong, 0.0, 1.0 / np.count_nonzero(~wrong))
    for _ in range(20):
        w = in_set(rng)
        gap = moments.mean(X, w) - moments.mean(X, uniform_on_clean)
        excess = moments.deviation(X, w, centred=True)
        shift = norms.vector_largest(gap, K) if sparse else float(np.linalg.norm(gap))
        objective = norms.rowwise_largest(excess, K) if sparse else norms.ky_fan(excess, 1)
        bound = (1 - 2 * EPS) / (1 - EPS) * (1 - delta**2 / EPS) - 1
        bound += (1 - 2 * EPS) / EPS * (shift**2 / 2 - 4 * delta**2)
        assert objective >= bound
        # And with the constants that the lemma states: some c_1 suffices, here one of the proof's.
        assert shift**2 <= 4 * EPS * (objective + 50 * delta**2 / EPS)


def test_lemma_3_7_is_about_more_than_nothing() -> None:
    # Far outliers at their full weight: the bound is positive, so the inequality says something.
    delta = stable_for(np.random.default_rng(0).standard_normal((N, D)), sparse=True)
    shift = EPS * 100.0 * np.sqrt(K)
    assert (1 - 2 * EPS) / EPS * (shift**2 / 2 - 4 * delta**2) > 10 * delta**2 / EPS


def test_lemma_b_1_the_largest_entries_hold_the_spike() -> None:
    # v' A_Q v >= rho - O(delta): on clean rows, where A = M_w - I is near rho v v'.
    rng = np.random.default_rng(0)
    d, k, rho, n = 12, 3, 0.8, 20_000
    v = np.where(np.arange(d) < k, 1.0 / np.sqrt(k), 0.0)
    X = rng.standard_normal((n, d)) + np.sqrt(rho) * rng.standard_normal((n, 1)) * v
    A = X.T @ X / n - np.eye(d)
    deviation = A - rho * np.outer(v, v)
    delta = float(np.sqrt(np.sort((deviation**2).ravel())[-2 * k**2 :].sum()))
    largest = np.argsort(-np.abs(A).ravel())[: k**2]
    kept = np.where(np.isin(np.arange(d * d), largest), A.ravel(), 0.0).reshape(d, d)
    assert delta < 0.2
    assert v @ kept @ v >= rho - 3 * delta


@pytest.mark.parametrize("seed", range(5))
def test_lemmas_c_5_and_c_6_lipschitz_and_smooth(seed: int) -> None:
    # |grad F| <= sqrt(n) max|x|^2 + 2 |X|^2 |w|, without the second term where M_w is not centred,
    # and |Hessian| <= 2 |X|^2, for |Y|_F = 1.
    rng = np.random.default_rng(seed)
    X, w, Y = rng.standard_normal((N, D)), in_set(rng), rng.standard_normal((D, D))
    Y /= np.linalg.norm(Y)
    longest, spectral = (X**2).sum(axis=1).max(), np.linalg.norm(X, 2) ** 2
    plain = np.einsum("ij,jk,ik->i", X, Y, X)
    centred = plain - X @ (Y + Y.T) @ X.T @ w
    assert np.linalg.norm(plain) <= np.sqrt(N) * longest
    assert np.linalg.norm(centred) <= np.sqrt(N) * longest + 2 * spectral * np.linalg.norm(w)
    assert np.linalg.norm(X @ (Y + Y.T) @ X.T, 2) <= 2 * spectral
