"""Matrices read in blocks, rounded or not, and on demand are the matrices of the definition."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from numpy.typing import NDArray

from outweigh.objectives import sparse_mean
from outweigh.protocols import MomentMatrix
from outweigh.samples import ArrayMoment, DenseSamples
from outweigh.samples import dense as module
from outweigh.samples.matrices import Deflated, LazyMoment
from tests.reference import moments as brute

Array = NDArray[np.float64]

N, D = 40, 11
X = np.random.default_rng(0).standard_normal((N, D)) + 0.5
WEIGHTS = np.random.default_rng(1).uniform(0.0, 1.0, N)
WEIGHTS /= WEIGHTS.sum()
every_reference = pytest.mark.parametrize("reference", [0.0, 0.7])
both = pytest.mark.parametrize("centred", [True, False], ids=["centred", "uncentred"])
# Room for a matrix in single precision, or for none.
every_budget = pytest.mark.parametrize("budget", [None, 0], ids=["held", "tiled"])


def put_together(matrix: MomentMatrix) -> Array:
    whole = np.full((matrix.n_features, matrix.n_features), np.nan)
    for row, column, block in matrix.blocks():
        rows, columns = slice(row, row + block.shape[0]), slice(column, column + block.shape[1])
        assert np.isnan(whole[rows, columns]).all()
        whole[rows, columns] = block
        if column > row:
            whole[columns, rows] = block.T
    return whole


def rounded(budget: int | None, centred: bool, reference: float) -> MomentMatrix:
    samples = DenseSamples(X, memory_budget=budget)
    mean = samples.mean(WEIGHTS) if centred else None
    return samples.rounded_moment(WEIGHTS, mean, reference)


@every_reference
@pytest.mark.parametrize("tile", [1, 4, 11, 100])
def test_tiles_put_together_are_the_matrix(
    tile: int, reference: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_TILE", tile)
    expected = brute.deviation(X, WEIGHTS, centred=True, reference=reference)
    np.testing.assert_allclose(put_together(rounded(0, True, reference)), expected, atol=1e-5)


@every_budget
@both
@every_reference
def test_rounded_blocks_are_within_their_rounding_of_the_matrix(
    budget: int | None, centred: bool, reference: float
) -> None:
    matrix = rounded(budget, centred, reference)
    expected = brute.deviation(X, WEIGHTS, centred=centred, reference=reference)
    off = np.abs(put_together(matrix) - expected).max()
    assert 0.0 < off <= matrix.rounding < 1e-4


def test_only_what_fits_the_budget_is_held() -> None:
    assert isinstance(DenseSamples(X).moment(WEIGHTS, centred=True), ArrayMoment)
    none = DenseSamples(X, memory_budget=0).moment(WEIGHTS, centred=True)
    assert isinstance(none, LazyMoment)
    assert none.rounding == 0.0


@pytest.mark.parametrize("far", [True, False], ids=["far", "near"])
def test_rounded_blocks_outlive_those_of_other_weights(far: bool) -> None:
    samples = DenseSamples(X)
    early = samples.rounded_moment(WEIGHTS, samples.mean(WEIGHTS), 0.0)
    other = np.where(np.arange(N) == 0, 0.0, WEIGHTS)
    other = np.random.default_rng(5).dirichlet(np.full(N, 5.0)) if far else other / other.sum()
    late = samples.rounded_moment(other, samples.mean(other), 0.0)
    for matrix, weights in ((early, WEIGHTS), (late, other)):
        expected = brute.deviation(X, weights, centred=True, reference=0.0)
        np.testing.assert_allclose(put_together(matrix), expected, atol=1e-5)


@every_budget
@both
@every_reference
def test_all_else_that_a_rounded_matrix_is_asked_for_is_exact(
    budget: int | None, centred: bool, reference: float
) -> None:
    matrix = rounded(budget, centred, reference)
    expected = brute.deviation(X, WEIGHTS, centred=centred, reference=reference)
    some = np.array([7, 2, 10])
    V = np.random.default_rng(2).standard_normal((D, 3))
    np.testing.assert_allclose(matrix.rows(some), expected[some], atol=1e-12)
    np.testing.assert_allclose(matrix.restrict(some), expected[np.ix_(some, some)], atol=1e-12)
    np.testing.assert_allclose(matrix.product(V), expected @ V, atol=1e-12)


@every_budget
@pytest.mark.parametrize("single", [True, False], ids=["single", "double"])
def test_a_deflated_matrix_is_the_formula(budget: int | None, single: bool) -> None:
    U = np.linalg.qr(np.random.default_rng(3).standard_normal((D, 2)))[0]
    A = brute.deviation(X, WEIGHTS, centred=True, reference=1.0)
    expected = A - U @ (U.T @ A @ U) @ U.T
    samples = DenseSamples(X, memory_budget=budget)
    if single:
        whole = samples.rounded_moment(WEIGHTS, samples.mean(WEIGHTS), 1.0)
    else:
        whole = samples.moment(WEIGHTS, centred=True, reference=1.0)
    matrix = Deflated.of(whole, U)
    some = np.array([0, 9])
    V = np.random.default_rng(4).standard_normal((D, 3))
    np.testing.assert_allclose(matrix.rows(some), expected[some], atol=1e-12)
    np.testing.assert_allclose(matrix.restrict(some), expected[np.ix_(some, some)], atol=1e-12)
    np.testing.assert_allclose(matrix.product(V), expected @ V, atol=1e-12)
    np.testing.assert_allclose(put_together(matrix), expected, atol=1e-5 if single else 1e-12)


def test_a_pass_over_many_features_makes_no_square_array() -> None:
    d = 5000
    rows = np.random.default_rng(5).standard_normal((100, d))
    objective = sparse_mean(DenseSamples(rows), 5)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        objective.survey(np.full(100, 0.01), 30)
        peak = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    assert peak < 4 * d * d / 2


@both
def test_few_rows_are_a_factor_of_the_matrix(centred: bool) -> None:
    rows, weights = X[:6], WEIGHTS[:6] / WEIGHTS[:6].sum()
    for budget in (None, 0):
        samples = DenseSamples(rows, memory_budget=budget)
        factor = samples.moment(weights, centred=centred, reference=0.7).factor()
        assert factor is not None
        Y, c = factor
        assert Y.shape == (6, D)
        expected = brute.deviation(rows, weights, centred=centred, reference=0.7)
        np.testing.assert_allclose(Y.T @ Y - c * np.eye(D), expected, atol=1e-12)


def test_no_factor_is_known_of_many_rows() -> None:
    assert DenseSamples(X).moment(WEIGHTS, centred=True).factor() is None
