"""Groups that stand apart: the likelihood of a pair, noise alone, what a group must be worth."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from outweigh.fit.groups import (
    gain_of_one_law,
    price_of_direction,
    principal_axes,
    set_apart,
    two_groups,
    valley,
)
from outweigh.fit.tuning import TUNING
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
        apart, overlapping = set_apart(correlated(n, d, seed), np.ones(n), 0.4, TUNING)
        assert not apart
        assert not overlapping.any()


def test_groups_are_found_one_after_the_other() -> None:
    X = with_cluster(800, 5, 0.1, 8.0)
    X[80:180] += 30.0
    found = set_apart(X, np.ones(800), 0.4, TUNING)[0]
    together = np.any(found, axis=0)
    assert together[:180].mean() > 0.95
    assert together[180:].mean() < 0.02


def test_no_more_than_the_bound_is_set_apart() -> None:
    X = with_cluster(800, 5, 0.3, 8.0)
    assert set_apart(X, np.ones(800), 0.2, TUNING)[0] == []


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
    apart, overlapping = set_apart(X, np.ones(400), 0.4, TUNING)
    assert not apart
    assert overlapping[:80].mean() > 0.9
    assert overlapping[80:].mean() < 0.05
    skewed = correlated(400, 4)
    skewed[:, 0] = np.exp(0.5 * skewed[:, 0])
    skewed[:, 1] += rng.exponential(size=400)
    assert not set_apart(skewed, np.ones(400), 0.4, TUNING)[1].any()


def test_a_direction_costs_more_among_more_features() -> None:
    assert price_of_direction(1000.0, 20) > price_of_direction(1000.0, 5) > 0.0
    # With fewer than three rows for each feature only principal axes are tried.
    assert price_of_direction(50.0, 20) == pytest.approx(np.log(20 / 0.05))


def test_a_large_group_is_found_among_many_columns() -> None:
    """With a share of .3 neither skewness nor kurtosis is large, and noise has many directions."""
    X = with_cluster(5000, 100, 0.3, 6.0)
    found = set_apart(X, np.ones(5000), 0.4, TUNING)[0]
    assert len(found) == 1
    assert found[0][:1500].mean() > 0.95
    assert found[0][1500:].mean() < 0.02


@pytest.mark.parametrize("seed", range(5))
def test_rows_in_a_subspace_are_as_rows_in_its_coordinates(seed: int) -> None:
    rng = np.random.default_rng(seed)
    inside = rng.standard_normal((300, 3))
    inside[:60] += 8.0
    basis = np.linalg.qr(rng.standard_normal((12, 12)))[0][:3]
    found = set_apart(inside @ basis + 5.0, np.ones(300), 0.4, TUNING)[0]
    expected = set_apart(inside, np.ones(300), 0.4, TUNING)[0]
    assert len(found) == len(expected) == 1
    np.testing.assert_array_equal(found[0], expected[0])


@pytest.mark.parametrize("seed", range(5))
def test_what_rounding_leaves_outside_a_subspace_is_no_group(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((300, 4)) @ rng.standard_normal((4, 12))
    # The sums of these rows are rounded otherwise.
    X[:60] = (X[:60] + 1e3) - 1e3
    assert set_apart(X, np.ones(300), 0.4, TUNING)[0] == []


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
