"""Laws of clean rows and outliers along a direction: their likelihood, and the fit of them."""

from __future__ import annotations

from functools import partial
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import norm
from scipy.stats import t as student

from outweigh.fit.law import GAUSSIAN, Student
from outweigh.fit.mixture import (
    Group,
    fitted,
    fitted_in_features,
    laws_along,
    one_law,
    two_laws,
)

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


def test_outliers_alike_are_of_the_law_of_the_clean_rows_and_others_are_gaussian() -> None:
    y, law, one = np.linspace(-4.0, 9.0, 60), Student(4.0), np.ones(1)
    clean = 0.85 * student.pdf(y, 4.0, 0.2, 0.9)
    for alike, of_others in ((True, student.pdf(y, 4.0, 3.0, 1.2)), (False, norm.pdf(y, 3.0, 1.2))):
        group = Group(one, 0.2, 0.9, law, 3.0 * one, 1.2 * one, 0.15 * one, alike)
        wrong = 0.15 * of_others
        np.testing.assert_allclose(group.log_odds(y), np.log(wrong / clean), rtol=1e-9, atol=1e-9)
        density, chances = group.judged(y)
        np.testing.assert_allclose(density, np.log(clean + wrong), rtol=1e-9)
        np.testing.assert_allclose(chances[1], wrong / (clean + wrong), rtol=1e-9)
        np.testing.assert_allclose(chances.sum(axis=0), 1.0)
        base = np.full(60, 1.0 / 60.0)
        gained = np.mean(np.log((clean + wrong) / (clean / 0.85)))
        assert group.explained(y, base) == pytest.approx(gained)


def test_beyond_the_outliers_on_either_side_a_row_is_as_likely_to_be_wrong_as_there() -> None:
    # Of a clean law with longer tails than theirs.
    one = np.ones(1)
    both = np.array([-3.0, 3.5])
    group = Group(one, 0.0, 1.0, Student(2.0), both, np.full(2, 0.2), np.full(2, 0.05))
    for side, last in ((-1.0, -3.0), (1.0, 3.5)):
        beyond = group.wrong(last + side * np.linspace(0.0, 40.0, 200))
        assert np.all(beyond >= group.wrong(np.array([last]))[0] - 1e-12)
    # On the side without outliers there is no last one.
    lone = Group(one, 0.0, 1.0, Student(2.0), 3.0 * one, 0.2 * one, 0.05 * one)
    assert np.all(lone.wrong(np.linspace(-40.0, -1.0, 50)) == 0.0)


def test_the_price_is_half_the_logarithm_of_the_rows_for_each_number() -> None:
    one, two = np.ones(1), np.ones(2)
    for centres, alike, numbers in (
        (one, True, 2),
        (two, True, 4),
        (one, False, 4),
        (two, False, 7),
    ):
        group = Group(one, 0.0, 1.0, GAUSSIAN, centres, centres, 0.1 * centres, alike)
        # The share and centre of each law; where they are free all spreads, also of clean rows.
        assert group.price(400.0) == pytest.approx(0.5 * np.log(400.0) * numbers)


@pytest.mark.parametrize("law", [GAUSSIAN, Student(4.0)])
def test_in_features_a_law_is_the_product_of_those_of_the_features(law: Student) -> None:
    rng = np.random.default_rng(44)
    x = rng.standard_normal((50, 3)) + 0.5
    direction, origin = np.array([0.0, 0.6, 0.0, 0.8, 0.0]), np.arange(5.0) / 10.0
    one = np.ones(1)
    group = Group(direction, 1.0, 1.0, law, 3.5 * one, 1.3 * one, 0.2 * one, True, origin)
    seen = x[:, :2]
    expected = []
    # Centres are 2.5 apart along the direction.
    for share, moved, spread in ((0.8, 0.0, 1.0), (0.2, 2.5, 1.3)):
        place = origin[[1, 3]] + moved * direction[[1, 3]]
        logs = student.logpdf(seen, law.freedom, place, spread).sum(axis=1)
        expected.append(np.log(share) + logs)
    np.testing.assert_allclose(group.log_odds(seen), expected[1] - expected[0], rtol=1e-9)
    # A feature in which nothing moves is looked at where all are: it says nothing if spreads agree.
    every = Group(direction, 1.0, 1.0, law, 3.5 * one, one, 0.2 * one, True, origin)
    wide = rng.standard_normal((50, 5))
    np.testing.assert_allclose(every.log_odds(wide), every.log_odds(wide[:, [1, 3]]), atol=1e-9)


