"""The four objectives are those of the paper's table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from outweigh import objectives
from outweigh.norms import KyFan, RowwiseLargest
from outweigh.protocols import Samples
from outweigh.samples import DenseSamples
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


def test_clean_data_has_unit_covariance_unless_it_is_said_otherwise(
    samples_of: Kind, X: Array, w: Array
) -> None:
    plain, other = (
        objectives.MomentObjective(samples_of(X), KyFan(1), True, *given) for given in ((), (0.5,))
    )
    for objective, reference in ((plain, 1.0), (other, 0.5)):
        expected = moments.deviation(X, w, centred=True, reference=reference)
        assert objective.evaluate(w).value == pytest.approx(np.linalg.norm(expected, 2))


def test_a_survey_beside_a_direction_keeps_its_features_and_is_blind_to_it(
    samples_of: Kind,
) -> None:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((400, 30))
    X[:, [2, 9]] += rng.standard_normal((400, 1))
    X[:60, [4, 20]] += 3.0
    u = np.zeros((30, 1))
    u[[2, 9]] = np.sqrt(0.5)
    objective = replace(objectives.sparse_pca(samples_of(X), 2), removed=u)
    survey = objective.survey(np.full(400, 1 / 400), 2)
    assert {2, 4, 9, 20} <= set(survey.coordinates.tolist())
    assert len(survey.coordinates) < 30


@pytest.mark.parametrize("removed", [False, True])
@pytest.mark.parametrize("centred", [False, True])
def test_a_pass_in_single_precision_finds_the_value_in_double(
    w: Array, monkeypatch: pytest.MonkeyPatch, centred: bool, removed: bool
) -> None:
    X = np.random.default_rng(4).standard_normal((w.size, 16))
    u = np.full((16, 1), 0.25) if removed else None
    # Fresh samples each time, so that no matrix is remembered.
    exact, rounded = (
        objectives.MomentObjective(DenseSamples(X), RowwiseLargest(2), centred, 1.0, u)
        for _ in range(2)
    )
    monkeypatch.setattr(objectives, "_SINGLE_PRECISION_ABOVE", 0)
    assert rounded._full_moment(w).rounding > 0.0
    assert rounded.verify(w) == pytest.approx(exact.evaluate(w).value, rel=1e-12)


@pytest.mark.parametrize(
    ("least", "n_nonzero", "removed", "single"),
    [
        (20 * 15.0**2, 1, False, False),
        (20 * 15.0**2 - 1.0, 1, False, True),
        # More than an eighth of the rows is read again.
        (20 * 15.0**2 - 1.0, 2, False, False),
        # Beside components, where moments are remembered.
        (20 * 15.0**2 - 1.0, 1, True, False),
    ],
)
def test_large_passes_are_in_single_precision_where_that_saves_time(
    w: Array,
    monkeypatch: pytest.MonkeyPatch,
    least: float,
    n_nonzero: int,
    removed: bool,
    single: bool,
) -> None:
    X = np.random.default_rng(4).standard_normal((20, 15))
    monkeypatch.setattr(objectives, "_SINGLE_PRECISION_ABOVE", least)
    monkeypatch.setattr(DenseSamples, "remembers_moments", True)
    whole = objectives.sparse_mean(DenseSamples(X), n_nonzero)
    found = replace(whole, removed=np.eye(15)[:, :1] if removed else None)._full_moment(w)
    assert (getattr(found, "rounding", 0.0) > 0.0) == single


def test_of_directions_that_a_restriction_leaves_out_nothing_is_taken_out(X: Array) -> None:
    axes = np.eye(5)
    whole = replace(objectives.pca(DenseSamples(X)), removed=axes[:, :2])
    left = whole.restrict(np.array([1, 2, 3])).removed
    assert left is not None
    np.testing.assert_allclose(np.abs(left), axes[1:4, 1:2], atol=1e-12)
    assert whole.restrict(np.array([2, 3, 4])).removed is None


def test_one_component_is_the_default(X: Array) -> None:
    assert objectives.pca(DenseSamples(X)).norm == KyFan(2)


def test_a_restriction_takes_out_what_is_left_of_the_directions(
    samples_of: Kind, X: Array, w: Array
) -> None:
    u, columns = np.array([[0.6], [0.0], [0.48], [0.0], [0.64]]), np.array([0, 2, 3])
    left = u[columns] / np.linalg.norm(u[columns])
    whole = replace(objectives.pca(samples_of(X)), removed=u)
    part = replace(objectives.pca(samples_of(X[:, columns])), removed=left)
    found = whole.restrict(columns).evaluate(w)
    assert found.value == pytest.approx(part.evaluate(w).value, rel=1e-12)
    assert abs(left[:, 0] @ found.form.to_array() @ left[:, 0]) < 1e-12
