"""The score of a row: what it would have lost in the fit, and how far out it is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from outweigh.fit.elliptical import Cloud
from outweigh.fit.law import GAUSSIAN
from outweigh.fit.marginals import Marginals, Reach
from outweigh.fit.mixture import Group
from outweigh.fit.noise import Noise, Standardizer, first_look
from outweigh.fit.scatter import Scatter
from outweigh.fit.score import HALF_LOST, EllipticalScore, RowScore, score_rows
from outweigh.fit.search import Weights
from outweigh.fit.tuning import TUNING
from outweigh.forms import Form
from outweigh.samples import ArrayRows, DenseSamples

Array = NDArray[np.float64]
N, D = 400, 6


def noise_of(X: Array) -> Noise:
    return first_look(ArrayRows(X), np.ones(len(X)), None, None, 0.2)


def rows(far: bool = False) -> Array:
    X = np.random.default_rng(0).standard_normal((N, D))
    X[:20, 0] += 6.0
    if far:
        X[380:] += 1e5
    return X


def group_at_six() -> Group:
    """Return the laws of the rows along the first feature."""
    one = np.ones(1)
    return Group(np.eye(D)[0], 0.0, 1.0, GAUSSIAN, 6.0 * one, one, 20.0 / N * one)


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


def test_the_level_of_the_force_is_that_on_a_typical_row_that_is_kept() -> None:
    X = rows()
    noise = noise_of(X)
    weights = moved(noise, X)
    score, _ = score_rows(noise, weights)
    kept = weights.pushed[weights.values > 0.0]
    assert score.level == np.quantile(kept, 0.5, method="inverted_cdf") > 0.0


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
    # By a term that no other rounds off: 1e-3 log(1 + squared distance in units of the radius).
    near = np.argsort(distance)[: N // 2]
    order = 1e-3 * np.log1p(distance[near] / noise.radius_sq)
    rest = -scores[near] - order
    assert np.ptp(rest) < 1e-2 * np.ptp(order)


def test_a_row_that_lost_half_of_its_weight_is_at_the_middle_of_the_first_term() -> None:
    # A force of t/total takes the share t of a row's weight; the term is log 2 at a half.
    standardizer = Standardizer(np.arange(1), np.zeros(1), np.ones(1))
    form = Form.from_directions(np.ones((1, 1)), np.array([0.5 / 100.0]))
    score = RowScore(
        standardizer, np.zeros(1), np.zeros(1), 1e12, form, np.zeros(1), 0.0, 100.0, ()
    )
    found = -score.of_samples(DenseSamples(np.ones((1, 1))))
    assert found[0] == pytest.approx(np.log(2.0), abs=0.01)
    assert pytest.approx(-np.log(2.0)) == HALF_LOST


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


def sigmoid(t: float) -> float:
    return float(1.0 / (1.0 + np.exp(-t)))


@pytest.mark.parametrize("grouped", [False, True])
def test_contributions_are_the_formula_row_by_row_and_feature_by_feature(grouped: bool) -> None:
    rng = np.random.default_rng(4)
    F, b = rng.standard_normal((D, D)) / N, rng.standard_normal(D) / N
    values, vectors = np.linalg.eigh((F + F.T) / 2.0)
    direction = np.array([0.8, 0.6, 0.0, 0.0, 0.0, 0.0])
    two = np.array([4.0, 6.0]), np.ones(2), np.array([0.05, 0.1])
    groups = (Group(direction, 0.5, 1.0, GAUSSIAN, *two),) if grouped else ()
    c, anchor, radius_sq, level = rng.standard_normal(D), rng.standard_normal(D), 9.0, 0.3 / N
    score = RowScore(
        Standardizer(np.arange(D), np.zeros(D), np.ones(D)),
        *(c, anchor, radius_sq, Form.from_directions(vectors, values), b, level, float(N), groups),
    )
    X = 2.0 * rng.standard_normal((30, D))
    # One belongs to the group, though hardly beyond the centre along its direction.
    c += (3.6 - c @ direction) * direction
    X[-2] = c + 0.3 * direction
    # The last is at the centre: nothing speaks against it, and its parts are as good as equal.
    X[-1] = c
    found, away = score.contributions(X)
    S = (F + F.T) / 2.0
    for x, parts, y in zip(X, found, away, strict=True):
        np.testing.assert_allclose(y, x - c, atol=1e-12)
        by_distance = 20.0 * (np.sum((x - anchor) ** 2) / radius_sq - 1.0)
        lost, wrong = N * y * (S @ y + 2.0 * S @ c - b), 0.0
        for group in groups:
            p = x @ direction
            odds = np.exp(group.log_odds(np.array([p]))[0])
            wrong = float(group.wrong(np.array([p]))[0])
            toward = np.maximum(np.sign(p - 0.5) * direction * y, 0.0)
            lost = lost + np.log1p(odds) * toward / max(toward.sum(), 1e-300)
        by_loss = 3.0 * (wrong + N * (x @ S @ x - b @ x - level) - 0.5)
        own = y**2 / (y**2 + 0.05 * max(float((y**2).max()), 1e-300))
        expected = 20.0 / radius_sq * sigmoid(by_distance) * np.maximum(y**2 - 1.0, 0.0)
        expected = expected + 3.0 * sigmoid(by_loss) * np.maximum(lost, 0.0) * own
        if expected.sum() > 0.0:
            np.testing.assert_allclose(parts, expected, rtol=1e-9, atol=1e-12)
        else:
            assert (parts > 0.0).all()


def elliptical(n: int, grouped: bool) -> tuple[EllipticalScore, Array]:
    """Return the score of correlated rows, fewer than columns or more, and the rows."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((n, 4)) @ rng.standard_normal((4, D)) + rng.standard_normal((n, D))
    columns = np.array([0, 1, 3, 4, 5])
    marginals = Marginals(*np.array([[0.1] * 5, [1.5] * 5, [0.0] * 5, [0.0] * 5, [1.0] * 5]))
    Z = marginals.apply(X[:, columns])
    basis = np.linalg.qr(Z.T)[0].T if n < 5 else None
    inside = Z if basis is None else Z @ basis.T
    scatter = Scatter.of(inside, np.ones(n), 5, shrink=n < 5)
    u = np.eye(inside.shape[1])[0]
    laws = np.array([2.0, 8.0]), np.array([0.5, 0.5]), np.array([0.2, 0.1])
    group = Group(u, 5.0, 1.0, GAUSSIAN, *laws)
    standardizer = Standardizer(np.arange(D), np.zeros(D), np.ones(D))
    # One stands apart, and a wider one beside it may be genuine.
    doubted = replace(group, centres=group.centres / 2.0, spreads=2.0 * group.spreads)
    groups = ((group,), (doubted,)) if grouped else ((), ())
    none = Reach(np.empty(0, dtype=np.intp), np.empty(0), np.empty(0))
    cloud = Cloud(columns, marginals, basis, scatter, 7.0, *groups, none)
    return EllipticalScore(standardizer, cloud), X


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("n", [3, 200])
def test_a_score_of_correlated_rows_is_what_speaks_most_against_them(n: int, grouped: bool) -> None:
    score, X = elliptical(n, grouped)
    new = np.vstack([X, X + 3.0, 1e-3 * X])
    cloud, S = score.cloud, score.cloud.scatter
    P = S.whitener @ S.whitener.T
    clean, scores = score.clean(new), score(new)
    parts, deviations = score.contributions(new)
    for x, found, chance_of_clean, part, away in zip(
        new, scores, clean, parts, deviations, strict=True
    ):
        z = cloud.marginals.apply(x[None, cloud.columns])[0]
        beyond = 0.0
        if cloud.basis is not None:
            inside = cloud.basis @ z
            beyond, z = float(z @ z - inside @ inside), inside
        y = z - S.mean
        squared = y @ P @ y + (beyond if beyond > 1e-8 else 0.0) / S.outside
        chance = float(cloud.groups[0].wrong(z[:1])[0]) if grouped else 0.0
        maybe = float(cloud.doubted[0].wrong(z[:1])[0]) if grouped else 0.0
        assert found == pytest.approx(-max(squared / 7.0, 2.0 * chance, maybe), rel=1e-6)
        far = found < -1.0 and chance < 0.5
        assert chance_of_clean == pytest.approx(0.0 if far else 1.0 - chance, abs=1e-9)
        # Toward the first of the group's laws, at 2, from the centre at 5.
        pulled = -np.eye(z.size)[0] if chance > 0.5 else P @ y
        if cloud.basis is not None:
            y, pulled = cloud.basis.T @ y, cloud.basis.T @ pulled
        np.testing.assert_allclose(part[cloud.columns], np.maximum(y * pulled, 0.0), atol=1e-8)
        np.testing.assert_allclose(away[cloud.columns], y, atol=1e-10)
        assert (part[cloud.columns] > 0.0).all()
        assert part[2] == away[2] == 0.0


