"""Rows that lie together in single features are found, in noise of any law."""

from __future__ import annotations

import numpy as np
import pytest

from outweigh.fit.crowds import crowded_features, groups_in_features
from outweigh.fit.law import GAUSSIAN, Law, TypicalLaw
from outweigh.optimise.capped_simplex import CappedSimplex
from outweigh.protocols import Array
from outweigh.samples import DenseSamples

N = 1000


def test_few_rows_at_one_place_are_found_in_their_feature() -> None:
    n = 3 * N
    X = np.random.default_rng(51).standard_normal((n, 10))
    # A hundredth at three deviations adds 0.08 to a variance that noise makes 0.026 of.
    X[:30, 4] = 3.0 + np.random.default_rng(52).uniform(-0.1, 0.1, 30)
    domain = CappedSimplex.from_contamination(n, 0.1)
    w, groups, wrong = groups_in_features(DenseSamples(X), domain, domain.reference(), np.asarray)
    assert [np.flatnonzero(group.direction).tolist() for group in groups] == [[4]]
    assert wrong[:30].mean() > 0.8
    # In an interval of 0.2 at three deviations there are 0.2 n phi(3) = 2.7 clean rows.
    assert wrong[30:].sum() < 10.0
    assert w[:30].sum() < 0.2 * 30 / n


def test_features_are_looked_at_however_many_there_are() -> None:
    n, d = 3 * N, 70
    X = np.random.default_rng(54).standard_normal((n, d))
    X[:40, 66] = 3.0
    X[40:80, 2] = -3.0
    domain = CappedSimplex.from_contamination(n, 0.1)
    groups = groups_in_features(DenseSamples(X), domain, domain.reference(), np.asarray)[1]
    assert [np.flatnonzero(group.direction).tolist() for group in groups] == [[2], [66]]


@pytest.mark.parametrize("seed", range(5))
def test_clean_gaussian_rows_lie_together_nowhere(seed: int) -> None:
    X = np.random.default_rng([53, seed]).standard_normal((2 * N, 20))
    domain = CappedSimplex.from_contamination(2 * N, 0.1)
    assert groups_in_features(DenseSamples(X), domain, domain.reference(), np.asarray)[1] == ()


def exponential(seed: int, n: int) -> tuple[Array, Law]:
    X = np.random.default_rng([55, seed]).exponential(size=(n, 20)) - 1.0
    return X, TypicalLaw(X, np.ones(n))(np.ones(n))


def test_moved_rows_are_found_in_a_feature_of_any_law() -> None:
    n = 2 * N
    X, law = exponential(0, n)
    # Beyond the edge of the law: a twentieth, which adds 0.3 to a variance of error 0.06.
    X[: n // 20, 7] -= 2.5
    domain = CappedSimplex.from_contamination(n, 0.1)
    samples = DenseSamples(X)
    _, groups, wrong = groups_in_features(samples, domain, domain.reference(), np.asarray, law)
    assert [np.flatnonzero(group.direction).tolist() for group in groups] == [[7]]
    assert wrong[: n // 20].mean() > 0.7
    assert wrong[n // 20 :].mean() < 0.02


@pytest.mark.parametrize("seed", range(5))
def test_clean_exponential_rows_lie_together_nowhere(seed: int) -> None:
    X, law = exponential(seed, N)
    domain = CappedSimplex.from_contamination(N, 0.1)
    samples = DenseSamples(X)
    assert groups_in_features(samples, domain, domain.reference(), np.asarray, law)[1] == ()


def test_crowded_features_are_those_in_which_rows_lie_together_in_any_units() -> None:
    X = np.random.default_rng(55).standard_normal((N, 600))
    X[:200, [3, 300, 599]] += 4.0
    # As where a scale was read off the feature itself.
    X[:, 300] /= X[:, 300].std()
    assert crowded_features(X, np.ones(N), GAUSSIAN).tolist() == [3, 300, 599]
    assert not crowded_features(X[:, 4:300], np.ones(N), GAUSSIAN).size


def test_rare_values_beside_equal_ones_are_no_crowd() -> None:
    rng = np.random.default_rng(56)
    X = np.where(rng.random((N, 5)) < 0.1, 1.0 + rng.poisson(2.0, (N, 5)), 0.0)
    assert not crowded_features(X, np.ones(N), GAUSSIAN).size
