"""The law of clean rows: read off typical columns, and convolved along a direction."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from outweigh.fit.law import GAUSSIAN, Law, Learned, Student, TypicalLaw

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
