"""The law of clean rows: read off typical columns, and convolved along a direction."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from outweigh.fit.law import GAUSSIAN, Law, Learned, Student, TypicalLaw, _of_density, masses_at

Array = NDArray[np.float64]
N, D = 5000, 20
ONES = np.ones(N), np.ones(N)

LAWS: dict[str, tuple[Callable[[np.random.Generator], Array], Callable[[Array], Array]]] = {
    "exponential": (
        lambda rng: rng.exponential(size=(N, D)) - 1.0,
        lambda z: stats.expon.pdf(z + 1.0),
    ),
    "Laplace": (
        lambda rng: rng.laplace(0.0, np.sqrt(0.5), (N, D)),
        lambda z: stats.laplace.pdf(z, scale=np.sqrt(0.5)),
    ),
    "uniform": (
        lambda rng: rng.uniform(-np.sqrt(3.0), np.sqrt(3.0), (N, D)),
        lambda z: stats.uniform.pdf(z, -np.sqrt(3.0), 2.0 * np.sqrt(3.0)),
    ),
}
GRID = np.linspace(-6.0, 10.0, 3201)


def typical_law(rows: Array, weights: Array, counts: Array) -> Law:
    return TypicalLaw(rows, counts)(weights)


def distance(found: Array, expected: Array) -> float:
    """Return half the integral of the difference of two densities."""
    return 0.5 * float(np.abs(found - expected).sum() * (GRID[1] - GRID[0]))


def density(law: Learned | Student) -> Array:
    return np.exp(law.log_density(GRID, 0.0, 1.0))


@pytest.mark.parametrize("name", LAWS)
def test_a_typical_law_is_that_of_the_columns(name: str) -> None:
    draw, pdf = LAWS[name]
    law = typical_law(draw(np.random.default_rng(0)), *ONES)
    assert isinstance(law, Learned)
    # Smoothing by 1.06 (nd)^(-1/5) = 0.106 moves at a jump of height one that share of mass / 2.5.
    assert distance(density(law), pdf(GRID)) < 0.106 / 2.5 + 0.02


def test_few_columns_with_outliers_do_not_change_it() -> None:
    X = LAWS["exponential"][0](np.random.default_rng(1))
    law = typical_law(X, *ONES)
    X[: N // 5, :5] += 3.0
    attacked = typical_law(X, *ONES)
    # The five columns push the medians of 20 to other quantiles of the 15: one in sqrt(20).
    assert distance(density(attacked), density(law)) < 0.03


@pytest.mark.parametrize("seed", range(5))
def test_gaussian_rows_have_a_gaussian_law_and_t5_rows_have_not(seed: int) -> None:
    rng = np.random.default_rng([2, seed])
    assert typical_law(rng.standard_normal((N, D)), *ONES) == GAUSSIAN
    assert typical_law(rng.standard_t(5, (N, D)), *ONES) != GAUSSIAN


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("direction", [(1.0,), (-0.6, 0.8), (0.5, 0.5, -0.5, 0.5)])
def test_along_a_direction_it_is_a_convolution(name: str, direction: tuple[float, ...]) -> None:
    rng = np.random.default_rng(3)
    X = LAWS[name][0](rng)
    law = typical_law(X, *ONES)
    v = np.array(direction)
    y = np.sort((X[:, : 20 // v.size * v.size].reshape(-1, v.size) @ v).ravel())
    along = law.along(v)
    found = np.cumsum(density(along)) * (GRID[1] - GRID[0])
    counted = np.searchsorted(y, GRID) / y.size
    # Kolmogorov: values of more than 25,000 rows are off by 1.63/sqrt(n) once in a hundred.
    assert np.abs(found - counted).max() < 1.63 / np.sqrt(y.size) + 0.106 / 2.5
    moments = [float((density(along) * GRID**p).sum() * (GRID[1] - GRID[0])) for p in (0, 1, 2)]
    np.testing.assert_allclose(moments, [1.0, 0.0, 1.0], atol=0.03)


def test_along_many_features_it_is_gaussian() -> None:
    law = typical_law(LAWS["exponential"][0](np.random.default_rng(4)), *ONES)
    v = np.full(400, 0.05)
    # Berry and Esseen: the skewness 2 / sqrt(400) moves the distribution by 0.1 / 6 phi.
    assert distance(density(law.along(v)), density(GAUSSIAN)) < 0.05


def test_copies_of_rows_equal_their_weights() -> None:
    rng = np.random.default_rng(5)
    X = rng.exponential(size=(400, 6))
    repeats = rng.integers(1, 4, 400)
    by_weight = typical_law(X, repeats.astype(float), repeats.astype(float))
    copied = typical_law(np.repeat(X, repeats, axis=0), *2 * (np.ones(int(repeats.sum())),))
    assert isinstance(by_weight, Learned)
    assert isinstance(copied, Learned)
    np.testing.assert_allclose(density(by_weight), density(copied), atol=1e-9)


def test_a_law_moved_and_stretched_is_that_of_the_rows() -> None:
    law = typical_law(LAWS["Laplace"][0](np.random.default_rng(6)), *ONES)
    y = np.linspace(-40.0, 40.0, 101)
    expected = law.log_density((y - 1.0) / 2.0, 0.0, 1.0) - np.log(2.0)
    np.testing.assert_allclose(law.log_density(y, 1.0, 2.0), expected, atol=1e-12)
    # Farther out than any row the density still falls.
    assert np.all(np.diff(law.log_density(np.linspace(10.0, 60.0, 50), 0.0, 1.0)) < 0.0)


@pytest.mark.parametrize("freedom", [3.0, 8.0, np.inf])
def test_students_law_is_that_of_scipy(freedom: float) -> None:
    y = np.linspace(-5.0, 5.0, 31)
    expected = stats.t.logpdf(y, freedom, 0.5, 2.0)
    np.testing.assert_allclose(Student(freedom).log_density(y, 0.5, 2.0), expected, rtol=1e-12)


def test_columns_of_few_values_are_told_by_where_these_lie_not_by_the_gaps() -> None:
    rounded = np.rint(np.random.default_rng(7).standard_normal((N, D)))
    law = typical_law(rounded, *ONES)
    between = np.exp(
        law.log_density(np.array([0.5]), 0.0, 1.0) - law.log_density(np.zeros(1), 0.0, 1.0)
    )
    # Halfway between two values the density is nearly that of a Gaussian, exp(-1/8).
    assert between[0] > 0.75


def test_constant_columns_and_single_rows_have_no_law() -> None:
    assert typical_law(np.zeros((50, 3)), np.ones(50), np.ones(50)) == GAUSSIAN
    assert typical_law(np.arange(3.0)[None, :], np.ones(1), np.ones(1)) == GAUSSIAN


def test_a_step_is_seen_along_a_direction_until_other_features_blur_it() -> None:
    law = Student(np.inf, 0.5)
    assert law.along(np.array([1.0, 0.0])).step == 0.5
    assert law.along(np.array([0.95, np.sqrt(1.0 - 0.95**2)])).step == pytest.approx(0.475)
    assert law.along(np.array([0.6, 0.8])).step == 0.0


@pytest.mark.parametrize("name", LAWS)
def test_what_lies_below_is_the_integral_of_the_density(name: str) -> None:
    law = typical_law(LAWS[name][0](np.random.default_rng(8)), *ONES)
    below = np.cumsum(density(law)) * (GRID[1] - GRID[0])
    np.testing.assert_allclose(law.below(GRID), below, atol=0.01)


@pytest.mark.parametrize("freedom", [4.0, np.inf])
def test_what_lies_below_of_students_law_is_that_of_scipy(freedom: float) -> None:
    np.testing.assert_allclose(Student(freedom).below(GRID), stats.t.cdf(GRID, freedom))


def test_groups_narrower_than_a_law_was_smoothed_by_are_not_told_from_it() -> None:
    law = typical_law(LAWS["exponential"][0](np.random.default_rng(9)), *ONES)
    assert law.step == pytest.approx(1.06 * (N * D) ** -0.2)


def as_told(rows: Array, weights: Array, counts: Array) -> tuple[Callable[[Array], Array], float]:
    """The density of typical columns as it is described, and how far it was smoothed.

    A sum of Gaussians, at quantiles found one by one.
    """
    weights = weights / weights.sum()
    n = 1.0 / float(np.sum(weights**2 / counts))
    odds = np.exp(np.linspace(-1.0, 1.0, 401) * np.log(n))
    ends = np.concatenate([[0.0], (odds / (1.0 + odds))[1:-1], [1.0]])
    levels, mass = (ends[1:] + ends[:-1]) / 2.0, np.diff(ends)
    found = []
    for column in rows.T:
        mean = np.average(column, weights=weights)
        standard = (column - mean) / np.sqrt(np.average((column - mean) ** 2, weights=weights))
        found.append(np.quantile(standard, levels, weights=weights, method="inverted_cdf"))
    typical = np.median(found, axis=0)
    gap = np.diff(typical[(levels > 0.05) & (levels < 0.95)]).max() / 2.0
    width = max(1.06 * (n * rows.shape[1]) ** -0.2, gap)
    typical = typical - mass @ typical
    typical = typical / np.sqrt(mass @ typical**2 + width**2)
    return lambda z: stats.norm.pdf(z[:, None], typical, width) @ mass, width


SHORT: dict[str, Callable[[np.random.Generator], Array]] = {
    "exponential": lambda rng: rng.exponential(size=(150, 7)),
    "lognormal": lambda rng: rng.lognormal(0.0, 1.0, (150, 7)),
    "rounded": lambda rng: np.rint(rng.exponential(1.5, (150, 7))),
}


@pytest.mark.parametrize("name", SHORT)
@pytest.mark.parametrize("unequal", [False, True])
def test_a_typical_law_is_smoothed_from_median_quantiles(name: str, unequal: bool) -> None:
    rng = np.random.default_rng(10)
    X = SHORT[name](rng) * 3.0 ** np.arange(7) - 40.0
    weights = rng.integers(1, 3, 150).astype(float) if unequal else np.ones(150)
    counts = np.where(weights > 1.0, 2.0, 1.0)
    law = typical_law(X, weights, counts)
    expected, width = as_told(X, weights, counts)
    assert isinstance(law, Learned)
    assert law.step == pytest.approx(width)
    # What is beyond the outermost ten rows of 150 is said to be too badly known.
    known = np.cumsum(expected(GRID)) * (GRID[1] - GRID[0])
    middle = GRID[(known > 0.08) & (known < 0.92)]
    # Lines between points 1/64 apart are off by (1/64)^2 / 8 times the second derivative of the
    # logarithm, and moving a mass to its neighbours widens the law by at most half of that square.
    np.testing.assert_allclose(np.exp(law.standard(middle)), expected(middle), rtol=3e-3)


@pytest.mark.parametrize("n", [150, 300, 450, 800])
def test_a_law_is_gaussian_where_the_rows_do_not_tell_it_from_one(n: int) -> None:
    # All quantiles of a logistic law: no chance.
    X = stats.logistic.ppf((np.arange(n) + 0.5) / n)[:, None]
    expected, _ = as_told(X, np.ones(n), np.ones(n))
    z = np.linspace(-16.0, 16.0, 20_001)
    density = np.maximum(expected(z), 1e-300)
    divergence = float(density @ np.log(density / stats.norm.pdf(z))) * (z[1] - z[0])
    told = n * divergence / np.log(n)
    assert 0.05 < told < 3.0
    assert abs(told - 0.5) > 0.05
    assert isinstance(typical_law(X, np.ones(n), np.ones(n)), Learned if told > 0.5 else Student)


def test_two_rows_have_a_step_and_one_that_outweighs_the_other_no_law() -> None:
    X = np.array([[-1.0], [1.0]])
    assert typical_law(X, np.ones(2), np.ones(2)) == Student(np.inf, 1.0)
    # 1 / (0.8^2 + 0.2^2) = 1.5 rows.
    assert typical_law(X, np.array([0.8, 0.2]), np.ones(2)) == GAUSSIAN


def test_along_one_large_feature_and_many_small_ones_the_small_are_a_gaussian() -> None:
    law = typical_law(LAWS["exponential"][0](np.random.default_rng(11)), *ONES)
    v = np.append(np.full(99, np.sqrt((1.0 - 0.9**2) / 99.0)), 0.9)
    points = np.linspace(-4.0, 12.0, 801)
    mass = np.exp(law.log_density(points, 0.0, 1.0)) * 0.02
    expected = stats.norm.pdf(GRID[:, None], 0.9 * points, np.sqrt(1.0 - 0.9**2)) @ mass
    # Of the skewness of the small, 2 sum v^3, is left 2 x 99 x 0.044^3 = 0.02 of 1.5.
    assert distance(density(law.along(v)), expected) < 0.01


def test_against_a_direction_a_law_is_its_mirror_image() -> None:
    law = typical_law(LAWS["exponential"][0](np.random.default_rng(12)), *ONES)
    assert isinstance(law, Learned)
    mirrored = law.along(np.array([-1.0]))
    assert distance(density(mirrored), np.exp(law.standard(-GRID))) < 0.01


def test_far_out_the_density_along_many_features_falls_without_noise() -> None:
    law = typical_law(LAWS["exponential"][0](np.random.default_rng(13)), *ONES)
    along = law.along(np.full(400, 0.05))
    for side in (-1.0, 1.0):
        outwards = along.log_density(side * np.linspace(6.0, 60.0, 500), 0.0, 1.0)
        assert np.all(np.diff(outwards) < 0.0)
        assert outwards[0] < np.log(1e-5)


# Points of a law: 2048, 1/64 apart, the origin among them.
STEP = 1.0 / 64.0
PLACES = np.arange(2048) - 1024


@pytest.mark.parametrize("last", [1e-3, 0.25])
def test_beyond_the_share_that_is_known_a_law_falls_by_its_mean_excess(last: float) -> None:
    # A geometric law q^|k|: beyond any point the mean of k is 1/(1-q).
    q = 0.7
    law = _of_density(q ** np.abs(PLACES), last, 0.0)
    far = np.array([-25.0, -16.0, -1.0, 1.0, 15.9, 25.0])
    # The share from the k-th point on is q^k / (1+q).
    known = int(np.floor(np.log(last * (1.0 + q)) / np.log(q)))
    peak = np.log((1.0 - q) / (1.0 + q) / STEP)
    expected = peak + known * np.log(q) - (np.abs(far) / STEP - known) * (1.0 - q)
    np.testing.assert_allclose(law.standard(far), expected, rtol=1e-6)


def test_a_law_that_ends_falls_by_a_factor_of_e_a_point_beyond() -> None:
    law = _of_density((np.abs(PLACES) <= 100).astype(float), 1e-7, 0.0)
    found = law.standard(np.array([-2.0, -110.0 * STEP, 0.0, 110.0 * STEP, 2.0]))
    inside = -np.log(201.0 * STEP)
    np.testing.assert_allclose(found - inside, [-28.0, -10.0, 0.0, -10.0, -28.0], atol=1e-9)


def test_what_rounding_leaves_below_zero_counts_for_nothing() -> None:
    plain = np.where(np.abs(PLACES) <= 100, 1.0, 0.0)
    rough = np.where(plain > 0.0, plain, -1e-4)
    np.testing.assert_array_equal(
        _of_density(rough, 1e-3, 0.0).log_densities, _of_density(plain, 1e-3, 0.0).log_densities
    )


def test_never_more_than_a_quarter_on_either_side_is_too_badly_known() -> None:
    density = 0.9 ** np.abs(PLACES)
    np.testing.assert_array_equal(
        _of_density(density, 5.0, 0.0).log_densities, _of_density(density, 0.25, 0.0).log_densities
    )


def test_a_mass_between_two_places_is_shared_by_them_and_one_beyond_the_ends_counts_there() -> None:
    rng = np.random.default_rng(14)
    places, mass = rng.uniform(-3.0, 12.0, 50), rng.random(50)
    expected = np.zeros(10)
    for place, amount in zip(places, mass, strict=True):
        inside = min(max(place, 0.0), 9.0)
        for k in range(10):
            expected[k] += amount * max(0.0, 1.0 - abs(inside - k))
    # The last place is a thousandth farther in, as the next would be out of range.
    np.testing.assert_allclose(masses_at(places, mass, 10), expected, atol=1e-3 * mass.sum())


@pytest.mark.parametrize(
    ("largest", "step", "expected"),
    [(0.8, 0.625, 0.0), (0.8, 0.8125, 0.65), (float(np.nextafter(1.0, 2.0)), 0.5, 0.5)],
)
def test_a_step_is_blurred_by_the_deviation_of_the_other_features(
    largest: float, step: float, expected: float
) -> None:
    # Beside 0.8 the others have a deviation of 0.6; a length may exceed one by rounding.
    v = np.array([largest, np.sqrt(max(1.0 - largest**2, 0.0))])
    assert Student(np.inf, step).along(v).step == pytest.approx(expected)
