"""Laws that every adversary obeys."""

from __future__ import annotations

import numpy as np
import pytest

from outweigh.adversaries import (
    ADVERSARIES,
    MEAN_ADVERSARIES,
    SPIKE_ADVERSARIES,
    Sample,
    make,
    options_of,
)

EVERY = pytest.mark.parametrize("name", list(ADVERSARIES))
EVERY_MEAN = pytest.mark.parametrize("name", list(MEAN_ADVERSARIES))
EVERY_SPIKE = pytest.mark.parametrize("name", list(SPIKE_ADVERSARIES))


def draw(name: str, **changes: object) -> Sample:
    arguments: dict[str, object] = {
        "n_samples": 200,
        "n_features": 24,
        "n_nonzero": 4,
        "contamination": 0.1,
        "random_state": 0,
    }
    return make(name, **{**arguments, **changes})  # type: ignore[arg-type]


@EVERY
def test_shapes_and_types_are_those_of_a_sample(name: str) -> None:
    sample = draw(name)
    assert sample.X.shape == (200, 24)
    assert sample.X.dtype == np.float64
    assert sample.inliers.shape == (200,)
    assert sample.inliers.dtype == np.bool_
    assert np.isfinite(sample.X).all()
    assert sample.truth.shape[-1] == 24


@EVERY
@pytest.mark.parametrize(("n_samples", "contamination", "expected"), [(105, 0.1, 10), (30, 0.1, 3)])
def test_the_number_of_outliers_is_the_rounded_share(
    name: str, n_samples: int, contamination: float, expected: int
) -> None:
    if name == "subtractive":
        expected = 0
    sample = draw(name, n_samples=n_samples, contamination=contamination)
    assert sample.n_outliers == expected


@EVERY
def test_outliers_stay_a_minority_at_the_largest_contamination(name: str) -> None:
    for n_samples in range(1, 12):
        sample = draw(name, n_samples=n_samples, contamination=0.499999)
        assert sample.X.shape[0] == n_samples
        assert 2 * sample.n_outliers < n_samples


@EVERY
def test_the_seed_decides_the_sample(name: str) -> None:
    first, again, other = (draw(name, random_state=seed) for seed in (7, 7, 8))
    np.testing.assert_array_equal(first.X, again.X)
    np.testing.assert_array_equal(first.inliers, again.inliers)
    np.testing.assert_array_equal(first.truth, again.truth)
    assert not np.array_equal(first.X, other.X)


@EVERY
def test_a_generator_is_used_and_advanced(name: str) -> None:
    rng = np.random.default_rng(7)
    first, second = draw(name, random_state=rng), draw(name, random_state=rng)
    np.testing.assert_array_equal(first.X, draw(name, random_state=7).X)
    assert not np.array_equal(first.X, second.X)


@EVERY
def test_global_randomness_is_left_alone(name: str) -> None:
    np.random.seed(0)  # noqa: NPY002
    expected = np.random.random()  # noqa: NPY002
    np.random.seed(0)  # noqa: NPY002
    draw(name)
    assert np.random.random() == expected  # noqa: NPY002


@EVERY
def test_without_contamination_every_row_is_an_inlier(name: str) -> None:
    assert draw(name, contamination=0.0).inliers.all()


@pytest.mark.parametrize("name", sorted(set(ADVERSARIES) - {"subtractive"}))
def test_row_order_carries_no_truth(name: str) -> None:
    firsts = [int(np.flatnonzero(~draw(name, random_state=seed).inliers)[0]) for seed in range(12)]
    lasts = [int(np.flatnonzero(~draw(name, random_state=seed).inliers)[-1]) for seed in range(12)]
    assert len(set(firsts)) > 3
    assert len(set(lasts)) > 3
    assert np.median(firsts) < 60
    assert np.median(lasts) > 140


@EVERY_MEAN
def test_the_dense_problem_is_the_sparse_one_with_all_features(name: str) -> None:
    sample = draw(name, n_nonzero=24)
    assert sample.truth.shape == (24,)
    assert sample.X.shape == (200, 24)


