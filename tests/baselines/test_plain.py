"""The plain algorithms of the paper: those of the literal programs, and better than nothing."""

from __future__ import annotations

import numpy as np
import pytest

from outweigh.adversaries import spiked_mixture, wrong_support
from outweigh.baselines.plain import SparseComponentsDescent, SparseGradientDescent
from tests.reference import paper


@pytest.mark.parametrize("k", [3, None])
def test_the_mean_is_nearer_than_that_of_all_rows(k: int | None) -> None:
    sample = wrong_support(600, 30, 3, 0.1, 0)
    found = SparseGradientDescent(k, contamination=0.1).fit(sample.X)
    plain = np.linalg.norm(sample.X.mean(axis=0) - sample.truth)
    assert np.linalg.norm(found.location_ - sample.truth) < plain
    assert np.count_nonzero(found.location_) == (30 if k is None else k)


@pytest.mark.parametrize("k", [3, None])
def test_the_component_is_near_the_true_one(k: int | None) -> None:
    sample = spiked_mixture(1000, 30, 3, 0.1, 0, spike=4.0)
    found = SparseComponentsDescent(k, contamination=0.1).fit(sample.X)
    assert found.components_.shape == (1, 30)
    assert abs(float(found.components_[0] @ sample.truth[0])) > 0.8


@pytest.mark.parametrize("k", [2, None])
def test_with_the_constant_step_both_are_the_literal_programs(k: int | None) -> None:
    X = np.random.default_rng(0).standard_normal((40, 5))
    X[:8] += 2.0
    kind = "" if k is None else "sparse "
    options = {"contamination": 0.2, "solver": "constant", "max_iter": 20}
    w, _ = paper.descend(f"{kind}mean", X, 2, 0.2, 20)
    mean = SparseGradientDescent(k, **options).fit(X).location_
    np.testing.assert_allclose(mean, paper.read_out(f"{kind}mean", X, w, 2), atol=1e-7)
    w, _ = paper.descend(f"{kind}pca", X, 2, 0.2, 20)
    component = SparseComponentsDescent(k, **options).fit(X).components_[0]
    expected = paper.read_out(f"{kind}pca", X, w, 2)
    assert abs(float(component @ expected)) == pytest.approx(1.0, abs=1e-9)
