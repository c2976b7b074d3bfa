"""Centres, scales and bulks of columns: robust, and blind to how copies of a row are counted."""

from __future__ import annotations

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from outweigh.fit.columns import (
    MAD_TO_SD,
    RankedColumns,
    column_bulks,
    largest_of,
    robust_scatter,
    robust_variance,
    together_by_ranks,
)

Array = NDArray[np.float64]

UNITS = np.array([1e-3, 1.0, 50.0, 1e6])


def robust_scales(rows: Array, sample_weight: Array) -> Array:
    return RankedColumns(rows, sample_weight).scales()


def midmean_of(rows: Array, sample_weight: Array) -> Array:
    columns = RankedColumns(rows, sample_weight)
    return columns.quantile(0.5) + columns.midmean()


def noise(n: int = 4000, d: int = 4) -> Array:
    return np.random.default_rng(0).standard_normal((n, d))


def test_the_scale_is_the_standard_deviation_of_a_gaussian() -> None:
    found = robust_scales(noise() * UNITS, np.ones(4000))
    np.testing.assert_allclose(found, UNITS, rtol=0.06)


@pytest.mark.parametrize("signs", [False, True])
def test_the_scale_follows_the_units(signs: bool) -> None:
    X = np.sign(noise()) if signs else noise()
    plain, scaled = (robust_scales(rows, np.ones(4000)) for rows in (X, X * UNITS))
    np.testing.assert_allclose(scaled, plain * UNITS, rtol=1e-9)


def test_the_scale_stays_bounded_with_nearly_half_of_the_rows_wrong() -> None:
    X = noise()
    X[:1900] = 1e300
    assert np.all(robust_scales(X, np.ones(4000)) < 10.0)


@pytest.mark.parametrize("digits", [0, 9])
def test_integer_weights_scale_as_repeated_rows_do(digits: int) -> None:
    X, weight = noise(30).round(digits), np.arange(30) % 3 + 1.0
    repeated = np.repeat(X, weight.astype(int), axis=0)
    found = robust_scales(X, weight)
    expected = robust_scales(repeated, np.ones(len(repeated)))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@given(
    rows=hnp.arrays(
        np.float64,
        st.tuples(st.integers(2, 12), st.integers(1, 3)),
        elements=st.floats(-1e300, 1e300) | st.integers(-2, 2).map(float),
    )
)
def test_the_midmean_is_finite_and_within_the_quartiles(rows: Array) -> None:
    found = midmean_of(rows, np.ones(len(rows)))
    low, high = np.quantile(rows, [0.25, 0.75], axis=0, method="inverted_cdf")
    room = 1e-12 * np.maximum(np.abs(low), np.abs(high))
    assert np.all((found >= low - room) & (found <= high + room))


def middle_half(column: Array) -> float:
    """Return the mean of the middle half of a column whose length is a multiple of four."""
    quarter = column.size // 4
    return float(np.sort(column)[quarter : 3 * quarter].mean())


@given(
    column=hnp.arrays(
        np.float64, st.sampled_from([4, 8, 12]), elements=st.integers(-3, 3).map(float)
    )
)
def test_the_midmean_of_tied_values_is_the_mean_of_the_sorted_middle_half(column: Array) -> None:
    found = midmean_of(column[:, None], np.ones(column.size))[0]
    assert found == pytest.approx(middle_half(column), abs=1e-12)


@given(
    rows=hnp.arrays(
        np.float64, st.tuples(st.integers(2, 8), st.just(2)), elements=st.floats(-5, 5, width=32)
    ),
    data=st.data(),
)
def test_the_midmean_with_integer_weights_is_that_of_repeated_rows(
    rows: Array, data: st.DataObject
) -> None:
    weight = data.draw(hnp.arrays(np.int64, len(rows), elements=st.integers(1, 3)))
    repeated = np.repeat(rows, weight, axis=0)
    found = midmean_of(rows, weight.astype(float))
    np.testing.assert_allclose(found, midmean_of(repeated, np.ones(len(repeated))), atol=1e-12)


@pytest.mark.parametrize("share", [0.5, 0.6])
def test_the_midmean_of_signs_is_near_their_mean(share: float) -> None:
    # The middle half of a column of signs holds (share - 1/4) * 2 positive ones: mean 4 share - 2.
    column = np.where(np.arange(1000) < share * 1000, 1.0, -1.0)[:, None]
    assert midmean_of(column, np.ones(1000))[0] == pytest.approx(4 * share - 2, abs=1e-9)


