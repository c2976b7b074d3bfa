"""The first look: units, the origin, and pruning of what is far, never more than allowed."""

from __future__ import annotations

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from outweigh.adversaries import INLIERS
from outweigh.fit.noise import (
    Noise,
    Standardizer,
    _pruned_rows,
    _whitener,
    first_look,
    pruning_radius_sq,
)
from outweigh.samples import ArrayRows

Array = NDArray[np.float64]

distances = hnp.arrays(
    np.float64, st.integers(1, 30), elements=st.sampled_from([0.5, 5.0, 20.0, 30.0, 1e300, np.inf])
)


@given(far=distances, contamination=st.floats(0.0, 0.49), data=st.data())
def test_no_more_is_pruned_than_the_contamination_allows(
    far: Array, contamination: float, data: st.DataObject
) -> None:
    weight = data.draw(hnp.arrays(np.float64, far.size, elements=st.integers(1, 4)))
    pruned = _pruned_rows(far, 10.0, weight, contamination)
    assert weight[pruned].sum() < contamination * weight.sum() + 1.0


def test_a_row_that_is_partly_in_the_share_is_pruned() -> None:
    far = np.where(np.arange(2281) < 23, 1e6, 1.0)
    # A hundredth of 2281 rows are 22.81.
    assert _pruned_rows(far, 10.0, np.ones(2281), 0.01).size == 23


@given(far=distances, contamination=st.floats(0.0, 0.49))
def test_only_rows_beyond_the_radius_are_pruned(far: Array, contamination: float) -> None:
    pruned = _pruned_rows(far, 10.0, np.ones(far.size), contamination)
    assert np.all(far[pruned] > 10.0)


@given(far=distances, contamination=st.floats(0.0, 0.49))
def test_no_row_kept_is_farther_than_one_pruned(far: Array, contamination: float) -> None:
    pruned = _pruned_rows(far, 10.0, np.ones(far.size), contamination)
    kept = np.delete(far, pruned)
    if pruned.size:
        assert kept.max(initial=0.0) <= far[pruned].min()


@given(far=distances, contamination=st.floats(0.0, 0.49), data=st.data())
def test_integer_weights_prune_as_repeated_rows_do(
    far: Array, contamination: float, data: st.DataObject
) -> None:
    weight = data.draw(hnp.arrays(np.int64, far.size, elements=st.integers(1, 3)))
    by_weight = _pruned_rows(far, 10.0, weight.astype(float), contamination)
    repeated = np.repeat(far, weight)
    by_rows = _pruned_rows(repeated, 10.0, np.ones(repeated.size), contamination)
    expected = np.repeat(np.isin(np.arange(far.size), by_weight), weight)
    np.testing.assert_array_equal(np.isin(np.arange(repeated.size), by_rows), expected)


def test_a_share_given_as_a_decimal_fraction_is_used_up() -> None:
    far = np.r_[np.zeros(7), np.arange(20.0, 23.0)]
    assert _pruned_rows(far, 10.0, np.ones(10), 0.3).size == 3


def radius_sq(squared_distances: Array, n_features: int) -> float:
    return pruning_radius_sq(squared_distances, np.ones(squared_distances.size), n_features)


@pytest.mark.parametrize(("n", "d"), [(100, 1), (1000, 5), (1000, 50), (300, 400)])
@pytest.mark.parametrize("unit", [1.0, 20.0])
def test_clean_rows_are_within_the_radius(n: int, d: int, unit: float) -> None:
    X = unit * np.random.default_rng([n, d]).standard_normal((n, d))
    far = np.sum((X - X.mean(axis=0)) ** 2, axis=1)
    assert np.all(far < radius_sq(far, d))


@pytest.mark.parametrize(("n", "d"), [(100, 1), (1000, 50), (300, 400)])
def test_the_radius_of_rows_nearer_than_unit_noise_is_the_chi_squared_bound(n: int, d: int) -> None:
    spread = np.log(n / 0.05)
    expected = 1.44 * (d + 2.0 * np.sqrt(d * spread) + 2.0 * spread)
    assert radius_sq(np.zeros(n), d) == pytest.approx(expected, rel=1e-12)


