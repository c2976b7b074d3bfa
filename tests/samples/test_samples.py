"""Samples of every kind reduce their rows to what the definitions say."""

from __future__ import annotations

from collections.abc import Callable

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from outweigh.forms import Form
from outweigh.norms import RowwiseLargest
from outweigh.norms.entrywise import hard_threshold
from outweigh.protocols import Samples
from outweigh.samples import DenseSamples
from tests.reference import moments as brute

Array = NDArray[np.float64]
Kind = Callable[[Array], Samples]

N, D = 23, 6


@pytest.fixture(scope="module", name="X")
def rows() -> Array:
    return np.random.default_rng(0).standard_normal((N, D)) + 0.5


@pytest.fixture(scope="module", params=["uniform", "unequal", "with zeros", "mostly zeros"])
def weights(request: pytest.FixtureRequest) -> Array:
    w = {
        "uniform": np.ones(N),
        "unequal": np.random.default_rng(1).uniform(0.5, 2.0, N),
        "with zeros": np.arange(N) % 3 * 1.0,
        "mostly zeros": np.where(np.arange(N) % 6 == 0, 1.0, 0.0),
    }[request.param]
    return np.asarray(w / w.sum())


every_reference = pytest.mark.parametrize("reference", [0.0, 0.7])
both = pytest.mark.parametrize("centred", [True, False], ids=["centred", "uncentred"])


def test_samples_know_their_shape(any_kind: Kind, X: Array) -> None:
    samples = any_kind(X)
    assert (samples.n_samples, samples.n_features) == X.shape


def test_the_mean_is_the_weighted_sum_of_rows(any_kind: Kind, X: Array, weights: Array) -> None:
    np.testing.assert_allclose(any_kind(X).mean(weights), brute.mean(X, weights), atol=1e-12)


def test_means_of_several_weights_are_those_of_each(any_kind: Kind, X: Array) -> None:
    several = np.random.default_rng(2).uniform(-1.0, 2.0, (3, N))
    np.testing.assert_allclose(any_kind(X).mean(several), several @ X, atol=1e-12)


def test_a_mean_follows_its_weights_and_may_be_written_to(samples_of: Kind, X: Array) -> None:
    samples, weights = samples_of(X), np.full(N, 1.0 / N)
    samples.mean(weights)[:] = np.nan
    np.testing.assert_allclose(samples.mean(weights), brute.mean(X, weights), atol=1e-12)
    weights[0], weights[1] = 0.0, 2.0 / N
    np.testing.assert_allclose(samples.mean(weights), brute.mean(X, weights), atol=1e-12)


@both
@every_reference
def test_the_moment_is_the_definition(
    any_kind: Kind, X: Array, weights: Array, centred: bool, reference: float
) -> None:
    moment = any_kind(X).moment(weights, centred=centred, reference=reference)
    expected = brute.deviation(X, weights, centred=centred, reference=reference)
    np.testing.assert_allclose(moment.restrict(np.arange(D)), expected, atol=1e-12)


@both
@every_reference
def test_blocks_put_together_are_the_moment(
    any_kind: Kind, X: Array, weights: Array, centred: bool, reference: float
) -> None:
    moment = any_kind(X).moment(weights, centred=centred, reference=reference)
    blocks = list(moment.blocks())
    starts = np.cumsum([0] + [len(block) for _, _, block in blocks])[:-1]
    assert [(row, column) for row, column, _ in blocks] == [(start, 0) for start in starts]
    expected = brute.deviation(X, weights, centred=centred, reference=reference)
    np.testing.assert_allclose(np.vstack([b for _, _, b in blocks]), expected, atol=1e-12)


@both
@every_reference
@pytest.mark.parametrize("shape", [(D,), (D, 2)], ids=str)
def test_products_with_the_moment_are_those_of_the_definition(
    any_kind: Kind,
    X: Array,
    weights: Array,
    centred: bool,
    reference: float,
    shape: tuple[int, ...],
) -> None:
    V = np.random.default_rng(2).standard_normal(shape)
    moment = any_kind(X).moment(weights, centred=centred, reference=reference)
    expected = brute.deviation(X, weights, centred=centred, reference=reference) @ V
    np.testing.assert_allclose(moment.product(V), expected, atol=1e-12)


