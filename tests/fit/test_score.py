"""The score of a row: what it would have lost in the fit, and how far out it is."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from outweigh.fit.noise import Noise, Standardizer, first_look
from outweigh.fit.posterior import Group
from outweigh.fit.score import RowScore, score_rows
from outweigh.fit.search import Weights
from outweigh.fit.tuning import TUNING
from outweigh.forms import Form
from outweigh.samples import ArrayRows, DenseSamples

Array = NDArray[np.float64]
N, D = 400, 6


def noise_of(X: Array) -> Noise:
    return first_look(ArrayRows(X), np.ones(len(X)), None, None, 0.2, TUNING)


def rows(far: bool = False) -> Array:
    X = np.random.default_rng(0).standard_normal((N, D))
    X[:20, 0] += 6.0
    if far:
        X[380:] += 1e5
    return X


def group_at_six() -> Group:
    """Return the laws of the rows along the first feature."""
    one = np.ones(1)
    return Group(np.eye(D)[0], 0.0, 1.0, np.inf, 6.0 * one, one, 20.0 / N * one)


def moved(noise: Noise, X: Array, grouped: bool = True) -> Weights:
    """Return weights pushed down along the first feature, by a group of rows where asked."""
    force = Form.from_directions(np.eye(D)[:, :1], np.array([0.2 / N]))
    drift = np.zeros(D)
    values = np.ones(N)
    values[:20] = 0.0
    values[noise.pruned] = 0.0
    groups = (group_at_six(),) if grouped else ()
    wrong = groups[0].wrong(X[:, 0]) if grouped else np.zeros(1)
    pushed = noise.samples.quadratic(force, drift)
    return Weights(values / values.sum(), force, drift, pushed, groups, wrong)


@pytest.mark.parametrize("far", [False, True])
@pytest.mark.parametrize("grouped", [False, True])
def test_rows_of_the_fit_score_as_new_rows_do(far: bool, grouped: bool) -> None:
    X = rows(far)
    noise = noise_of(X)
    assert noise.pruned.size >= 20 * far
    score, scores = score_rows(noise, moved(noise, X, grouped))
    np.testing.assert_allclose(score(X), scores, rtol=1e-9)


def test_rows_that_lost_their_weight_score_below_all_others() -> None:
    X = rows()
    noise = noise_of(X)
    _, scores = score_rows(noise, moved(noise, X))
    assert scores[:20].max() < scores[20:].min()


def test_scores_are_at_most_zero() -> None:
    X = rows(far=True)
    noise = noise_of(X)
    assert np.all(score_rows(noise, moved(noise, X))[1] <= 0.0)


@pytest.mark.parametrize("axis", range(D))
def test_no_row_gains_by_going_far_away(axis: int) -> None:
    X = rows()
    noise = noise_of(X)
    score, _ = score_rows(noise, moved(noise, X))
    ray = np.linspace(0.0, 50.0, 200)[:, None] * np.eye(D)[axis]
    beyond = score(ray)[np.sum(ray**2, axis=1) > noise.radius_sq]
    assert np.all(np.diff(beyond) < 0.0)
    assert beyond[-1] < score(X[20:]).min()


def test_untouched_weights_order_rows_by_their_distance() -> None:
    X = rows()
    noise = noise_of(X)
    weights = Weights.untouched(np.full(N, 1.0 / N), D)
    _, scores = score_rows(noise, weights)
    distance = np.sum((X - noise.anchor) ** 2, axis=1)
    np.testing.assert_array_equal(np.argsort(-scores), np.argsort(distance))


def test_a_row_that_lost_half_of_its_weight_is_at_the_middle_of_the_first_term() -> None:
    # A force of t/total takes the share t of a row's weight; the term is log 2 at a half.
    standardizer = Standardizer(np.arange(1), np.zeros(1), np.ones(1))
    form = Form.from_directions(np.ones((1, 1)), np.array([0.5 / 100.0]))
    score = RowScore(
        standardizer, np.zeros(1), np.zeros(1), 1e12, form, np.zeros(1), 0.0, 100.0, ()
    )
    found = -score.of_samples(DenseSamples(np.ones((1, 1))))
    assert found[0] == pytest.approx(np.log(2.0), abs=0.01)


@pytest.mark.parametrize("grouped", [False, True])
def test_the_feature_that_pushed_a_row_out_counts_against_it(grouped: bool) -> None:
    X = rows()
    noise = noise_of(X)
    score, _ = score_rows(noise, moved(noise, X, grouped))
    contributions, away = score.contributions(X[:20])
    assert np.all(np.argmax(contributions, axis=1) == 0)
    assert np.all(contributions >= 0.0)
    assert np.all(contributions.max(axis=1) > 0.0)
    np.testing.assert_allclose(away, X[:20] - score.centre, atol=1e-12)
