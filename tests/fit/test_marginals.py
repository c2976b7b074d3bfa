"""The law of each column: units, skewness, reach."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from outweigh import RobustMean
from outweigh.fit.marginals import Reach, marginals, positive_spread
from tests.reference.correlated import correlated


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


def test_units_and_shifts_are_taken_out() -> None:
    X = np.random.default_rng(0).normal(size=(300, 3))
    everything = np.ones(300, dtype=bool)
    moved = X * [1e-3, 1.0, 1e6] + [5.0, 0.0, -2e6]
    first = marginals(X, np.ones(300), everything).apply(X)
    second = marginals(moved, np.ones(300), everything).apply(moved)
    np.testing.assert_allclose(first, second, atol=1e-7)


def test_a_spread_is_positive_where_half_of_a_column_is_one_value() -> None:
    X = np.zeros((100, 3))
    X[:30, 0] = np.arange(30.0)
    X[:, 1] = np.random.default_rng(0).normal(size=100)
    spread = positive_spread(X, np.ones(100), np.median(X, axis=0))
    assert spread[0] == pytest.approx(np.sqrt(np.mean(X[:, 0] ** 2)))
    assert spread[1] == pytest.approx(stats.median_abs_deviation(X[:, 1], scale="normal"), rel=0.02)
    assert spread[2] == 1.0


def test_columns_are_restored_also_beyond_the_ends_of_the_logarithm() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 3))
    X[:, 1] = np.exp(0.8 * X[:, 1])
    X[:, 2] = -np.exp(0.5 * X[:, 2])
    form = marginals(X, np.ones(500), np.ones(500, dtype=bool))
    assert np.count_nonzero(form.g) == 2
    wide = np.vstack([X, 30.0 * X])
    np.testing.assert_allclose(form.restore(form.apply(wide)), wide, rtol=1e-9, atol=1e-9)


def test_a_value_is_beyond_at_ten_times_what_most_others_are_from_the_median() -> None:
    X = np.zeros((100, 3))
    X[:40, 0] = 1.0
    X[:30, 1] = np.arange(1.0, 31.0)
    reach = Reach.of(X, np.ones(100), np.arange(3))
    # Of 1 to 30 six tenths are at most 18; the third column has one value.
    assert reach.columns.tolist() == [0, 1]
    np.testing.assert_allclose(reach.radius, [10.0, 180.0])
    np.testing.assert_allclose(reach.exceeded(np.array([[-20.0, 0.0, 9.0]])), [2.0])


def test_no_columns_have_no_reach() -> None:
    reach = Reach.of(np.ones((3, 2)), np.arange(1.0, 4.0), np.empty(0, dtype=np.intp))
    assert reach.exceeded(np.ones((3, 2))).tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("measured", [0, 3])
def test_codes_for_missing_values_among_0_and_1_are_found_and_named(measured: int) -> None:
    """Beside columns that rows are judged by, and where there are none."""
    X = correlated(400, 8)
    X[:, measured:] = X[:, measured:] > 0.3
    X[:20, -1] = -999.0
    found = RobustMean().fit(X)
    assert np.flatnonzero(found.predict(X) < 0).tolist() == list(range(20))
    assert abs(found.location_[-1]) < 1.0
    assert all(features[0] == 7 for features in found.explain(X, top=1).features)


def test_values_out_of_range_are_finitely_far() -> None:
    reach = Reach(np.arange(2), np.zeros(2), np.array([1e-298, 1e300]))
    assert np.isfinite(reach.parts(np.array([[1e300, -1e300], [-1e300, 0.0]]))).all()
