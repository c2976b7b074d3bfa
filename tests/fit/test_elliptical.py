"""Rows of unknown covariance: laws, hostile tables."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.special import ndtr, stdtrit
from sklearn.metrics import roc_auc_score

from outweigh import RobustMean
from outweigh.fit.elliptical import judge_rows
from tests.reference.correlated import Array, correlated, with_cluster


@pytest.mark.parametrize("distance", [6.0, 20.0])
@pytest.mark.parametrize("share", [0.05, 0.3])
def test_a_cluster_along_the_least_variable_direction_is_found(
    share: float, distance: float
) -> None:
    X = with_cluster(600, 8, share, distance)
    judged = judge_rows(X, np.ones(600), 0.4)
    wrong = np.arange(600) < int(share * 600)
    assert np.mean(judged.clean[wrong] < 0.5) > 0.9
    assert np.mean(judged.clean[~wrong] < 0.5) < 0.02


@pytest.mark.parametrize("seed", range(5))
def test_clean_correlated_rows_are_left_alone(seed: int) -> None:
    X = correlated(300, 10, seed)
    assert np.mean(judge_rows(X, np.ones(300), 0.4).clean < 0.5) <= 0.02


def test_units_and_shifts_do_not_matter() -> None:
    X = with_cluster(500, 6, 0.1, 6.0)
    moved = X * np.logspace(-3, 3, 6) + np.arange(6.0)
    first = judge_rows(X, np.ones(500), 0.4).clean
    second = judge_rows(moved, np.ones(500), 0.4).clean
    np.testing.assert_allclose(first, second, atol=1e-6)


def test_the_order_of_rows_does_not_matter() -> None:
    X = with_cluster(500, 6, 0.1, 6.0)
    order = np.random.default_rng(0).permutation(500)
    first = judge_rows(X, np.ones(500), 0.4).clean
    second = judge_rows(X[order], np.ones(500), 0.4).clean
    np.testing.assert_allclose(first[order], second, atol=1e-6)


def test_whole_numbers_as_weights_are_copies() -> None:
    X = with_cluster(400, 5, 0.1, 7.0)
    weight = np.random.default_rng(0).integers(1, 3, 400).astype(float)
    copies = np.repeat(np.arange(400), weight.astype(int))
    weighted = judge_rows(X, weight, 0.4).clean
    copied = judge_rows(X[copies], np.ones(copies.size), 0.4).clean
    np.testing.assert_allclose(weighted[copies], copied, atol=1e-6)


def test_rows_far_out_in_columns_of_few_values_are_found_and_no_others() -> None:
    X = np.round(2.0 * correlated(400, 6)) / 2.0
    X[-20:] += 10.0
    judged = judge_rows(X, np.ones(400), 0.4)
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
    judged = judge_rows(X, np.ones(len(X)), 0.4)
    assert np.all(np.isfinite(judged.clean))
    assert np.all(np.isfinite(judged.severity))
    assert np.mean(judged.clean < 0.5) <= 0.4
    if name == "huge values":
        assert np.all(judged.clean[-2:] == 0.0)


def test_more_far_rows_than_may_be_wrong_are_all_kept() -> None:
    """Half of the rows tight, half of them wide: nothing tells which half is right."""
    X = correlated(400, 6)
    X[:190] *= 100.0
    judged = judge_rows(X, np.ones(400), 0.4)
    assert np.all(judged.clean == 1.0)
    assert judged.severity.max() <= 1.0
    assert judged.divided > 0.4


def with_margins(n: int, d: int, seed: int, margin: Callable[[Array], Array]) -> Array:
    """Correlated rows whose columns have each the law that `margin` makes of a Gaussian one."""
    X = correlated(n, d, seed)
    return margin((X - X.mean(axis=0)) / X.std(axis=0))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_group_beside_skewed_columns_is_found(seed: int) -> None:
    """Straightened, a skewed column draws a group beyond its tail in: it is looked for before."""
    X = with_margins(400, 8, seed, lambda z: -np.log(ndtr(-z)))
    wrong = np.arange(400) < 60
    X[wrong, 0] += 6.0
    judged = judge_rows(X, np.ones(400), 0.4)
    assert np.mean(judged.clean[wrong] < 0.5) > 0.9
    assert np.mean(judged.clean[~wrong] < 0.5) < 0.03


def test_rows_all_over_the_range_of_heavy_tails_are_found() -> None:
    """The far rows are no tail of the others: two laws of the distances explain them better."""
    X = with_margins(400, 8, 2, lambda z: stdtrit(4.0, ndtr(z)))
    wrong = np.arange(400) < 60
    X[wrong] = np.random.default_rng(0).uniform(X.min(axis=0), X.max(axis=0), (60, 8))
    judged = judge_rows(X, np.ones(400), 0.4)
    assert np.mean(judged.clean[wrong] < 0.5) > 0.9
    assert np.mean(judged.clean[~wrong] < 0.5) < 0.05


def test_a_group_in_columns_of_few_values_that_is_not_far_is_kept_and_told() -> None:
    X = with_cluster(600, 6, 0.3, 4.0)
    clean = np.round(2.0 * correlated(600, 6))
    assert judge_rows(clean, np.ones(600), 0.4).doubtful == 0.0
    X = np.round(2.0 * X / X.std(axis=0))
    judged = judge_rows(X, np.ones(600), 0.4)
    assert judged.apart == 0.0
    assert judged.doubtful > 0.1
    verdict = RobustMean().fit(X).certificate_
    assert (verdict.trust, verdict.doubt) == ("in doubt", "few values")


def test_a_group_that_overlaps_the_others_is_kept_and_told() -> None:
    X = correlated(400, 4)
    assert RobustMean().fit(X).certificate_.clean
    X[:80, 0] += 4.0 * np.sqrt(1.0 / np.linalg.inv(np.cov(X.T))[0, 0])
    model = RobustMean().fit(X)
    assert (model.certificate_.trust, model.certificate_.doubt) == ("in doubt", "overlap")
    assert model.certificate_.doubtful == pytest.approx(0.2, abs=0.03)
    assert np.mean(model.predict(X) == -1) < 0.02
    # They come first where somebody looks at the rows in order.
    assert roc_auc_score(np.arange(400) < 80, -model.score_samples(X)) > 0.95


def test_a_group_that_with_far_rows_is_too_large_to_be_wrong_is_kept_and_told() -> None:
    X = with_cluster(600, 12, 0.3, 6.0)
    X[-80:] *= 30.0
    judged = judge_rows(X, np.ones(600), 0.4)
    assert judged.apart == 0.0
    assert (judged.doubt, judged.doubtful) == ("many", pytest.approx(0.3, abs=0.05))
    assert np.all(judged.clean[-80:] == 0.0)
    assert RobustMean().fit(X).certificate_.trust == "in doubt"


def test_outliers_in_columns_of_few_values_beside_others_are_told() -> None:
    X = correlated(600, 8)
    X[:, :4] = np.round(1.5 * X[:, :4])
    assert judge_rows(X, np.ones(600), 0.4).doubtful == 0.0
    X[:90, :2] += 9.0
    judged = judge_rows(X, np.ones(600), 0.4)
    assert judged.seen == 0.5
    assert (judged.doubt, judged.doubtful) == ("few values", pytest.approx(0.15, abs=0.02))


@pytest.mark.parametrize("n_coarse", [0, 2, 6])
def test_the_share_of_the_columns_that_rows_are_judged_by_is_told(n_coarse: int) -> None:
    X = correlated(300, 6)
    X[:, :n_coarse] = X[:, :n_coarse] > 0.0
    judged = judge_rows(X, np.ones(300), 0.4)
    assert judged.seen == pytest.approx(1.0 - n_coarse / 6)
