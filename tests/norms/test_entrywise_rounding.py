"""Rounding never decides: what is within it of being chosen is read again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pytest
from numpy.typing import NDArray

from outweigh.norms import LargestEntries, RowwiseLargest
from outweigh.norms.entrywise import _rounded, largest_entries, row_energies
from outweigh.samples import ArrayMoment
from tests.reference import norms as brute

Array = NDArray[np.float64]
seeds = pytest.mark.parametrize("seed", range(5))
ROUNDING = 1e-3


Block = tuple[int, int, NDArray[np.floating]]


def tiles(A: NDArray[np.floating], size: int) -> Iterator[Block]:
    """Yield a symmetric array in tiles on and above the diagonal."""
    for i in range(0, len(A), size):
        for j in range(i, len(A), size):
            yield i, j, A[i : i + size, j : j + size].copy()


@dataclass(frozen=True, slots=True, eq=False)
class Rounded(ArrayMoment):
    """An array whose blocks are those of another, off by up to the rounding."""

    seen: NDArray[np.floating] = field(default_factory=lambda: np.empty((0, 0)))
    rounding: float = ROUNDING
    tiled: bool = False

    def blocks(self) -> Iterator[Block]:
        return tiles(self.seen, 7) if self.tiled else iter([(0, 0, self.seen)])


@dataclass(frozen=True, slots=True, eq=False)
class Watched(Rounded):
    """A matrix that notes which features are read in double precision."""

    read: list[int] = field(default_factory=list)

    def rows(self, indices: NDArray[np.intp]) -> Array:
        self.read.extend(indices.tolist())
        return self.array[indices]

    def restrict(self, indices: NDArray[np.intp]) -> Array:
        self.read.extend(indices.tolist())
        return self.array[np.ix_(indices, indices)]


def symmetric(seed: int, d: int = 30) -> Array:
    A = np.random.default_rng(seed).standard_normal((d, d))
    return A + A.T


def nearly_tied(seed: int, d: int = 30) -> Array:
    """Return a matrix of which many entries and rows differ by less than the rounding."""
    rng = np.random.default_rng(seed)
    signs = np.sign(symmetric(seed, d))
    gaps = rng.uniform(0.0, ROUNDING, (d, d))
    return np.asarray(signs * (1.0 + gaps + gaps.T))


def rounded(A: Array, seed: int, tiled: bool) -> Rounded:
    """Return a matrix whose blocks are off by up to the rounding, at random."""
    noise = np.random.default_rng([seed, 1]).uniform(-0.5, 0.5, A.shape) * ROUNDING
    seen = (A + noise + noise.T).astype(np.float32)
    return Rounded(A, seen=seen, rounding=1.01 * ROUNDING, tiled=tiled)


@seeds
@pytest.mark.parametrize("k", [1, 4, 30])
@pytest.mark.parametrize("size", [1, 7, 30, 50])
def test_row_energies_of_tiles_are_those_of_sorted_rows(seed: int, k: int, size: int) -> None:
    A = symmetric(seed)
    expected = np.sort(A**2, axis=1)[:, -k:].sum(axis=1)
    for blocks, rtol in ((tiles(A, size), 1e-6), (ArrayMoment(A).blocks(), 1e-12)):
        np.testing.assert_allclose(row_energies(blocks, len(A), k), expected, rtol=rtol)


@seeds
@pytest.mark.parametrize("k", [1, 4, 30])
@pytest.mark.parametrize("wanted", [1, 5, 30])
def test_of_rows_that_are_not_wanted_a_bound_below_those_that_are_will_do(
    seed: int, k: int, wanted: int
) -> None:
    A = symmetric(seed)
    expected = np.sort(A**2, axis=1)[:, -k:].sum(axis=1)
    blocks = [(start, 0, A[start : start + 6]) for start in range(0, len(A), 6)]
    found = row_energies(blocks, len(A), k, wanted)
    most = np.argsort(-expected)[:wanted]
    np.testing.assert_allclose(found[most], expected[most], rtol=1e-12)
    assert np.all(found >= (1.0 - 1e-12) * expected)
    assert np.all(np.delete(found, most) <= expected[most].min())


@seeds
@pytest.mark.parametrize("unit", [1e-3, 1e3])
@pytest.mark.parametrize("gaps", [1e-6, 1.0])
def test_rows_that_are_wanted_get_their_sums_and_no_bound(
    seed: int, unit: float, gaps: float
) -> None:
    # With narrow gaps a bound is beyond the energy of a row by next to nothing.
    A = unit * np.exp(gaps * symmetric(seed))
    expected = np.sort(A**2, axis=1)[:, -4:].sum(axis=1)
    found = row_energies([(start, 0, A[start : start + 6]) for start in range(0, 30, 6)], 30, 4, 5)
    most = np.argsort(-expected)[:5]
    np.testing.assert_allclose(found[most], expected[most], rtol=1e-12)


@pytest.mark.parametrize("m", [1, 5, 24])
def test_of_entries_that_tie_for_the_last_place_as_many_are_chosen_as_there_is_room(m: int) -> None:
    rows, cols, values = largest_entries(tiles(np.ones((5, 5)), 2), 5, m)
    assert len({*zip(rows.tolist(), cols.tolist(), strict=True)}) == values.size == m


@seeds
def test_rows_that_rarely_have_something_large_are_ranked_all_the_same(seed: int) -> None:
    # The first tiles hold the largest entries, so later ones add few or none to a row.
    A = symmetric(seed, 64)
    A[:, :4] *= 10.0
    A[:4] = A[:, :4].T
    expected = np.sort(A**2, axis=1)[:, -3:].sum(axis=1)
    np.testing.assert_allclose(row_energies(tiles(A, 16), 64, 3), expected, rtol=1e-6)


@seeds
@pytest.mark.parametrize("m", [1, 2, 31, 900])
@pytest.mark.parametrize("size", [1, 7, 50])
def test_the_largest_entries_of_tiles_are_those_of_the_matrix(seed: int, m: int, size: int) -> None:
    A = symmetric(seed)
    rows, cols, values = largest_entries(tiles(A, size), len(A), m)
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
@pytest.mark.parametrize("tiled", [False, True], ids=["held", "tiled"])
@pytest.mark.parametrize("norm", [RowwiseLargest(3), LargestEntries(18)], ids=["F,k,k", "F,m"])
def test_the_form_of_a_rounded_matrix_attains_its_norm(
    seed: int, tiled: bool, norm: RowwiseLargest | LargestEntries
) -> None:
    A = nearly_tied(seed)
    found = norm.maximize(rounded(A, seed, tiled))
    assert np.sum(found.form.to_array() * A) == pytest.approx(found.value, rel=1e-13)


@seeds
def test_sums_of_squares_in_single_precision_decide_nothing(seed: int) -> None:
    # Rows hold the same entries in another order, but for their last binary digits in single
    # precision: their energies differ by less than it tells.
    rng = np.random.default_rng(seed)
    same = rng.uniform(1.0, 2.0, 30).astype(np.float32)[np.add.outer(range(30), range(30)) % 30]
    digits = np.triu(rng.integers(0, 2, (30, 30)))
    A = 2.0**20 * (same + 2.0**-23 * (digits + np.triu(digits, 1).T))
    matrix = Rounded(A, seen=A.astype(np.float32), rounding=1e-9)
    np.testing.assert_array_equal(matrix.seen, A)
    exact = brute.rowwise_largest_sorted(A, 8)
    assert RowwiseLargest(8).maximize(matrix).value == pytest.approx(exact, rel=1e-13)


@seeds
def test_of_an_exact_matrix_nothing_is_read_but_the_rows_of_the_form(seed: int) -> None:
    A = 1.0 + 1e-8 * symmetric(seed)
    for norm, n_read in ((RowwiseLargest(3), 3), (LargestEntries(18), 0)):
        matrix = Watched(A, seen=A, rounding=0.0)
        norm.maximize(matrix)
        assert len(matrix.read) == n_read


@seeds
@pytest.mark.parametrize("tiled", [False, True], ids=["held", "tiled"])
def test_of_a_rounded_matrix_no_row_is_read_that_cannot_be_chosen(seed: int, tiled: bool) -> None:
    A, k = symmetric(seed), 4
    screen = rounded(A, seed, tiled)
    matrix = Watched(A, seen=screen.seen, rounding=screen.rounding, tiled=tiled)
    RowwiseLargest(k).maximize(matrix)
    length = np.sqrt(np.sort(A**2, axis=1)[:, -k:].sum(axis=1))
    # The k largest of a row are off by sqrt(k) times the rounding, and those that they must reach
    # as much the other way; and each is given as much room again.
    off = np.sqrt(k) * screen.rounding + 2e-6 * length.max()
    assert length[matrix.read].min() >= np.sort(length)[-k] - 4.0 * off
    assert len(matrix.read) == len(set(matrix.read))


@seeds
def test_the_screen_alone_would_have_decided_otherwise(seed: int) -> None:
    # What makes the two tests above able to fail.
    A = nearly_tied(seed)
    screen = ArrayMoment(rounded(A, seed, False).seen.astype(np.float64))
    rows = RowwiseLargest(3).maximize(screen)
    entries = LargestEntries(18).maximize(screen)
    assert np.sum(rows.form.to_array() * A) < (1 - 1e-7) * brute.rowwise_largest_sorted(A, 3)
    assert np.sum(entries.form.to_array() * A) < (1 - 1e-7) * brute.largest_entries_sorted(A, 18)


@pytest.mark.parametrize(
    "norm", [RowwiseLargest(3), LargestEntries(18), LargestEntries(2)], ids=["F,k,k", "F,m", "F,2"]
)
@pytest.mark.parametrize("tiled", [False, True], ids=["held", "tiled"])
def test_a_screen_that_overflowed_is_not_used(
    norm: RowwiseLargest | LargestEntries, tiled: bool
) -> None:
    A = symmetric(0)
    screen = A.astype(np.float32)
    screen[3, 4] = screen[4, 3] = np.inf
    matrix = Rounded(A, seen=screen, rounding=0.1, tiled=tiled)
    found, exact = norm.maximize(matrix), norm.maximize(ArrayMoment(A))
    assert found.value == exact.value
    np.testing.assert_array_equal(found.form.to_array(), exact.form.to_array())


@seeds
@pytest.mark.parametrize("size", [7, 50])
def test_with_rounding_those_entries_come_that_may_be_among_the_largest_and_no_others(
    seed: int, size: int
) -> None:
    A = nearly_tied(seed)
    rows, cols, _ = largest_entries(tiles(A, size), len(A), 40, ROUNDING / 8)
    cut = np.sort(np.abs(A), axis=None)[-40]
    found = np.zeros(A.shape, dtype=bool)
    found[rows, cols] = True
    np.testing.assert_array_equal(found, np.abs(A) >= cut - ROUNDING / 4)


@seeds
def test_a_survey_of_entries_reads_the_rows_with_most_energy_in_the_form(seed: int) -> None:
    A = symmetric(seed)
    A[3] = A[:, 3] = 0.0
    # One entry that is the largest of all, in a row that has no other of the form.
    A[3, 3] = np.abs(A).max() + 0.1
    norm = LargestEntries(60)
    energy = np.square(norm.maximize(ArrayMoment(A)).form.to_array()).sum(axis=1)
    rows = np.sort(np.argsort(-energy)[:4])
    seen = norm.survey(ArrayMoment(A), 4)
    assert seen.n_rows == 4
    own = np.zeros(len(A))
    own[rows] = A[rows, rows] ** 2
    np.testing.assert_allclose(seen.own, own)
    np.testing.assert_allclose(seen.energy, np.square(A[rows]).sum(axis=0) - own)


@pytest.mark.parametrize("n_coordinates", [0, 5, 15, 40])
def test_a_survey_reads_the_rows_of_the_form_and_some_next_in_line(n_coordinates: int) -> None:
    A = symmetric(1)
    seen = RowwiseLargest(2).survey(ArrayMoment(A), n_coordinates)
    energy = np.sort(A**2, axis=1)[:, -2:].sum(axis=1)
    rows = np.sort(np.argsort(-energy)[: min(n_coordinates, 15)])
    assert seen.n_rows == rows.size
    own = np.zeros(len(A))
    own[rows] = A[rows, rows] ** 2
    np.testing.assert_allclose(seen.own, own)
    np.testing.assert_allclose(seen.energy, (A[rows] ** 2).sum(axis=0) - own)
    assert np.isin(rows, seen.coordinates).all()


def test_a_tiled_matrix_can_be_surveyed_by_both_norms() -> None:
    A = symmetric(2)
    tiled = Rounded(A, seen=A, rounding=1e-9, tiled=True)
    for norm in (RowwiseLargest(4), LargestEntries(32)):
        assert norm.survey(tiled, 6).n_rows <= 6
        assert norm.maximize(tiled).value == pytest.approx(norm.maximize(ArrayMoment(A)).value)


def test_row_energies_of_whole_rows_keep_the_digits_of_the_rows() -> None:
    A = symmetric(0)
    slabs = ((start, 0, A[start : start + 7]) for start in range(0, 30, 7))
    expected = np.sort(A**2, axis=1)[:, -4:].sum(axis=1)
    np.testing.assert_allclose(row_energies(slabs, 30, 4), expected, rtol=1e-14)


@pytest.mark.parametrize("unit", [1e-200, 1.0, 1e200])
def test_values_equal_but_for_rounding_are_equal_and_others_are_not(unit: float) -> None:
    first, same, other = _rounded(unit * np.array([1.0, 1.0 + 1e-13, 1.0 + 1e-10]))
    assert first == same
    assert first != other
