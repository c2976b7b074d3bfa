"""Rows of unknown covariance: laws, hostile tables."""

from __future__ import annotations

import numpy as np
import pytest

from outweigh.fit.elliptical import judge_rows
from outweigh.fit.tuning import TUNING
from tests.reference.correlated import Array, correlated, with_cluster


@pytest.mark.parametrize("distance", [6.0, 20.0])
@pytest.mark.parametrize("share", [0.05, 0.3])
def test_a_cluster_along_the_least_variable_direction_is_found(
    share: float, distance: float
) -> None:
    X = with_cluster(600, 8, share, distance)
    judged = judge_rows(X, np.ones(600), 0.4, TUNING)
    wrong = np.arange(600) < int(share * 600)
    assert np.mean(judged.clean[wrong] < 0.5) > 0.9
    assert np.mean(judged.clean[~wrong] < 0.5) < 0.02


@pytest.mark.parametrize("seed", range(5))
def test_clean_correlated_rows_are_left_alone(seed: int) -> None:
    X = correlated(300, 10, seed)
    assert np.mean(judge_rows(X, np.ones(300), 0.4, TUNING).clean < 0.5) <= 0.02


def test_units_and_shifts_do_not_matter() -> None:
    X = with_cluster(500, 6, 0.1, 6.0)
    moved = X * np.logspace(-3, 3, 6) + np.arange(6.0)
    first = judge_rows(X, np.ones(500), 0.4, TUNING).clean
    second = judge_rows(moved, np.ones(500), 0.4, TUNING).clean
    np.testing.assert_allclose(first, second, atol=1e-6)


def test_the_order_of_rows_does_not_matter() -> None:
    X = with_cluster(500, 6, 0.1, 6.0)
    order = np.random.default_rng(0).permutation(500)
    first = judge_rows(X, np.ones(500), 0.4, TUNING).clean
    second = judge_rows(X[order], np.ones(500), 0.4, TUNING).clean
    np.testing.assert_allclose(first[order], second, atol=1e-6)


def test_whole_numbers_as_weights_are_copies() -> None:
    X = with_cluster(400, 5, 0.1, 7.0)
    weight = np.random.default_rng(0).integers(1, 3, 400).astype(float)
    copies = np.repeat(np.arange(400), weight.astype(int))
    weighted = judge_rows(X, weight, 0.4, TUNING).clean
    copied = judge_rows(X[copies], np.ones(copies.size), 0.4, TUNING).clean
    np.testing.assert_allclose(weighted[copies], copied, atol=1e-6)


def test_rows_far_out_in_columns_of_few_values_are_found_and_no_others() -> None:
    X = np.round(2.0 * correlated(400, 6)) / 2.0
    X[-20:] += 10.0
    judged = judge_rows(X, np.ones(400), 0.4, TUNING)
    assert np.mean(judged.clean[:-20] < 0.5) <= 0.01
    assert np.all(judged.clean[-20:] < 0.5)


def hostile() -> dict[str, Array]:
    X = correlated(80, 5)
    collinear = np.column_stack([X, X[:, 0] + X[:, 1]])
    return {
        "duplicate columns": np.column_stack([X, X]),
        "collinear columns": collinear,
        "constant in the bulk": np.column_stack([X, np.arange(80) < 10]),
        "rounded": np.round(X),
        "fewer rows than columns": correlated(20, 50),
        "three rows": correlated(3, 2),
        "one column": X[:, :1],
        "huge values": np.vstack([X, np.full((2, 5), 1e200)]),
        "equal rows": np.vstack([X, np.tile(X[0], (60, 1))]),
    }


@pytest.mark.parametrize("name", hostile())
def test_hostile_tables_are_judged_without_complaint(name: str) -> None:
    X = hostile()[name]
    judged = judge_rows(X, np.ones(len(X)), 0.4, TUNING)
    assert np.all(np.isfinite(judged.clean))
    assert np.all(np.isfinite(judged.severity))
    assert np.mean(judged.clean < 0.5) <= 0.4
    if name == "huge values":
        assert np.all(judged.clean[-2:] == 0.0)


def test_more_far_rows_than_may_be_wrong_are_all_kept() -> None:
    """Half of the rows tight, half of them wide: nothing tells which half is right."""
    X = correlated(400, 6)
    X[:190] *= 100.0
    judged = judge_rows(X, np.ones(400), 0.4, TUNING)
    assert np.all(judged.clean == 1.0)
    assert judged.severity.max() <= 1.0
    assert judged.divided > 0.4
