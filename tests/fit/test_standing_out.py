"""The features of a sparse mean on which rows are judged."""

from __future__ import annotations

import numpy as np
import pytest

from outweigh.fit.standing_out import judge_on_features
from tests.reference.correlated import Array, correlated


def test_features_that_stand_out_hold_the_mean_and_what_outliers_moved() -> None:
    X = correlated(1000, 200)
    X[:, 3] += 1.0
    X[:100, 50:53] += 6.0
    features, judged = judge_on_features(X, np.ones(1000), None, 0.4)
    assert {3, 50, 51, 52} <= set(features.tolist())
    assert features.size < 30
    assert np.mean(judged.clean[:100] < 0.5) > 0.9


def test_of_noise_alone_few_features_stand_out() -> None:
    X = correlated(1000, 200, seed=1)
    features, judged = judge_on_features(X, np.ones(1000), 5, 0.4)
    assert 2 <= features.size <= 12
    assert np.mean(judged.clean < 0.5) < 0.01


def lacking(share: float, skew: float = 0.0, n: int = 2000) -> tuple[Array, Array]:
    """Return rows about a mean on the features 0, 20, ..., and those whose mean is zero."""
    Z = correlated(n, 200)
    if skew:
        Z = np.expm1(-skew * Z) / -skew
    wrong = np.arange(n) < share * n
    Z[np.ix_(~wrong, np.arange(0, 200, 20))] += 1.0
    return Z, wrong


@pytest.mark.parametrize("n_nonzero", [10, None])
def test_outliers_that_only_lack_the_mean_are_weighed_down(n_nonzero: int | None) -> None:
    Z, wrong = lacking(0.1)
    _, judged = judge_on_features(Z, np.ones(2000), n_nonzero, 0.4)
    lost = 1.0 - judged.clean
    assert lost.mean() == pytest.approx(0.1, abs=0.02)
    assert lost[wrong].mean() > 0.7
    assert np.mean(judged.clean[~wrong] < 0.5) < 0.03
    assert judged.apart == pytest.approx(np.mean(lost > 0.5))
    # As new rows they are of the group, too.
    assert judged.cloud.groups[-1].centres[0] < judged.cloud.groups[-1].centre


def test_rows_that_lack_the_mean_lose_no_more_than_is_allowed() -> None:
    Z, _ = lacking(0.1)
    _, judged = judge_on_features(Z, np.ones(2000), 10, 0.04)
    assert np.mean(1.0 - judged.clean) <= 0.04 * (1.0 + 1e-9)
    assert judged.spared > 0.0


@pytest.mark.parametrize("skew", [0.0, 0.3])
def test_rows_that_all_have_the_mean_are_left_alone(skew: float) -> None:
    Z, _ = lacking(0.0, skew)
    _, judged = judge_on_features(Z, np.ones(2000), 10, 0.4)
    assert np.mean(judged.clean < 0.5) < 0.01


def test_whole_numbers_as_weights_are_copies_also_of_rows_that_lack_the_mean() -> None:
    Z, _ = lacking(0.1, n=1000)
    weight = np.random.default_rng(0).integers(1, 3, 1000).astype(float)
    copies = np.repeat(np.arange(1000), weight.astype(int))
    _, weighted = judge_on_features(Z, weight, 10, 0.4)
    _, copied = judge_on_features(Z[copies], np.ones(copies.size), 10, 0.4)
    assert np.mean(copied.clean) < 0.95
    np.testing.assert_allclose(weighted.clean[copies], copied.clean, atol=1e-6)


def test_where_all_features_stand_out_none_is_left_to_show_what_rows_lack() -> None:
    Z, _ = lacking(0.1, n=300)
    Z = Z[:, :40:20] + 2.0
    with np.errstate(invalid="raise"):
        features, judged = judge_on_features(Z, np.ones(300), 2, 0.4)
    assert features.size == 2
    assert np.mean(judged.clean < 0.5) < 0.02
