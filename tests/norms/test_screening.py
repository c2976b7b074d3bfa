"""Rounding never decides: what is within it of being chosen is read again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from outweigh.norms import KyFan, LargestEntries, RowwiseLargest
from outweigh.norms.screening import largest_entries, row_energies
from outweigh.samples import ArrayMoment, ScreenedMoment, TiledMoment
from tests.reference import norms as brute

Array = NDArray[np.float64]
seeds = pytest.mark.parametrize("seed", range(5))
ROUNDING = 1e-3


@dataclass(frozen=True)
class Tiles:
    """A symmetric array in tiles."""

    array: NDArray[np.floating]
    size: int

    @property
    def n_features(self) -> int:
        return len(self.array)

    def tiles(self) -> Iterator[tuple[int, int, NDArray[np.floating]]]:
        for i in range(0, len(self.array), self.size):
            for j in range(i, len(self.array), self.size):
                yield i, j, self.array[i : i + self.size, j : j + self.size].copy()


def symmetric(seed: int, d: int = 30) -> Array:
    A = np.random.default_rng(seed).standard_normal((d, d))
    return A + A.T


def nearly_tied(seed: int, d: int = 30) -> Array:
    """Return a matrix of which many entries and rows differ by less than the rounding."""
    rng = np.random.default_rng(seed)
    signs = np.sign(symmetric(seed, d))
    gaps = rng.uniform(0.0, ROUNDING, (d, d))
    return np.asarray(signs * (1.0 + gaps + gaps.T))


def rounded(A: Array, seed: int, tiled: bool) -> ScreenedMoment:
    """Return a matrix whose screen is off by up to the rounding, at random."""
    noise = np.random.default_rng([seed, 1]).uniform(-0.5, 0.5, A.shape) * ROUNDING
    screen = (A + noise + noise.T).astype(np.float32)
    return ScreenedMoment(
        Tiles(screen, 7) if tiled else ArrayMoment(screen), ArrayMoment(A), 1.01 * ROUNDING
    )


@seeds
@pytest.mark.parametrize("k", [1, 4, 30])
@pytest.mark.parametrize("size", [1, 7, 30, 50])
def test_row_energies_of_tiles_are_those_of_sorted_rows(seed: int, k: int, size: int) -> None:
    A = symmetric(seed)
    expected = np.sort(A**2, axis=1)[:, -k:].sum(axis=1)
    for matrix, rtol in ((Tiles(A, size), 1e-6), (ArrayMoment(A), 1e-12)):
        energy, diagonal = row_energies(matrix, k)
        np.testing.assert_allclose(energy, expected, rtol=rtol)
        np.testing.assert_allclose(diagonal, np.diagonal(A) ** 2, rtol=rtol)


@seeds
def test_rows_that_rarely_have_something_large_are_ranked_all_the_same(seed: int) -> None:
    # The first tiles hold the largest entries, so later ones add few or none to a row.
    A = symmetric(seed, 64)
    A[:, :4] *= 10.0
    A[:4] = A[:, :4].T
    expected = np.sort(A**2, axis=1)[:, -3:].sum(axis=1)
    np.testing.assert_allclose(row_energies(Tiles(A, 16), 3)[0], expected, rtol=1e-6)


@seeds
@pytest.mark.parametrize("m", [1, 2, 31, 900])
@pytest.mark.parametrize("size", [1, 7, 50])
def test_the_largest_entries_of_tiles_are_those_of_the_matrix(seed: int, m: int, size: int) -> None:
    A = symmetric(seed)
    rows, cols, values = largest_entries(Tiles(A, size), m, 0.0)
    np.testing.assert_array_equal(A[rows, cols], values)
    assert len({*zip(rows.tolist(), cols.tolist(), strict=True)}) == m
    assert np.sum(values**2) == pytest.approx(brute.largest_entries_sorted(A, m) ** 2)


@seeds
@pytest.mark.parametrize("tiled", [False, True], ids=["held", "tiled"])
@pytest.mark.parametrize("k", [1, 3, 8])
def test_near_ties_of_rows_are_decided_by_the_exact_matrix(seed: int, tiled: bool, k: int) -> None:
    A = nearly_tied(seed)
    exact = brute.rowwise_largest_sorted(A, k)
    assert RowwiseLargest(k).maximize(rounded(A, seed, tiled)).value == pytest.approx(
        exact, rel=1e-13
    )


@seeds
@pytest.mark.parametrize("tiled", [False, True], ids=["held", "tiled"])
@pytest.mark.parametrize("m", [1, 18, 128])
def test_near_ties_of_entries_are_decided_by_the_exact_matrix(
    seed: int, tiled: bool, m: int
) -> None:
    A = nearly_tied(seed)
    exact = brute.largest_entries_sorted(A, m)
    assert LargestEntries(m).maximize(rounded(A, seed, tiled)).value == pytest.approx(
        exact, rel=1e-13
    )


@seeds
def test_the_screen_alone_would_have_decided_otherwise(seed: int) -> None:
    # What makes the two tests above able to fail.
    A = nearly_tied(seed)
    screen = rounded(A, seed, False).screen
    rows = RowwiseLargest(3).maximize(screen)
    entries = LargestEntries(18).maximize(screen)
    assert np.sum(rows.form.to_array() * A) < (1 - 1e-7) * brute.rowwise_largest_sorted(A, 3)
    assert np.sum(entries.form.to_array() * A) < (1 - 1e-7) * brute.largest_entries_sorted(A, 18)


@pytest.mark.parametrize("norm", [RowwiseLargest(3), LargestEntries(18)], ids=["F,k,k", "F,m"])
@pytest.mark.parametrize("tiled", [False, True], ids=["held", "tiled"])
def test_a_screen_that_overflowed_is_not_used(
    norm: RowwiseLargest | LargestEntries, tiled: bool
) -> None:
    A = symmetric(0)
    screen = A.astype(np.float32)
    screen[3, 4] = screen[4, 3] = np.inf
    matrix = ScreenedMoment(Tiles(screen, 7) if tiled else ArrayMoment(screen), ArrayMoment(A), 0.1)
    assert norm.maximize(matrix).value == norm.maximize(ArrayMoment(A)).value


@seeds
@pytest.mark.parametrize("rank", [1, 2])
def test_eigenvalues_of_a_rounded_matrix_are_those_of_the_exact_one(seed: int, rank: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((400, 250))
    X[:40] += 0.5
    A = X.T @ X / 400 - np.eye(250)
    matrix = ScreenedMoment(ArrayMoment(A.astype(np.float32)), ArrayMoment(A), 1e-6)
    found = KyFan(rank).maximize(matrix).value
    assert found == pytest.approx(brute.ky_fan(A, rank), rel=1e-10)


@pytest.mark.parametrize("n_rows", [0, 5, 15, 40])
def test_an_inspection_shows_the_rows_of_the_form_and_some_next_in_line(n_rows: int) -> None:
    A = symmetric(1)
    seen = RowwiseLargest(2).inspect(ArrayMoment(A), n_rows)
    energy = np.sort(A**2, axis=1)[:, -2:].sum(axis=1)
    expected = np.sort(np.argsort(-energy)[: min(n_rows, 15)])
    np.testing.assert_array_equal(np.sort(seen.rows), expected)
    np.testing.assert_array_equal(seen.values, A[seen.rows])


@seeds
@pytest.mark.parametrize("k", [1, 3])
def test_rounding_does_not_decide_which_rows_exceed_a_level(seed: int, k: int) -> None:
    A = symmetric(seed)
    exact = RowwiseLargest(k).inspect(ArrayMoment(A), 5, (1.0,)).by_row
    largest = np.sort(A**2, axis=1)[:, -k:].sum(axis=1)
    np.testing.assert_allclose(exact, largest - np.diagonal(A) ** 2)
    # Levels as near to energies as a rounded matrix cannot tell.
    levels = tuple(float(value) for value in exact[:4] * (1.0 - 1e-6))
    noise = np.random.default_rng(seed).uniform(-ROUNDING, ROUNDING, A.shape)
    rounded = ScreenedMoment(ArrayMoment(A + (noise + noise.T) / 2.0), ArrayMoment(A), ROUNDING)
    found = RowwiseLargest(k).inspect(rounded, 5, levels).by_row
    for level in levels:
        np.testing.assert_array_equal(found > level, exact > level)
    plain = RowwiseLargest(k).inspect(rounded, 5)
    assert plain.by_row is None


def test_a_tiled_moment_can_be_surveyed_by_both_norms() -> None:
    Y = np.random.default_rng(0).standard_normal((20, 30))
    A = Y.T @ Y - np.eye(30)
    tiles = TiledMoment(Y, 1.0, 8)
    exact = ScreenedMoment(tiles, ArrayMoment(A), 1e-9)
    for norm in (RowwiseLargest(4), LargestEntries(32)):
        assert norm.inspect(exact, 6).rows.size <= 6
        assert norm.maximize(exact).value == pytest.approx(norm.maximize(ArrayMoment(A)).value)
