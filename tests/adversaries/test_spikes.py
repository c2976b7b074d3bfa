"""Spiked samples have the covariances of their models."""

from __future__ import annotations

import numpy as np
import pytest

from outweigh.adversaries import dense_spike, spike_and_cluster, spiked_mixture, two_outlier_spikes


def outlier_spectrum(X: np.ndarray, inliers: np.ndarray) -> np.ndarray:
    bad = X[~inliers]
    return np.linalg.eigvalsh(bad.T @ bad / len(bad))[::-1]


@pytest.mark.parametrize(
    ("outlier_spike", "outlier_norm", "top"), [(10.0, "ones", 41.0), (2.0, "unit", 3.0)]
)
def test_the_outliers_spike_has_the_variance_of_its_model(
    outlier_spike: float, outlier_norm: str, top: float
) -> None:
    sample = spiked_mixture(
        40000, 12, 4, 0.4, 0, outlier_spike=outlier_spike, outlier_norm=outlier_norm
    )
    spectrum = outlier_spectrum(sample.X, sample.inliers)
    assert spectrum[0] == pytest.approx(top, rel=0.05)
    assert spectrum[1] < 1.2


def test_outliers_use_features_that_the_truth_does_not() -> None:
    sample = spiked_mixture(4000, 12, 4, 0.3, 0, outlier_spike=100.0)
    scales = sample.X[~sample.inliers].std(axis=0)
    assert (scales > 5).sum() == 4
    assert (scales[sample.support] < 2).all()


def test_components_are_flat_and_positive_or_of_random_sign() -> None:
    plain = spiked_mixture(10, 40, 16, 0.0, 0).truth[0]
    mixed = spiked_mixture(10, 40, 16, 0.0, 0, signs="random").truth[0]
    np.testing.assert_allclose(plain[plain != 0], 0.25)
    np.testing.assert_allclose(abs(mixed[mixed != 0]), 0.25)
    assert (mixed < 0).any()
    assert (mixed > 0).any()


@pytest.mark.parametrize("n_nonzero", [4, 5, 6, 7, 10])
@pytest.mark.parametrize("signs", ["positive", "random"])
def test_overlapping_components_share_features_and_stay_orthonormal(
    n_nonzero: int, signs: str
) -> None:
    sample = spiked_mixture(
        10, 60, n_nonzero, 0.0, 0, n_components=3, overlapping=True, signs=signs
    )
    np.testing.assert_allclose(sample.truth @ sample.truth.T, np.eye(3), atol=1e-12)
    used = sample.truth != 0
    assert (used.sum(axis=1) == n_nonzero).all()
    assert (used[0] & used[1]).sum() >= 2
    assert (used[1] & used[2]).sum() >= 2


def test_disjoint_components_share_no_feature_and_keep_their_own_spikes() -> None:
    sample = spiked_mixture(60000, 10, 3, 0.0, 0, n_components=2, spike=(4.0, 1.0))
    assert ((sample.truth != 0).sum(axis=0) <= 1).all()
    variances = (sample.X @ sample.truth.T).var(axis=0)
    np.testing.assert_allclose(variances, [5.0, 2.0], rtol=0.05)


def test_two_outlier_spikes_are_two() -> None:
    sample = two_outlier_spikes(40000, 12, 4, 0.4, 0)
    spectrum = outlier_spectrum(sample.X, sample.inliers)
    np.testing.assert_allclose(spectrum[:2], 11.0, rtol=0.06)
    assert spectrum[2] < 1.2


def test_the_cluster_of_outliers_is_tight_and_off_the_truth() -> None:
    sample = spike_and_cluster(1000, 20, 4, 0.1, 0)
    bad = sample.X[~sample.inliers]
    centre = bad.mean(axis=0)
    assert np.linalg.norm(bad - centre, axis=1).max() <= 0.2
    assert np.linalg.norm(centre) == pytest.approx(6.0, abs=0.1)
    assert abs(centre @ sample.truth[0]) < 0.1


def test_the_dense_spike_uses_all_features_and_the_outliers_ten() -> None:
    sample = dense_spike(40000, 20, 20, 0.4, 0, spike=3.0)
    assert sample.support.size == 20
    clean = sample.X[sample.inliers]
    assert (clean @ sample.truth[0]).var() == pytest.approx(4.0, rel=0.05)
    bad = sample.X[~sample.inliers]
    values, vectors = np.linalg.eigh(bad.T @ bad / len(bad))
    assert values[-1] == pytest.approx(11.0, rel=0.05)
    assert (abs(vectors[:, -1]) > 0.2).sum() == 10


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"spike": -1.0}, "spike"),
        ({"spike": (1.0, 2.0, 3.0)}, "spike"),
        ({"outlier_spike": 0.0}, "outlier_spike"),
        ({"outlier_norm": "two"}, "outlier_norm"),
        ({"signs": "negative"}, "signs"),
        ({"n_components": 6}, "n_components"),
        ({"n_components": 0}, "n_components"),
        ({"n_outlier_spikes": 0}, "n_outlier_spikes"),
    ],
)
def test_bad_options_are_named(options: dict[str, object], argument: str) -> None:
    with pytest.raises(ValueError, match=argument):
        spiked_mixture(20, 20, 4, 0.1, 0, **options)  # type: ignore[arg-type]


def test_components_too_narrow_to_overlap_are_refused() -> None:
    with pytest.raises(ValueError, match="overlapping"):
        spiked_mixture(20, 20, 3, 0.1, 0, n_components=2, overlapping=True)
