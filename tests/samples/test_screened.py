"""Matrices read in single precision and in tiles are the matrices of the definition."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from numpy.typing import NDArray

from outweigh.objectives import sparse_mean
from outweigh.protocols import MomentMatrix, TiledMatrix
from outweigh.samples import BlockedMoment, DenseSamples, ScreenedMoment, TiledMoment
from outweigh.samples.screened import SharedMoment, deflated
from tests.reference import moments as brute

Array = NDArray[np.float64]

N, D = 40, 11
X = np.random.default_rng(0).standard_normal((N, D)) + 0.5
WEIGHTS = np.random.default_rng(1).uniform(0.0, 1.0, N)
WEIGHTS /= WEIGHTS.sum()
REFERENCES = {
    "scalar": 0.7,
    "diagonal": np.linspace(0.5, 2.0, D),
    "matrix": np.eye(D) + 0.3 * np.ones((D, D)),
}
every_reference = pytest.mark.parametrize("reference", REFERENCES.values(), ids=REFERENCES)
both = pytest.mark.parametrize("centred", [True, False], ids=["centred", "uncentred"])
# Room for a matrix in single precision, or for none.
every_budget = pytest.mark.parametrize("budget", [None, 0], ids=["held", "tiled"])


def put_together(matrix: TiledMatrix) -> Array:
    whole = np.full((matrix.n_features, matrix.n_features), np.nan)
    for row, column, tile in matrix.tiles():
        assert row <= column
        rows, columns = slice(row, row + tile.shape[0]), slice(column, column + tile.shape[1])
        whole[rows, columns] = tile
        whole[columns, rows] = tile.T
    return whole


def screened(budget: int | None, centred: bool, reference: float | Array) -> ScreenedMoment:
    samples = DenseSamples(X, memory_budget=budget)
    found = samples.moment(WEIGHTS, centred=centred, reference=reference, single_precision=True)
    assert isinstance(found, ScreenedMoment)
    return found


def seen(screen: MomentMatrix | TiledMatrix) -> Array:
    if isinstance(screen, TiledMatrix):
        return put_together(screen)
    return np.vstack([block for _, block in screen.row_blocks()])


@every_reference
@pytest.mark.parametrize("tile", [1, 4, 11, 100])
def test_tiles_put_together_are_the_matrix(tile: int, reference: float | Array) -> None:
    root = np.sqrt(WEIGHTS)[:, None] * X
    expected = brute.deviation(X, WEIGHTS, centred=False, reference=reference)
    found = put_together(TiledMoment(root, reference, tile))
    np.testing.assert_allclose(found, expected, atol=1e-12)


@every_budget
@both
@every_reference
def test_the_screen_is_within_its_rounding_of_the_matrix(
    budget: int | None, centred: bool, reference: float | Array
) -> None:
    matrix = screened(budget, centred, reference)
    expected = brute.deviation(X, WEIGHTS, centred=centred, reference=reference)
    off = np.abs(seen(matrix.screen) - expected).max()
    assert 0.0 < off <= matrix.rounding < 1e-4


def test_only_what_fits_the_budget_is_held() -> None:
    assert isinstance(screened(None, True, 1.0).screen, SharedMoment)
    assert isinstance(screened(0, True, 1.0).screen, TiledMoment)
    double = DenseSamples(X, memory_budget=0).moment(WEIGHTS, centred=True)
    assert isinstance(double, BlockedMoment)


@both
@every_reference
def test_a_shared_screen_is_the_rounded_matrix_in_every_way(
    centred: bool, reference: float | Array
) -> None:
    screen = screened(None, centred, reference).screen
    assert isinstance(screen, SharedMoment)
    expected = brute.deviation(X, WEIGHTS, centred=centred, reference=reference)
    some = np.array([7, 2])
    V = np.random.default_rng(2).standard_normal((D, 3))
    np.testing.assert_allclose(screen.rows(some), expected[some], atol=1e-5)
    np.testing.assert_allclose(screen.restrict(some), expected[np.ix_(some, some)], atol=1e-5)
    np.testing.assert_allclose(screen.product(V), expected @ V, atol=1e-5)
    np.testing.assert_allclose(screen.product(V[:, 0]), expected @ V[:, 0], atol=1e-5)
    np.testing.assert_allclose(screen.diagonal(), np.diagonal(expected), atol=1e-5)


def test_a_screen_of_earlier_weights_is_not_read_by_mistake() -> None:
    samples = DenseSamples(X)
    early = samples.moment(WEIGHTS, centred=True, single_precision=True)
    near = np.where(np.arange(N) == 0, 0.0, WEIGHTS)
    samples.moment(near, centred=True, single_precision=True)
    assert isinstance(early, ScreenedMoment)
    with pytest.raises(RuntimeError, match="other weights"):
        seen(early.screen)


def test_a_screen_outlives_that_of_weights_far_from_it() -> None:
    samples = DenseSamples(X)
    early = samples.moment(WEIGHTS, centred=True, single_precision=True)
    far = np.random.default_rng(5).dirichlet(np.full(N, 5.0))
    late = samples.moment(far, centred=True, single_precision=True)
    for matrix, weights in ((early, WEIGHTS), (late, far)):
        assert isinstance(matrix, ScreenedMoment)
        expected = brute.deviation(X, weights, centred=True, reference=0.0)
        np.testing.assert_allclose(seen(matrix.screen), expected, atol=1e-5)


@every_budget
@both
@every_reference
def test_all_that_a_screened_matrix_is_asked_for_is_exact(
    budget: int | None, centred: bool, reference: float | Array
) -> None:
    matrix = screened(budget, centred, reference)
    expected = brute.deviation(X, WEIGHTS, centred=centred, reference=reference)
    some = np.array([7, 2, 10])
    V = np.random.default_rng(2).standard_normal((D, 3))
    np.testing.assert_allclose(matrix.rows(some), expected[some], atol=1e-12)
    np.testing.assert_allclose(matrix.restrict(some), expected[np.ix_(some, some)], atol=1e-12)
    np.testing.assert_allclose(matrix.product(V), expected @ V, atol=1e-12)
    np.testing.assert_allclose(matrix.diagonal(), np.diagonal(expected), atol=1e-12)
    blocks = np.vstack([block for _, block in matrix.row_blocks()])
    np.testing.assert_allclose(blocks, expected, atol=1e-12)


@every_budget
@pytest.mark.parametrize("single", [True, False], ids=["single", "double"])
def test_a_deflated_matrix_is_the_formula(budget: int | None, single: bool) -> None:
    U = np.linalg.qr(np.random.default_rng(3).standard_normal((D, 2)))[0]
    A = brute.deviation(X, WEIGHTS, centred=True, reference=1.0)
    expected = A - U @ (U.T @ A @ U) @ U.T
    samples = DenseSamples(X, memory_budget=budget)
    whole = samples.moment(WEIGHTS, centred=True, reference=1.0, single_precision=single)
    matrix = deflated(whole, U)
    some = np.array([0, 9])
    V = np.random.default_rng(4).standard_normal((D, 3))
    np.testing.assert_allclose(matrix.rows(some), expected[some], atol=1e-12)
    np.testing.assert_allclose(matrix.restrict(some), expected[np.ix_(some, some)], atol=1e-12)
    np.testing.assert_allclose(matrix.product(V), expected @ V, atol=1e-12)
    np.testing.assert_allclose(matrix.diagonal(), np.diagonal(expected), atol=1e-12)
    if isinstance(matrix, ScreenedMoment):
        np.testing.assert_allclose(seen(matrix.screen), expected, atol=1e-5)
    else:
        np.testing.assert_allclose(seen(matrix), expected, atol=1e-12)


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
