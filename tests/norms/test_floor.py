"""The noise floor against drawing clean data and scoring it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import optimize, stats

from outweigh.norms import KyFan, LargestEntries, RowwiseLargest, floor
from outweigh.norms.floor import NoiseFloor, noise_floor
from outweigh.protocols import Norm
from outweigh.samples import ArrayMoment
from tests.reference import norms as brute
from tests.reference.noise import clean_scores

Array = NDArray[np.float64]

RowsOf = tuple[Norm, Callable[[Array], float], int, int]


def rowwise(n: int, d: int, k: int) -> RowsOf:
    return RowwiseLargest(k), lambda A: brute.rowwise_largest_sorted(A, k), n, d


def entries(n: int, d: int, m: int) -> RowsOf:
    return LargestEntries(m), lambda A: brute.largest_entries_sorted(A, m), n, d


def spectral(n: int, d: int, rank: int) -> RowsOf:
    return KyFan(rank), lambda A: float(np.sort(np.abs(np.linalg.eigvalsh(A)))[-rank:].sum()), n, d


CASES = {
    "F,1,1 n=200 d=10": rowwise(200, 10, 1),
    "F,3,3 n=500 d=30": rowwise(500, 30, 3),
    "F,10,10 n=400 d=40": rowwise(400, 40, 10),
    "F,10,10 n=400 d=10": rowwise(400, 10, 10),
    "F,5,5 n=100 d=60": rowwise(100, 60, 5),
    "F,2 n=300 d=20": entries(300, 20, 2),
    "F,32 n=500 d=30": entries(500, 30, 32),
    "F,400 n=500 d=20": entries(500, 20, 400),
    "spectral n=500 d=8": spectral(500, 8, 1),
    "spectral n=6 d=3": spectral(6, 3, 1),
    "spectral n=500 d=40": spectral(500, 40, 1),
    "spectral n=150 d=60": spectral(150, 60, 1),
    "Ky Fan 2 n=400 d=10": spectral(400, 10, 2),
    "Ky Fan 2 n=400 d=40": spectral(400, 40, 2),
}
REPETITIONS = 300
# The median of 300 draws is off by 1.25 / sqrt(300) = 7 % of their spread; the rest is the floor's.
MEDIAN_TOLERANCE = 0.03
every_case = pytest.mark.parametrize("name", CASES)


@pytest.fixture(scope="module")
def scores() -> dict[str, Array]:
    return {
        name: clean_scores(score, n, d, REPETITIONS, seed=i)
        for i, (name, (_, score, n, d)) in enumerate(CASES.items())
    }


@every_case
def test_the_median_is_that_of_clean_data(name: str, scores: dict[str, Array]) -> None:
    norm, _, n, d = CASES[name]
    noise = 2.5 * 1.25 * scores[name].std() / np.sqrt(REPETITIONS)
    tolerance = MEDIAN_TOLERANCE * np.median(scores[name]) + noise
    assert noise_floor(norm, n, d).median == pytest.approx(np.median(scores[name]), abs=tolerance)


@every_case
def test_the_upper_level_covers_clean_data(name: str, scores: dict[str, Array]) -> None:
    # Of 300 samples 97 % lie below a true 0.99 quantile but for one chance in a thousand.
    norm, _, n, d = CASES[name]
    assert np.mean(scores[name] <= noise_floor(norm, n, d).upper) >= 0.97


@every_case
def test_the_upper_level_is_not_idle(name: str, scores: dict[str, Array]) -> None:
    norm, _, n, d = CASES[name]
    assert noise_floor(norm, n, d).upper <= 1.1 * scores[name].max()


@every_case
def test_the_floor_falls_as_samples_are_added(name: str) -> None:
    norm, _, n, d = CASES[name]
    medians = [noise_floor(norm, factor * n, d).median for factor in (1, 1.5, 2, 4, 16)]
    assert medians == sorted(medians, reverse=True)


@every_case
def test_the_floor_hardly_rises_where_another_table_begins(name: str) -> None:
    # One floor serves a factor of 1.1 in n but for the law 1/sqrt(n); the next is a little off it.
    norm, _, n, d = CASES[name]
    floors = [noise_floor(norm, n * (1 + 0.004 * i), d) for i in range(60)]
    for levels in ([f.median for f in floors], [f.upper for f in floors]):
        assert np.max(np.diff(levels) / levels[1:]) <= 0.003


@every_case
def test_the_median_is_below_the_upper_level(name: str) -> None:
    norm, _, n, d = CASES[name]
    floor = noise_floor(norm, n, d)
    assert 0.0 < floor.median < floor.upper


@every_case
def test_the_floor_does_not_touch_or_read_the_global_seed(name: str) -> None:
    norm, _, n, d = CASES[name]
    n_effective = n + 0.5
    np.random.seed(0)  # noqa: NPY002
    first = noise_floor(norm, n_effective, d)
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    np.random.seed(0)  # noqa: NPY002
    assert np.array_equal(state, np.random.get_state()[1])  # noqa: NPY002
    np.random.seed(1)  # noqa: NPY002
    assert noise_floor(norm, n_effective, d) == first


def test_the_floor_is_the_same_when_nothing_is_remembered() -> None:
    from outweigh.norms import floor as module

    first = noise_floor(RowwiseLargest(3), 777, 25)
    module._remembered.cache_clear()
    assert noise_floor(RowwiseLargest(3), 777, 25) == first


@pytest.mark.parametrize("norm", [RowwiseLargest(3), LargestEntries(18), KyFan(1)], ids=str)
def test_heavier_tails_raise_the_floor(norm: Norm) -> None:
    assert noise_floor(norm, 500, 12, 9.0).median > noise_floor(norm, 500, 12, 3.0).median


def test_light_tails_leave_a_spectrum_as_it_is() -> None:
    assert noise_floor(KyFan(1), 200, 8, kurtosis=1.8) == noise_floor(KyFan(1), 200, 8)


def test_laplace_data_lies_below_the_upper_level_of_its_kurtosis() -> None:
    rng = np.random.default_rng(5)
    floor = noise_floor(RowwiseLargest(3), 1000, 30, 6.0)
    scores = []
    for _ in range(100):
        X = rng.laplace(scale=np.sqrt(0.5), size=(1000, 30))
        scores.append(brute.rowwise_largest_sorted(np.cov(X.T, bias=True) - np.eye(30), 3))
    assert np.mean(np.array(scores) <= floor.upper) >= 0.95


def test_a_frobenius_floor_is_the_root_of_the_expected_square() -> None:
    n, d = 1000, 20
    floor = noise_floor(LargestEntries(d * d), n, d)
    assert floor.median == pytest.approx(np.sqrt(d * (d + 1) / n), rel=0.02)


def test_a_spectral_floor_in_high_dimension_is_the_edge() -> None:
    n, d = 4000, 400
    edge = (1.0 + np.sqrt(d / n)) ** 2 - 1.0
    assert noise_floor(KyFan(1), n, d).median == pytest.approx(edge, rel=0.05)


def test_two_rows_about_their_mean_have_one_direction_between_them() -> None:
    # |x - y|^2 / 4 is half a chi-squared of d degrees of freedom.
    assert noise_floor(KyFan(1), 2, 2000).median == pytest.approx(2000 / 2 - 1, rel=0.025)


def test_a_spectral_floor_rises_with_every_rank_also_beyond_those_tabulated() -> None:
    floors = [noise_floor(KyFan(rank), 400, 40).median for rank in range(1, 12)]
    assert (np.diff(floors) > 0.0).all()
    # Each eigenvalue is smaller than the one before.
    assert (np.diff(floors, 2) < 1e-9).all()


def test_each_rank_adds_the_next_eigenvalue_of_noise() -> None:
    """Against the eigenvalues of drawn noise, whose means are known to 0.2 % here."""
    n, d, rng = 400, 100, np.random.default_rng(0)
    drawn = (np.cov(rng.standard_normal((n, d)), rowvar=False, bias=True) for _ in range(200))
    expected = np.mean([np.linalg.eigvalsh(S)[::-1][:5] - 1.0 for S in drawn], axis=0)
    floors = [noise_floor(KyFan(rank), n, d).median for rank in range(1, 6)]
    np.testing.assert_allclose(np.diff(floors, prepend=0.0), expected, rtol=0.015)


def test_a_single_feature_has_a_floor() -> None:
    # The median of |N(0, 2/n)|.
    floor = noise_floor(RowwiseLargest(1), 2000, 1)
    assert floor.median == pytest.approx(0.6745 * np.sqrt(2 / 2000), rel=0.15)


def test_a_scaled_floor_is_scaled_at_both_levels() -> None:
    floor = noise_floor(RowwiseLargest(2), 300, 9)
    scaled = floor.scaled(4.0)
    assert (scaled.median, scaled.upper) == (4.0 * floor.median, 4.0 * floor.upper)


@pytest.mark.parametrize("norm", [np.abs, "spectral", None], ids=["function", "name", "none"])
def test_an_unknown_norm_is_refused(norm: object) -> None:
    with pytest.raises(TypeError, match="norm"):
        noise_floor(norm, 100, 10)


@pytest.mark.parametrize("d", [4, 12, 30])
@pytest.mark.parametrize("norm", [RowwiseLargest(3), LargestEntries(8), KyFan(1)], ids=str)
def test_the_floor_of_heavy_tails_is_that_of_clean_rows_with_such_tails(norm: Norm, d: int) -> None:
    # Laplace features have kurtosis 6.
    n, rng, scores = 1000, np.random.default_rng(d), []
    for _ in range(200):
        X = rng.laplace(scale=np.sqrt(0.5), size=(n, d))
        X -= X.mean(axis=0)
        scores.append(norm.maximize(ArrayMoment(X.T @ X / n - np.eye(d))).value)
    floor = noise_floor(norm, n, d, 6.0)
    assert floor.median == pytest.approx(np.median(scores), rel=0.06)
    assert np.mean(np.array(scores) <= floor.upper) >= 0.95


def test_rows_are_clean_up_to_the_upper_quantile_or_a_little_above_the_median() -> None:
    assert NoiseFloor(1.0, 1.0).clean == pytest.approx(1.05)
    assert NoiseFloor(1.0, 2.0).clean == 2.0


def test_rows_are_taken_for_gaussian_unless_their_kurtosis_is_given() -> None:
    assert noise_floor(KyFan(1), 77.0, 1) == noise_floor(KyFan(1), 77.0, 1, 3.0)


def test_entries_off_the_diagonal_have_the_tails_of_a_mean_of_products() -> None:
    """Cornish-Fisher at excess kurtosis 6/n: z (1 + (z^2 - 3) / (4 n)), beyond sqrt(3)."""
    law = floor._off_diagonal(20.0)
    for z, expected in ((1.0, 1.0), (4.0, (4.0 * (1.0 + 13.0 / 80.0)) ** 2)):
        assert law.quantile(2.0 * stats.norm.sf([z]))[0] == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize(("n", "rel"), [(2.0, 0.04), (6.0, 0.005), (50.0, 0.002)])
@pytest.mark.parametrize("deviation", [0.0, 2.0])
def test_entries_on_the_diagonal_have_a_law_of_chi_squared(
    n: float, rel: float, deviation: float
) -> None:
    exact = stats.chi2.ppf(stats.norm.cdf(deviation), n - 1.0) / n
    found = 1.0 + float(floor._diagonal(np.array([deviation]), n, 3.0)[0])
    assert found == pytest.approx(exact, rel=rel)
    exceeds = float(floor._diagonal_exceeds(np.array([0.7]), n, 3.0)[0])
    law = stats.chi2(n - 1.0)
    assert exceeds == pytest.approx(law.sf(1.7 * n) + law.cdf(0.3 * n), rel=5.0 * rel, abs=5e-5)


def test_one_row_has_a_floor() -> None:
    assert np.isfinite(floor._diagonal(np.array([0.0]), 1.0, 3.0)).all()


def test_the_largest_entry_of_two_features_is_that_of_three_independent_ones() -> None:
    """One off the diagonal of variance 1/n, two on it of variance (kurtosis - 1)/n."""
    n = 1e8

    def below(x: float) -> float:
        off, on = 2.0 * stats.norm.cdf(x) - 1.0, 2.0 * stats.norm.cdf(x / np.sqrt(0.5)) - 1.0
        return float(off * on**2)

    expected = optimize.brentq(lambda x: below(x) - floor._UPPER_QUANTILE, 0.1, 9.0)
    assert np.sqrt(n) * floor._of_entries(n, 2, 1, 1.5).upper == pytest.approx(expected, rel=0.01)


def test_the_upper_quantile_of_the_edge_is_that_of_its_law() -> None:
    assert floor._tracy_widom(floor._TW_UPPER) == pytest.approx(floor._UPPER_QUANTILE, abs=1e-3)


def test_the_sum_of_all_squares_has_the_law_of_its_two_moments() -> None:
    """d = 2 at kurtosis 3: mean 6/n and variance 24/n^2, which are those of 6/n chi^2(3) / 3."""
    found = floor._frobenius(100.0, 2, 3.0)
    for value, p in ((found.median, 0.5), (found.upper, floor._UPPER_QUANTILE)):
        expected = np.sqrt(0.06 * stats.chi2.ppf(p, 3.0) / 3.0)
        assert value == pytest.approx(expected, rel=0.006)


def test_lighter_tails_lower_the_floor_of_all_entries() -> None:
    assert floor._frobenius(100.0, 2, 2.0).median < floor._frobenius(100.0, 2, 2.4).median


def test_values_are_taken_for_independent_unless_it_is_told_how_many_are_equal() -> None:
    law = floor._off_diagonal(50.0)
    default, one = floor._sum_of_largest(law, 2, 9), floor._sum_of_largest(law, 2, 9, 1.0)
    np.testing.assert_array_equal(default.exceeds, one.exceeds)
