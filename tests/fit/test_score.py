"""The score of a row: what it would have lost in the fit, and how far out it is."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from outweigh.fit.cuts import Cut

from outweigh.fit.noise import Noise, Standardizer, first_look
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


def moved(noise: Noise, X: Array, cut: bool = True) -> Weights:
    """Return weights pushed down along the first feature, beyond a cut where asked."""
    force = Form.from_directions(np.eye(D)[:, :1], np.array([0.2 / N]))
    drift = np.zeros(D)
    values = np.ones(N)
    values[:20] = 0.0
    values[noise.pruned] = 0.0
    cuts = (Cut(np.eye(D)[0], 0.0, 1.0, 3.0),) if cut else ()
    beyond = cuts[0].excess(X[:, 0]) if cut else np.zeros(1)
    pushed = noise.samples.quadratic(force, drift)
    return Weights(values / values.sum(), force, drift, pushed, cuts, beyond)


@pytest.mark.parametrize("far", [False, True])
@pytest.mark.parametrize("cut", [False, True])
def test_rows_of_the_fit_score_as_new_rows_do(far: bool, cut: bool) -> None:
    X = rows(far)
    noise = noise_of(X)
    assert noise.pruned.size == 20 * far
    score, scores = score_rows(noise, moved(noise, X, cut), TUNING.cut_pull)
    np.testing.assert_allclose(score(X), scores, rtol=1e-9)


def test_rows_that_lost_their_weight_score_below_all_others() -> None:
    X = rows()
    noise = noise_of(X)
    _, scores = score_rows(noise, moved(noise, X), TUNING.cut_pull)
    assert scores[:20].max() < scores[20:].min()


def test_scores_are_at_most_zero() -> None:
    X = rows(far=True)
    noise = noise_of(X)
    assert np.all(score_rows(noise, moved(noise, X), TUNING.cut_pull)[1] <= 0.0)


@pytest.mark.parametrize("axis", range(D))
def test_no_row_gains_by_going_far_away(axis: int) -> None:
    X = rows()
    noise = noise_of(X)
    score, _ = score_rows(noise, moved(noise, X), TUNING.cut_pull)
    ray = np.linspace(0.0, 50.0, 200)[:, None] * np.eye(D)[axis]
    beyond = score(ray)[np.sum(ray**2, axis=1) > noise.radius_sq]
    assert np.all(np.diff(beyond) < 0.0)
    assert beyond[-1] < score(X[20:]).min()


def test_untouched_weights_order_rows_by_their_distance() -> None:
    X = rows()
    noise = noise_of(X)
    weights = Weights.untouched(np.full(N, 1.0 / N), D)
    _, scores = score_rows(noise, weights, TUNING.cut_pull)
    distance = np.sum((X - noise.anchor) ** 2, axis=1)
    np.testing.assert_array_equal(np.argsort(-scores), np.argsort(distance))


def test_a_row_that_lost_half_of_its_weight_is_at_the_middle_of_the_first_term() -> None:
    # A force of t/total takes the share t of a row's weight; the term is log 2 at a half.
    standardizer = Standardizer(np.arange(1), np.zeros(1), np.ones(1))
    form = Form.from_directions(np.ones((1, 1)), np.array([0.5 / 100.0]))
    score = RowScore(
        standardizer, np.zeros(1), np.zeros(1), 1e12, form, np.zeros(1), 0.0, 100.0, (), 5.0
    )
    found = -score.of_samples(DenseSamples(np.ones((1, 1))))
    assert found[0] == pytest.approx(np.log(2.0), abs=0.01)


@pytest.mark.parametrize("cut", [False, True])
def test_the_feature_that_pushed_a_row_out_counts_against_it(cut: bool) -> None:
    X = rows()
    noise = noise_of(X)
    score, _ = score_rows(noise, moved(noise, X, cut), TUNING.cut_pull)
    contributions, away = score.contributions(X[:20])
    assert np.all(np.argmax(contributions, axis=1) == 0)
    assert np.all(contributions >= 0.0)
    assert np.all(contributions.max(axis=1) > 0.0)
    np.testing.assert_allclose(away, X[:20] - score.centre, atol=1e-12)
