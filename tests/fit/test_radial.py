"""How far out clean rows are: the law of their distances, and a second group beside it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from outweigh.fit.radial import RadialLaw, radial_law, second_group


def test_the_radial_law_of_gaussian_rows_is_the_f_law_of_leave_one_out_distances() -> None:
    squared = 20.0 * stats.f.rvs(5, 300, size=20_000, random_state=0)
    law = radial_law(squared, np.ones(20_000), 5, 305.0, 0.0, False)
    assert law.scale == pytest.approx(20.0, rel=0.03)
    assert law.beyond(0.01) == pytest.approx(20.0 * stats.f.isf(0.01, 5, 300), rel=0.1)


def test_a_law_whose_median_was_read_off_few_rows_is_exceeded_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    exact = RadialLaw(5.0, 5.0, 30.0)
    squared = 5.0 * stats.f.rvs(5, 30, size=(40_000, 16), random_state=rng)
    medians = np.median(squared[:, :15], axis=1)
    new = squared[:, 15] * np.median(5.0 * stats.f.rvs(5, 30, size=10**6, random_state=rng))
    plain, wider = exact.beyond(0.01), exact.read_off(15.0).beyond(0.01)
    assert np.mean(new / medians > plain) > 0.013
    assert np.mean(new / medians > wider) == pytest.approx(0.01, abs=0.004)
    assert exact.read_off(1e9).beyond(0.01) == pytest.approx(plain, rel=1e-6)


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


def test_a_distance_is_exceeded_as_often_as_its_level_says() -> None:
    law = RadialLaw(2.0, 5.0, 30.0)
    levels = np.array([0.5, 0.01, 1e-4])
    beyond = np.array([law.beyond(level) for level in levels])
    np.testing.assert_allclose(law.exceeded(beyond), levels, rtol=1e-6)
    assert law.at_median(7.0).beyond(0.5) == pytest.approx(7.0)


def test_two_laws_are_never_worse_than_one() -> None:
    """From a Gaussian start alone the fit of two laws ended far below that of one heavy tail."""
    rng = np.random.default_rng(0)
    bulk = 8.0 * stats.f.rvs(8, 5, size=400, random_state=rng)
    squared = np.concatenate([bulk, 1000.0 * np.exp(0.6 * rng.normal(size=22))])
    law = RadialLaw(14.0, 8.0, 213.0)
    found = second_group(squared, np.ones(422), squared > np.quantile(squared, 0.98), law, 8)
    assert found.gain >= 0.0
