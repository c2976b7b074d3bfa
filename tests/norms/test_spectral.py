"""The spectral norms: large matrices, and a maximiser spread over near ties."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from outweigh import RobustMean
from outweigh.norms import KyFan
from outweigh.norms.spectral import _of_factor, largest_eigenpairs
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


def test_a_level_spreads_nothing_where_the_rank_is_not_one() -> None:
    A = ArrayMoment(np.diag([4.0, -2.0, 1.5, 0.5]))
    plain, leveled = KyFan(2).maximize(A), KyFan(2, level=1.0).maximize(A)
    assert leveled.value == plain.value == pytest.approx(6.0)
    np.testing.assert_array_equal(leveled.form.to_array(), plain.form.to_array())


def test_a_value_at_the_level_itself_is_not_spread() -> None:
    found = KyFan(1, level=4.0).maximize(ArrayMoment(np.diag([4.0, -2.0, 0.5])))
    np.testing.assert_array_equal(np.abs(found.form.to_array()), np.diag([1.0, 0.0, 0.0]))


def assert_eigenpairs(A: Array, values: Array, vectors: Array, count: int) -> None:
    expected = np.linalg.eigvalsh(A)
    expected = expected[np.argsort(-np.abs(expected), kind="stable")][:count]
    scale = max(float(np.abs(expected[0])), 1.0)
    np.testing.assert_allclose(np.abs(values), np.abs(expected), atol=1e-8 * scale)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(count), atol=1e-9)
    np.testing.assert_allclose(A @ vectors, vectors * values, atol=1e-7 * scale)


@pytest.mark.parametrize("count", [1, 2, 24, 60])
@pytest.mark.parametrize("reference", [0.0, 0.5, 3.0])
@pytest.mark.parametrize("rank", [3, 40, 230])
@pytest.mark.parametrize("n", [40, 220])
def test_rows_fewer_than_features_have_the_eigenpairs_of_their_matrix(
    n: int, rank: int, reference: float, count: int
) -> None:
    # Correlated rows, of low rank: most eigenvalues of the matrix are equal.
    d = 230
    rng = np.random.default_rng([n, rank])
    X = rng.standard_normal((n, rank)) / np.arange(1, rank + 1) @ rng.standard_normal((rank, d))
    w = np.full(n, 1 / n)
    matrix = DenseSamples(X).moment(w, centred=True, reference=reference)
    values, vectors = largest_eigenpairs(matrix, count, tol=0.0)
    assert_eigenpairs(matrix.restrict(np.arange(d)), values, vectors, count)


@pytest.mark.parametrize("count", range(1, 8))
@pytest.mark.parametrize("shift", [0.0, 1.0, 6.0])
@pytest.mark.parametrize("n", [2, 6])
def test_of_few_rows_no_eigenpair_is_left_out(n: int, shift: float, count: int) -> None:
    Y = np.random.default_rng(0).standard_normal((n, 8))
    values, vectors = _of_factor(Y, shift, count)
    order = np.argsort(-np.abs(values), kind="stable")[:count]
    assert_eigenpairs(Y.T @ Y - shift * np.eye(8), values[order], vectors[:, order], count)
    # Values are in the square of the units, vectors have none.
    others, same = _of_factor(1e-6 * Y, 1e-12 * shift, count)
    np.testing.assert_allclose(others, 1e-12 * values, rtol=1e-6)
    np.testing.assert_allclose(same, vectors, atol=1e-6)


def test_a_maximiser_is_spread_over_at_most_twenty_four_ties() -> None:
    for d, directions in ((10, 10), (40, 24)):
        form = KyFan(level=0.5).maximize(ArrayMoment(np.eye(d))).form
        np.testing.assert_allclose(form.strengths, np.full(directions, 1.0 / directions))


def test_one_singular_value_is_the_default() -> None:
    assert KyFan() == KyFan(1)


@pytest.mark.parametrize("rank", [1, 5, 31, 200])
def test_many_rows_of_low_rank_have_the_eigenpairs_of_their_matrix(rank: int) -> None:
    # Fewer eigenvalues differ from -1 than are asked for.
    d, n, count = 260, 600, 32
    rng = np.random.default_rng(rank)
    X = rng.standard_normal((n, rank)) @ rng.standard_normal((rank, d)) / np.sqrt(rank)
    matrix = DenseSamples(X).moment(np.full(n, 1 / n), centred=True, reference=1.0)
    values, vectors = largest_eigenpairs(matrix, count, tol=0.0)
    assert_eigenpairs(matrix.restrict(np.arange(d)), values, vectors, count)


def test_no_rows_at_all_have_the_eigenvalues_of_the_reference() -> None:
    matrix = DenseSamples(np.zeros((5, 300))).moment(np.full(5, 0.2), centred=True, reference=2.0)
    values, vectors = largest_eigenpairs(matrix, 4)
    np.testing.assert_array_equal(values, [-2.0] * 4)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(4), atol=1e-12)


def test_smooth_spectra_of_few_samples_are_fitted() -> None:
    # As near-infrared spectra are: 401 wavelengths, six shapes, sixty samples.
    rng = np.random.default_rng(0)
    at = np.linspace(0.0, 1.0, 401)
    shapes = np.array([np.exp(-((at - centre) ** 2) / 0.02) for centre in np.linspace(0, 1, 6)])
    X = rng.standard_normal((60, 6)) @ shapes + 3.0
    location = RobustMean(contamination=0.1).fit(X).location_
    assert np.abs(location - 3.0).max() < 1.0
