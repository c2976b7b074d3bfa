"""What the shape of a cloud says of rows: far ones, and groups that are handed in as masks."""

from __future__ import annotations

import numpy as np
import pytest

from outweigh.fit.scatter import WeightedRows
from outweigh.fit.shape import Found, Shape, undecided
from tests.reference.correlated import Array, correlated, with_cluster

N, D, M = 500, 6, 50
WRONG = np.arange(N) < M


def judged(X: Array, apart: list[Array], told: list[Array], bound: float = 0.4) -> Found:
    return Shape(WeightedRows(X, np.ones(len(X))), bound).judged(apart, told)


@pytest.mark.parametrize("seed", range(3))
def test_clean_rows_are_kept_and_in_no_group(seed: int) -> None:
    found = judged(correlated(N, D, seed), [], [])
    assert np.mean(found.clean < 0.5) <= 0.01
    assert found.groups == found.doubted == ()


def test_rows_three_times_as_far_are_beyond_the_limit() -> None:
    X = correlated(N, D)
    X[WRONG] *= 6.0
    found = judged(X, [], [])
    assert np.mean(found.squared[WRONG] > found.limit) > 0.9
    assert np.mean(found.squared[~WRONG] > found.limit) < 0.02


def third_of_rows_farther(factor: float) -> tuple[Array, Array]:
    X, outer = correlated(N, D, 3), np.arange(N) < 0.3 * N
    X[outer] *= factor
    return X, outer


def test_many_far_rows_count_where_a_valley_parts_them() -> None:
    X, outer = third_of_rows_farther(12.0)
    found = judged(X, [], [])
    assert np.mean(found.clean[outer] < 0.5) > 0.9
    assert np.mean(found.clean[~outer] < 0.5) < 0.02


def test_many_far_rows_without_a_valley_are_told_and_kept() -> None:
    X, outer = third_of_rows_farther(2.5)
    found = judged(X, [], [])
    assert np.mean(found.clean < 0.5) < 0.02
    assert np.mean(found.maybe[outer] > 0.5) > 0.3
    assert np.mean(found.maybe[~outer] > 0.5) < 0.02


def test_a_group_that_stands_apart_costs_its_rows_their_weight_and_no_others() -> None:
    found = judged(with_cluster(N, D, 0.1, 8.0), [WRONG], [])
    assert len(found.groups) == 1
    assert np.all(found.clean[WRONG] < 0.1)
    assert np.mean(found.clean[~WRONG] < 0.5) < 0.02


def test_a_group_that_is_only_told_keeps_its_weight_and_is_named() -> None:
    found = judged(with_cluster(N, D, 0.1, 5.0), [], [WRONG])
    assert found.groups == ()
    assert len(found.doubted) == 1
    assert np.mean(found.maybe[WRONG] > 0.5) > 0.9
    assert np.mean(found.maybe[~WRONG] > 0.5) < 0.05


def test_clean_rows_that_are_named_a_group_are_none() -> None:
    some = np.random.default_rng(0).permutation(N) < M
    found = judged(correlated(N, D), [some], [])
    assert found.groups == found.doubted == ()


def test_more_wrong_rows_than_there_may_be_divide_a_table_and_all_are_kept() -> None:
    found = judged(with_cluster(N, D, 0.1, 8.0), [WRONG], [], bound=0.05)
    assert found.groups == ()
    assert np.all(found.clean == 1.0)
    assert found.divided == pytest.approx(0.1, abs=0.02)


def test_where_nothing_is_decided_all_rows_are_kept() -> None:
    rows = WeightedRows(with_cluster(N, D, 0.5, 8.0), np.ones(N))
    found = undecided(rows, divided=0.5)
    assert np.all(found.clean == 1.0)
    assert np.all(found.squared <= found.limit)
    assert found.divided == 0.5