def test_values_of_1e300_do_not_move_the_midmean_of() -> None:
    rows = np.random.default_rng(0).standard_normal((100, 3))
    rows[:10] = 1e300
    assert np.all(np.abs(midmean_of(rows, np.ones(100))) < 1.0)


@given(
    column=hnp.arrays(np.float64, st.integers(1, 12), elements=st.integers(-3, 3).map(float)),
    level=st.sampled_from([0.1, 0.25, 0.5, 0.75, 0.9]),
    data=st.data(),
)
def test_a_quantile_is_that_of_repeated_rows(
    column: Array, level: float, data: st.DataObject
) -> None:
    weight = data.draw(hnp.arrays(np.int64, column.size, elements=st.integers(1, 3)))
    found = RankedColumns(column[:, None], weight.astype(float)).quantile(level)[0]
    assert found == np.quantile(np.repeat(column, weight), level, method="inverted_cdf")


@given(
    rows=hnp.arrays(
        np.float64, st.tuples(st.integers(1, 9), st.just(2)), elements=st.integers(-3, 3).map(float)
    )
)
def test_scales_without_a_second_sort_are_those_with_one(rows: Array) -> None:
    # Weights that are nearly equal take the general way.
    nearly = np.ones(len(rows))
    nearly[0] += 1e-13
    found, expected = robust_scales(rows, np.ones(len(rows))), robust_scales(rows, nearly)
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_the_scale_of_a_column_of_few_values_is_its_plain_deviation() -> None:
    # A ramp, signs that are mostly equal, one odd value, a constant.
    columns = np.zeros((100, 4))
    columns[:, 0] = np.linspace(-1.0, 1.0, 100)
    columns[:30, 1] = 2.0
    columns[0, 2] = 7.0
    found = robust_scales(columns, np.ones(100))
    assert found[0] == pytest.approx(1.4826 * 0.5, rel=0.05)
    assert found[1:].tolist() == pytest.approx([*columns[:, 1:3].std(axis=0), 1.0])


@pytest.mark.parametrize("equal", [False, True])
def test_values_that_count_are_the_values_of_equal_shares(equal: bool) -> None:
    columns = np.zeros((12, 3))
    columns[:, 0] = np.arange(12)
    columns[:, 1] = np.arange(12) % 3
    weight = np.ones(12) if equal else np.r_[2.0, np.ones(11)]
    found = RankedColumns(columns, weight).values_that_count()
    expected = [12.0, 3.0, 1.0] if equal else [169.0 / 15.0, 169.0 / 57.0, 1.0]
    assert found.tolist() == pytest.approx(expected)


def test_the_largest_of_many_gaussians_exceeds_its_quantile_once_in_twenty_samples() -> None:
    draws = np.abs(np.random.default_rng(4).standard_normal((4000, 100))).max(axis=1)
    # Of 4000 shares of 0.05 the deviation is 0.0034.
    assert np.mean(draws > largest_of(100)) == pytest.approx(0.05, abs=0.011)


def test_a_far_value_does_not_decide_the_scale_of_a_column_of_few_values() -> None:
    column = np.tile([5.0, 5.2, 4.8], 40)
    column[7] = 50.0
    # 1.48 times the median of the distances from 5, of which a third is 0.
    assert robust_scales(column[:, None], np.ones(120))[0] == pytest.approx(1.4826 * 0.2)


# Columns that go together


def exponential(seed: int, n: int = 300, d: int = 4) -> Array:
    return np.random.default_rng([31, seed]).exponential(size=(n, d))


def together(rows: Array) -> float:
    return together_by_ranks(rows, np.full(len(rows), 1 / len(rows)), len(rows))


def test_independent_columns_go_together_once_in_a_hundred_samples() -> None:
    above = sum(together(exponential(seed)) > 1.0 for seed in range(600))
    # Of 600 samples 6, and more than 15 once in a thousand.
    assert above <= 15


def test_columns_that_go_together_in_their_middle_are_told_whatever_their_tails() -> None:
    rows = exponential(0)
    rows[:60, :3] += 1.5
    rows[-1] = 1e6
    assert together(rows) > 1.0