def test_rows_that_are_all_as_far_out_as_each_other_are_within_the_radius() -> None:
    # Of about half of such numbers a root squared is less than the number.
    for far in np.random.default_rng(0).uniform(1e3, 1e9, 20):
        assert far <= radius_sq(np.full(10, far), 5)


def test_the_radius_grows_with_the_number_of_features_and_of_samples() -> None:
    radii = [radius_sq(np.zeros(n), d) for n, d in ((100, 5), (100, 6), (1000, 6))]
    assert radii == sorted(set(radii))


def test_forty_in_a_hundred_far_rows_do_not_widen_the_radius_to_themselves() -> None:
    far = np.r_[np.full(40, 1e6), np.random.default_rng(0).chisquare(5, 60)]
    assert radius_sq(far, 5) < 1e4


def unit_noise(n: int = 2000, d: int = 40) -> Array:
    return np.random.default_rng(0).standard_normal((n, d))


def look(X: Array, scale: str | Array | None = "auto", **options: object) -> Noise:
    return first_look(ArrayRows(X), np.ones(len(X)), scale, None, 0.2, **options)


@pytest.mark.parametrize("inliers", INLIERS)
def test_scales_are_the_deviations_of_clean_columns(inliers: str) -> None:
    units = np.geomspace(1e-3, 1e3, 40)
    X = units * INLIERS[inliers](np.random.default_rng(1), (2000, 40))
    # Of heavy tails a deviation is off by much itself, and a typical one is taken instead.
    rtol = {"t3": 0.4, "exponential": 0.25}.get(inliers, 0.1)
    np.testing.assert_allclose(look(X).standardizer.scale, X.std(axis=0), rtol=rtol)


def test_scales_of_gaussian_columns_are_their_plain_deviations() -> None:
    # So that the diagonal of the second moments is one, where no outliers speak against it.
    X = unit_noise()
    np.testing.assert_allclose(look(X).standardizer.scale, X.std(axis=0), rtol=1e-9)


@pytest.mark.parametrize(("contamination", "shift", "most"), [(0.1, 3, 1.2), (0.2, 8, 1.05)])
def test_outliers_in_few_columns_hardly_inflate_their_scales(
    contamination: float, shift: float, most: float
) -> None:
    X = unit_noise()
    wrong = int(2000 * contamination)
    X[:wrong, :3] += shift
    scale = look(X).standardizer.scale
    assert np.all(scale[:3] < most * X[wrong:, :3].std(axis=0))
    np.testing.assert_allclose(scale[3:], X.std(axis=0)[3:], rtol=1e-9)


def test_columns_of_few_values_among_others_have_their_plain_deviations() -> None:
    X = unit_noise()
    X[:, ::4] = np.sign(X[:, ::4])
    X[:, 1] = X[:, 1] > 1.0
    np.testing.assert_allclose(look(X).standardizer.scale, X.std(axis=0), rtol=0.02)


@pytest.mark.parametrize("scale", [None, np.full(40, 3.0)])
def test_given_scales_are_kept(scale: Array | None) -> None:
    given = np.ones(40) if scale is None else scale
    np.testing.assert_array_equal(look(50.0 * unit_noise(), scale).standardizer.scale, given)


def test_rows_declared_to_be_of_unit_noise_near_zero_are_left_as_they_are() -> None:
    standardizer = look(unit_noise(), scale=None).standardizer
    assert not standardizer.origin.any()
    assert np.all(standardizer.scale == 1.0)


@pytest.mark.parametrize("scale", ["auto", "mad"])
def test_scales_and_pruned_rows_follow_the_units(scale: str) -> None:
    X = unit_noise()
    X[:100] += 5.0
    X[:20] += 50.0
    units = np.geomspace(1e-3, 1e3, 40)
    there, here = look(units * X, scale), look(X, scale)
    np.testing.assert_allclose(
        there.standardizer.scale, units * here.standardizer.scale, rtol=1e-12
    )
    np.testing.assert_array_equal(there.pruned, here.pruned)


def test_rows_come_out_in_units_of_their_noise() -> None:
    units, shift = np.geomspace(1e-3, 1e3, 40), np.linspace(-1e4, 1e4, 40)
    noise = look(unit_noise() * units + shift)
    np.testing.assert_allclose(noise.samples.variances(np.full(2000, 1 / 2000)), 1.0, rtol=0.1)
    # The origin is read off 500 rows: a midmean of so many is off by 1.1 / sqrt(500) = 0.05.
    assert np.all(np.abs(noise.samples.mean(np.full(2000, 1 / 2000))) < 0.25)