@EVERY_MEAN
def test_one_feature_and_one_sample_work(name: str) -> None:
    assert draw(name, n_samples=1, n_features=1, n_nonzero=1).X.shape == (1, 1)


@pytest.mark.parametrize("name", sorted(set(MEAN_ADVERSARIES) - {"tail_flipping", "subtractive"}))
def test_untouched_rows_average_to_the_truth_unless_they_were_chosen_by_value(name: str) -> None:
    sample = draw(name, n_samples=8000)
    clean = sample.X[sample.inliers]
    np.testing.assert_allclose(clean.mean(axis=0), sample.truth, atol=5 / np.sqrt(len(clean)))


@EVERY_MEAN
@pytest.mark.parametrize("inliers", ["laplace", "uniform", "rademacher", "t5", "exponential"])
def test_every_inlier_distribution_has_unit_variance(name: str, inliers: str) -> None:
    sample = draw(name, n_samples=6000, contamination=0.0, inliers=inliers)
    variances = (sample.X - sample.truth).var(axis=0)
    if name == "bounded_covariance":
        assert (variances < 1.2).all()
        return
    assert variances.mean() == pytest.approx(1.0, abs=0.06)
    correlations = np.corrcoef(sample.X, rowvar=False) - np.eye(24)
    assert abs(correlations).max() < 5 / np.sqrt(6000)


@EVERY_SPIKE
def test_components_are_orthonormal_rows(name: str) -> None:
    sample = draw(name)
    np.testing.assert_allclose(sample.truth @ sample.truth.T, np.eye(len(sample.truth)), atol=1e-12)
    assert sample.spikes is not None
    assert sample.spikes.shape == (len(sample.truth),)


@EVERY_SPIKE
def test_untouched_rows_have_the_spiked_covariance(name: str) -> None:
    sample = draw(name, n_samples=20000, n_features=12, n_nonzero=3)
    clean = sample.X[sample.inliers]
    assert sample.spikes is not None
    expected = np.eye(12) + (sample.truth.T * sample.spikes) @ sample.truth
    np.testing.assert_allclose(clean.T @ clean / len(clean), expected, atol=0.1)


@EVERY
@pytest.mark.parametrize(
    ("changes", "argument"),
    [
        ({"n_samples": 0}, "n_samples"),
        ({"n_features": 0}, "n_features"),
        ({"n_nonzero": 0}, "n_nonzero"),
        ({"n_nonzero": 25}, "n_nonzero"),
        ({"contamination": 0.5}, "contamination"),
        ({"contamination": -0.1}, "contamination"),
        ({"contamination": float("nan")}, "contamination"),
        ({"inliers": "cauchy"}, "inliers"),
        ({"random_state": -1}, "random_state"),
    ],
)
def test_bad_values_are_named(name: str, changes: dict[str, object], argument: str) -> None:
    with pytest.raises(ValueError, match=argument):
        draw(name, **changes)


@EVERY
@pytest.mark.parametrize(
    "changes",
    [{"n_samples": 10.5}, {"n_nonzero": True}, {"contamination": "0.1"}, {"random_state": "a"}],
)
def test_bad_types_are_named(name: str, changes: dict[str, object]) -> None:
    with pytest.raises(TypeError, match=next(iter(changes))):
        draw(name, **changes)


def test_an_unknown_name_lists_the_choices() -> None:
    with pytest.raises(ValueError, match=r"name must be one of linear_hiding, .*; got 'none'"):
        draw("none")


def test_an_unknown_option_lists_the_options() -> None:
    with pytest.raises(ValueError, match=r"constant_bias has no option 'shift'.*bias, inliers"):
        draw("constant_bias", shift=1.0)


@EVERY
def test_every_adversary_lets_the_inliers_be_chosen(name: str) -> None:
    assert "inliers" in options_of(name)