def test_only_ranks_count() -> None:
    rows = exponential(1)
    assert together(np.exp(3.0 * rows)) == pytest.approx(together(rows), rel=1e-12)


def test_copies_of_rows_go_together_as_their_weights_do() -> None:
    rows = np.round(exponential(2, n=60), 1)
    times = np.arange(60) % 3
    n = float(times.sum())
    copied = together_by_ranks(np.repeat(rows, times, axis=0), np.full(int(n), 1 / n), n)
    assert together_by_ranks(rows, times / n, n) == pytest.approx(copied, rel=1e-12)


@pytest.mark.parametrize("d", [1, 3])
def test_columns_of_one_value_go_together_with_none(d: int) -> None:
    rows = np.ones((50, d))
    rows[:, 0] = np.arange(50)
    assert together(rows) == 0.0


def test_robust_variance_ignores_a_cluster_and_a_second_spike() -> None:
    rng = np.random.default_rng(0)
    # Of a wide spike a share of about its bulk's width over its own stays inside the bulk.
    for wrong, inside in ((np.full(1000, 6.0), 0.0), (8.0 * rng.standard_normal(1000), 0.25)):
        values = np.concatenate([rng.standard_normal(4000), wrong])
        assert robust_variance(values, np.ones(5000)) == pytest.approx(1.0, abs=0.1 + inside)


def test_robust_scatter_is_that_of_clean_gaussians() -> None:
    rng = np.random.default_rng(1)
    root = np.array([[2.0, 0.0], [1.0, 0.5]])
    rows = rng.standard_normal((20_000, 2)) @ root.T
    np.testing.assert_allclose(
        robust_scatter(rows, np.ones(20_000)), root @ root.T, rtol=0.1, atol=0.05
    )


def test_robust_scatter_takes_integer_weights_as_repeats() -> None:
    rng = np.random.default_rng(2)
    rows, weight = rng.standard_normal((60, 2)), rng.integers(1, 4, 60).astype(float)
    repeated = np.repeat(rows, weight.astype(int), axis=0)
    np.testing.assert_allclose(
        robust_scatter(rows, weight), robust_scatter(repeated, np.ones(len(repeated))), rtol=1e-8
    )


@pytest.mark.parametrize("factor", [1e-3, 1e4])
def test_robust_scatter_follows_units_and_turns(factor: float) -> None:
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((500, 3)) * [1.0, 2.0, 0.5]
    Q = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    found = robust_scatter(factor * rows @ Q, np.ones(500))
    expected = factor**2 * Q.T @ robust_scatter(rows, np.ones(500)) @ Q
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6 * factor**2)


def test_rows_that_mostly_coincide_have_the_scatter_that_was_begun_with() -> None:
    values = np.zeros(100)
    values[:10] = 3.0
    assert robust_variance(values, np.ones(100)) == 0.0


def test_a_bulk_that_shrinks_to_equal_rows_has_the_scatter_that_was_begun_with() -> None:
    rows = np.random.default_rng(0).standard_normal((300, 6))
    rows[:30] = 0.0
    values = np.linalg.eigvalsh(robust_scatter(rows, np.ones(300)))
    assert values.min() > 0.5
    assert values.max() < 1.5


@pytest.mark.parametrize(("pairs", "median"), [(10, 0.5), (32, 1.5)])
def test_a_bulk_that_shrinks_to_one_heavy_row_has_the_variance_that_was_begun_with(
    pairs: int, median: float
) -> None:
    # It has 0.45 of the weight. Of pairs of rows 0.5, 1, ... away, with 0.55 / pairs each, it takes
    # one or three to half of the weight: so far away is the median.
    away = np.arange(1, pairs + 1) / 2.0
    values = np.concatenate([-away, away, [0.0]])
    weight = np.append(np.full(2 * pairs, 0.275 / pairs), 0.45)
    assert robust_variance(values, weight) == pytest.approx((MAD_TO_SD * median) ** 2)


def test_the_bulks_of_columns_leave_out_far_groups() -> None:
    rng = np.random.default_rng(2)
    Z = rng.standard_normal((2000, 3))
    Z[:300, 1] += 8.0
    Z[0, 2] = 1e6
    centre, variance = column_bulks(Z, np.ones(2000))
    np.testing.assert_allclose(centre, 0.0, atol=0.1)
    np.testing.assert_allclose(variance, 1.0, atol=0.12)
