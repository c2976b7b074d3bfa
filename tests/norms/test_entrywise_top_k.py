"""Selection is by magnitude, and there is only one."""

from __future__ import annotations

import hypothesis.extra.numpy as hnp
import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from outweigh.norms.entrywise import hard_threshold, top_k_indices, top_k_per_row

Array = NDArray[np.float64]

vectors = hnp.arrays(np.float64, st.integers(1, 12), elements=st.floats(-9, 9, width=32))
blocks = hnp.arrays(
    np.float64, st.tuples(st.integers(1, 6), st.integers(1, 6)), elements=st.floats(-9, 9, width=32)
)


@given(v=vectors, k=st.integers(1, 14))
def test_no_entry_left_out_is_larger_in_magnitude_than_one_kept(v: Array, k: int) -> None:
    kept = top_k_indices(v, k)
    left = np.delete(np.abs(v), kept)
    assert left.max(initial=-1.0) <= np.abs(v[kept]).min()


@given(v=vectors, k=st.integers(-2, 14))
def test_as_many_entries_are_kept_as_asked_for_or_as_there_are(v: Array, k: int) -> None:
    assert top_k_indices(v, k).size == min(max(k, 0), v.size)


@given(v=vectors, k=st.integers(0, 14))
def test_indices_come_in_increasing_order_without_repetition(v: Array, k: int) -> None:
    assert np.all(np.diff(top_k_indices(v, k)) > 0)


@given(block=blocks, k=st.integers(1, 7))
def test_each_row_is_selected_as_a_vector_would_be(block: Array, k: int) -> None:
    by_row = np.take_along_axis(np.abs(block), top_k_per_row(block, k), axis=1)
    expected = [sorted(np.abs(row[top_k_indices(row, k)])) for row in block]
    assert [sorted(row) for row in by_row] == expected


@given(v=vectors, k=st.integers(0, 14))
def test_a_hard_threshold_keeps_the_selected_entries_and_nothing_else(v: Array, k: int) -> None:
    expected = np.where(np.isin(np.arange(v.size), top_k_indices(v, k)), v, 0.0)
    np.testing.assert_array_equal(hard_threshold(v, k), expected)


def test_a_large_negative_entry_is_kept_before_a_small_positive_one() -> None:
    assert top_k_indices(np.array([1.0, -3.0, 2.0]), 1).tolist() == [1]


def test_a_hard_threshold_does_not_write_to_its_argument() -> None:
    v = np.array([1.0, -3.0, 2.0])
    hard_threshold(v, 1)
    assert v.tolist() == [1.0, -3.0, 2.0]
