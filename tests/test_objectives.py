"""The four objectives are those of the paper's table."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from outweigh import objectives
from outweigh.protocols import Samples
from tests.reference import moments, norms

Array = NDArray[np.float64]
Kind = Callable[[Array], Samples]


@pytest.fixture(scope="module", name="X")
def rows() -> Array:
    return np.random.default_rng(0).standard_normal((20, 5)) + 0.3


@pytest.fixture(scope="module")
def w() -> Array:
    weights = np.random.default_rng(1).uniform(0.0, 1.0, 20)
    return np.asarray(weights / weights.sum())


@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_sparse_mean_minimises_the_rowwise_norm_of_the_covariance(
    samples_of: Kind, X: Array, w: Array, k: int
) -> None:
    expected = norms.rowwise_largest(moments.deviation(X, w, centred=True), k)
    found = objectives.sparse_mean(samples_of(X), k).evaluate(w).value
    assert found == pytest.approx(expected, rel=1e-12)


def test_the_mean_minimises_the_spectral_norm_of_the_covariance(
    samples_of: Kind, X: Array, w: Array
) -> None:
    expected = norms.ky_fan(moments.deviation(X, w, centred=True), 1)
    found = objectives.mean(samples_of(X)).evaluate(w).value
    assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("k", [1, 2])
def test_sparse_pca_minimises_the_largest_entries_of_the_second_moment(
    samples_of: Kind, X: Array, w: Array, k: int
) -> None:
    expected = norms.largest_entries_sorted(moments.deviation(X, w, centred=False), 2 * k**2)
    found = objectives.sparse_pca(samples_of(X), k).evaluate(w).value
    assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("n_components", [1, 2])
def test_pca_minimises_one_singular_value_more_than_components(
    samples_of: Kind, X: Array, w: Array, n_components: int
) -> None:
    expected = norms.ky_fan(moments.deviation(X, w, centred=False), n_components + 1)
    found = objectives.pca(samples_of(X), n_components).evaluate(w).value
    assert found == pytest.approx(expected, rel=1e-12)


def test_a_survey_names_the_features_that_hold_the_evidence(samples_of: Kind) -> None:
    rng = np.random.default_rng(2)
    X = rng.standard_normal((500, 60))
    X[:50, [7, 30, 41]] += 3.0
    survey = objectives.sparse_mean(samples_of(X), 3).survey(np.full(500, 1 / 500), 6)
    assert {7, 30, 41} <= set(survey.coordinates.tolist())
