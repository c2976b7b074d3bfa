"""Each adversary against a mean does what its name says, checked by moments and geometry."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from outweigh import adversaries as adv


def test_linear_hiding_has_the_covariance_of_its_two_halves() -> None:
    sample = adv.linear_hiding(60000, 10, 4, 0.4, random_state=0)
    bad = sample.X[~sample.inliers]
    mean = bad.mean(axis=0)
    hidden = mean > 0.25
    assert hidden.sum() == 4
    np.testing.assert_allclose(mean, 0.5 * hidden, atol=0.05)
    # On S: within-half variance 1 plus 1/4 between halves. Off S: the average of 1 and 2.
    np.testing.assert_allclose(bad.var(axis=0), np.where(hidden, 1.25, 1.5), atol=0.06)


def test_linear_hiding_shifts_the_plain_mean_by_half_the_contamination() -> None:
    sample = adv.linear_hiding(40000, 12, 5, 0.2, random_state=1)
    assert np.linalg.norm(sample.X.mean(axis=0)) == pytest.approx(0.1 * np.sqrt(5), rel=0.1)


def test_tail_flipping_moves_the_mean_by_twice_the_tail() -> None:
    # E[z; z < q_eps] = -phi(q_eps); negating the tail moves the mean by twice that.
    for contamination in (0.1, 0.3):
        sample = adv.tail_flipping(40000, 6, 1, contamination, random_state=0)
        tail = norm.pdf(norm.ppf(contamination))
        error = np.linalg.norm(sample.X.mean(axis=0))
        oracle = np.linalg.norm(sample.X[sample.inliers].mean(axis=0))
        assert error == pytest.approx(2 * tail, abs=0.02)
        assert oracle == pytest.approx(tail / (1 - contamination), abs=0.02)


def test_tail_flipping_keeps_every_second_moment() -> None:
    sample = adv.tail_flipping(20000, 6, 3, 0.3, random_state=0)
    np.testing.assert_allclose(sample.X.T @ sample.X / 20000, np.eye(6), atol=0.05)


@pytest.mark.parametrize("bias", [-2.0, 2.0])
def test_constant_bias_moves_every_feature_of_the_outliers(bias: float) -> None:
    sample = adv.constant_bias(20000, 8, 3, 0.2, random_state=0, bias=bias)
    np.testing.assert_array_equal(np.sort(sample.truth), [0.0] * 5 + [1.0] * 3)
    np.testing.assert_allclose(
        sample.X[~sample.inliers].mean(axis=0), sample.truth + bias, atol=0.08
    )


def test_constant_bias_is_minus_two_unless_told_otherwise() -> None:
    plain = adv.constant_bias(50, 8, 3, 0.2, random_state=0)
    stated = adv.constant_bias(50, 8, 3, 0.2, random_state=0, bias=-2.0)
    np.testing.assert_array_equal(plain.X, stated.X)


def test_the_mean_has_sizes_between_a_half_and_two_and_both_signs() -> None:
    truth = adv.hidden_at_zero(5, 400, 300, 0.0, random_state=0).truth
    sizes = abs(truth[truth != 0])
    assert sizes.size == 300
    assert sizes.min() >= 0.5
    assert sizes.max() <= 2.0
    assert sizes.mean() == pytest.approx(1.25, abs=0.1)
    assert 110 < (truth > 0).sum() < 190


def test_tight_cluster_fits_into_its_ball_away_from_the_mean() -> None:
    sample = adv.tight_cluster(2000, 30, 6, 0.1, random_state=0)
    bad = sample.X[~sample.inliers]
    assert np.linalg.norm(bad - bad.mean(axis=0), axis=1).max() <= 0.2
    off = bad.mean(axis=0) - sample.truth
    assert np.linalg.norm(off) == pytest.approx(2.0 * np.sqrt(6), abs=0.1)
    assert (abs(off) > 1.0).sum() == 6


def test_duplicates_are_one_point() -> None:
    sample = adv.duplicates(2000, 30, 6, 0.1, random_state=0)
    assert len(np.unique(sample.X[~sample.inliers], axis=0)) == 1


def test_far_outliers_are_as_far_as_asked() -> None:
    sample = adv.far_outliers(200, 30, 6, 0.1, random_state=0)
    distances = np.linalg.norm(sample.X[~sample.inliers] - sample.truth, axis=1)
    np.testing.assert_allclose(distances, 1e6, rtol=1e-3)


def test_multi_direction_uses_as_many_directions_as_asked() -> None:
    sample = adv.multi_direction(4000, 60, 3, 0.25, random_state=0, n_directions=7, shift=50.0)
    far = np.sign(np.round((sample.X[~sample.inliers] - sample.truth) / 50.0))
    assert len(np.unique(far, axis=0)) == 7
    np.testing.assert_array_equal(abs(far).sum(axis=1), 3)


def test_wrong_support_puts_the_outliers_mean_on_other_features() -> None:
    sample = adv.wrong_support(20000, 20, 6, 0.2, random_state=0)
    other = sample.X[~sample.inliers].mean(axis=0)
    assert abs(other[sample.support]).max() < 0.1
    sizes = abs(np.delete(other, sample.support))
    assert (sizes > 0.4).sum() == 6
    assert (sizes < 0.1).sum() == 8


def test_wrong_support_overlaps_no_more_than_it_must() -> None:
    sample = adv.wrong_support(20000, 10, 7, 0.2, random_state=0)
    other = np.flatnonzero(abs(sample.X[~sample.inliers].mean(axis=0)) > 0.3)
    assert other.size == 7
    assert np.intersect1d(other, sample.support).size == 4


@pytest.mark.parametrize(("name", "factor"), [("hidden_at_zero", 0.0), ("doubled_mean", 2.0)])
def test_outliers_on_the_line_of_the_mean_are_centred_at_a_multiple_of_it(
    name: str, factor: float
) -> None:
    sample = adv.make(name, 20000, 12, 4, 0.2, random_state=0)
    np.testing.assert_allclose(
        sample.X[~sample.inliers].mean(axis=0), factor * sample.truth, atol=0.08
    )
    np.testing.assert_allclose(sample.X[~sample.inliers].var(axis=0), 1.0, atol=0.12)


def test_subtractive_only_loses_the_upper_tail() -> None:
    sample = adv.subtractive(30000, 8, 3, 0.1, random_state=0)
    direction = sample.truth / np.linalg.norm(sample.truth)
    assert sample.inliers.all()
    assert len(sample.X) == 30000
    along = (sample.X - sample.truth) @ direction
    assert along.max() < norm.ppf(0.9) + 0.05
    assert along.mean() == pytest.approx(-norm.pdf(norm.ppf(0.9)) / 0.9, abs=0.02)
    # Across the mean nothing is lost.
    across = sample.X - sample.truth - np.outer(along, direction)
    assert np.linalg.norm(across.mean(axis=0)) < 0.03


def test_mimic_leaves_the_covariance_at_the_identity_and_moves_the_mean() -> None:
    sample = adv.mimic(60000, 6, 3, 0.2, random_state=0)
    np.testing.assert_allclose(np.cov(sample.X, rowvar=False), np.eye(6), atol=0.04)
    error = np.linalg.norm(sample.X.mean(axis=0) - sample.truth)
    assert error == pytest.approx(0.2 / np.sqrt(0.8), abs=0.02)


def test_heavy_tailed_inliers_reach_further_than_gaussian_ones() -> None:
    sample = adv.heavy_tailed(5000, 20, 4, 0.1, random_state=0)
    assert abs(sample.X[sample.inliers] - sample.truth).max() > 12


def test_bounded_covariance_is_bounded_by_the_identity() -> None:
    sample = adv.bounded_covariance(20000, 40, 4, 0.1, random_state=0)
    scales = sample.X[sample.inliers].std(axis=0)
    assert 0.28 < scales.min() < 0.45
    assert 0.85 < scales.max() < 1.03
