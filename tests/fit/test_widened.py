"""Rows too far out in all features alike: their law, clean rows of any law, what is found."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from outweigh import RobustMean, RobustSparseMean
from outweigh.adversaries import INLIERS, make
from outweigh.fit.widened import _convolved, may_be_widened, to_one_side, widened_beyond
from outweigh.protocols import Array


def judged(rows: Array) -> tuple[float, Array] | None:
    squared = np.square(rows).sum(axis=1)
    ones = np.ones(len(rows))
    if not may_be_widened(squared, ones, rows.shape[1]):
        return None
    return widened_beyond(squared, ones, rows, ones, rows.shape[1])


def test_the_law_of_a_sum_of_squares_is_the_convolution_of_theirs() -> None:
    rows = np.random.default_rng(0).normal(size=(20_000, 4))
    step = 0.02
    law = _convolved(np.square(rows) / step, np.full(20_000, 1 / 20_000), np.full(4, 3))
    below = np.cumsum(law)
    for level in (5.0, 11.0, 20.0):
        expected = stats.chi2.cdf(level, 12)
        assert below[round(level / step)] == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize("inliers", sorted(INLIERS))
@pytest.mark.parametrize(("n", "d"), [(300, 10), (1500, 60)])
def test_clean_rows_of_any_law_are_not_widened(inliers: str, n: int, d: int) -> None:
    for seed in range(3):
        rows = make("wrong_support", n, d, 3, 0.0, seed, inliers=inliers).X
        rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
        # As at the first look: rows that no plausible centre would keep are gone.
        rows = rows[np.square(rows).sum(axis=1) < 4.0 * d]
        found = judged(rows)
        assert found is None or found[1].mean() < 0.01


def test_rows_of_one_heavy_tailed_radial_law_are_not_widened() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(1500, 20)) * np.sqrt(5.0 / rng.chisquare(5, 1500))[:, None]
    assert judged(rows) is None


def test_widened_rows_are_told_by_their_distance() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(2000, 100))
    rows[:200] *= np.sqrt(2.0)
    found = judged(rows)
    assert found is not None
    beyond, chance = found
    assert stats.chi2.ppf(0.98, 100) < beyond < stats.chi2.ppf(0.5, 100) * 2.0
    assert chance[:200].mean() > 0.95
    assert chance[200:].mean() < 0.01
    np.testing.assert_array_equal(chance[np.square(rows).sum(axis=1) < 90.0] < 0.5, True)


@pytest.mark.parametrize("contamination", [0.2, "auto"])
@pytest.mark.parametrize("sparse", [False, True])
def test_what_extra_variance_hides_is_found(sparse: bool, contamination: float | str) -> None:
    """Half of the outliers are widened and hide the shift of the others."""
    ratios, clean = [], []
    for seed in range(1, 4):
        sample = make("linear_hiding", 5000, 50, 5, 0.2, seed)
        model = RobustSparseMean(5) if sparse else RobustMean()
        model.set_params(contamination=contamination, scale=None, covariance=None).fit(sample.X)
        clean.append(model.certificate_.clean)
        oracle = np.sort(np.abs(sample.X[sample.inliers].mean(axis=0)))[-5 if sparse else 0 :]
        ratios.append(np.linalg.norm(model.location_) / np.linalg.norm(oracle))
    assert np.median(ratios) < 1.15
    assert np.median(clean) == 1.0


def test_new_rows_that_are_widened_are_flagged() -> None:
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(2, 3000, 100))
    X[:300] *= np.sqrt(2.0)
    new[:300] *= np.sqrt(2.0)
    model = RobustMean(scale=None, covariance=None).fit(X)
    for rows in (X, new):
        flagged = model.predict(rows) == -1
        assert flagged[:300].mean() > 0.95
        assert flagged[300:].mean() < 0.01


@pytest.mark.parametrize("shift", [0.0, 0.5])
def test_a_group_lies_to_one_side_and_widened_rows_do_not(shift: float) -> None:
    rows = np.random.default_rng(0).normal(size=(1000, 30))
    rows[:100] = np.sqrt(2.0) * rows[:100] + shift
    assert to_one_side(rows, (np.arange(1000) < 100) * 0.9) == (shift > 0.0)


@pytest.mark.parametrize("contamination", [0.0, 0.02, 0.05, 0.1, 0.3])
@pytest.mark.parametrize("name", ["mean", "sparse mean"])
def test_no_more_is_removed_than_the_bound_allows(name: str, contamination: float) -> None:
    X = np.random.default_rng(0).standard_normal((400, 200))
    X[:40] *= 1.4
    model = RobustMean() if name == "mean" else RobustSparseMean(5)
    model.set_params(contamination=contamination).fit(X)
    assert model.contamination_ <= contamination + 1e-9


@pytest.mark.parametrize("n", [1, 2])
def test_of_one_or_two_rows_none_is_widened(n: int) -> None:
    squared = np.array([59.7, 1e-3])[:n]
    assert not may_be_widened(squared, np.ones(n), 30)


def test_where_most_rows_are_at_the_centre_none_is_widened() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(400, 3)) * (rng.random((400, 3)) < 0.1)
    rows[:40] *= 3.0
    assert may_be_widened(np.square(rows).sum(axis=1), np.ones(400), 3)
    assert judged(rows) is None


def test_the_units_of_the_rows_do_not_tell_which_are_widened() -> None:
    rows = np.random.default_rng(0).normal(size=(2000, 100))
    rows[:200] *= np.sqrt(2.0)
    found, tiny = judged(rows), judged(2.0**-330 * rows)
    assert found is not None
    assert tiny is not None
    np.testing.assert_allclose(found[1], tiny[1], atol=1e-9)
