"""White rows are called white whatever outliers do; correlated ones are not."""

from __future__ import annotations

import numpy as np
import pytest

from outweigh.adversaries import MEAN_ADVERSARIES, make
from outweigh.fit.whiteness import bulk_excess, bulk_variance, some_columns


@pytest.mark.parametrize("contamination", [0.1, 0.3])
@pytest.mark.parametrize("adversary", sorted(MEAN_ADVERSARIES))
def test_no_adversary_makes_white_rows_look_correlated(
    adversary: str, contamination: float
) -> None:
    X = make(adversary, 600, 30, 5, contamination, 0).X
    assert bulk_excess(X, np.ones(len(X))) <= 1.0


@pytest.mark.parametrize("share", [0.0, 0.2])
@pytest.mark.parametrize("kind", ["series", "blocks", "factor"])
def test_correlated_rows_are_seen_under_outliers(kind: str, share: float) -> None:
    rng = np.random.default_rng(0)
    d = 20
    if kind == "series":
        C = 0.6 ** np.abs(np.subtract.outer(range(d), range(d)))
    elif kind == "blocks":
        C = np.kron(np.eye(4), np.full((5, 5), 0.6)) + 0.4 * np.eye(d)
    else:
        C = np.full((d, d), 0.5) + 0.5 * np.eye(d)
    X = rng.standard_normal((500, d)) @ np.linalg.cholesky(C).T
    X[: int(share * 500)] += 3.0
    assert bulk_excess(X, np.ones(500)) > 1.0


def test_a_weight_is_as_many_copies() -> None:
    X = np.random.default_rng(0).standard_normal((200, 4)) @ np.triu(np.ones((4, 4)))
    weight = np.tile([1.0, 3.0], 100)
    copies = np.repeat(X, weight.astype(int), axis=0)
    assert bulk_excess(X, weight) == pytest.approx(bulk_excess(copies, np.ones(400)), rel=1e-6)


def test_some_columns_are_neighbours_and_some_are_spread_out() -> None:
    some = some_columns(5000)
    assert some.size <= 150
    assert np.count_nonzero(np.diff(some) == 1) > 50
    assert some[0] == 0
    assert some[-1] > 4800
    assert some_columns(10).tolist() == list(range(10))


def test_rows_of_no_weight_do_not_reach_the_variance_of_the_bulk() -> None:
    along = np.zeros(80)
    along[::2] = 4.0
    with np.errstate(over="raise", invalid="raise"):
        variance, grouped = bulk_variance(along, (along == 0.0).astype(float))
    assert variance == pytest.approx(0.0, abs=1e-12)
    assert not grouped
