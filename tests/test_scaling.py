"""Scales are robust, and data of unit noise is left alone."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from outweigh.adversaries import INLIERS
from outweigh.scaling import looks_unit_noise, robust_scales, scales_are_off

Array = NDArray[np.float64]

UNITS = np.array([1e-3, 1.0, 50.0, 1e6])


def noise(n: int = 4000, d: int = 4) -> Array:
    return np.random.default_rng(0).standard_normal((n, d))


@pytest.mark.parametrize("which", [0, 1], ids=["deviations", "deciles"])
def test_both_scales_are_the_standard_deviation_of_a_gaussian(which: int) -> None:
    found = robust_scales(noise() * UNITS, np.ones(4000))[which]
    np.testing.assert_allclose(found, UNITS, rtol=0.06)


@pytest.mark.parametrize("which", [0, 1], ids=["deviations", "deciles"])
def test_both_scales_follow_the_units(which: int) -> None:
    X = noise()
    plain, scaled = (robust_scales(rows, np.ones(4000))[which] for rows in (X, X * UNITS))
    np.testing.assert_allclose(scaled, plain * UNITS, rtol=1e-9)


def test_the_scale_by_deviations_stays_bounded_with_nearly_half_of_the_rows_wrong() -> None:
    X = noise()
    X[:1900] = 1e300
    assert np.all(robust_scales(X, np.ones(4000))[0] < 10.0)


@pytest.mark.parametrize("which", [0, 1], ids=["deviations", "deciles"])
def test_integer_weights_scale_as_repeated_rows_do(which: int) -> None:
    X, weight = noise(30), np.arange(30) % 3 + 1.0
    repeated = np.repeat(X, weight.astype(int), axis=0)
    found = robust_scales(X, weight)[which]
    expected = robust_scales(repeated, np.ones(len(repeated)))[which]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("inliers", INLIERS)
def test_noise_of_unit_variance_looks_like_it(inliers: str) -> None:
    X = INLIERS[inliers](np.random.default_rng(1), (2000, 40))
    assert looks_unit_noise(*robust_scales(X, np.ones(2000)))


@pytest.mark.parametrize("contamination", [0.1, 0.3])
def test_outliers_do_not_hide_unit_noise(contamination: float) -> None:
    X = noise(2000, 40)
    X[: int(2000 * contamination)] += 3.0
    assert looks_unit_noise(*robust_scales(X, np.ones(2000)))


@pytest.mark.parametrize("unit", [1e-3, 0.2, 5.0, 1e6])
def test_other_units_do_not_look_like_unit_noise(unit: float) -> None:
    assert not looks_unit_noise(*robust_scales(unit * noise(2000, 40), np.ones(2000)))


def test_variances_near_one_are_left_alone() -> None:
    assert not scales_are_off(np.full(10, 1.05), 1000, 3.0)


@pytest.mark.parametrize("variance", [0.25, 2.0, 9.0])
def test_variances_far_from_one_are_noticed(variance: float) -> None:
    assert scales_are_off(np.full(10, variance), 1000, 3.0)


def test_the_noise_of_few_samples_is_not_taken_for_a_scale() -> None:
    # A variance of 20 Gaussians is off by sqrt(2 / 20) = 0.3 itself.
    assert not scales_are_off(np.full(10, 1.3), 20, 3.0)


def test_no_columns_have_no_scales_to_be_off() -> None:
    assert not scales_are_off(np.empty(0), 100, 3.0)