def test_what_is_foretold_stands_in_the_columns_judged_and_nothing_in_the_others() -> None:
    score, X = elliptical(200, grouped=False)
    found = score.foretold(X)
    np.testing.assert_array_equal(found[:, score.cloud.columns], score.cloud.foretold(X))
    assert np.isnan(found[:, 2]).all()


def test_values_beyond_the_reach_of_a_column_count_by_how_far_they_are() -> None:
    score, X = elliptical(200, grouped=False)
    reach = Reach(np.array([2]), np.array([1.0]), np.array([2.0]))
    score = replace(score, cloud=replace(score.cloud, reach=reach))
    near = X[np.argmax(score(X))]
    new = np.tile(near, (4, 1))
    # 0.25, 1.5, 4 and 1.1 radii from the middle, on both sides.
    new[:, 2] = 0.5, 4.0, -7.0, -1.2
    np.testing.assert_allclose(score(new)[1:], [-1.5, -4.0, -1.1])
    parts, away = score.contributions(new)
    np.testing.assert_allclose(parts[:, 2], [0.0, 7.0 * 1.5, 7.0 * 4.0, 7.0 * 1.1])
    far = TUNING.far
    np.testing.assert_allclose(away[:, 2], [-0.25 * far, 1.5 * far, -4.0 * far, -1.1 * far])
