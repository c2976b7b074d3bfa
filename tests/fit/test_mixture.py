"""Laws of clean rows and outliers along a direction: their likelihood, and the fit of them."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import norm
from scipy.stats import t as student

from outweigh.fit.law import GAUSSIAN, Student
from outweigh.fit.mixture import Group, fitted, laws_along, two_laws

Array = NDArray[np.float64]

N = 1000


def mixture_log_likelihood(
    y: Array, share: float, centre: float, away: float, spread: float, wide: float
) -> float:
    """Return the mean log likelihood of two Gaussians, by their densities."""
    density = (1.0 - share) * norm.pdf(y, centre, spread) + share * norm.pdf(y, away, wide)
    return float(np.log(density).mean())


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("share", "away", "wide"), [(0.1, 3.0, 1.0), (0.2, 4.0, 0.5)])
def test_no_point_of_a_grid_is_more_likely_than_the_laws_found(
    seed: int, share: float, away: float, wide: float
) -> None:
    rng = np.random.default_rng([42, seed])
    y = rng.standard_normal(N)
    wrong = np.arange(N) < share * N
    y[wrong] = away + wide * y[wrong]
    base = np.full(N, 1.0 / N)
    both = fitted(y, base, N, GAUSSIAN, wrong[None, :].astype(float), free=True)
    assert both is not None
    found, value = both
    reached = mixture_log_likelihood(
        y,
        float(found.shares[0]),
        found.centre,
        float(found.centres[0]),
        found.spread,
        float(found.spreads[0]),
    )
    assert value == pytest.approx(reached, rel=1e-12)
    best = max(
        mixture_log_likelihood(y, *point)
        for point in product(
            share * np.linspace(0.6, 1.4, 7),
            np.linspace(-0.1, 0.1, 5),
            away + np.linspace(-0.4, 0.4, 7),
            np.linspace(0.9, 1.1, 3),
            wide * np.linspace(0.7, 1.3, 5),
        )
    )
    # Steps end where probabilities change by less than 1e-4, short of the maximum by as little.
    assert reached >= best - 1e-4


@pytest.mark.parametrize("freedom", [5.0, 12.0, np.inf])
def test_the_likelihood_is_that_of_the_densities(freedom: float) -> None:
    y = np.linspace(-4.0, 9.0, 60)
    laws = Group(
        np.ones(1),
        0.2,
        0.9,
        Student(freedom),
        np.array([3.0, 6.0]),
        np.array([1.0, 0.5]),
        np.full(2, 0.1),
    )
    # A t law of infinite freedom is a Gaussian.
    clean = 0.8 * student.pdf(y, freedom, 0.2, 0.9)
    others = 0.1 * norm.pdf(y, 3.0, 1.0) + 0.1 * norm.pdf(y, 6.0, 0.5)
    np.testing.assert_allclose(laws.judged(y)[0], np.log(clean + others), rtol=1e-9)
    # Beyond the last centre a row is at least as likely to be wrong as there.
    near = y <= 6.0
    wrong = (others / (clean + others))[near]
    # Less than a thousandth counts as nothing.
    np.testing.assert_allclose(laws.wrong(y)[near], np.where(wrong < 1e-3, 0, wrong), rtol=1e-9)


def test_one_group_of_unit_spread_is_told_by_one_law_and_two_by_two() -> None:
    rng = np.random.default_rng(43)
    for centres in ((4.0,), (4.0, 9.0)):
        y = rng.standard_normal(4 * N)
        wrong = np.zeros(y.size)
        for i, centre in enumerate(centres):
            y[400 * i : 400 * (i + 1)] += centre
            wrong[400 * i : 400 * (i + 1)] = 1.0
        found = laws_along(y, np.full(y.size, 1.0 / y.size), y.size, GAUSSIAN, wrong)
        assert found is not None
        # A mean of 400 rows is off by 1/20 and, with those that overlap, by little more.
        np.testing.assert_allclose(np.sort(found.centres), centres, atol=4.0 * 0.07)
        np.testing.assert_allclose(found.shares, 0.1, atol=4.0 * np.sqrt(0.1 * 0.9 / y.size) + 0.01)


def test_probabilities_never_fall_outward() -> None:
    outward = np.linspace(0.0, 60.0, 2000)
    for freedom, centre, spread in product([5.0, 12.0, np.inf], [3.0, -3.0], [0.3, 1.0]):
        one = np.ones(1)
        group = Group(one, 0.0, 1.0, Student(freedom), centre * one, spread * one, 0.1 * one)
        found = group.wrong(np.sign(centre) * outward)
        assert found[-1] > 0.5
        assert np.all((found >= 0.0) & (found <= 1.0))
        if spread == 1.0:
            inside = outward <= 3.0
            assert np.all(np.diff(found[inside]) >= -1e-12)
        # Beyond the outliers no row is more likely to be clean than at their centre.
        at_centre = group.wrong(centre * one)[0]
        assert np.all(found[outward >= 3.0] >= at_centre - 1e-12)


def test_a_group_along_a_lifted_direction_is_the_same_group() -> None:
    one = np.ones(1)
    group = Group(one, 0.1, 1.0, GAUSSIAN, 3.0 * one, one, 0.1 * one)
    lifted = group.lifted(lambda v: np.array([0.0, *v]))
    assert lifted.direction.tolist() == [0.0, 1.0]
    y = np.linspace(-3.0, 6.0, 30)
    np.testing.assert_array_equal(lifted.wrong(y), group.wrong(y))


def test_two_laws_have_the_shares_and_centres_of_the_rows() -> None:
    rng = np.random.default_rng(1)
    y = np.concatenate([rng.normal(size=900), rng.normal(6.0, 0.3, size=100)])
    found = two_laws(y, np.ones(1000), (y > 4.0).astype(float), np.inf)
    assert found is not None
    group, gain = found
    assert group.shares == pytest.approx(0.1, abs=0.01)
    assert (group.centres[0], group.spreads[0]) == pytest.approx((6.0, 0.3), abs=0.1)
    both = 0.9 * norm.pdf(y) + 0.1 * norm.pdf(y, 6.0, 0.3)
    assert gain == pytest.approx(np.log(both / norm.pdf(y, y.mean(), y.std())).sum(), abs=5.0)
    moved = group.moved(np.ones(1), 2.0)
    np.testing.assert_allclose(moved.wrong(y + 2.0), group.wrong(y), atol=1e-12)