@both
def test_single_precision_is_good_to_a_millionth_of_the_largest_entry(
    X: Array, weights: Array, centred: bool
) -> None:
    exact = brute.deviation(X, weights, centred=centred)
    mean = brute.mean(X, weights) if centred else None
    moment = DenseSamples(X).rounded_moment(weights, mean, 1.0)
    found = moment.restrict(np.arange(D))
    np.testing.assert_allclose(found, exact, atol=2e-6 * np.abs(exact).max() + 1e-6)


def test_a_quadratic_form_is_evaluated_at_every_row(any_kind: Kind, X: Array) -> None:
    rng = np.random.default_rng(3)
    form = Form.from_entries(D, np.array([0, 4]), np.array([1, 4]), rng.standard_normal(2))
    form = form + Form.from_directions(rng.standard_normal((D, 2)), np.array([1.0, -2.0]))
    expected = [x @ form.to_array() @ x for x in X]
    np.testing.assert_allclose(any_kind(X).quadratic(form), expected, atol=1e-12)


# As a product of matrices, and entry by entry.
@pytest.mark.parametrize("count", [40, 80])
def test_a_scattered_form_in_many_features_is_evaluated_at_every_row(
    any_kind: Kind, count: int
) -> None:
    X = np.random.default_rng(4).standard_normal((9, 2 * count))
    rows, cols = np.arange(count), np.arange(count) + count
    form = Form.from_entries(2 * count, rows, cols, np.linspace(-1, 1, count))
    expected = [x @ form.to_array() @ x for x in X]
    np.testing.assert_allclose(any_kind(X).quadratic(form), expected, atol=1e-12)


def test_a_projection_is_the_product_with_the_rows(any_kind: Kind, X: Array) -> None:
    V = np.random.default_rng(5).standard_normal((D, 3))
    np.testing.assert_allclose(any_kind(X).project(V), X @ V, atol=1e-12)


def test_columns_are_the_same_rows_on_fewer_features(
    any_kind: Kind, X: Array, weights: Array
) -> None:
    chosen = np.array([4, 0, 3])
    expected = brute.mean(X[:, chosen], weights)
    found = any_kind(X).columns(chosen).mean(weights)
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_distances_are_squared_and_from_the_centre(any_kind: Kind, X: Array) -> None:
    centre = np.arange(D) * 0.1
    expected = [np.sum((x - centre) ** 2) for x in X]
    np.testing.assert_allclose(any_kind(X).squared_distances(centre), expected, rtol=1e-12)


def test_variances_are_the_diagonal_of_the_covariance(
    any_kind: Kind, X: Array, weights: Array
) -> None:
    expected = np.diagonal(brute.covariance(X, weights))
    np.testing.assert_allclose(any_kind(X).variances(weights), expected, atol=1e-12)


def test_variances_survive_an_origin_far_away(any_kind: Kind, X: Array, weights: Array) -> None:
    expected = np.diagonal(brute.covariance(X, weights))
    found = any_kind(X + 1e6).variances(weights)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_the_typical_kurtosis_is_the_median_over_columns(any_kind: Kind, X: Array) -> None:
    w = np.full(N, 1 / N)
    moments = [(np.mean((c - c.mean()) ** 4), np.mean((c - c.mean()) ** 2)) for c in X.T]
    expected = np.median([fourth / second**2 for fourth, second in moments])
    assert any_kind(X).typical_kurtosis(w) == pytest.approx(expected, rel=1e-9)


def test_the_typical_kurtosis_of_many_rows_does_not_depend_on_their_order(
    any_kind: Kind,
) -> None:
    rng = np.random.default_rng(6)
    X = rng.standard_normal((9000, 3))
    X[1::2] = rng.laplace(scale=np.sqrt(0.5), size=X[1::2].shape)
    w = np.full(len(X), 1 / len(X))
    shuffled = any_kind(X[rng.permutation(len(X))]).typical_kurtosis(w)
    assert any_kind(X).typical_kurtosis(w) == pytest.approx(shuffled, rel=0.05)


