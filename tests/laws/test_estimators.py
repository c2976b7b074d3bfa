"""Every estimator of a mean obeys the same laws of invariance, equivalence and scoring."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from outweigh.estimators.base import RobustEstimator
from outweigh.optimise.capped_simplex import CappedSimplex
from tests.laws.members import MEANS

Array = NDArray[np.float64]

N, D, EPS = 300, 15, 0.1


def make(name: str, **parameters: object) -> RobustEstimator:
    estimator = MEANS[name]()
    if "n_nonzero" in estimator.get_params():
        parameters.setdefault("n_nonzero", 3)
    return estimator.set_params(**parameters)


def contaminated(seed: int = 0) -> Array:
    rng = np.random.default_rng([31, seed])
    X = rng.standard_normal((N, D))
    X[:, :3] += [1.5, -2.0, 1.0]
    X[: int(EPS * N), 5:9] += 2.5
    return X


def clean(seed: int = 0) -> Array:
    return np.random.default_rng([32, seed]).standard_normal((N, D)) + 0.5


DATA: dict[str, Callable[[], Array]] = {"contaminated": contaminated, "clean": clean}


@cache
def fitted(name: str, data: str = "contaminated", contamination: object = "auto"):
    return make(name, contamination=contamination).fit(DATA[data]())


every_mean = pytest.mark.parametrize("name", MEANS)
every_share = pytest.mark.parametrize("contamination", ["auto", EPS], ids=["auto", "known"])
every_data = pytest.mark.parametrize("data", DATA)


@every_mean
@every_share
@every_data
def test_the_weights_lie_in_the_set(name: str, contamination: object, data: str) -> None:
    est = fitted(name, data, contamination)
    bound = est.contamination_bound_
    assert CappedSimplex.from_contamination(N, bound).contains(est.weights_, atol=1e-9)


@every_mean
@every_share
def test_no_more_is_removed_than_the_bound(name: str, contamination: object) -> None:
    est = fitted(name, contamination=contamination)
    assert est.contamination_ <= est.contamination_bound_ + 1e-9


@every_mean
@every_share
def test_the_contamination_is_the_total_variation_from_uniform(
    name: str, contamination: object
) -> None:
    est = fitted(name, contamination=contamination)
    expected = 0.5 * np.abs(est.weights_ - 1 / N).sum()
    assert est.contamination_ == pytest.approx(expected, abs=1e-9)


@every_mean
def test_a_known_contamination_is_the_bound(name: str) -> None:
    assert fitted(name, contamination=EPS).contamination_bound_ == EPS


@every_mean
def test_the_outliers_lose_their_weight(name: str) -> None:
    assert fitted(name).weights_[: int(EPS * N)].sum() < 0.25 * EPS


@every_mean
@every_share
def test_the_answer_does_not_depend_on_the_origin(name: str, contamination: object) -> None:
    shift = np.linspace(-20.0, 30.0, D)
    moved = make(name, contamination=contamination).fit(contaminated() + shift)
    expected = fitted(name, contamination=contamination).weights_
    np.testing.assert_allclose(moved.weights_, expected, atol=1e-7 / N)


def test_the_dense_mean_moves_with_the_origin() -> None:
    shift = np.linspace(-20.0, 30.0, D)
    moved = make("RobustMean").fit(contaminated() + shift)
    expected = fitted("RobustMean").location_ + shift
    np.testing.assert_allclose(moved.location_, expected, atol=1e-8)


@every_mean
@every_share
@every_data
def test_the_answer_does_not_depend_on_the_order_of_rows(
    name: str, contamination: object, data: str
) -> None:
    order = np.random.default_rng(1).permutation(N)
    shuffled = make(name, contamination=contamination).fit(DATA[data]()[order])
    est = fitted(name, data, contamination)
    np.testing.assert_allclose(shuffled.weights_, est.weights_[order], atol=1e-7 / N)
    np.testing.assert_allclose(shuffled.location_, est.location_, atol=1e-8)


@every_mean
@every_share
def test_features_in_another_order_give_the_answer_in_that_order(
    name: str, contamination: object
) -> None:
    order = np.random.default_rng(2).permutation(D)
    permuted = make(name, contamination=contamination).fit(contaminated()[:, order])
    est = fitted(name, contamination=contamination)
    np.testing.assert_allclose(permuted.location_, est.location_[order], atol=1e-8)


@every_mean
def test_with_robust_scales_the_answer_follows_the_units(name: str) -> None:
    units = 2.0 ** np.arange(-7, 8)
    plain = make(name, scale="mad").fit(contaminated())
    scaled = make(name, scale="mad").fit(contaminated() * units)
    np.testing.assert_allclose(scaled.location_, plain.location_ * units, rtol=1e-9)


@every_mean
def test_with_robust_scales_the_weights_do_not_depend_on_the_units(name: str) -> None:
    units = np.geomspace(1e-3, 1e3, D)
    plain = make(name, scale="mad").fit(contaminated())
    scaled = make(name, scale="mad").fit(contaminated() * units)
    np.testing.assert_allclose(scaled.weights_, plain.weights_, atol=1e-7 / N)


@every_mean
def test_units_a_million_apart_flag_the_same_rows(name: str) -> None:
    rng = np.random.default_rng(3)
    X = np.vstack([contaminated(seed) for seed in range(4)])
    units = 10.0 ** rng.uniform(-3.0, 3.0, D)
    plain = make(name, contamination=EPS).fit_predict(X)
    scaled = make(name, contamination=EPS).fit_predict(X * units)
    assert np.mean(plain == scaled) >= 0.98


@every_mean
@every_share
def test_the_same_input_gives_the_same_answer(name: str, contamination: object) -> None:
    again = make(name, contamination=contamination).fit(contaminated())
    est = fitted(name, contamination=contamination)
    np.testing.assert_array_equal(again.weights_, est.weights_)
    np.testing.assert_array_equal(again.location_, est.location_)


@every_mean
def test_the_answer_does_not_depend_on_the_global_seed(name: str) -> None:
    np.random.seed(5)  # noqa: NPY002
    again = make(name).fit(contaminated())
    np.testing.assert_array_equal(again.weights_, fitted(name).weights_)


@every_mean
def test_on_small_data_the_random_state_does_not_matter(name: str) -> None:
    again = make(name, random_state=7).fit(contaminated())
    np.testing.assert_array_equal(again.weights_, fitted(name).weights_)


@every_mean
def test_the_data_is_not_written_to(name: str) -> None:
    X = contaminated()
    make(name).fit(X).predict(X)
    np.testing.assert_array_equal(X, contaminated())


@cache
def weighted_and_repeated(name: str, contamination: object, data: str):
    X, repeats = DATA[data](), 1 + np.arange(N) % 3
    by_weight = make(name, contamination=contamination).fit(X, sample_weight=repeats)
    by_rows = make(name, contamination=contamination).fit(np.repeat(X, repeats, axis=0))
    return by_weight, by_rows, repeats


@every_mean
@every_share
@every_data
def test_integer_weights_give_the_location_of_repeated_rows(
    name: str, contamination: object, data: str
) -> None:
    by_weight, by_rows, _ = weighted_and_repeated(name, contamination, data)
    np.testing.assert_allclose(by_weight.location_, by_rows.location_, atol=1e-8)


@every_mean
@every_share
@every_data
def test_integer_weights_give_the_weights_of_repeated_rows(
    name: str, contamination: object, data: str
) -> None:
    by_weight, by_rows, repeats = weighted_and_repeated(name, contamination, data)
    copies = np.repeat(by_weight.weights_ / repeats, repeats)
    np.testing.assert_allclose(copies, by_rows.weights_, atol=1e-7 / N)


@every_mean
@every_share
@every_data
def test_integer_weights_flag_the_rows_that_repeated_rows_flag(
    name: str, contamination: object, data: str
) -> None:
    by_weight, by_rows, _ = weighted_and_repeated(name, contamination, data)
    X = DATA[data]()
    np.testing.assert_array_equal(by_weight.predict(X), by_rows.predict(X))


@every_mean
@every_share
def test_a_row_of_no_weight_is_as_good_as_removed(name: str, contamination: object) -> None:
    X = contaminated()
    kept = np.arange(N) % 4 != 0
    by_weight = make(name, contamination=contamination).fit(X, sample_weight=kept.astype(float))
    removed = make(name, contamination=contamination).fit(X[kept])
    np.testing.assert_allclose(by_weight.location_, removed.location_, atol=1e-10)
    np.testing.assert_allclose(by_weight.weights_[kept], removed.weights_, atol=1e-12)


@every_mean
def test_a_row_of_no_weight_gets_none(name: str) -> None:
    weight = np.where(np.arange(N) % 4 == 0, 0.0, 1.0)
    est = make(name).fit(contaminated(), sample_weight=weight)
    assert np.all(est.weights_[weight == 0] == 0.0)


@every_mean
def test_a_common_factor_of_the_sample_weights_does_not_move_the_location(name: str) -> None:
    # Weights of one and no weights at all are the same; twice as many samples need not be.
    est = make(name).fit(contaminated(), sample_weight=np.ones(N))
    np.testing.assert_array_equal(est.location_, fitted(name).location_)


@every_mean
@every_data
@pytest.mark.parametrize("share", [0.0, 0.03, 0.1, 0.101, 0.25, 0.37])
def test_exactly_the_given_share_of_training_rows_is_flagged(
    name: str, data: str, share: float
) -> None:
    X = DATA[data]()
    flagged = np.sum(make(name, contamination=share).fit_predict(X) == -1)
    assert flagged == round(share * N)


@every_mean
def test_fit_predict_is_fit_and_then_predict(name: str) -> None:
    X = contaminated()
    np.testing.assert_array_equal(make(name).fit_predict(X), fitted(name).predict(X))


@every_mean
def test_the_decision_function_is_the_score_less_the_offset(name: str) -> None:
    est, X = fitted(name), contaminated()
    expected = est.score_samples(X) - est.offset_
    np.testing.assert_array_equal(est.decision_function(X), expected)


@every_mean
@every_share
@pytest.mark.parametrize("correlated", [False, True])
def test_new_rows_between_the_kept_and_the_outliers_are_flagged(
    name: str, contamination: object, correlated: bool
) -> None:
    rng = np.random.default_rng([34, correlated])
    mixed = np.eye(D) + (rng.standard_normal((D, D)) if correlated else 0.0)
    X, new = (rng.standard_normal((n, D)) @ mixed for n in (N, 1000))
    X[: int(EPS * N)] += 1e4
    est = make(name, contamination=contamination, covariance="auto").fit(X)
    assert np.all(est.predict(X)[: int(EPS * N)] == -1)
    assert np.mean(est.predict(new) == -1) < 0.05
    assert np.mean(est.predict(new + 30.0 * np.abs(mixed).max()) == -1) > 0.99


@every_mean
def test_the_outliers_score_below_the_inliers(name: str) -> None:
    scores = fitted(name).score_samples(contaminated())
    wrong, right = scores[: int(EPS * N)], scores[int(EPS * N) :]
    assert np.mean(wrong[:, None] < right[None, :]) > 0.95


@every_mean
@every_data
@pytest.mark.parametrize("seed", range(5))
def test_moving_a_point_to_infinity_along_any_ray_never_raises_its_score(
    name: str, data: str, seed: int
) -> None:
    est, rng = fitted(name, data), np.random.default_rng([33, seed])
    starts = rng.standard_normal((40, D)) * rng.choice([0.1, 1.0, 5.0], (40, 1))
    rays = rng.standard_normal((40, D)) * (rng.random((40, D)) < rng.choice([0.1, 1.0], (40, 1)))
    rays[:, 0] += 1e-3
    rays /= np.linalg.norm(rays, axis=1, keepdims=True)
    before = est.score_samples(starts)
    after = [est.score_samples(starts + t * rays) for t in (1e2, 1e4, 1e8, 1e150)]
    assert np.all(np.array(after) <= before)


@every_mean
@every_data
@pytest.mark.parametrize("seed", range(5))
def test_beyond_the_clean_rows_the_score_falls_all_the_way_out(
    name: str, data: str, seed: int
) -> None:
    est, rng = fitted(name, data), np.random.default_rng([34, seed])
    rays = rng.standard_normal((40, D))
    rays /= np.linalg.norm(rays, axis=1, keepdims=True)
    scores = np.array([est.score_samples(t * rays) for t in np.geomspace(30.0, 1e90, 60)])
    assert np.all(np.diff(scores, axis=0) <= 0.0)


@every_mean
def test_clean_data_is_left_alone_in_most_samples(name: str) -> None:
    # 99 of 100 clean samples score below the upper level; 3 of 10 above it are one in ten thousand.
    touched = sum(make(name).fit(clean(seed)).contamination_ > 0.0 for seed in range(10))
    assert touched <= 2


@every_mean
def test_weights_left_alone_are_uniform(name: str) -> None:
    est = fitted(name, "clean")
    assert est.contamination_ == 0.0
    np.testing.assert_allclose(est.weights_, 1 / N, rtol=1e-9)


@every_mean
def test_the_verdict_of_clean_data_says_so(name: str) -> None:
    assert str(fitted(name, "clean").certificate_).startswith("clean level reached: nothing")


@every_mean
def test_a_budget_too_small_is_not_called_clean(name: str) -> None:
    est = make(name, max_iter=1, contamination=EPS).fit(contaminated())
    assert est.objective_ > est.certificate_.noise_floor.upper
    assert not est.certificate_.verdict.startswith("clean level reached")


@every_mean
def test_the_number_of_iterations_is_the_length_of_the_trace(name: str) -> None:
    est = fitted(name)
    assert est.n_iter_ == len(est.trace_)