def drawn_apart(seed: int, share: float = 0.1) -> tuple[Array, Array]:
    """Rows of four features, of which a share is moved by three in two of them."""
    rng = np.random.default_rng([45, seed])
    x = rng.standard_normal((N, 4))
    wrong = np.arange(N) < share * N
    x[wrong, :2] += 3.0
    return x, wrong.astype(float)


@pytest.mark.parametrize("seed", range(2))
def test_rows_moved_in_features_are_found_there(seed: int) -> None:
    x, wrong = drawn_apart(seed)
    base = np.full(N, 1.0 / N)
    group = fitted_in_features(x, base, N, GAUSSIAN, wrong[None, :], 50)
    assert group is not None
    assert np.linalg.norm(group.direction) == pytest.approx(1.0)
    # A mean of 100 rows is off by 1/10 in each feature.
    np.testing.assert_allclose(group.direction, [0.5**0.5, 0.5**0.5, 0.0, 0.0], atol=0.12)
    assert group.shares[0] == pytest.approx(0.1, abs=0.01)
    assert group.centres[0] - group.centre == pytest.approx(18.0**0.5, abs=0.3)
    assert group.spreads[0] == pytest.approx(1.0, abs=0.15)
    assert group.centre == pytest.approx(group.origin @ group.direction)
    assert group.alike
    np.testing.assert_allclose(group.origin, 0.0, atol=4.0 / np.sqrt(0.9 * N))
    # The likelihood has risen to the end: odds give the means that they were made of again.
    chance = group.wrong(x)
    again = chance @ x / chance.sum()
    np.testing.assert_allclose(
        again - (1.0 - chance) @ x / (1.0 - chance).sum(),
        (group.centres[0] - group.centre) * group.direction,
        atol=0.03,
    )


def test_clean_rows_are_the_majority_or_there_is_no_fit() -> None:
    x, _ = drawn_apart(0)
    base, most = np.full(N, 1.0 / N), np.where(np.arange(N) < 600, 1.0, 0.0)
    assert fitted_in_features(x, base, N, GAUSSIAN, most[None, :], 5) is None
    assert fitted(x[:, 0], base, N, GAUSSIAN, most[None, :], free=True) is None
    # Of two rows there is no law; three have one.
    for count, found in ((2, False), (3, True)):
        few = (np.argsort(np.argsort(-x[:, 0])) < count).astype(float)
        y = x[:, 0] + 9.0 * few
        assert (fitted(y, base, N, GAUSSIAN, few[None, :], free=False) is not None) is found


def test_a_law_is_never_narrower_than_a_fiftieth_of_all_rows_or_the_step_of_the_values() -> None:
    y = np.append(np.random.default_rng(46).standard_normal(950), np.full(50, 5.0))
    wrong, base = (y == 5.0).astype(float)[None, :], np.full(N, 1.0 / N)
    for law, least in ((GAUSSIAN, 0.02 * y.std()), (Student(np.inf, 0.3), 0.3)):
        both = fitted(y, base, N, law, wrong, free=True)
        assert both is not None
        assert both[0].spreads[0] == pytest.approx(least, rel=1e-6)
        tied = fitted(y, base, N, law, wrong, free=False)
        assert tied is not None
        assert (tied[0].spread, tied[0].spreads[0]) == (1.0, 1.0)