def test_far_rows_are_pruned_and_hold_zeros() -> None:
    X = unit_noise()
    X[:100] += 1e9
    noise = look(X)
    assert np.sort(noise.pruned).tolist() == list(range(100))
    np.testing.assert_array_equal(noise.samples.project(np.eye(40))[noise.pruned], 0.0)


def test_a_column_that_never_varies_is_left_out() -> None:
    X = unit_noise()
    X[:, 3] = 7.0
    noise = look(X)
    assert 3 not in noise.standardizer.columns
    assert noise.first[3] == 7.0


def test_about_zero_a_constant_column_varies() -> None:
    X = unit_noise()
    X[:, 3] = 7.0
    noise = look(X, centred=False)
    assert 3 in noise.standardizer.columns
    assert 3 not in noise.varying


def test_one_level_of_all_columns_is_that_of_a_typical_one() -> None:
    X = 30.0 * unit_noise()
    X[:, 0] *= 100.0
    noise = look(X, scale=None, common_level=True)
    assert np.ptp(noise.standardizer.scale) == 0.0
    assert noise.standardizer.scale[0] == pytest.approx(30.0, rel=0.05)


@pytest.mark.parametrize("share", [0.4, 0.5])
def test_too_many_rows_beyond_floating_point_are_refused(share: float) -> None:
    X = unit_noise()
    X[: int(2000 * share)] = 1e100 * (1.0 + X[: int(2000 * share)])
    with pytest.raises(ValueError, match="raise contamination"):
        look(X, scale=None)


@pytest.mark.parametrize("whitened", [False, True])
def test_rescaled_rows_are_divided_by_the_factor_and_the_same_are_pruned(whitened: bool) -> None:
    X = unit_noise()
    X[:100] += 1e9
    covariance = np.eye(40) + 0.3 * (np.eye(40, k=1) + np.eye(40, k=-1)) if whitened else None
    noise = first_look(ArrayRows(X), np.ones(2000), None, covariance, 0.2)
    factor = np.linspace(0.5, 2.0, 40)
    again = noise.rescaled(factor)
    np.testing.assert_array_equal(again.pruned, noise.pruned)
    np.testing.assert_allclose(again.standardizer.scale, noise.standardizer.scale * factor)
    kept = np.arange(100, 2000)
    expected = noise.standardizer.apply(X[kept])
    if whitened:
        expected = X[kept] / factor @ _whitener(covariance, np.arange(40))
    else:
        expected = expected / factor
    found = again.samples.project(np.eye(40))[kept]
    np.testing.assert_allclose(found, expected, atol=1e-10)


def standardizer(whitened: bool) -> Standardizer:
    covariance = np.array([[2.0, 0.5], [0.5, 1.0]])
    columns = np.array([0, 2])
    whitener = _whitener(covariance, np.arange(2)) if whitened else None
    return Standardizer(columns, np.array([1.0, -5.0]), np.array([2.0, 0.1]), whitener)


@pytest.mark.parametrize("whitened", [False, True])
def test_the_way_back_from_units_of_the_noise_ends_where_it_began(whitened: bool) -> None:
    X = np.random.default_rng(0).standard_normal((5, 3))
    there = standardizer(whitened)
    back = np.array([there.restore(z) for z in there.apply(X)])
    np.testing.assert_allclose(back, X[:, [0, 2]], rtol=1e-12)


def test_huge_values_are_clipped_in_units_of_the_noise() -> None:
    found = standardizer(whitened=False).apply(np.array([[1e308, 0.0, -1e308]]))
    assert np.isfinite(found).all()


def test_the_whitener_is_the_inverse_root_of_the_correlations() -> None:
    covariance = np.array([[4.0, 1.0, 0.5], [1.0, 1.0, 0.2], [0.5, 0.2, 9.0]])
    deviation = np.sqrt(np.diagonal(covariance))
    R = covariance / deviation / deviation[:, None]
    W = _whitener(covariance, np.arange(3))
    np.testing.assert_allclose(W, W.T, atol=1e-12)
    np.testing.assert_allclose(W @ R @ W, np.eye(3), atol=1e-12)
