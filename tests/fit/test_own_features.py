"""Two Gaussians on the features of a component."""

from __future__ import annotations

import numpy as np
import pytest

from outweigh.fit.own_features import component_of_bulk

N, K = 2000, 6
FIRST, SECOND = np.eye(K)[0], np.eye(K)[1]


def rows(share: float, seed: int) -> np.ndarray:
    """Return rows with a spike along the first axis, of which some have one along a diagonal."""
    rng = np.random.default_rng(seed)
    wrong = (np.arange(N) < share * N)[:, None]
    spike = np.where(wrong, np.sqrt(5.0) * (FIRST + SECOND), FIRST)
    return rng.standard_normal((N, K)) + rng.standard_normal((N, 1)) * spike


def turned(found: np.ndarray) -> float:
    return float(np.degrees(np.arccos(min(abs(float(found @ FIRST)), 1.0))))


@pytest.mark.parametrize("seed", range(3))
def test_a_spike_of_outliers_does_not_turn_the_component(seed: int) -> None:
    X = rows(0.2, seed)
    plain = np.linalg.eigh(np.cov(X.T))[1][:, -1]
    found = component_of_bulk(X, np.full(N, 1.0 / N), float(N))
    assert turned(plain) > 20.0
    assert found is not None
    assert turned(found) < 8.0


@pytest.mark.parametrize("freedom", [np.inf, 5.0, 3.0])
def test_tails_are_no_outliers(freedom: float) -> None:
    rng = np.random.default_rng(0)
    X = rows(0.0, 1)
    if np.isfinite(freedom):
        X /= np.sqrt(rng.chisquare(freedom, (N, 1)) / freedom)
    assert component_of_bulk(X, np.full(N, 1.0 / N), float(N)) is None


def test_few_rows_tell_nothing() -> None:
    X = rows(0.2, 0)[:50]
    assert component_of_bulk(X, np.full(50, 0.02), 50.0) is None


def test_rows_that_lie_in_a_subspace_are_left_alone() -> None:
    X = rows(0.2, 0)
    X[:, 2] = X[:, 3]
    assert component_of_bulk(X, np.full(N, 1.0 / N), float(N)) is None


@pytest.mark.parametrize("seed", range(8))
def test_rows_of_few_values_that_fall_into_a_subspace_have_no_spike_of_their_own(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.choice([-1.0, 1.0], (400, 4))
    rows[:60] = rng.choice([-1.0, 1.0], (60, 1)) * 3.0
    found = component_of_bulk(rows, np.full(400, 1 / 400), 400.0)
    assert found is None or np.isfinite(found).all()
