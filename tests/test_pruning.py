"""Pruning takes only what is far, never more than allowed; the origin is near the mean."""

from __future__ import annotations

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from outweigh.pruning import midmean, pruned_rows, pruning_radius_sq

Array = NDArray[np.float64]

distances = hnp.arrays(
    np.float64, st.integers(1, 30), elements=st.sampled_from([0.5, 5.0, 20.0, 30.0, 1e300, np.inf])
)


@given(far=distances, contamination=st.floats(0.0, 0.49), data=st.data())
def test_no_more_is_pruned_than_the_contamination_allows(
    far: Array, contamination: float, data: st.DataObject
) -> None:
    weight = data.draw(hnp.arrays(np.float64, far.size, elements=st.integers(1, 4)))
    pruned = pruned_rows(far, 10.0, weight, contamination)
    assert weight[pruned].sum() <= contamination * weight.sum() * (1 + 1e-8)


@given(far=distances, contamination=st.floats(0.0, 0.49))
def test_only_rows_beyond_the_radius_are_pruned(far: Array, contamination: float) -> None:
    pruned = pruned_rows(far, 10.0, np.ones(far.size), contamination)
    assert np.all(far[pruned] > 10.0)


@given(far=distances, contamination=st.floats(0.0, 0.49))
def test_no_row_kept_is_farther_than_one_pruned(far: Array, contamination: float) -> None:
    pruned = pruned_rows(far, 10.0, np.ones(far.size), contamination)
    kept = np.delete(far, pruned)
    if pruned.size:
        assert kept.max(initial=0.0) <= far[pruned].min()


@given(far=distances, contamination=st.floats(0.0, 0.49), data=st.data())
def test_integer_weights_prune_as_repeated_rows_do(
    far: Array, contamination: float, data: st.DataObject
) -> None:
    weight = data.draw(hnp.arrays(np.int64, far.size, elements=st.integers(1, 3)))
    by_weight = pruned_rows(far, 10.0, weight.astype(float), contamination)
    repeated = np.repeat(far, weight)
    by_rows = pruned_rows(repeated, 10.0, np.ones(repeated.size), contamination)
    expected = np.repeat(np.isin(np.arange(far.size), by_weight), weight)
    np.testing.assert_array_equal(np.isin(np.arange(repeated.size), by_rows), expected)


def test_a_share_given_as_a_decimal_fraction_is_used_up() -> None:
    far = np.r_[np.zeros(7), np.arange(20.0, 23.0)]
    assert pruned_rows(far, 10.0, np.ones(10), 0.3).size == 3


@pytest.mark.parametrize(("n", "d"), [(100, 1), (1000, 5), (1000, 50), (300, 400)])
def test_clean_rows_are_within_the_radius(n: int, d: int) -> None:
    X = np.random.default_rng([n, d]).standard_normal((n, d))
    assert np.all(np.sum((X - X.mean(axis=0)) ** 2, axis=1) < pruning_radius_sq(n, d))


def test_the_radius_grows_with_the_number_of_features_and_of_samples() -> None:
    radii = [pruning_radius_sq(100, 5), pruning_radius_sq(100, 6), pruning_radius_sq(1000, 6)]
    assert radii == sorted(set(radii))


@given(
    rows=hnp.arrays(
        np.float64,
        st.tuples(st.integers(2, 12), st.integers(1, 3)),
        elements=st.floats(-1e300, 1e300) | st.integers(-2, 2).map(float),
    )
)
def test_the_midmean_is_finite_and_within_the_quartiles(rows: Array) -> None:
    found = midmean(rows, np.ones(len(rows)))
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
    found = midmean(column[:, None], np.ones(column.size))[0]
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
    found = midmean(rows, weight.astype(float))
    np.testing.assert_allclose(found, midmean(repeated, np.ones(len(repeated))), atol=1e-12)


@pytest.mark.parametrize("share", [0.5, 0.6])
def test_the_midmean_of_signs_is_near_their_mean(share: float) -> None:
    # The middle half of a column of signs holds (share - 1/4) * 2 positive ones: mean 4 share - 2.
    column = np.where(np.arange(1000) < share * 1000, 1.0, -1.0)[:, None]
    assert midmean(column, np.ones(1000))[0] == pytest.approx(4 * share - 2, abs=1e-9)


def test_values_of_1e300_do_not_move_the_midmean() -> None:
    rows = np.random.default_rng(0).standard_normal((100, 3))
    rows[:10] = 1e300
    assert np.all(np.abs(midmean(rows, np.ones(100))) < 1.0)
