"""The plain algorithms of the paper: better than nothing."""

from __future__ import annotations

import numpy as np
import pytest

from outweigh.adversaries import spiked_mixture, wrong_support
from outweigh.baselines.plain import SparseComponentsDescent, SparseGradientDescent


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