@st.composite
def mixtures(draw: st.DrawFn) -> tuple[Array, Array, Array, float]:
    n, d = draw(st.integers(2, 8)), draw(st.integers(1, 4))
    X = draw(hnp.arrays(np.float64, (n, d), elements=st.floats(-10, 10, width=32)))
    v, w = (
        draw(hnp.arrays(np.float64, n, elements=st.floats(0.0, 1.0, width=32))) for _ in range(2)
    )
    v[0] += 0.1
    w[-1] += 0.1
    return X, v / v.sum(), w / w.sum(), draw(st.floats(0.0, 1.0))


@given(case=mixtures())
def test_the_covariance_of_mixed_weights_is_the_mixture_formula(
    any_kind: Kind, case: tuple[Array, Array, Array, float]
) -> None:
    X, v, w, alpha = case
    samples = any_kind(X)
    every = np.arange(X.shape[1])

    def covariance(weights: Array) -> Array:
        return samples.moment(weights, centred=True).restrict(every)

    gap = samples.mean(v) - samples.mean(w)
    mixed = (
        alpha * covariance(v)
        + (1 - alpha) * covariance(w)
        + alpha * (1 - alpha) * np.outer(gap, gap)
    )
    np.testing.assert_allclose(covariance(alpha * v + (1 - alpha) * w), mixed, atol=1e-10)


@st.composite
def corrupted(draw: st.DrawFn) -> tuple[Array, int, Array, int]:
    """Draw rows, how many of them (the first) are wrong, a point of D, and a sparsity."""
    n, d = draw(st.sampled_from([8, 10, 12])), draw(st.integers(1, 4))
    wrong = draw(st.integers(1, n // 4))
    X = draw(hnp.arrays(np.float64, (n, d), elements=st.floats(-3, 3, width=32)))
    X[:wrong] *= draw(st.sampled_from([1.0, 3.0, 30.0]))
    raw = draw(hnp.arrays(np.float64, n, elements=st.floats(0.0, 1.0, width=32)))
    raw[:wrong] += 1e-3
    w = raw / raw.sum()
    cap = 1.0 / (n - wrong)
    for _ in range(100):
        over = w > cap
        excess = np.sum(w[over] - cap)
        w[over] = cap
        w[~over] += excess * (cap - w[~over]) / max(np.sum(cap - w[~over]), 1e-300)
    return X, wrong, w, draw(st.integers(1, d))


@given(case=corrupted())
def test_the_cross_term_is_at_most_four_eps_of_the_objective_on_stable_samples(
    any_kind: Kind, case: tuple[Array, int, Array, int]
) -> None:
    # delta is the least for which the good rows are stable at these weights. With eps <= 1/4 and
    # delta >= eps the proof's constant in O(delta^2 / eps) is 4 + 1 + 4/3.
    X, wrong, w, k = case
    n = len(X)
    eps = wrong / n
    samples, norm = any_kind(X), RowwiseLargest(k)

    def excess(weights: Array) -> float:
        return norm.maximize(samples.moment(weights, centred=True, reference=1.0)).value

    good = np.where(np.arange(n) >= wrong, w, 0.0)
    good /= good.sum()
    star = np.where(np.arange(n) >= wrong, 1.0 / (n - wrong), 0.0)
    gap_of_good = np.linalg.norm(hard_threshold(samples.mean(star) - samples.mean(good), k))
    delta_sq = max(eps**2, eps * excess(good), (gap_of_good / 2.0) ** 2)
    gap = samples.mean(w) - samples.mean(star)
    bound = 4.0 * eps * (excess(w) + (5.0 + 4.0 / 3.0) * delta_sq / eps)
    assert np.sum(hard_threshold(gap, k) ** 2) <= bound * (1 + 1e-9) + 1e-12
