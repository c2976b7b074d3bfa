"""The entrywise norms: the lemmas of the paper, magnitudes, and blocks of rows."""

from __future__ import annotations

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from outweigh.norms import LargestEntries, RowwiseLargest
from outweigh.norms.entrywise import hard_threshold
from outweigh.samples import ArrayMoment, DenseSamples
from outweigh.samples.matrices import LazyMoment
from tests.reference import norms as brute

Array = NDArray[np.float64]

finite = st.floats(-100, 100, width=32)


def vectors(max_size: int = 8) -> st.SearchStrategy[Array]:
    return hnp.arrays(np.float64, st.integers(1, max_size), elements=finite)


@st.composite
def matrices_and_sparse_units(draw: st.DrawFn) -> tuple[Array, Array, int]:
    d = draw(st.integers(1, 6))
    k = draw(st.integers(1, d))
    A = draw(hnp.arrays(np.float64, (d, d), elements=finite))
    support = draw(st.permutations(range(d)))[:k]
    v = np.zeros(d)
    v[support] = draw(hnp.arrays(np.float64, k, elements=st.floats(0.01, 1) | st.floats(-1, -0.01)))
    return np.tril(A) + np.tril(A, -1).T, v / np.linalg.norm(v), k


@st.composite
def sparse_and_near(draw: st.DrawFn) -> tuple[Array, Array, int]:
    d = draw(st.integers(1, 8))
    k = draw(st.integers(1, d))
    x = np.zeros(d)
    x[draw(st.permutations(range(d)))[:k]] = draw(hnp.arrays(np.float64, k, elements=finite))
    return x, x + draw(hnp.arrays(np.float64, d, elements=finite)), k


@given(v=vectors(), k=st.integers(1, 9))
def test_the_vector_norm_is_that_of_brute_force(v: Array, k: int) -> None:
    length = np.linalg.norm(hard_threshold(v, k))
    assert length == pytest.approx(brute.vector_largest(v, k), rel=1e-12)


@given(v=vectors(), k=st.integers(1, 9))
def test_what_is_kept_of_a_vector_attains_its_norm(v: Array, k: int) -> None:
    expected = brute.vector_largest(v, k) ** 2
    assert hard_threshold(v, k) @ v == pytest.approx(expected, rel=1e-12)


@given(v=vectors(), k=st.integers(1, 9))
def test_what_is_kept_of_a_vector_is_sparse(v: Array, k: int) -> None:
    assert np.count_nonzero(hard_threshold(v, k)) <= k


@given(case=matrices_and_sparse_units())
def test_sparse_directions_see_at_most_the_rowwise_norm(case: tuple[Array, Array, int]) -> None:
    A, v, k = case
    assert abs(v @ A @ v) <= RowwiseLargest(k).maximize(ArrayMoment(A)).value * (1 + 1e-12) + 1e-12


@given(v=vectors(), k=st.integers(1, 9))
def test_the_rowwise_norm_of_a_rank_one_matrix_is_the_squared_vector_norm(v: Array, k: int) -> None:
    value = RowwiseLargest(k).maximize(ArrayMoment(np.outer(v, v))).value
    assert value == pytest.approx(np.sum(hard_threshold(v, k) ** 2), rel=1e-9, abs=1e-12)


@given(case=sparse_and_near())
def test_truncation_loses_at_most_a_factor_of_root_five(case: tuple[Array, Array, int]) -> None:
    x, y, k = case
    delta = np.linalg.norm(hard_threshold(x - y, k))
    assert np.linalg.norm(x - hard_threshold(y, k)) <= np.sqrt(5.0) * delta * (1 + 1e-12) + 1e-12


def test_the_rowwise_norm_selects_by_magnitude() -> None:
    A = np.array([[1.0, 0.0, -5.0], [0.0, 2.0, 0.0], [-5.0, 0.0, 1.0]])
    form = RowwiseLargest(1).maximize(ArrayMoment(A)).form.to_array()
    assert np.abs(form).max() == -form.min() == 1.0


def test_the_entrywise_norm_selects_by_magnitude() -> None:
    A = np.array([[3.0, -4.0], [-4.0, 1.0]])
    assert LargestEntries(2).maximize(ArrayMoment(A)).value == pytest.approx(np.sqrt(32.0))


def test_the_rowwise_norm_takes_at_most_k_rows_of_k_entries() -> None:
    A = np.random.default_rng(0).standard_normal((20, 20))
    form = RowwiseLargest(4).maximize(ArrayMoment(A + A.T)).form.to_array()
    assert sorted(np.count_nonzero(form, axis=1))[-5:] == [0, 4, 4, 4, 4]


@pytest.mark.parametrize("block_size", [1, 3, 7, 12, 50])
@pytest.mark.parametrize("norm", [RowwiseLargest(3), LargestEntries(18)], ids=["F,k,k", "F,m"])
def test_blocks_of_rows_give_the_same_value_as_the_whole_matrix(
    norm: RowwiseLargest | LargestEntries, block_size: int
) -> None:
    rng = np.random.default_rng(1)
    X, w = rng.standard_normal((30, 12)), np.full(30, 1 / 30)
    blocked = LazyMoment(DenseSamples(X), w, w @ X, 1.0, block_size)
    held = ArrayMoment(blocked.restrict(np.arange(12)))
    assert norm.maximize(blocked).value == pytest.approx(norm.maximize(held).value, rel=1e-12)


@pytest.mark.parametrize("block_size", [1, 3, 7, 12])
@pytest.mark.parametrize("norm", [RowwiseLargest(3), LargestEntries(18)], ids=["F,k,k", "F,m"])
def test_blocks_of_rows_give_the_same_maximiser_as_the_whole_matrix(
    norm: RowwiseLargest | LargestEntries, block_size: int
) -> None:
    rng = np.random.default_rng(2)
    X, w = rng.standard_normal((30, 12)), np.full(30, 1 / 30)
    blocked = LazyMoment(DenseSamples(X), w, None, 0.5, block_size)
    A = blocked.restrict(np.arange(12))
    form = norm.maximize(blocked).form.to_array()
    assert np.sum(form * A) == pytest.approx(norm.maximize(ArrayMoment(A)).value, rel=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_large_matrices_agree_with_sorting(seed: int) -> None:
    A = np.random.default_rng(seed).standard_normal((60, 60))
    A = A + A.T
    values = [
        RowwiseLargest(7).maximize(ArrayMoment(A)).value,
        LargestEntries(98).maximize(ArrayMoment(A)).value,
    ]
    expected = [brute.rowwise_largest_sorted(A, 7), brute.largest_entries_sorted(A, 98)]
    assert values == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("norm", [RowwiseLargest(3), LargestEntries(18)], ids=["F,k,k", "F,m"])
def test_forms_are_of_length_one_whatever_the_units(
    norm: RowwiseLargest | LargestEntries, scale: float
) -> None:
    A = np.random.default_rng(3).standard_normal((12, 12))
    form = norm.maximize(ArrayMoment(scale * (A + A.T))).form.to_array()
    assert np.linalg.norm(form) == pytest.approx(1.0, rel=1e-12)


def test_the_rowwise_norm_of_one_entry_is_the_largest_magnitude_to_the_last_digit() -> None:
    A = np.ones((9, 9))
    A[2, 5] = A[5, 2] = -(1.0 + 1e-14)
    assert RowwiseLargest(1).maximize(ArrayMoment(A)).value == np.abs(A).max()
