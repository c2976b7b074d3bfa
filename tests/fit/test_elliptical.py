"""Rows of unknown covariance: formulas against brute force, laws, hostile tables."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from outweigh.fit.elliptical import judge_rows, mixture
from outweigh.fit.groups import set_apart, two_groups
from outweigh.fit.marginals import judged_columns, marginals
from outweigh.fit.radial import RadialLaw, radial_law, second_group
from outweigh.fit.scatter import Scatter
from outweigh.fit.standing_out import judge_on_features
from outweigh.fit.tuning import TUNING

Array = NDArray[np.float64]


def series(d: int, correlation: float = 0.8) -> Array:
    return np.asarray(correlation ** np.abs(np.subtract.outer(range(d), range(d))))


def correlated(n: int, d: int, seed: int = 0) -> Array:
    noise = np.random.default_rng(seed).standard_normal((n, d))
    return np.asarray(noise @ np.linalg.cholesky(series(d)).T)


def with_cluster(n: int, d: int, share: float, distance: float, seed: int = 0) -> Array:
    """Rows of which the first lie apart along the direction of least variance."""
    X = correlated(n, d, seed)
    values, vectors = np.linalg.eigh(series(d))
    X[: int(share * n)] += distance * np.sqrt(values[0]) * vectors[:, 0]
    return X


def test_distances_leave_each_row_out_as_refitting_without_it_would() -> None:
    rows = correlated(30, 4)
    weight = np.ones(30)
    weight[25:] = 0.0
    scatter = Scatter.of(rows, weight, 4, shrink=False)
    found = scatter.distances(rows, weight > 0)
    for i in (0, 7, 27):
        others = np.delete(rows[:25], i, axis=0) if i < 25 else rows[:25]
        away = rows[i] - others.mean(axis=0)
        expected = away @ np.linalg.solve(np.cov(others.T), away)
        assert found[i] == pytest.approx(expected, rel=1e-9)


def test_a_scatter_of_weights_is_that_of_copies() -> None:
    rows = correlated(20, 3)
    weight = np.tile([1.0, 2.0], 10)
    copies = np.repeat(rows, weight.astype(int), axis=0)
    weighted = Scatter.of(rows, weight, 3, shrink=True)
    copied = Scatter.of(copies, np.ones(30), 3, shrink=True)
    assert weighted.log_det == pytest.approx(copied.log_det)
    assert weighted.shrinkage == pytest.approx(copied.shrinkage)


def test_a_scatter_in_coordinates_of_the_span_has_the_distances_of_all_features() -> None:
    rows = correlated(15, 40)
    basis = np.linalg.svd(rows, full_matrices=False)[2]
    inside = Scatter.of(rows @ basis.T, np.ones(15), 40, shrink=True)
    whole = Scatter.of(rows, np.ones(15), 40, shrink=True)
    everything = np.ones(15, dtype=bool)
    np.testing.assert_allclose(
        inside.distances(rows @ basis.T, everything), whole.distances(rows, everything), rtol=1e-6
    )
    assert inside.log_det == pytest.approx(whole.log_det)


def test_the_radial_law_of_gaussian_rows_is_the_f_law_of_leave_one_out_distances() -> None:
    squared = 20.0 * stats.f.rvs(5, 300, size=20_000, random_state=0)
    law = radial_law(squared, np.ones(20_000), 5, 305.0, 0.0, False)
    assert law.scale == pytest.approx(20.0, rel=0.03)
    assert law.beyond(0.01) == pytest.approx(20.0 * stats.f.isf(0.01, 5, 300), rel=0.1)


def test_heavy_tails_lower_the_degrees_of_freedom() -> None:
    squared = stats.f.rvs(5, 4, size=20_000, random_state=0)
    law = radial_law(squared, np.ones(20_000), 5, 10_000.0, 0.0, False)
    assert 3.0 < law.nu < 5.5


def test_a_second_radial_group_is_told_from_one_heavy_tail() -> None:
    rng = np.random.default_rng(0)
    one = 5.0 * stats.f.rvs(5, 3, size=1000, random_state=rng)
    two = np.concatenate([rng.chisquare(5, 900), 400.0 * np.exp(0.2 * rng.normal(size=100))])
    law = RadialLaw(5.0, 5.0, 1000.0)
    weight = np.ones(1000)
    tail = second_group(one, weight, one > np.quantile(one, 0.95), law, 5)
    group = second_group(two, weight, two > 100.0, law, 5)
    assert tail.gain < 3.0
    assert group.gain > 50.0
    assert 20.0 < group.parting < 400.0


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
    found = [len(set_apart(correlated(n, d, seed), np.ones(n), 0.4, TUNING)) for seed in range(20)]
    assert sum(found) == 0


def test_a_mixture_has_its_shares_and_centres() -> None:
    rng = np.random.default_rng(1)
    y = np.concatenate([rng.normal(size=900), rng.normal(6.0, 0.3, size=100)])
    found = mixture(y, np.ones(1000), (y > 4.0).astype(float), 1e6)
    assert found is not None
    assert found.share == pytest.approx(0.1, abs=0.01)
    assert found.second == pytest.approx((6.0, 0.3), abs=0.1)


def test_columns_of_few_values_and_of_one_value_mostly_are_not_judged() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    X[:, 1] = rng.integers(0, 2, 200)
    X[:120, 2] = 0.0
    assert judged_columns(X, np.ones(200), TUNING).tolist() == [0, 3]


def test_skewed_columns_are_straightened_and_others_left_alone() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 2))
    X[:, 1] = np.exp(0.7 * X[:, 1])
    form = marginals(X, np.ones(2000), np.ones(2000, dtype=bool))
    assert form.g[0] == 0.0
    assert form.g[1] == pytest.approx(0.7, abs=0.15)
    assert abs(stats.skew(form.apply(X)[:, 1])) < 0.5
    z = form.apply(np.column_stack([np.zeros(400), np.linspace(-50.0, 1e4, 400)]))[:, 1]
    assert np.all(np.diff(z) > 0)


@pytest.mark.parametrize("distance", [6.0, 20.0])
@pytest.mark.parametrize("share", [0.05, 0.3])
def test_a_cluster_along_the_least_variable_direction_is_found(
    share: float, distance: float
) -> None:
    X = with_cluster(600, 8, share, distance)
    judged = judge_rows(X, np.ones(600), 0.4, TUNING)
    wrong = np.arange(600) < int(share * 600)
    assert np.mean(judged.clean[wrong] < 0.5) > 0.9
    assert np.mean(judged.clean[~wrong] < 0.5) < 0.02


@pytest.mark.parametrize("seed", range(5))
def test_clean_correlated_rows_are_left_alone(seed: int) -> None:
    X = correlated(300, 10, seed)
    assert np.mean(judge_rows(X, np.ones(300), 0.4, TUNING).clean < 0.5) <= 0.02


def test_units_and_shifts_do_not_matter() -> None:
    X = with_cluster(500, 6, 0.1, 6.0)
    moved = X * np.logspace(-3, 3, 6) + np.arange(6.0)
    first = judge_rows(X, np.ones(500), 0.4, TUNING).clean
    second = judge_rows(moved, np.ones(500), 0.4, TUNING).clean
    np.testing.assert_allclose(first, second, atol=1e-6)


def test_the_order_of_rows_does_not_matter() -> None:
    X = with_cluster(500, 6, 0.1, 6.0)
    order = np.random.default_rng(0).permutation(500)
    first = judge_rows(X, np.ones(500), 0.4, TUNING).clean
    second = judge_rows(X[order], np.ones(500), 0.4, TUNING).clean
    np.testing.assert_allclose(first[order], second, atol=1e-6)


def test_whole_numbers_as_weights_are_copies() -> None:
    X = with_cluster(400, 5, 0.1, 7.0)
    weight = np.random.default_rng(0).integers(1, 3, 400).astype(float)
    copies = np.repeat(np.arange(400), weight.astype(int))
    weighted = judge_rows(X, weight, 0.4, TUNING).clean
    copied = judge_rows(X[copies], np.ones(copies.size), 0.4, TUNING).clean
    np.testing.assert_allclose(weighted[copies], copied, atol=1e-6)


def hostile() -> dict[str, Array]:
    X = correlated(80, 5)
    collinear = np.column_stack([X, X[:, 0] + X[:, 1]])
    return {
        "duplicate columns": np.column_stack([X, X]),
        "collinear columns": collinear,
        "constant in the bulk": np.column_stack([X, np.arange(80) < 10]),
        "rounded": np.round(X),
        "fewer rows than columns": correlated(20, 50),
        "three rows": correlated(3, 2),
        "one column": X[:, :1],
        "huge values": np.vstack([X, np.full((2, 5), 1e200)]),
        "equal rows": np.vstack([X, np.tile(X[0], (60, 1))]),
    }


@pytest.mark.parametrize("name", hostile())
def test_hostile_tables_are_judged_without_complaint(name: str) -> None:
    X = hostile()[name]
    judged = judge_rows(X, np.ones(len(X)), 0.4, TUNING)
    assert np.all(np.isfinite(judged.clean))
    assert np.all(np.isfinite(judged.severity))
    assert np.mean(judged.clean < 0.5) <= 0.4
    if name == "huge values":
        assert np.all(judged.clean[-2:] == 0.0)


def test_features_that_stand_out_hold_the_mean_and_what_outliers_moved() -> None:
    X = correlated(1000, 200)
    X[:, 3] += 1.0
    X[:100, 50:53] += 6.0
    features, judged = judge_on_features(X, np.ones(1000), None, 0.4, TUNING)
    assert {3, 50, 51, 52} <= set(features.tolist())
    assert features.size < 30
    assert np.mean(judged.clean[:100] < 0.5) > 0.9
