"""Descent on weights, the top variance, and the semidefinite program."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from outweigh.adversaries import wrong_support
from outweigh.baselines import EmpiricalMean, GradientDescentMean, OracleMean, SdpMean
from outweigh.baselines.weights import SparseVariance
from outweigh.optimise.capped_simplex import CappedSimplex
from outweigh.samples.matrices import ArrayMoment


@pytest.mark.parametrize("n_features", [5, 60])
def test_the_gradient_descent_lowers_the_top_variance(n_features: int) -> None:
    X = np.random.default_rng(0).standard_normal((300, n_features)) + 3.0
    X[:30, 0] += 6.0

    def top_variance(weights: np.ndarray) -> float:
        covariance = np.cov(X, rowvar=False, aweights=weights, ddof=0)
        return float(np.linalg.eigvalsh(covariance)[-1])

    found = GradientDescentMean().fit(X)
    genuine = np.repeat([0.0, 1.0 / 270], [30, 270])
    assert CappedSimplex.from_contamination(300, 0.1).contains(found.weights_, atol=1e-9)
    assert found.n_iter_ <= 100
    assert top_variance(found.weights_) < 1.05 * top_variance(genuine)


def test_the_semidefinite_program_lies_between_its_extremes() -> None:
    pytest.importorskip("cvxpy")
    X = np.random.default_rng(0).standard_normal((40, 8))
    S = X.T @ X / 40
    # At k = 1 only diagonal A are left, at k = d the bound on the entries is void.
    values = [SparseVariance(8, k).maximize(ArrayMoment(S)).value for k in (1, 3, 8)]
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
