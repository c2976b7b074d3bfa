"""Descent on weights, the top variance, and the semidefinite program."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from outweigh.adversaries import wrong_support
from outweigh.baselines import EmpiricalMean, GradientDescentMean, OracleMean, SdpMean
from outweigh.baselines.sdp import _sparse_variance_program
from outweigh.baselines.weights import descend
from outweigh.optimise.capped_simplex import CappedSimplex


@pytest.mark.parametrize("n_features", [5, 400])
def test_the_gradient_descent_lowers_the_top_variance(n_features: int) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, n_features)) + 3.0
    weights = rng.dirichlet(np.full(300, 5.0))
    objective = GradientDescentMean()._objective(X, n_features)
    value, gradient = objective(weights)
    covariance = np.cov(X, rowvar=False, aweights=weights, ddof=0)
    assert value == pytest.approx(np.linalg.eigvalsh(covariance)[-1], rel=1e-6)
    ahead = rng.dirichlet(np.full(300, 5.0)) - weights
    change = (objective(weights + 1e-4 * ahead)[0] - objective(weights - 1e-4 * ahead)[0]) / 2e-4
    assert gradient @ ahead == pytest.approx(change, rel=1e-3)


def test_descent_reaches_the_minimum_of_a_linear_function() -> None:
    cost = np.random.default_rng(0).standard_normal(200)
    domain = CappedSimplex.from_contamination(200, 0.2)
    found, _ = descend(
        lambda w: (float(cost @ w) + 10.0, cost),
        domain,
        np.full(200, 1 / 200),
        max_iter=200,
        tol=1e-9,
    )
    best = float(cost @ domain.minimize_linear(cost))
    assert float(cost @ found) == pytest.approx(best, abs=1e-6)


def test_descent_never_ends_above_its_start() -> None:
    target = np.random.default_rng(0).dirichlet(np.ones(50))
    domain = CappedSimplex.from_contamination(50, 0.3)
    start = np.full(50, 1 / 50)

    def distance(w: np.ndarray) -> tuple[float, np.ndarray]:
        return float(np.abs(w - target).max()), np.sign(w - target)

    found, n_evaluations = descend(distance, domain, start, max_iter=30, tol=1e-3)
    assert distance(found)[0] <= distance(start)[0]
    assert n_evaluations <= 30
    assert domain.contains(found, atol=1e-9)


def test_the_semidefinite_program_lies_between_its_extremes() -> None:
    pytest.importorskip("cvxpy")
    X = np.random.default_rng(0).standard_normal((40, 8))
    S = X.T @ X / 40
    # At k = 1 only diagonal A are left, at k = d the bound on the entries is void.
    values = [float(np.sum(_sparse_variance_program(8, k)(S) * S)) for k in (1, 3, 8)]
    assert values[0] == pytest.approx(np.diag(S).max(), rel=1e-3)
    assert values[2] == pytest.approx(np.linalg.eigvalsh(S)[-1], rel=1e-3)
    assert values[0] < values[1] < values[2]


def test_the_semidefinite_mean_is_near_the_oracle() -> None:
    pytest.importorskip("cvxpy")
    sample = wrong_support(1000, 12, 3, 0.1, random_state=1)
    found = SdpMean(3, max_iter=25).fit(sample.X)
    oracle = OracleMean(3).fit(sample.X, inliers=sample.inliers).location_
    plain = EmpiricalMean(3).fit(sample.X).location_
    error = np.linalg.norm(found.location_ - sample.truth)
    assert error < 2.0 * np.linalg.norm(oracle - sample.truth)
    assert error < 0.5 * np.linalg.norm(plain - sample.truth)
    assert found.weights_[~sample.inliers].sum() < 0.05


def test_a_missing_cvxpy_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cvxpy", None)
    with pytest.raises(ImportError, match=r"outweigh\[sdp\]"):
        SdpMean(2).fit(np.zeros((10, 3)))


def test_too_many_features_for_the_program_are_refused_before_any_work() -> None:
    with pytest.raises(ValueError, match="max_features=60"):
        SdpMean(2).fit(np.zeros((10, 61)))
