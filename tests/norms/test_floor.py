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


@pytest.mark.parametrize("kurtosis", [1.5, 60.0])
def test_the_largest_entry_of_two_features_is_that_of_three_independent_ones(
    kurtosis: float,
) -> None:
    """One off the diagonal of variance 1/n, two on it of variance (kurtosis - 1)/n."""
    n = 1e8

    def below(x: float) -> float:
        off, on = stats.norm.cdf(x), stats.norm.cdf(x / np.sqrt(kurtosis - 1.0))
        return float((2.0 * off - 1.0) * (2.0 * on - 1.0) ** 2)

    expected = optimize.brentq(lambda x: below(x) - floor._UPPER_QUANTILE, 0.1, 60.0)
    found = np.sqrt(n) * floor._of_entries(n, 2, 1, kurtosis).upper
    assert found == pytest.approx(expected, rel=0.01)


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


def moments(law: floor._Law) -> tuple[float, float]:
    """The mean and the variance of a nonnegative value, from how likely it is to exceed sizes."""
    below = law.sizes[0]
    mean = below + np.trapezoid(law.exceeds, law.sizes)
    square = below**2 + np.trapezoid(2.0 * law.sizes * law.exceeds, law.sizes)
    return float(mean), float(square - mean**2)


EXPONENTIAL = floor._Law(np.linspace(0.0, 60.0, 6001), np.exp(-np.linspace(0.0, 60.0, 6001)))


@pytest.mark.parametrize(("count", "population"), [(1, 12), (3, 12), (5, 200)])
def test_the_largest_of_exponential_values_have_the_sum_of_renyi(
    count: int, population: int
) -> None:
    """It is that of min(i, count) E_i / i over i, for independent exponential E_i (Renyi, 1953)."""
    later = 1.0 / np.arange(count + 1, population + 1)
    mean, variance = moments(floor._sum_of_largest(EXPONENTIAL, count, population))
    assert mean == pytest.approx(count + count * later.sum(), rel=0.01)
    # Sixteen values stand for the law of the next largest: its outermost 1/32 is cut.
    assert variance == pytest.approx(count + count**2 * (later**2).sum(), rel=0.08)


@pytest.mark.parametrize("equal", [1.0, 2.0])
def test_the_sum_of_all_exponential_values_has_a_gamma_law(equal: float) -> None:
    law = floor._sum_of_largest(EXPONENTIAL, 6, 6, equal)
    expected = stats.gamma(6.0 / equal, scale=equal).ppf([0.5, 0.99])
    np.testing.assert_allclose(law.quantile(np.array([0.5, 0.01])), expected, rtol=2e-3)
    # Sizes reach beyond what can happen.
    assert law.exceeds[-1] < 1e-12


def off_diagonal(rng: np.random.Generator, n: float, shape: tuple[int, ...]) -> Array:
    """Draw n times squares of entries, with the tails of a mean of products of Gaussians."""
    z = np.abs(rng.standard_normal(shape))
    return np.square(z * (1.0 + np.maximum(z * z - 3.0, 0.0) / (4.0 * n)))


def variances(rng: np.random.Generator, n: float, shape: tuple[int, ...], kurt: float) -> Array:
    """Draw variances less one."""
    gaussian = rng.chisquare(n - 1.0, shape) / n - 1.0
    return np.maximum(gaussian * np.sqrt((kurt - 1.0) / 2.0), -1.0)


@pytest.mark.parametrize(
    ("n", "d", "k", "kurtosis"), [(12.0, 4, 2, 3.0), (12.0, 4, 3, 6.0), (40.0, 6, 2, 3.0)]
)
def test_rows_have_the_floor_of_entries_that_share_a_factor(
    n: float, d: int, k: int, kurtosis: float
) -> None:
    """Against drawing what it is said to be: rows that are independent of each other."""
    rng, draws = np.random.default_rng(20), 20_000
    others = np.sort(off_diagonal(rng, n, (draws, d, d - 1)), axis=2)[:, :, -k:].sum(axis=2)
    v = variances(rng, n, (draws, d), kurtosis)
    z = stats.norm.isf(k / (d - 1.0) / 2.0)
    smallest = (z * (1.0 + max(z * z - 3.0, 0.0) / (4.0 * n))) ** 2
    own = np.maximum(n * v**2 - smallest * (1.0 + v), 0.0)
    rows = np.sort((1.0 + v) * others + own, axis=1)[:, -k:].sum(axis=1)
    expected = np.sqrt(np.quantile(rows, [0.5, floor._UPPER_QUANTILE]) / n)
    found = floor._of_rows(n, d, k, kurtosis)
    assert found.median == pytest.approx(expected[0], rel=0.01)
    # A gamma law for a sum is a little lighter in its tail.
    assert found.upper == pytest.approx(expected[1], rel=0.04)


