"""The simple means against their definitions, and what all mean baselines have in common."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import trim_mean

from outweigh.adversaries import constant_bias, tight_cluster, wrong_support
from outweigh.baselines import (
    MEAN_BASELINES,
    AgnosticMean,
    CoordinatewiseMedian,
    EmpiricalMean,
    FilterMean,
    FilterSparseMean,
    GeometricMedian,
    GradientDescentMean,
    IterativeTrimmedHardThresholding,
    MinCovDetMean,
    MultiplicativeWeightsMean,
    NaivePruning,
    OracleMean,
    QuantumEntropyMean,
    RansacMean,
    TrimmedMean,
)

RNG = np.random.default_rng(0)
FAST = [
    baseline(random_state=0) if baseline is RansacMean else baseline()
    for name, baseline in MEAN_BASELINES.items()
    if name not in ("oracle", "sdp", "min_cov_det")
]
EVERY = pytest.mark.parametrize("baseline", FAST, ids=lambda baseline: type(baseline).__name__)


def distance(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.linalg.norm(a - b))


def test_the_oracle_is_the_mean_of_the_genuine_rows() -> None:
    sample = wrong_support(300, 20, 4, 0.2, random_state=0)
    oracle = OracleMean().fit(sample.X, inliers=sample.inliers)
    np.testing.assert_allclose(oracle.location_, sample.X[sample.inliers].mean(axis=0))


def test_the_empirical_mean_and_the_median_are_numpy_s() -> None:
    X = RNG.standard_normal((40, 7))
    np.testing.assert_allclose(EmpiricalMean().fit(X).location_, np.mean(X, axis=0))
    np.testing.assert_allclose(CoordinatewiseMedian().fit(X).location_, np.median(X, axis=0))


@pytest.mark.parametrize("contamination", [0.0, 0.1, 0.25, 0.45])
def test_the_trimmed_mean_is_scipy_s(contamination: float) -> None:
    X = RNG.standard_t(2, (100, 6))
    np.testing.assert_allclose(
        TrimmedMean(contamination=contamination).fit(X).location_,
        trim_mean(X, np.ceil(100 * contamination) / 100, axis=0),
    )


def test_the_geometric_median_has_the_smallest_sum_of_distances() -> None:
    X = RNG.standard_t(2, (60, 4)) + np.arange(4.0)
    found = GeometricMedian().fit(X).location_

    def total(point: np.ndarray) -> float:
        return float(np.linalg.norm(X - point, axis=1).sum())

    best = minimize(total, X.mean(axis=0), method="BFGS", options={"gtol": 1e-6})
    assert total(found) <= best.fun * (1 + 1e-9)
    assert distance(found, best.x) < 1e-3


def test_the_geometric_median_stays_at_a_point_that_most_rows_share() -> None:
    X = np.vstack([np.tile([1.0, 2.0], (6, 1)), RNG.standard_normal((5, 2)) * 100])
    np.testing.assert_allclose(GeometricMedian().fit(X).location_, [1.0, 2.0])


@pytest.mark.parametrize("step_size", [0.3, 1.0, 1.5])
def test_trimmed_hard_thresholding_is_where_its_iteration_ends(step_size: float) -> None:
    sample = constant_bias(400, 30, 5, 0.1, random_state=0)
    found = IterativeTrimmedHardThresholding(5).fit(sample.X)
    iterate = np.zeros(30)
    for _ in range(100):
        moved = iterate - step_size * trim_mean(iterate - sample.X, 0.1, axis=0)
        kept = np.argsort(-np.abs(moved))[:5]
        iterate = np.zeros(30)
        iterate[kept] = moved[kept]
    np.testing.assert_allclose(found.location_, iterate, atol=1e-8)


@EVERY
def test_exactly_n_nonzero_entries_are_kept_and_they_are_the_largest(baseline: object) -> None:
    sample = wrong_support(300, 20, 4, 0.1, random_state=0)
    fitted = type(baseline)(**{**baseline.get_params(), "n_nonzero": 4}).fit(sample.X)
    assert np.flatnonzero(fitted.location_).tolist() == fitted.support_.tolist()
    assert fitted.support_.size == 4
    np.testing.assert_array_equal(fitted.support_, np.sort(sample.support))


@EVERY
def test_the_answer_moves_with_the_data(baseline: object) -> None:
    sample = tight_cluster(250, 12, 12, 0.1, random_state=1)
    shift = np.linspace(-30.0, 30.0, 12)
    here = baseline.fit(sample.X).location_.copy()
    there = baseline.fit(sample.X + shift).location_
    np.testing.assert_allclose(there - shift, here, atol=1e-6)


@pytest.mark.parametrize(
    "baseline",
    [baseline for baseline in FAST if not isinstance(baseline, RansacMean)],
    ids=lambda baseline: type(baseline).__name__,
)
def test_the_order_of_rows_does_not_matter_unless_halves_are_drawn(baseline: object) -> None:
    sample = wrong_support(250, 12, 12, 0.1, random_state=2)
    order = np.random.default_rng(0).permutation(250)
    first = baseline.fit(sample.X).location_.copy()
    np.testing.assert_allclose(baseline.fit(sample.X[order]).location_, first, atol=1e-6)


@EVERY
@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (2, 3), (3, 1), (3, 40)])
def test_tiny_data_gives_finite_answers(baseline: object, shape: tuple[int, int]) -> None:
    X = np.random.default_rng(1).standard_normal(shape)
    location = baseline.fit(X).location_
    assert location.shape == (shape[1],)
    assert np.isfinite(location).all()
    assert (np.abs(location - X.mean(axis=0)) <= np.ptp(X, axis=0) + 1e-12).all()


@EVERY
def test_equal_rows_are_their_own_mean(baseline: object) -> None:
    X = np.tile([1.0, -2.0, 3.0], (20, 1))
    np.testing.assert_allclose(baseline.fit(X).location_, [1.0, -2.0, 3.0], atol=1e-12)


@EVERY
def test_clean_data_is_averaged_nearly_as_the_plain_mean_does(baseline: object) -> None:
    X = np.random.default_rng(3).standard_normal((2000, 10))
    assert distance(baseline.fit(X).location_, X.mean(axis=0)) < 0.1


@pytest.mark.parametrize(
    "baseline",
    [
        FilterMean(),
        FilterSparseMean(),
        GradientDescentMean(),
        MultiplicativeWeightsMean(),
    ],
    ids=lambda baseline: type(baseline).__name__,
)
@pytest.mark.parametrize("attack", [constant_bias, wrong_support, tight_cluster])
def test_methods_that_read_second_moments_are_at_the_oracle_s_error_on_dense_means(
    baseline: object, attack: object
) -> None:
    sample = attack(2000, 15, 15, 0.1, random_state=0)
    oracle = OracleMean().fit(sample.X, inliers=sample.inliers).location_
    found = baseline.fit(sample.X).location_
    assert distance(found, sample.truth) < 1.3 * distance(oracle, sample.truth) + 0.02
    assert distance(sample.X.mean(axis=0), sample.truth) > 5 * distance(found, sample.truth)


@pytest.mark.parametrize("baseline", [AgnosticMean(), QuantumEntropyMean()])
@pytest.mark.parametrize("attack", [constant_bias, wrong_support, tight_cluster])
def test_methods_that_go_by_all_directions_undo_most_of_the_harm(
    attack: object, baseline: object
) -> None:
    sample = attack(2000, 16, 16, 0.1, random_state=0)
    found = baseline.fit(sample.X).location_
    assert distance(found, sample.truth) < 0.4 * distance(sample.X.mean(axis=0), sample.truth)


def test_the_agnostic_mean_of_one_feature_is_the_median() -> None:
    X = RNG.standard_t(2, (41, 1))
    assert AgnosticMean().fit(X).location_ == np.median(X)


def test_without_outliers_to_assume_the_agnostic_mean_is_the_mean_but_for_one_direction() -> None:
    X = RNG.standard_normal((300, 5))
    away = AgnosticMean(contamination=0.0).fit(X).location_ - X.mean(axis=0)
    top = np.linalg.eigh(np.cov(X, rowvar=False))[1][:, -1]
    np.testing.assert_allclose(away - top * (top @ away), 0.0, atol=1e-12)


@pytest.mark.parametrize("sharpness", [1e-9, 4.0, 1e3])
def test_quantum_entropy_scores_are_between_lengths_and_the_top_direction(sharpness: float) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 6))
    X[:20, 0] += 4.0
    # One round: the row of the largest score has no weight left.
    found = QuantumEntropyMean(sharpness=sharpness, max_iter=1, failure_probability=1e-9).fit(X)
    Z = X - X.mean(axis=0)
    values, vectors = np.linalg.eigh(Z.T @ Z / 400)
    scores = {
        1e-9: np.square(Z).sum(axis=1),
        4.0: (Z @ vectors) ** 2 @ np.exp(4.0 * (values - 1.0) / np.abs(values - 1.0).max()),
        1e3: (Z @ vectors[:, -1]) ** 2,
    }[sharpness]
    assert found.weights_[np.argmax(scores)] == 0.0
    assert np.count_nonzero(found.weights_ == 0.0) == 1
    touched = found.weights_ < found.weights_.max() * (1.0 - 1e-9)
    assert touched.sum() == 80
    assert scores[touched].min() >= scores[~touched].max()


def test_the_minimum_covariance_determinant_is_taken_in_by_a_tight_cluster() -> None:
    errors = {}
    for attack in (constant_bias, wrong_support, tight_cluster):
        sample = attack(500, 15, 15, 0.1, random_state=0)
        found = MinCovDetMean().fit(sample.X)
        errors[attack.__name__] = distance(found.location_, sample.truth)
    assert errors["constant_bias"] < 0.3
    assert errors["wrong_support"] < 0.3
    # A half of the rows that holds the cluster has a smaller determinant than a genuine half.
    assert errors["tight_cluster"] > 0.5


@pytest.mark.parametrize(
    "baseline", [GradientDescentMean(), MultiplicativeWeightsMean()], ids=["gd", "mw"]
)
def test_weights_lie_in_the_capped_simplex_and_leave_the_outliers(baseline: object) -> None:
    sample = wrong_support(1000, 12, 12, 0.1, random_state=0)
    weights = baseline.fit(sample.X).weights_
    assert weights.sum() == pytest.approx(1.0)
    assert weights.min() >= 0.0
    # After pruning the caps belong to the rows left, at least half of them.
    assert weights.max() <= 1 / (0.9 * 900)
    assert weights[~sample.inliers].sum() < 0.03


@EVERY
def test_a_failed_fit_leaves_the_earlier_one(baseline: object) -> None:
    X = np.random.default_rng(0).standard_normal((30, 3))
    before = baseline.fit(X).location_.copy()
    with pytest.raises(ValueError, match="NaN"):
        baseline.fit(np.full((30, 4), np.nan))
    np.testing.assert_array_equal(baseline.location_, before)
    assert baseline.n_features_in_ == 3


BAD_PARAMETERS = [
    ("n_nonzero", 0, ValueError),
    ("n_nonzero", 2.5, TypeError),
    ("n_nonzero", True, TypeError),
    ("contamination", 0.5, ValueError),
    ("contamination", -0.1, ValueError),
    ("contamination", "much", TypeError),
    ("failure_probability", 0.0, ValueError),
    ("false_discovery_rate", 1.0, ValueError),
    ("max_iter", 0, ValueError),
    ("n_trials", 0, ValueError),
]


@pytest.mark.parametrize(
    ("baseline", "name", "value", "error"),
    [
        pytest.param(baseline, *bad, id=f"{type(baseline).__name__}-{bad[0]}-{bad[1]}")
        for baseline in FAST
        for bad in BAD_PARAMETERS
        if bad[0] in baseline.get_params()
    ],
)
def test_bad_parameters_are_named(
    baseline: object, name: str, value: object, error: type[Exception]
) -> None:
    bad = type(baseline)(**{**baseline.get_params(), name: value})
    with pytest.raises(error, match=name):
        bad.fit(np.zeros((10, 3)))


@EVERY
def test_more_entries_than_features_are_clipped_with_one_warning(baseline: object) -> None:
    X = np.random.default_rng(0).standard_normal((20, 2))
    clipped = type(baseline)(**{**baseline.get_params(), "n_nonzero": 9})
    with pytest.warns(UserWarning, match="n_nonzero=9") as caught:
        clipped.fit(X)
    assert len(caught) == 1
    np.testing.assert_array_equal(clipped.location_, baseline.fit(X).location_)


def test_values_whose_squares_overflow_are_refused() -> None:
    with pytest.raises(ValueError, match="X has values as large as 1e\\+300"):
        EmpiricalMean().fit([[1e300, 0.0], [0.0, 0.0]])


@pytest.mark.parametrize(
    "mask", [[True, False], [1, 0, 1], [[True, True, True]], [False, False, False]]
)
def test_a_mask_that_is_none_is_refused(mask: list[object]) -> None:
    with pytest.raises(ValueError, match="inliers"):
        OracleMean().fit(np.zeros((3, 2)), inliers=mask)


def test_pruning_drops_exactly_the_rows_beyond_the_radius() -> None:
    X = RNG.standard_normal((200, 5))
    X[:4, 2] += [4.0, 5.0, -6.0, 50.0]
    radius = np.sqrt(2 * np.log(200 * 5 / 0.2))
    expected = [max(abs(row - np.median(X, axis=0))) < radius for row in X]
    np.testing.assert_array_equal(NaivePruning().fit(X).inliers_, expected)


def test_pruning_keeps_half_of_the_rows_when_the_noise_is_much_larger_than_one() -> None:
    X = RNG.standard_normal((101, 5)) * 1e4
    found = NaivePruning().fit(X)
    assert np.count_nonzero(found.inliers_) == 51


def test_ransac_has_at_least_as_many_rows_near_as_the_plain_mean() -> None:
    sample = constant_bias(400, 20, 5, 0.1, random_state=0)
    found = RansacMean(random_state=0).fit(sample.X)
    pruned = NaivePruning().fit(sample.X)
    rows = sample.X[pruned.inliers_]
    radius = np.sqrt(20 + np.sqrt(20))

    def near(centre: np.ndarray) -> int:
        return sum(np.linalg.norm(row - centre) < radius for row in rows)

    assert near(found.location_) == np.count_nonzero(found.inliers_)
    assert near(found.location_) > near(pruned.location_)


def test_ransac_is_decided_by_its_seed() -> None:
    X = constant_bias(200, 10, 3, 0.1, random_state=0).X
    first, again, other = (RansacMean(random_state=s).fit(X).location_ for s in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