@pytest.mark.parametrize("free", [False, True])
def test_the_most_likely_place_of_students_law_is_found(free: bool) -> None:
    """Beside a group far out, so that the two do not mix: the place by a search."""
    rng = np.random.default_rng(47)
    y = np.append(rng.standard_t(4.0, 900), 60.0 + 1.5 * rng.standard_normal(100))
    wrong = (np.arange(N) >= 900).astype(float)[None, :]
    both = fitted(y, np.full(N, 1.0 / N), N, Student(4.0), wrong, free=free, steps=1000)
    assert both is not None
    places = np.linspace(-0.2, 0.2, 81)
    spreads = np.linspace(0.8, 1.2, 81) if free else np.ones(1)
    likelihood = [[student.logpdf(y[:900], 4.0, m, s).sum() for m in places] for s in spreads]
    at, where = np.unravel_index(np.argmax(likelihood), (spreads.size, places.size))
    # The value is that of the densities: outliers with spreads of their own are Gaussian.
    group, value = both
    others = norm.pdf if free else partial(student.pdf, df=4.0)
    clean = student.pdf(y, 4.0, group.centre, group.spread)
    wide = others(y, loc=group.centres[0], scale=group.spreads[0])
    density = (1.0 - group.shares[0]) * clean + group.shares[0] * wide
    assert value == pytest.approx(np.log(density).mean(), rel=1e-9)
    # Steps end where all rows gain less than 0.01 nats: 0.14 standard errors.
    assert both[0].centre == pytest.approx(places[where], abs=0.02)
    assert both[0].spread == pytest.approx(spreads[at], abs=0.02)


def test_laws_are_none_where_outliers_are_not_apart_or_more_than_may_be() -> None:
    rng = np.random.default_rng(48)
    y, base = rng.standard_normal(2000), np.full(2000, 1.0 / 2000.0)
    start = (np.arange(2000) < 200).astype(float)
    assert laws_along(y, base, 2000.0, GAUSSIAN, start) is None
    y[:200] += 5.0
    assert laws_along(y, base, 2000.0, GAUSSIAN, start) is not None
    assert laws_along(y, base, 2000.0, GAUSSIAN, start, 0.05) is None
    assert laws_along(y, base, 2000.0, GAUSSIAN, np.zeros(2000)) is None


@pytest.mark.parametrize("freedom", [3.0, np.inf])
def test_one_law_is_the_most_likely_of_its_kind(freedom: float) -> None:
    y = 2.0 + 3.0 * np.random.default_rng(49).standard_t(3.0, 500)
    base = np.full(500, 1.0 / 500.0)
    best = norm.logpdf(y, y.mean(), y.std())
    if np.isfinite(freedom):
        best = student.logpdf(y, *student.fit(y, fdf=freedom))
    assert one_law(y, base, Student(freedom)) == pytest.approx(best.mean(), abs=1e-4)


def test_rows_that_are_all_equal_have_no_laws() -> None:
    wrong = (np.arange(50) < 5).astype(float)[None, :]
    base = np.full(50, 1.0 / 50.0)
    assert fitted(np.zeros(50), base, 50.0, GAUSSIAN, wrong, free=True) is None


def test_laws_beyond_each_other_are_the_same_about_another_origin() -> None:
    rng = np.random.default_rng(50)
    y = rng.standard_normal(4000)
    y[:400] -= 5.0
    y[400:600] -= 12.0
    base, start = np.full(4000, 1.0 / 4000.0), (np.arange(4000) < 600).astype(float)
    found = [laws_along(y + by, base, 4000.0, GAUSSIAN, start) for by in (0.0, 50.0)]
    assert found[0] is not None
    assert found[1] is not None
    np.testing.assert_allclose(np.sort(found[0].centres), [-12.0, -5.0], atol=0.3)
    np.testing.assert_allclose(found[1].centres, found[0].centres + 50.0, atol=1e-6)
