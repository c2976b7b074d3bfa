"""The spectral norms: large matrices, and a maximiser spread over near ties."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from outweigh.norms import KyFan
from outweigh.norms.spectral import largest_eigenpairs
from outweigh.samples import ArrayMoment, DenseSamples
from outweigh.samples.matrices import LazyMoment
from tests.reference import norms as brute

Array = NDArray[np.float64]


def symmetric(d: int, seed: int = 0) -> Array:
    A = np.random.default_rng(seed).standard_normal((d, d))
    return A + A.T


@pytest.mark.parametrize("rank", [1, 2, 5])
@pytest.mark.parametrize("d", [200, 201, 260])
def test_large_matrices_agree_with_all_singular_values(d: int, rank: int) -> None:
    A = symmetric(d)
    value = KyFan(rank).maximize(ArrayMoment(A)).value
    assert value == pytest.approx(brute.ky_fan(A, rank), rel=1e-7)


def test_a_matrix_on_demand_agrees_with_the_held_one() -> None:
    rng = np.random.default_rng(1)
    X, w = rng.standard_normal((50, 230)), np.full(50, 1 / 50)
    blocked = LazyMoment(DenseSamples(X), w, w @ X, 1.0, 64)
    expected = brute.ky_fan(blocked.restrict(np.arange(230)), 2)
    assert KyFan(2).maximize(blocked).value == pytest.approx(expected, rel=1e-7)


def test_a_negative_eigenvalue_counts_by_its_magnitude() -> None:
    found = KyFan(1).maximize(ArrayMoment(np.diag([1.0, -3.0, 2.0])))
    np.testing.assert_allclose(found.form.to_array(), np.diag([0.0, -1.0, 0.0]), atol=1e-12)


def test_eigenpairs_come_by_decreasing_magnitude() -> None:
    values, _ = largest_eigenpairs(ArrayMoment(symmetric(40)), 10)
    assert np.all(np.diff(np.abs(values)) <= 1e-12)


@pytest.mark.parametrize("d", [30, 250])
def test_the_same_matrix_gives_the_same_vectors(d: int) -> None:
    A = symmetric(d)
    first, second = (largest_eigenpairs(ArrayMoment(A), 3)[1] for _ in range(2))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("level", [0.0, 1.0, 2.5, 10.0])
def test_a_spread_maximiser_does_not_change_the_value(level: float) -> None:
    A = np.diag([3.0, -2.9, 2.0, 0.5])
    assert KyFan(1, level=level).maximize(ArrayMoment(A)).value == pytest.approx(3.0)


@pytest.mark.parametrize("level", [0.0, 1.0, 2.5])
def test_a_spread_maximiser_stays_in_the_dual_ball(level: float) -> None:
    Z = KyFan(1, level=level).maximize(ArrayMoment(symmetric(12))).form.to_array()
    assert np.linalg.svd(Z, compute_uv=False).sum() <= 1.0 + 1e-12


def test_a_spread_maximiser_is_proportional_to_the_excess_over_the_level() -> None:
    Z = KyFan(1, level=1.0).maximize(ArrayMoment(np.diag([4.0, -2.0, 0.5]))).form.to_array()
    np.testing.assert_allclose(Z, np.diag([0.75, -0.25, 0.0]), atol=1e-12)


def test_a_spread_maximiser_says_what_it_attains() -> None:
    A = symmetric(12)
    found = KyFan(1, level=2.0).maximize(ArrayMoment(A))
    assert found.attained == pytest.approx(np.sum(found.form.to_array() * A), rel=1e-12)
