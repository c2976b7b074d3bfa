"""Fits in chunks find what fits in memory do, wherever the odd rows and columns are."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from outweigh import RobustMean, RobustSparseMean
from outweigh.estimators.mean_template import MeanEstimator
from outweigh.estimators.start import start_on
from outweigh.pruning import pruning_radius_sq
from outweigh.samples.chunked_rows import ChunkedRows
from outweigh.samples.chunks import SlicedChunks

Array = NDArray[np.float64]

N, D, K, CHUNK = 3000, 80, 4, 250
RADIUS = float(np.sqrt(pruning_radius_sq(N, D)))


def clean(seed: int = 0) -> Array:
    return np.random.default_rng([61, seed]).standard_normal((N, D))


def contaminated(seed: int = 0) -> Array:
    X = clean(seed)
    X[:, :K] += 1.5
    X[::10, 10:18] += 2.5
    return X


def at_distance(X: Array, rows: NDArray[np.intp], distances: Array) -> Array:
    """Put rows at given distances from the origin, each in a direction of its own."""
    lengths = np.linalg.norm(X[rows], axis=1)
    X[rows] *= (distances / lengths)[:, None]
    return X


def chunked(X: Array, budget: int | None = None) -> ChunkedRows:
    sizes = tuple(min(CHUNK, len(X) - start) for start in range(0, len(X), CHUNK))
    return ChunkedRows(SlicedChunks(X, sizes, X.nbytes // 2 if budget is None else budget))


def assert_same_fit(
    make: Callable[[], MeanEstimator], X: Array, chunk: int = CHUNK, **options: object
) -> int:
    """Fit in memory and in chunks, compare; return the passes."""
    da = pytest.importorskip("dask.array")
    import dask

    plain = make().fit(X, **options)
    with dask.config.set({"outweigh.gathered-bytes": X.nbytes // 2, "scheduler": "synchronous"}):
        found = make().fit(da.from_array(X, chunks=(chunk, -1)), **options)
    for attribute in ("location_", "weights_", "objective_", "offset_", "scale_"):
        want = np.asarray(getattr(plain, attribute))
        size = float(np.abs(want).max())
        np.testing.assert_allclose(
            getattr(found, attribute), want, rtol=1e-8, atol=1e-8 * size, err_msg=attribute
        )
    np.testing.assert_allclose(
        np.asarray(found.score_samples(X)), plain.score_samples(X), rtol=1e-7, atol=1e-7
    )
    return int(found.n_passes_)


def test_clean_rows_take_three_passes_and_outliers_two_more() -> None:
    assert assert_same_fit(lambda: RobustMean(contamination=0.1), clean()) == 3
    assert assert_same_fit(lambda: RobustSparseMean(K, contamination=0.1), contaminated()) == 5


def test_rows_on_either_side_of_the_radius_are_told_apart() -> None:
    X = clean()
    rows = np.arange(0, N, 40)
    at_distance(X, rows, RADIUS + np.linspace(-0.3, 0.3, rows.size))
    assert_same_fit(lambda: RobustSparseMean(K, contamination=0.1), X)


def test_more_far_rows_than_may_be_pruned_change_no_answer() -> None:
    X = clean()
    X[::10] += np.linspace(20.0, 30.0, N // 10)[:, None]
    for share in (0.0, 0.05, 0.2, "auto"):
        assert_same_fit(lambda share=share: RobustMean(contamination=share), X)


@pytest.mark.parametrize("factor", [1.0, 0.01, 300.0])
def test_unknown_scales_change_no_answer(factor: float) -> None:
    units = factor * np.logspace(0, 1, D)
    X = contaminated()
    rows = np.arange(5, N, 50)
    at_distance(X, rows, RADIUS + np.linspace(-0.3, 0.3, rows.size))
    for share in (0.15, "auto"):
        assert_same_fit(lambda share=share: RobustSparseMean(K, contamination=share), X * units)


def test_a_first_chunk_unlike_the_others_changes_no_answer() -> None:
    X = contaminated()
    X = X[np.argsort(X[:, 0], kind="stable")]
    X[:CHUNK] += 30.0
    assert_same_fit(lambda: RobustSparseMean(K, contamination=0.2), X)
    assert_same_fit(lambda: RobustMean(), X)


def test_a_column_that_varies_in_one_row_changes_no_answer() -> None:
    X = contaminated()
    X[:, 70] = 4.0
    X[2 * CHUNK + 3, 70] = 5.0
    assert_same_fit(lambda: RobustSparseMean(K, contamination=0.1), X)


def test_constant_columns_are_left_out() -> None:
    X = contaminated()
    X[:, 70] = 4.0
    with pytest.warns(UserWarning, match="constant"):
        assert_same_fit(lambda: RobustSparseMean(K, contamination=0.1), X)


def test_an_origin_far_away_changes_no_answer() -> None:
    X = contaminated() + np.linspace(-1e3, 1e3, D)
    assert_same_fit(lambda: RobustMean(contamination=0.1), X)


@pytest.mark.parametrize("scale", ["auto", "mad", None, "given"])
def test_a_known_covariance_whitens_rows_in_chunks_too(scale: str | None) -> None:
    rng = np.random.default_rng(1)
    units = np.logspace(0, 1, D)
    mix = (np.eye(D) + 0.3 * rng.standard_normal((D, D)) / np.sqrt(D)) * units
    covariance = mix.T @ mix
    X = contaminated() @ mix
    given = np.sqrt(np.diagonal(covariance)) if scale == "given" else scale
    assert_same_fit(lambda: RobustMean(contamination=0.1, covariance=covariance, scale=given), X)


@pytest.mark.parametrize("scale", ["auto", None])
@pytest.mark.parametrize("far", [1e2, 1e4, 1e6, 1e12, 1e100])
def test_chunks_of_outliers_alone_change_no_answer(far: float, scale: str | None) -> None:
    X = in_whole_chunks(far)
    assert_same_fit(lambda: RobustMean(contamination=0.15, scale=scale), X, chunk=20)
    assert_same_fit(lambda: RobustSparseMean(3, contamination=0.15, scale=scale), X, chunk=20)


@pytest.mark.parametrize("far", [1e4, 1e100])
def test_scales_beside_chunks_of_outliers_change_no_answer(far: float) -> None:
    # So many features that there is a working set, and few passes.
    X = np.hstack([in_whole_chunks(far)] * 3) + np.random.default_rng(5).standard_normal((1600, 90))
    assert_same_fit(lambda: RobustSparseMean(1, contamination=0.15, scale="mad"), X, chunk=20)


def in_whole_chunks(far: float) -> Array:
    """Return rows of which all wrong ones fill eight of 80 chunks."""
    X = np.random.default_rng(3).standard_normal((1600, 30))
    for chunk in range(0, 80, 10):
        X[20 * chunk : 20 * (chunk + 1)] = far * (1.0 + 0.1 * X[20 * chunk : 20 * (chunk + 1)])
    return X


def test_columns_that_fit_the_budget_without_constant_ones_are_gathered() -> None:
    X = np.hstack([contaminated(), np.full((N, 2 * D), 2.0)])
    with pytest.warns(UserWarning, match="constant"):
        assert assert_same_fit(lambda: RobustMean(contamination=0.1), X) == 2


def test_sample_weights_count_in_chunks_too() -> None:
    X = contaminated()
    weight = np.random.default_rng(2).integers(0, 3, N).astype(np.float64)
    # Whole chunks may have no weight, the first one too.
    weight[:CHUNK] = 0.0
    assert_same_fit(lambda: RobustSparseMean(K, contamination=0.1), X, sample_weight=weight)


def test_values_of_1e300_are_pruned_in_chunks_too() -> None:
    X = contaminated()
    X[1::100] *= 1e300
    with np.errstate(over="raise", invalid="raise"):
        assert_same_fit(lambda: RobustMean(contamination=0.2), X)


@pytest.mark.parametrize("row", [0, 1, CHUNK - 1, 5 * CHUNK + 7, N - 1])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_bad_value_is_named_wherever_it_is(row: int, value: float) -> None:
    X = contaminated()
    X[row, 3] = value
    with pytest.raises(ValueError, match=rf"chunk {row // CHUNK} .*row {row}, column 3"):
        start_on(chunked(X), np.ones(N), "auto")


def test_text_in_a_chunk_that_is_looked_at_is_refused_by_name() -> None:
    X = contaminated().astype(object)
    X[4 * CHUNK :] = "text"
    rows = ChunkedRows(SlicedChunks(X, (CHUNK,) * (N // CHUNK), 1000))
    with pytest.raises(ValueError, match=r"chunk \d+ .* not numbers"):
        start_on(rows, np.ones(N), "auto")
