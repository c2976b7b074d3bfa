"""The first look at rows in chunks is that at rows in memory, wherever the odd ones are."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from outweigh import RobustMean, RobustSparseMean
from outweigh.estimators.mean import MeanEstimator
from outweigh.fit.noise import Noise, first_look, pruning_radius_sq
from outweigh.samples import ArrayRows, Rows
from outweigh.samples.chunked_rows import ChunkedRows
from outweigh.samples.chunks import SlicedChunks

Array = NDArray[np.float64]

N, D, K, CHUNK = 3000, 80, 4, 250
# That of rows of unit noise.
RADIUS = float(np.sqrt(pruning_radius_sq(np.full(N, float(D)), np.ones(N), D)))


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
    return ChunkedRows(SlicedChunks.of(X, X.nbytes // 2 if budget is None else budget, sizes))


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


def looked_at(rows: Rows, bound: float = 0.2) -> Noise:
    return first_look(rows, np.ones(N), "auto", None, bound)


def assert_same_look(X: Array, bound: float = 0.2) -> None:
    """Compare the first look at rows in chunks with that at rows in memory."""
    found, expected = looked_at(chunked(X), bound), looked_at(ArrayRows(X), bound)
    np.testing.assert_array_equal(np.sort(found.pruned), np.sort(expected.pruned))
    np.testing.assert_array_equal(found.standardizer.columns, expected.standardizer.columns)
    np.testing.assert_allclose(found.standardizer.scale, expected.standardizer.scale, rtol=1e-12)
    np.testing.assert_allclose(found.centre, expected.centre, rtol=1e-9, atol=1e-12)
    assert found.radius_sq == pytest.approx(expected.radius_sq, rel=1e-9)


def test_clean_rows_take_four_passes_and_outliers_two_more() -> None:
    # What varies, distances from the centre, second moments, scores.
    white = {"contamination": 0.1, "scale": None, "covariance": None}
    assert assert_same_fit(lambda: RobustMean(**white), clean()) <= 4
    assert assert_same_fit(lambda: RobustSparseMean(K, **white), contaminated()) <= 6


def test_unknown_units_and_covariance_take_three_passes_more() -> None:
    # The rows that scales are read off, those that tell whether they are correlated, and the
    # moments once more in units that are right.
    assert assert_same_fit(lambda: RobustMean(contamination=0.1), clean()) <= 7
    assert assert_same_fit(lambda: RobustSparseMean(K, contamination=0.1), contaminated()) <= 9


def test_rows_on_either_side_of_the_radius_are_told_apart() -> None:
    X = clean()
    rows = np.arange(0, N, 40)
    at_distance(X, rows, RADIUS + np.linspace(-0.3, 0.3, rows.size))
    assert_same_look(X)
    assert_same_fit(lambda: RobustSparseMean(K, contamination=0.1), X)


def test_many_rows_about_the_radius_are_told_apart() -> None:
    X = clean()
    rows = np.arange(0, N, 2)
    at_distance(X, rows, RADIUS + np.linspace(-0.05, 0.05, rows.size))
    assert_same_look(X, bound=0.45)


def test_more_far_rows_than_may_be_pruned_are_pruned_farthest_first() -> None:
    X = clean()
    X[::10] += np.linspace(20.0, 30.0, N // 10)[:, None]
    assert_same_look(X, bound=0.05)
    assert_same_look(X, bound=0.2)
    for share in (0.0, 0.05, 0.2, "auto"):
        assert_same_fit(lambda share=share: RobustMean(contamination=share), X)


@pytest.mark.parametrize("factor", [1.0, 0.01, 300.0])
def test_unknown_scales_are_those_of_memory(factor: float) -> None:
    units = factor * np.logspace(0, 1, D)
    X = contaminated()
    rows = np.arange(5, N, 50)
    at_distance(X, rows, RADIUS + np.linspace(-0.3, 0.3, rows.size))
    assert_same_look(X * units)
    for share in (0.15, "auto"):
        assert_same_fit(lambda share=share: RobustSparseMean(K, contamination=share), X * units)


def test_a_first_chunk_unlike_the_others_changes_no_answer() -> None:
    X = contaminated()
    # The few rows looked at first lie in eight chunks of twelve.
    X = X[np.argsort(X[:, 0], kind="stable")]
    X[:CHUNK] += 30.0
    assert_same_fit(lambda: RobustSparseMean(K, contamination=0.2), X)
    assert_same_fit(lambda: RobustMean(), X)


def test_a_column_that_varies_in_one_row_varies() -> None:
    X = contaminated()
    X[:, 70] = 4.0
    X[2 * CHUNK + 3, 70] = 5.0
    assert_same_look(X)
    assert_same_fit(lambda: RobustSparseMean(K, contamination=0.1), X)


def test_constant_columns_are_left_out() -> None:
    X = contaminated()
    X[:, 70] = 4.0
    assert_same_look(X)
    with pytest.warns(UserWarning, match="constant"):
        assert_same_fit(lambda: RobustSparseMean(K, contamination=0.1), X)


def test_an_origin_far_away_changes_no_answer() -> None:
    X = contaminated() + np.linspace(-1e3, 1e3, D)
    assert_same_look(X)
    assert_same_fit(lambda: RobustMean(contamination=0.1), X)


@pytest.mark.parametrize("scale", ["auto", "mad", None, "given"])
def test_a_known_covariance_whitens_the_first_look_too(scale: str | None) -> None:
    rng = np.random.default_rng(1)
    units = np.logspace(0, 1, D)
    mix = (np.eye(D) + 0.3 * rng.standard_normal((D, D)) / np.sqrt(D)) * units
    covariance = mix.T @ mix
    X = contaminated() @ mix
    given = np.sqrt(np.diagonal(covariance)) if scale == "given" else scale
    assert_same_fit(lambda: RobustMean(contamination=0.1, covariance=covariance, scale=given), X)


@pytest.mark.parametrize("scale", ["auto", None])
@pytest.mark.parametrize("far", [1e2, 1e4, 1e6, 1e12, 1e100])
def test_a_guess_off_outliers_alone_changes_no_answer(far: float, scale: str | None) -> None:
    X = seen_first(far)
    assert_same_fit(lambda: RobustMean(contamination=0.15, scale=scale), X, chunk=20)
    assert_same_fit(lambda: RobustSparseMean(3, contamination=0.15, scale=scale), X, chunk=20)


@pytest.mark.parametrize("far", [1e4, 1e100])
def test_scales_guessed_off_outliers_alone_change_no_answer(far: float) -> None:
    # So many features that there is a working set, and few passes.
    X = np.hstack([seen_first(far)] * 3) + np.random.default_rng(5).standard_normal((1600, 90))
    assert_same_fit(lambda: RobustSparseMean(1, contamination=0.15, scale="mad"), X, chunk=20)


def seen_first(far: float) -> Array:
    """Return rows of which all wrong ones lie in the eight of 80 chunks that are looked at."""
    X = np.random.default_rng(3).standard_normal((1600, 30))
    for chunk in range(0, 80, 10):
        X[20 * chunk : 20 * (chunk + 1)] = far * (1.0 + 0.1 * X[20 * chunk : 20 * (chunk + 1)])
    return X


def test_columns_that_fit_the_budget_without_constant_ones_are_gathered() -> None:
    X = np.hstack([contaminated(), np.full((N, 2 * D), 2.0)])
    with pytest.warns(UserWarning, match="constant"):
        assert assert_same_fit(lambda: RobustMean(contamination=0.1), X) == 2


def test_sample_weights_count_in_the_first_look() -> None:
    X = contaminated()
    weight = np.random.default_rng(2).integers(0, 3, N).astype(np.float64)
    # Whole chunks may have no weight, the first one too.
    weight[:CHUNK] = 0.0
    assert_same_fit(lambda: RobustSparseMean(K, contamination=0.1), X, sample_weight=weight)


def test_values_of_1e300_are_pruned_in_the_first_look() -> None:
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
        looked_at(chunked(X))


def test_text_in_a_chunk_that_is_looked_at_is_refused_by_name() -> None:
    X = contaminated().astype(object)
    X[4 * CHUNK :] = "text"
    rows = ChunkedRows(SlicedChunks.of(X, 1000, (CHUNK,) * (N // CHUNK)))
    with pytest.raises(ValueError, match=r"chunk \d+ .* not numbers"):
        looked_at(rows)
