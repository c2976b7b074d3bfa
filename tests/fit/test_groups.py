"""Groups that stand apart: the likelihood of a pair, noise alone, what a group must be worth."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from outweigh.fit.groups import (
    _bounded,
    _first_directions,
    _fourth_axes,
    _in_span,
    _longer_tail,
    _principal,
    _pull,
    _some_rows,
    _whitener,
    gain_of_one_law,
    price_of_direction,
    principal_axes,
    set_apart,
    two_groups,
    valley,
)
from tests.reference.correlated import correlated, with_cluster


def test_two_groups_gain_what_the_likelihood_says() -> None:
    rng = np.random.default_rng(0)
    y = np.concatenate([rng.normal(size=300), rng.normal(5.0, 1.0, size=100)])
    y = ((y - y.mean()) / y.std())[:, None]
    _, odds, gain = two_groups(y, np.ones(400), np.ones((1, 1)), 60)
    part = odds[:, 0].mean()
    means = [np.average(y[:, 0], weights=w) for w in (1 - odds[:, 0], odds[:, 0])]
    within = np.sqrt(1.0 - part * (1 - part) * (means[1] - means[0]) ** 2)
    density = (1 - part) * stats.norm.pdf(y[:, 0], means[0], within) + part * stats.norm.pdf(
        y[:, 0], means[1], within
    )
    expected = np.log(density).sum() - stats.norm.logpdf(y[:, 0]).sum()
    assert gain[0] == pytest.approx(expected, rel=1e-3)
    assert (odds[:300, 0] > 0.5).sum() <= 5
    assert (odds[300:, 0] < 0.5).sum() <= 5


@pytest.mark.parametrize(("n", "d"), [(60, 6), (200, 20), (300, 10), (1000, 5)])
def test_noise_alone_is_no_group(n: int, d: int) -> None:
    for seed in range(20):
        apart, overlapping = set_apart(correlated(n, d, seed), np.ones(n), 0.4)
        assert not apart
        assert not overlapping.any()


def test_groups_are_found_one_after_the_other() -> None:
    X = with_cluster(800, 5, 0.1, 8.0)
    X[80:180] += 30.0
    found = set_apart(X, np.ones(800), 0.4)[0]
    together = np.any(found, axis=0)
    assert together[:180].mean() > 0.95
    assert together[180:].mean() < 0.02


def test_no_more_than_the_bound_is_set_apart() -> None:
    X = with_cluster(800, 5, 0.3, 8.0)
    assert set_apart(X, np.ones(800), 0.2)[0] == []


@pytest.mark.parametrize(("rows", "features"), [(30, 4), (4, 30)])
def test_principal_axes_are_those_of_the_second_moments(rows: int, features: int) -> None:
    X = correlated(rows, features)
    weight = np.linspace(1.0, 2.0, rows)
    values, axes = principal_axes(X, weight)
    moments = (X * weight[:, None]).T @ X / weight.sum()
    np.testing.assert_allclose(moments @ axes, axes * values, atol=1e-10)
    np.testing.assert_allclose(axes.T @ axes, np.eye(values.size), atol=1e-9)


def test_between_two_values_there_is_nothing() -> None:
    y = np.repeat([0.0, 1.0], 10)
    assert valley(y, np.ones(20), y > 0.5) == 0.0


def test_the_valley_between_two_groups_is_deep_and_within_one_is_none() -> None:
    rng = np.random.default_rng(0)
    apart = np.concatenate([rng.normal(size=500), rng.normal(8.0, 1.0, size=200)])
    one = rng.normal(size=700)
    assert valley(apart, np.ones(700), apart > 4.0) < 0.05
    assert valley(one, np.ones(700), one > 0.5) > 0.5


@pytest.mark.parametrize("skewed", [0.0, 0.8])
@pytest.mark.parametrize("tails", [0.6, 1.0])
def test_one_law_gains_what_a_sinh_arcsinh_law_does(skewed: float, tails: float) -> None:
    z = np.random.default_rng(0).normal(size=4000)
    u = np.sinh((np.arcsinh(z) + skewed) / tails)
    # The log density at u: that of z there, and by how much z grows with u.
    truth = stats.norm.logpdf(z) + np.log(tails * np.hypot(1.0, z) / np.hypot(1.0, u))
    gained = truth.sum() - stats.norm.logpdf(u, u.mean(), u.std()).sum()
    # Four parameters gain two nats on average by fitting to the noise.
    assert gained - 0.5 <= gain_of_one_law(3.0 * u - 7.0, np.ones(4000)) <= gained + 10.0


def test_a_group_that_overlaps_the_others_is_no_tail_of_theirs() -> None:
    rng = np.random.default_rng(1)
    X = correlated(400, 4)
    X[:80, 0] += 4.0 * np.sqrt(1.0 / np.linalg.inv(np.cov(X.T))[0, 0])
    apart, overlapping = set_apart(X, np.ones(400), 0.4)
    assert not apart
    assert overlapping[:80].mean() > 0.9
    assert overlapping[80:].mean() < 0.05
    skewed = correlated(400, 4)
    skewed[:, 0] = np.exp(0.5 * skewed[:, 0])
    skewed[:, 1] += rng.exponential(size=400)
    assert not set_apart(skewed, np.ones(400), 0.4)[1].any()


def test_a_direction_costs_more_among_more_features() -> None:
    assert price_of_direction(1000.0, 20) > price_of_direction(1000.0, 5) > 0.0
    # With fewer than three rows for each feature only principal axes are tried.
    assert price_of_direction(50.0, 20) == pytest.approx(np.log(20 / 0.05))


def test_a_large_group_is_found_among_many_columns() -> None:
    """With a share of .3 neither skewness nor kurtosis is large, and noise has many directions."""
    X = with_cluster(5000, 100, 0.3, 6.0)
    found = set_apart(X, np.ones(5000), 0.4)[0]
    assert len(found) == 1
    assert found[0][:1500].mean() > 0.95
    assert found[0][1500:].mean() < 0.02


@pytest.mark.parametrize("seed", range(5))
def test_rows_in_a_subspace_are_as_rows_in_its_coordinates(seed: int) -> None:
    rng = np.random.default_rng(seed)
    inside = rng.standard_normal((300, 3))
    inside[:60] += 8.0
    basis = np.linalg.qr(rng.standard_normal((12, 12)))[0][:3]
    found = set_apart(inside @ basis + 5.0, np.ones(300), 0.4)[0]
    expected = set_apart(inside, np.ones(300), 0.4)[0]
    assert len(found) == len(expected) == 1
    np.testing.assert_array_equal(found[0], expected[0])


@pytest.mark.parametrize("seed", range(5))
def test_what_rounding_leaves_outside_a_subspace_is_no_group(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((300, 4)) @ rng.standard_normal((4, 12))
    # The sums of these rows are rounded otherwise.
    X[:60] = (X[:60] + 1e3) - 1e3
    assert set_apart(X, np.ones(300), 0.4)[0] == []


@pytest.mark.parametrize("shape", [(24, 2), (5, 30)])
def test_the_axes_of_rows_have_one_sign_whatever_rounding_does(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    rows = rng.standard_normal(shape)
    rows /= np.sqrt(np.mean(rows**2, axis=0))
    values, axes = principal_axes(rows, np.ones(len(rows)))
    assert values.size == min(shape)
    for _ in range(20):
        shaken = rows * (1.0 + 1e-15 * rng.standard_normal(shape))
        np.testing.assert_allclose(principal_axes(shaken, np.ones(len(rows)))[1], axes, atol=1e-9)
    np.testing.assert_allclose(principal_axes(-rows, np.ones(len(rows)))[1], axes, atol=1e-9)


def test_of_less_than_two_rows_of_weight_neither_group_is_empty() -> None:
    Y, weight = np.array([[-1.0], [0.0], [1e8]]), np.array([1e-18, 1.0, 1e-12])
    with np.errstate(all="raise", under="ignore"):
        _, odds, gain = two_groups(Y, weight, np.ones((1, 1)), 5)
    assert np.isfinite(odds).all()
    assert np.isfinite(gain).all()


def test_a_direction_costs_half_the_logarithm_of_the_rows_for_each_feature_and_one_nat_more() -> (
    None
):
    assert price_of_direction(1000.0, 20) == pytest.approx(20.0 + 10.0 * np.log(50.0))
    # From three rows for each feature on.
    assert price_of_direction(60.0, 20) == pytest.approx(20.0 + 10.0 * np.log(3.0))
    assert price_of_direction(59.0, 20) == pytest.approx(np.log(20 / 0.05))
    assert price_of_direction(12.0, 20) == pytest.approx(np.log(12 / 0.05))


@pytest.mark.parametrize("move", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
def test_pairs_are_fitted_as_one_by_one_in_words(move: bool, weighted: bool) -> None:
    """Expectation maximisation of two Gaussians of one covariance, by its definition."""
    rng = np.random.default_rng(50)
    Y = rng.standard_normal((200, 3))
    Y[:60, 0] += 3.0
    weight = rng.integers(1, 4, 200).astype(float) if weighted else np.ones(200)
    share = weight / weight.sum()
    Y = Y - share @ Y
    Y = Y @ np.linalg.inv(np.linalg.cholesky((Y * share[:, None]).T @ Y)).T
    start = np.linalg.qr(rng.standard_normal((3, 3)))[0][:, :2]
    odds = rng.uniform(0.2, 0.8, (200, 2))
    directions, found, gain = two_groups(Y, weight, start, 3, odds, move=move)
    for j in range(2):
        v, chance = start[:, j], odds[:, j]
        for step in range(4):
            y, p = Y @ v, share @ chance
            means = [share @ ((1.0 - chance) * y) / (1.0 - p), share @ (chance * y) / p]
            within = share @ ((1.0 - chance) * (y - means[0]) ** 2 + chance * (y - means[1]) ** 2)
            # The whole is one, for each direction of unit length.
            pdf = [stats.norm.pdf(y, mean, np.sqrt(within)) for mean in means]
            density = (1.0 - p) * pdf[0] + p * pdf[1]
            chance = p * pdf[1] / density
            if move and step < 3:
                v = Y.T @ (share * (chance - share @ chance))
                v = v / np.linalg.norm(v)
        np.testing.assert_allclose(directions[:, j], v, atol=1e-9)
        np.testing.assert_allclose(found[:, j], chance, atol=1e-9)
        expected = weight @ (np.log(density) - stats.norm.logpdf(y))
        assert gain[j] == pytest.approx(expected, rel=1e-9)


def test_a_group_of_one_point_has_some_width_and_a_row_at_least() -> None:
    y = np.append(np.zeros(99), 10.0)[:, None]
    y = (y - y.mean()) / y.std()
    _, odds, gain = two_groups(y, np.ones(100), np.ones((1, 1)), 10, (y > 1.0).astype(float))
    # A hundredth of the variance is left: log(100)/2 nats a row, less what the shares cost.
    expected = 100.0 * (0.5 * np.log(100.0)) + 99.0 * np.log(0.99) + np.log(0.01) + 50.0
    assert gain[0] == pytest.approx(expected, rel=1e-6)
    assert odds[:99].max() < 1e-6 < 0.999 < odds[99, 0]
    # Odds that name nobody are those of one row.
    _, none, _ = two_groups(y, np.ones(100), np.ones((1, 1)), 0, np.zeros((100, 1)))
    assert np.isfinite(none).all()


def test_the_longer_tail_is_where_third_moments_point_to() -> None:
    rng = np.random.default_rng(51)
    y = rng.exponential(size=(199, 4)) * [1.0, -1.0, 1.0, -1.0]
    y = y - y.mean(axis=0)
    found = _longer_tail(y, np.full(199, 1.0 / 199.0))
    for j, share in enumerate((0.15, 0.3, 0.15, 0.3)):
        outward = y[:, j] * (-1.0 if j % 2 else 1.0)
        # Those rows whose share with all beyond them is just more than so much.
        count = int(199 * share) + 1
        np.testing.assert_array_equal(found[:, j], outward >= np.sort(outward)[-count])


def test_rows_are_drawn_in_to_the_radius_that_one_gaussian_row_in_a_hundred_exceeds() -> None:
    rng = np.random.default_rng(52)
    Y = rng.standard_normal((1001, 4))
    Y[:50] *= 20.0
    length = np.linalg.norm(Y, axis=1)
    radius = np.median(length) * np.sqrt(stats.chi2.isf(0.01, 4) / stats.chi2.isf(0.5, 4))
    expected = np.minimum(length, radius)
    drawn = Y * _pull(Y, np.ones(1001), 4)[:, None]
    np.testing.assert_allclose(np.linalg.norm(drawn, axis=1), expected, rtol=1e-9)
    # Where more than half of the rows are at the origin, in units of all.
    most = np.append(np.zeros(29), 3.0)[:, None]
    scale = np.sqrt(9.0 / 30.0 * stats.chi2.isf(0.01, 1) / stats.chi2.isf(0.5, 1))
    assert scale < 3.0
    assert _pull(most, np.ones(30), 1)[-1] == pytest.approx(scale / 3.0)


def test_whitened_rows_have_second_moments_of_one_and_it_is_told_how_far_they_were() -> None:
    rng = np.random.default_rng(53)
    Y = rng.standard_normal((300, 3)) * [1.0, 2.0, 5.0]
    share = rng.random(300)
    share /= share.sum()
    whitener, spread = _whitener(Y, share)
    white = Y @ whitener
    np.testing.assert_allclose((white * share[:, None]).T @ white, np.eye(3), atol=1e-10)
    np.testing.assert_allclose(whitener, whitener.T, atol=1e-12)
    assert spread == pytest.approx(np.linalg.cond((Y * share[:, None]).T @ Y))
    # A direction without variance has no more than rounding.
    flat = Y * [1.0, 1.0, 0.0]
    assert _whitener(flat, share)[1] == pytest.approx(1e10)


def test_fourth_axes_turn_toward_the_longer_tail() -> None:
    Y = np.random.default_rng(54).exponential(size=(400, 3)) - 1.0
    share = np.full(400, 1.0 / 400.0)
    axes = _fourth_axes(Y, share)
    fourth = sum(np.outer(y, y) * (y @ y) for y in Y) / 400.0
    values = np.diag(axes.T @ fourth @ axes)
    np.testing.assert_allclose(axes.T @ fourth @ axes, np.diag(values), atol=1e-9)
    np.testing.assert_allclose(axes.T @ axes, np.eye(3), atol=1e-12)
    assert np.all(np.mean((Y @ axes) ** 3, axis=0) > 0.0)


def test_bounded_rows_are_white_and_the_same_in_other_units() -> None:
    rng = np.random.default_rng(55)
    X = correlated(300, 4)
    X[:10] += 50.0
    weight = rng.integers(1, 3, 300).astype(float)
    Y, share = _bounded(X, weight), weight / weight.sum()
    np.testing.assert_allclose(share @ Y, 0.0, atol=1e-9)
    np.testing.assert_allclose((Y * share[:, None]).T @ Y, np.eye(4), atol=1e-9)
    # No row is beyond what a few of them are allowed to be.
    assert np.linalg.norm(Y, axis=1).max() < 1.3 * np.sqrt(stats.chi2.isf(0.01, 4))


def test_principal_rows_have_variance_one_along_axes_of_more_than_the_average() -> None:
    rng = np.random.default_rng(56)
    X = rng.standard_normal((60, 40)) * np.append([9.0, 6.0, 4.0], np.ones(37))
    Y = _principal(X, np.ones(60))
    assert Y.shape == (60, 3)
    np.testing.assert_allclose(Y.T @ Y / 60.0, np.eye(3), atol=1e-9)
    np.testing.assert_allclose(Y.mean(axis=0), 0.0, atol=1e-9)
    assert np.abs(np.corrcoef(Y[:, 0], X[:, 0])[0, 1]) > 0.95


def test_some_rows_stand_for_all_evenly_along_a_direction() -> None:
    rng = np.random.default_rng(57)
    Y, weight = rng.standard_normal((1000, 3)), rng.integers(1, 4, 1000).astype(float)
    for count in (weight.sum(), weight.sum() + 1.0):
        places, times = _some_rows(Y, weight, int(count))
        np.testing.assert_array_equal(places, np.arange(1000))
        np.testing.assert_array_equal(times, weight)
    along = Y @ np.random.default_rng(1).standard_normal(3)
    # The third of each five.
    places, times = _some_rows(Y, np.ones(1000), 200)
    np.testing.assert_array_equal(places, np.argsort(along)[2::5])
    places, times = _some_rows(Y, weight, 200)
    assert times.sum() == 200
    assert places.size == np.unique(places).size
    for level in (0.1, 0.5, 0.9):
        cut = np.quantile(along, level, weights=weight, method="inverted_cdf")
        # Each stands for a two-hundredth of the weight.
        of_some = times[along[places] <= cut].sum() / 200.0
        assert of_some == pytest.approx(weight[along <= cut].sum() / weight.sum(), abs=1.0 / 200.0)


def test_directions_that_are_tried_first_are_many_and_of_unit_length() -> None:
    rng = np.random.default_rng(58)
    Y = rng.standard_normal((400, 5))
    # Along one axis alone rows are skewed.
    Y[:, 1] = rng.exponential(size=400) - 1.0
    first = _first_directions(Y, np.ones(400))
    np.testing.assert_allclose(np.linalg.norm(first, axis=0), 1.0)
    # Skewed, its end, three and three of five axes, all axes and fifty.
    assert first.shape == (5, 2 + 5 + 5 + 50)
    assert np.all(np.abs(first[1, :2]) > 0.8)
    assert abs(first[1, 1]) > 0.95


def test_in_a_subspace_coordinates_are_those_of_the_directions_between_rows() -> None:
    rng = np.random.default_rng(59)
    inside = rng.standard_normal((30, 2)) @ rng.standard_normal((2, 5)) + 7.0
    found = _in_span(inside, np.ones(30))
    assert found.shape == (30, 2)
    apart = np.linalg.norm(inside[:, None] - inside, axis=2)
    np.testing.assert_allclose(np.linalg.norm(found[:, None] - found, axis=2), apart, atol=1e-9)
    # Rows that differ by rounding have no direction between them.
    large = np.vstack([1e3 * inside, 1e3 * inside[np.argmin(np.linalg.norm(inside, axis=1))]])
    large[-1] += 1e-8 * rng.standard_normal(5)
    assert _in_span(large, np.ones(31)).shape == (31, 2)
    whole = rng.standard_normal((30, 5))
    assert _in_span(whole, np.ones(30)) is whole
    equal = np.full((30, 5), 3.0)
    assert _in_span(equal, np.ones(30)) is equal


@pytest.mark.parametrize("seed", range(2))
def test_a_valley_is_the_least_density_between_two_groups_over_the_lower_peak(seed: int) -> None:
    rng = np.random.default_rng([60, seed])
    y = np.append(rng.standard_normal(200), rng.normal(4.0, 0.7, 60))
    weight = rng.integers(1, 3, 260).astype(float)
    minor = np.arange(260) >= 200
    means = [np.average(y[group], weights=weight[group]) for group in (minor, ~minor)]
    deviations = [
        np.sqrt(np.average((y[group] - mean) ** 2, weights=weight[group]))
        for group, mean in zip((minor, ~minor), means, strict=True)
    ]
    width = 1.06 * min(deviations) * weight.sum() ** -0.2
    grid = np.linspace(*means, 41)
    density = np.array([weight @ stats.norm.pdf(y, at, width) for at in grid])
    expected = density.min() / min(density[:5].max(), density[-5:].max())
    assert valley(y, weight, minor) == pytest.approx(expected, rel=1e-9)
    # Of fewer than three rows there is no density.
    assert valley(y, np.ones(260), np.arange(260) >= 258) == 1.0
    assert valley(y, np.ones(260), np.arange(260) >= 257) < 1.0


def test_of_two_rows_either_may_be_the_group() -> None:
    y = np.array([[-1.0], [1.0]])
    _, odds, _ = two_groups(y, np.ones(2), np.ones((1, 1)), 0, np.zeros((2, 1)))
    np.testing.assert_allclose(odds, 0.5)


def test_directions_move_unless_it_is_said_that_they_stay() -> None:
    Y = np.random.default_rng(61).standard_normal((100, 3))
    start = np.eye(3)[:, :1]
    default, moved, stayed = (
        two_groups(Y, np.ones(100), start, 2, **how)[0]
        for how in ({}, {"move": True}, {"move": False})
    )
    np.testing.assert_array_equal(default, moved)
    np.testing.assert_array_equal(stayed, start)


@pytest.mark.parametrize("seed", range(2))
def test_of_fewer_than_three_rows_for_each_feature_groups_are_found_along_leading_axes(
    seed: int,
) -> None:
    rng = np.random.default_rng([62, seed])
    X = rng.standard_normal((90, 60))
    X[:25] += 12.0 * np.append(np.ones(4) / 2.0, np.zeros(56))
    found = set_apart(X, np.ones(90), 0.4)[0]
    assert len(found) == 1
    np.testing.assert_array_equal(found[0], np.arange(90) < 25)
    assert set_apart(X[25:], np.ones(65), 0.4)[0] == []
