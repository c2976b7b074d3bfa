"""The road from raw rows to an answer: the loop at a loose bound, units, and counts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from outweigh.fit.result import Fit
from outweigh.fit.road import fit
from outweigh.fit.task import Settings, Task
from outweigh.fit.tuning import tuned
from outweigh.norms import RowwiseLargest
from outweigh.optimise.descent import Iterate
from outweigh.protocols import Status
from outweigh.samples import ArrayRows

Array = NDArray[np.float64]

N, D, K = 1000, 30, 3
TASKS = {
    "mean": Task(),
    "sparse mean": Task(n_nonzero=(K,)),
    "components": Task(1),
    "sparse components": Task(1, (K,)),
}
every_task = pytest.mark.parametrize("task", TASKS)
SETTINGS = Settings(None, "auto", None, "polyak", 300)


def rows(share: float = 0.1, seed: int = 0, n: int = N, d: int = D) -> Array:
    rng = np.random.default_rng([19, seed])
    X = rng.standard_normal((n, d))
    X[:, :K] += 1.5 * rng.standard_normal((n, 1))
    X[: int(share * n), 10:16] += 3.0
    return X


def rows_for(task: str, share: float = 0.1, seed: int = 0) -> Array:
    """Return rows as white as each task takes them to be."""
    X = rows(share, seed)
    if TASKS[task].n_components == 0:
        X[:, :K] /= np.sqrt(1.0 + 1.5**2)
        X[:, :K] = np.random.default_rng([20, seed]).standard_normal((N, K)) + 1.0
    return X


def fitted(task: str, X: Array, **changes: object) -> Fit:
    settings = replace(SETTINGS, **changes)
    if TASKS[task].n_components and "scale" not in changes:
        settings = replace(settings, scale=None)
    return fit(ArrayRows(X), np.ones(len(X)), TASKS[task], settings, None)


@every_task
@pytest.mark.parametrize("share", [0.05, 0.1, 0.2, 0.3])
def test_an_unknown_share_is_found_from_the_loose_bound(task: str, share: float) -> None:
    found = fitted(task, rows_for(task, share))
    assert found.certificate.removed == pytest.approx(share, abs=0.03)
    assert found.weights[: int(share * N)].sum() < 0.2 * share


@every_task
def test_the_bound_reported_is_no_less_than_what_was_removed(task: str) -> None:
    for contamination in (None, 0.15):
        found = fitted(task, rows_for(task), contamination=contamination)
        assert found.certificate.removed <= found.certificate.contamination_bound + 1e-9
    assert found.certificate.contamination_bound == 0.15


def test_clean_rows_lose_little_to_sparse_components() -> None:
    # What is left beside a sparse component is noisier than white: its products with the component.
    found = fitted("sparse components", rows_for("sparse components", 0.0))
    assert found.found.status is Status.REACHED
    assert found.certificate.removed < 0.05


@pytest.mark.parametrize("task", ["mean", "sparse mean", "components"])
def test_clean_rows_keep_their_weights(task: str) -> None:
    found = fitted(task, rows_for(task, 0.0))
    assert found.found.status is Status.REACHED
    assert not found.found.weights.moved
    np.testing.assert_allclose(found.weights, 1.0 / N, rtol=1e-9)


@every_task
def test_fewer_than_ten_rows_keep_their_weights(task: str) -> None:
    X = rows_for(task)[:9]
    X[0] += 100.0
    found = fitted(task, X)
    assert found.certificate.contamination_bound == 0.0
    np.testing.assert_allclose(found.weights, 1.0 / 9, rtol=1e-9)


@every_task
def test_rows_in_other_units_are_brought_to_unit_noise(task: str) -> None:
    small, large = (fitted(task, factor * rows_for(task)) for factor in (1e-2, 1e3))
    np.testing.assert_allclose(large.weights, small.weights, atol=1e-6 / N)
    scale = large.noise.standardizer.scale
    assert np.median(scale) == pytest.approx(1e3, rel=0.05)
    if TASKS[task].n_components:
        assert np.ptp(scale) == 0.0


@pytest.mark.parametrize("variance", [0.25, 1.6, 9.0])
def test_variances_far_from_one_are_noticed(variance: float) -> None:
    found = fitted("mean", np.sqrt(variance) * rows_for("mean"))
    typical = float(np.median(found.noise.standardizer.scale))
    assert typical == pytest.approx(np.sqrt(variance), rel=0.05)


@pytest.mark.parametrize("n", [30, N])
def test_declared_unit_noise_is_left_in_its_units(n: int) -> None:
    X = np.sqrt(1.6) * rows_for("mean")[:n]
    assert np.all(fitted("mean", X, scale=None).noise.standardizer.scale == 1.0)


def test_scales_inflated_by_outliers_are_found_again_without_them() -> None:
    X = 40.0 * rows_for("mean", 0.3)
    scale = fitted("mean", X).noise.standardizer.scale
    np.testing.assert_allclose(scale, X[300:].std(axis=0), rtol=0.05)


@pytest.mark.parametrize("task", ["sparse mean", "sparse components"])
def test_entries_are_counted_where_their_number_is_not_given(task: str) -> None:
    X = rows_for(task)
    settings = replace(SETTINGS, scale=None)
    counting = replace(TASKS[task], n_nonzero=())
    found = fit(ArrayRows(X), np.ones(N), counting, settings, None)
    if task == "sparse mean":
        assert found.problem.objective.norm == RowwiseLargest(K)
    else:
        entries = np.flatnonzero(found.components[:, 0])
        assert np.isin([0, 1, 2], entries).all()
        # At level 0.05 over all features: one that is noise now and then, hardly ever two.
        assert entries.size <= 4


def test_the_road_is_taken_no_more_often_than_allowed() -> None:
    X = 40.0 * rows_for("mean", 0.3)
    often = fitted("mean", X)
    with tuned(attempts=1):
        once = fitted("mean", X)
    # With one attempt the scales of the first look stay, which outliers inflate.
    assert np.all(once.noise.standardizer.scale[10:16] > 50.0)
    np.testing.assert_allclose(often.noise.standardizer.scale, X[300:].std(axis=0), rtol=0.05)


@every_task
def test_a_callback_sees_every_line_of_the_trace(task: str) -> None:
    seen: list[Iterate] = []
    settings = replace(SETTINGS, contamination=0.1, scale=None)
    X = rows_for(task)
    found = fit(ArrayRows(X), np.ones(N), TASKS[task], settings, seen.append)
    values = [line.value for line in seen]
    trace = [line.value for line in found.found.trace]
    assert trace
    assert values[-len(trace) :] == trace


@every_task
@pytest.mark.parametrize("contamination", [None, 0.1])
def test_what_is_recorded_of_rows_is_what_new_rows_are_told(
    task: str, contamination: float | None
) -> None:
    X = rows_for(task)
    found = fitted(task, X, contamination=contamination)
    np.testing.assert_allclose(found.score(X), found.scores, rtol=1e-6, atol=1e-9)


@every_task
def test_the_value_certified_is_the_objective_at_the_weights(task: str) -> None:
    found = fitted(task, rows_for(task))
    full = found.problem.objective.evaluate(found.weights).value
    assert found.certificate.objective == pytest.approx(full, rel=1e-5)
    assert found.certificate.noise_floor == found.problem.floor(found.weights)


@pytest.mark.parametrize("task", ["components", "sparse components"])
def test_noise_that_is_not_white_is_weighed_by_volume(task: str) -> None:
    X = rows(0.0) * 0.8 ** np.arange(D)
    X[:100, -3:] += 1.0
    found = fitted(task, X, find_covariance=True)
    assert found.certificate.noise == "other"
    assert found.weights[:100].sum() < 0.02


@pytest.mark.parametrize("task", ["components", "sparse components"])
def test_of_equal_rows_there_are_no_components(task: str) -> None:
    with pytest.raises(ValueError, match="all rows are equal"):
        fitted(task, np.ones((50, D)))


def test_more_columns_than_rows_are_searched_in_their_span() -> None:
    rng = np.random.default_rng(4)
    n, d = 100, 400
    v = np.full(d, d**-0.5)
    X = rng.standard_normal((n, d)) + 8.0 * rng.standard_normal((n, 1)) * v
    found = fitted("components", X)
    assert found.problem.samples.n_features <= n
    assert found.components.shape == (d, 1)
    assert abs(float(found.components[:, 0] @ v)) > 0.9


def test_very_many_columns_are_screened_for_sparse_components() -> None:
    rng = np.random.default_rng(5)
    X = rng.standard_normal((300, 3200))
    X[:, 7:10] += 3.0 * rng.standard_normal((300, 1))
    found = fitted("sparse components", X, contamination=0.05)
    assert found.problem.samples.n_features == 1500
    assert np.flatnonzero(found.components[:, 0]).tolist() == [7, 8, 9]


@pytest.mark.parametrize("task", ["components", "sparse components"])
def test_pruned_rows_say_nothing_wherever_the_origin_is(task: str) -> None:
    # Their samples hold zeros, which lie at the origin: within the rows or far from them.
    X = rows()
    X[:60] += 1e4
    near, far = (fitted(task, X + shift) for shift in (0.0, 500.0))
    assert near.noise.pruned.size == 60
    np.testing.assert_allclose(far.weights, near.weights, atol=1e-6 / N)
    np.testing.assert_allclose(np.abs(far.components), np.abs(near.components), atol=1e-6)