@pytest.mark.parametrize(
    ("n", "d", "m"), [(12.0, 4, 1), (12.0, 4, 6), (200.0, 5, 9), (200.0, 5, 3)]
)
def test_entries_have_the_floor_of_independent_pairs_and_variances(
    n: float, d: int, m: int
) -> None:
    rng, draws = np.random.default_rng(21), 20_000
    pairs = off_diagonal(rng, n, (draws, d * (d - 1) // 2))
    own = n * variances(rng, n, (draws, d), 3.0) ** 2
    every = np.sort(np.hstack([pairs, pairs, own]), axis=1)[:, -m:].sum(axis=1)
    expected = np.sqrt(np.quantile(every, [0.5, floor._UPPER_QUANTILE]) / n)
    found = floor._of_entries(n, d, m, 3.0)
    assert found.median == pytest.approx(expected[0], rel=0.015)
    assert found.upper == pytest.approx(expected[1], rel=0.04)


# Wilson and Hilferty's root is good to 1.3 % at two degrees of freedom.
@pytest.mark.parametrize(("n", "rel"), [(3.0, 0.015), (30.0, 0.005)])
def test_a_single_variance_has_the_floor_of_chi_squared(n: float, rel: float) -> None:
    law = stats.chi2(n - 1.0)

    def below(x: float) -> float:
        return float(law.cdf(n * (1.0 + x)) - law.cdf(n * (1.0 - x)))

    found = floor._of_spectrum(n, 1, 1, 3.0)
    for value, p in ((found.median, 0.5), (found.upper, floor._UPPER_QUANTILE)):
        expected = optimize.brentq(lambda x, p=p: below(x) - p, 1e-6, 50.0)
        assert value == pytest.approx(expected, rel=rel)


def test_all_entries_are_all_entries_by_whatever_norm_they_are_asked_for() -> None:
    every = [noise_floor(norm, 50.0, 6) for norm in (RowwiseLargest(6), LargestEntries(36))]
    assert every[0] == every[1] == noise_floor(LargestEntries(37), 50.0, 6)


def test_one_row_has_the_floor_of_its_own_number() -> None:
    assert noise_floor(RowwiseLargest(2), 1.0, 5) == floor._of_rows(1.0, 5, 2, 3.0)


def test_clean_is_a_little_above_the_median_wherever_that_is() -> None:
    assert NoiseFloor(2.0, 1.0).clean == pytest.approx(2.1)


def test_tails_are_never_taken_for_lighter_than_those_of_two_values() -> None:
    at, size = np.array([-1.0, 2.0]), np.array([0.3, 0.6])
    for kurtosis in (0.5, 1.0):
        np.testing.assert_array_equal(
            floor._diagonal(at, 50.0, kurtosis), floor._diagonal(at, 50.0, 1.5)
        )
        np.testing.assert_array_equal(
            floor._diagonal_exceeds(size, 50.0, kurtosis), floor._diagonal_exceeds(size, 50.0, 1.5)
        )
    # Deviations are proportional to sqrt(kurtosis - 1).
    np.testing.assert_allclose(
        floor._diagonal(at, 50.0, 2.0), floor._diagonal(at, 50.0, 3.0) * np.sqrt(0.5)
    )


def test_no_variance_is_below_zero() -> None:
    lowest = np.array([-7.0])
    assert floor._diagonal(lowest, 3.0, 30.0)[0] == -1.0
    # Light tails draw it in from there.
    assert floor._diagonal(lowest, 2.0, 2.0)[0] == pytest.approx(-np.sqrt(0.5))
    exceeds = floor._diagonal_exceeds(np.array([1.0, 1.5]), 3.0, 3.0)
    np.testing.assert_allclose(exceeds, stats.chi2.sf([6.0, 7.5], 2.0), rtol=0.05)
    assert np.isfinite(floor._diagonal_exceeds(np.array([0.5]), 1.0, 3.0)).all()


def test_of_fewer_rows_than_features_the_others_have_no_variance_and_count_one_each() -> None:
    """Against drawn eigenvalues: nine of twelve are not zero."""
    n, d, rng = 10, 12, np.random.default_rng(22)
    drawn = [np.cov(rng.standard_normal((n, d)).T, bias=True) - np.eye(d) for _ in range(400)]
    sizes = np.sort(np.abs(np.linalg.eigvalsh(np.array(drawn))), axis=1)[:, ::-1]
    for rank in (2, 3, 4, 6):
        expected = np.median(sizes[:, :rank].sum(axis=1))
        assert noise_floor(KyFan(rank), n, d).median == pytest.approx(expected, rel=0.08)
    assert np.isfinite(noise_floor(KyFan(1), 1.0, 3).upper)


@pytest.mark.parametrize("d", [12, 50])
def test_of_many_rows_the_spectrum_has_two_edges_alike(d: int) -> None:
    """2 sqrt(d / n) from one, and independent: n = 10^9 rows."""
    n, b = 1e9, np.sqrt(d - 0.5)
    found = noise_floor(KyFan(1), n, d)
    for value, p in ((found.median, 0.5), (found.upper, floor._UPPER_QUANTILE)):
        edge = optimize.brentq(lambda x, p=p: floor._tracy_widom(x) ** 2 - p, -5.0, 9.0)
        expected = (2.0 * b + edge * b ** (-1.0 / 3.0)) / np.sqrt(n)
        assert value == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("rank", [2, 5])
def test_heavier_tails_widen_a_spectrum_by_the_variance_of_its_rows(rank: int) -> None:
    # Of d(d-1)/2 products of variance one and d squares of variance kurtosis - 1, a row has d - 1
    # and one.
    d, kurtosis = 8, 9.0
    expected = np.sqrt((d - 1.0 + kurtosis - 1.0) / (d - 1.0 + 2.0))
    heavy, plain = (noise_floor(KyFan(rank), 300, d, each) for each in (kurtosis, 3.0))
    assert heavy.median == pytest.approx(expected * plain.median)
    assert heavy.upper == pytest.approx(expected * plain.upper)


def test_two_rows_have_a_direction_without_variance_which_is_one_from_unit_variance() -> None:
    assert noise_floor(KyFan(1), 2.0, 2).median >= 1.0


def test_all_entries_have_no_lighter_tails_than_those_of_two_values() -> None:
    assert floor._frobenius(100.0, 2, 1.0) == floor._frobenius(100.0, 2, 1.5)
