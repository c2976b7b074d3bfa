"""A second moment changed from the last one is the second moment."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from outweigh.samples import matrices as module
from outweigh.samples.matrices import SecondMoments, second_moment
from tests.reference import moments as brute

Array = NDArray[np.float64]
N, D = 60, 5
X = np.random.default_rng(0).standard_normal((N, D))


def drifting_weights(count: int) -> list[Array]:
    """Return weights of which a few change at each step, some to zero and back."""
    rng = np.random.default_rng(1)
    current = np.full(N, 1.0 / N)
    found = []
    for _ in range(count):
        current = current * rng.uniform(0.9, 1.1)
        some = rng.choice(N, 8, replace=False)
        current[some] = rng.choice([0.0, 0.5, 1.0, 2.0], 8) / N
        found.append(current.copy())
    return found


@pytest.mark.parametrize(("dtype", "atol"), [(np.float64, 1e-14), (np.float32, 1e-5)])
def test_a_chain_of_changes_gives_what_the_definition_gives(
    dtype: type[np.floating], atol: float
) -> None:
    known = SecondMoments(dtype)
    for weights in drifting_weights(50):
        found = known.get(X, weights)
        assert found.dtype == dtype
        np.testing.assert_allclose(found, brute.second_moment(X, weights), atol=atol)


def test_moments_of_the_first_weights_are_changed_where_few_rows_move(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known, summed = SecondMoments(np.float64), []
    usual = np.full(N, 1.0 / N)
    known.get(X, usual)
    whole = second_moment

    def counted(rows: Array, weights: Array, *arguments: object) -> Array:
        summed.append(np.count_nonzero(weights))
        return whole(rows, weights, *arguments)

    monkeypatch.setattr(module, "second_moment", counted)
    near = np.where(np.arange(N) < 9, 0.0, 1.0 / (N - 9))
    far = np.random.default_rng(2).dirichlet(np.full(N, 5.0))
    for weights, rows in ((near, 9), (far, N), (near, 9)):
        found = known.get(X, weights)
        np.testing.assert_allclose(found, brute.second_moment(X, weights), atol=1e-14)
        assert summed.pop() == rows
    known.get(X, near)
    known.get(X, usual)
    assert not summed


def test_what_was_returned_stays_as_it_is() -> None:
    known = SecondMoments(np.float64)
    first, second = drifting_weights(2)
    found = known.get(X, first)
    before = found.copy()
    known.get(X, second)
    np.testing.assert_array_equal(found, before)


def test_weights_on_few_rows_are_summed_apart() -> None:
    known = SecondMoments(np.float64)
    usual = np.full(N, 1.0 / N)
    known.get(X, usual)
    few = np.where(np.arange(N) < 5, 0.2, 0.0)
    np.testing.assert_allclose(known.get(X, few), brute.second_moment(X, few), atol=1e-14)
    assert known.find(usual) is not None
    assert known.find(few) is None


@pytest.mark.parametrize("tile", [2, 3, 8])
@pytest.mark.parametrize("block", [1, 7, 60])
def test_the_sum_does_not_depend_on_the_blocks(
    block: int, tile: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_ROW_BLOCK", block)
    monkeypatch.setattr(module, "_VALUES_IN_CACHE", 0)
    monkeypatch.setattr(module, "_TILE", tile)
    weights = drifting_weights(1)[0]
    found = second_moment(X, weights, np.float64)
    np.testing.assert_allclose(found, brute.second_moment(X, weights), atol=1e-14)


def test_a_huge_row_without_weight_leaves_a_single_precision_sum_finite() -> None:
    rows, weights = X.copy(), np.full(N, 1.0 / N)
    rows[3], weights[3] = 1e60, 0.0
    expected = brute.second_moment(np.delete(rows, 3, axis=0), np.delete(weights, 3))
    np.testing.assert_allclose(second_moment(rows, weights, np.float32), expected, atol=1e-5)


def test_no_weight_at_all_sums_to_zero() -> None:
    assert not second_moment(X, np.zeros(N), np.float64).any()


def test_what_is_known_is_known_in_other_units() -> None:
    known = SecondMoments(np.float64)
    usual, factor = np.full(N, 1.0 / N), np.arange(1.0, X.shape[1] + 1.0)
    known.get(X, usual)
    found = known.divided(factor).find(usual)
    np.testing.assert_allclose(found, brute.second_moment(X / factor, usual), atol=1e-14)
