"""What a pass over chunked rows brings home is not read again; what follows from it is exact."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from outweigh.forms import Form
from outweigh.protocols import Foresight, Samples
from outweigh.samples import ChunkedSamples, DenseSamples
from outweigh.samples.chunks import SlicedChunks

Array = NDArray[np.float64]
Kind = Callable[[Array], Samples]

N, D = 600, 12
ROOM = 2**20


@pytest.fixture(name="X")
def given_rows() -> Array:
    return np.random.default_rng(7).standard_normal((N, D)) + 0.5


def in_chunks(X: Array, budget: int = ROOM) -> ChunkedSamples:
    n = len(X)
    return ChunkedSamples(SlicedChunks(X, (n // 2, n - 1 - n // 2, 1), budget), X.shape[1])


def reference() -> Array:
    return np.full(N, 1.0 / N)


def moved(*rows: int) -> Array:
    """Weights that keep a common multiple of the reference but for some rows."""
    weights = np.ones(N)
    weights[list(rows)] = 0.25
    return weights / weights.sum()


def passes(samples: ChunkedSamples) -> list[str]:
    return samples.chunks.log.passes


def covariance(samples: Samples, weights: Array) -> Array:
    return samples.moment(weights, centred=True).restrict(np.arange(D))


def test_moments_at_changed_weights_follow_from_the_rows_that_changed(X: Array) -> None:
    samples = in_chunks(X)
    covariance(samples, reference())
    weights = moved(3, 310, N - 1)
    found = covariance(samples, weights)
    assert passes(samples) == ["second moments", "3 rows"]
    np.testing.assert_allclose(found, covariance(DenseSamples(X), weights), atol=1e-14)
    np.testing.assert_allclose(samples.mean(weights), weights @ X, atol=1e-14)
    assert samples.typical_kurtosis(weights) == pytest.approx(
        DenseSamples(X).typical_kurtosis(weights), rel=1e-12
    )


def test_rows_at_hand_serve_other_weights_too(X: Array) -> None:
    samples = in_chunks(X)
    covariance(samples, reference())
    covariance(samples, moved(3, 310))
    found = covariance(samples, moved(310))
    assert len(passes(samples)) == 2
    np.testing.assert_allclose(found, covariance(DenseSamples(X), moved(310)), atol=1e-14)
    covariance(samples, moved(310, 400))
    assert passes(samples)[2:] == ["1 rows"]


def test_rows_beyond_the_budget_are_summed_and_not_gathered(X: Array) -> None:
    # Room for the matrix over all pairs and for a few rows.
    samples = in_chunks(X, budget=8 * D * D)
    covariance(samples, reference())
    weights = moved(*range(2 * D))
    found = covariance(samples, weights)
    assert passes(samples) == ["second moments", "second moments"]
    np.testing.assert_allclose(found, covariance(DenseSamples(X), weights), atol=1e-14)


def test_a_difference_that_would_cancel_is_summed_anew(X: Array) -> None:
    X[5] = 1e9
    samples = in_chunks(X)
    covariance(samples, reference())
    weights = np.ones(N) / (N - 1)
    weights[5] = 0.0
    found = covariance(samples, weights)
    assert passes(samples)[-1] == "second moments"
    np.testing.assert_allclose(found, covariance(DenseSamples(X), weights), atol=1e-12)


# Room for the rows that change, or for no more than three matrices.
@pytest.mark.parametrize("budget", [ROOM, 24 * D * D])
def test_moments_foreseen_at_several_weights_take_one_pass(X: Array, budget: int) -> None:
    samples = in_chunks(X, budget)
    covariance(samples, reference())
    wanted = [moved(*range(100, 140)), moved(*range(120, 180))]
    samples.foresee(Foresight(several=lambda: wanted))
    assert len(passes(samples)) == 2
    for weights in wanted:
        found = covariance(samples, weights)
        np.testing.assert_allclose(found, covariance(DenseSamples(X), weights), atol=1e-14)
    assert len(passes(samples)) == 2


def test_nothing_is_read_for_foreseen_weights_that_are_known(X: Array) -> None:
    samples = in_chunks(X)
    samples.foresee(Foresight(several=lambda: [reference()]))
    assert passes(samples) == []


def test_sums_that_would_be_forgotten_are_not_foreseen(X: Array) -> None:
    samples = in_chunks(X, budget=8 * D * D)
    covariance(samples, reference())
    wanted = [moved(*range(100, 140)), moved(*range(120, 180))]
    samples.foresee(Foresight(several=lambda: wanted))
    assert len(passes(samples)) == 1


def test_likely_columns_come_along_with_those_asked_for(X: Array) -> None:
    samples = in_chunks(X)
    samples.foresee(Foresight(columns=np.array([7, 3, 5, 1])))
    samples.columns(np.array([3, 4]))
    found = samples.columns(np.array([4, 5, 7])).mean(reference())
    np.testing.assert_allclose(found, (reference() @ X)[[4, 5, 7]])
    assert len(passes(samples)) == 1
    samples.columns(np.array([1]))
    assert len(passes(samples)) == 2


def test_likely_columns_leave_a_quarter_of_the_room(X: Array) -> None:
    samples = in_chunks(X, budget=8 * N * 2)
    samples.foresee(Foresight(columns=np.arange(D)))
    samples.columns(np.array([10]))
    samples.columns(np.array([0]))
    assert len(passes(samples)) == 2


def test_wanted_rows_come_along_with_the_next_pass(X: Array) -> None:
    X[2] = 1e200
    samples = in_chunks(X)
    wanted = np.array([2, 300, N - 1])
    samples.foresee(Foresight(rows=wanted))
    np.testing.assert_allclose(
        samples.columns(np.array([1])).mean(moved(0)), (moved(0) @ np.clip(X, -1e100, 1e100))[1]
    )
    rows = samples.take_rows(wanted)
    np.testing.assert_array_equal(rows.project(np.eye(D)), np.clip(X[wanted], -1e100, 1e100))
    assert len(passes(samples)) == 1


def test_a_foreseen_form_is_evaluated_along_with_the_distances(X: Array) -> None:
    samples = in_chunks(X, budget=64).without(np.array([4]))
    form = Form.from_directions(np.ones((D, 1)), np.ones(1))
    drift = np.arange(D) / 10.0
    centre = np.ones(D)
    distances = in_chunks(X).squared_distances(centre)
    found = samples.squared_distances(centre, Foresight(form=form, drift=drift))
    zeroed = X.copy()
    zeroed[4] = 0.0
    np.testing.assert_allclose(np.delete(found, 4), np.delete(distances, 4))
    expected = DenseSamples(zeroed).quadratic(form, drift)
    np.testing.assert_allclose(samples.quadratic(form, drift), expected, atol=1e-12)
    assert len(passes(samples)) == 1
    # Another form, or another drift, is not mistaken for it.
    other = samples.quadratic(form, 2.0 * drift)
    np.testing.assert_allclose(other, DenseSamples(zeroed).quadratic(form, 2.0 * drift))
    assert len(passes(samples)) == 2


def test_rescaled_columns_are_divided_by_their_factor(any_kind: Kind) -> None:
    X = np.random.default_rng(8).standard_normal((40, 6))
    factor = np.linspace(0.5, 2.0, 6)
    found = any_kind(X).rescaled(factor)
    weights = np.arange(1.0, 41.0) / 820.0
    np.testing.assert_allclose(found.mean(weights), weights @ (X / factor))
    np.testing.assert_allclose(
        found.moment(weights, centred=True).restrict(np.arange(6)),
        np.cov((X / factor).T, aweights=weights, bias=True),
        atol=1e-14,
    )


def test_what_is_known_is_known_in_other_units_too(X: Array) -> None:
    samples = in_chunks(X)
    covariance(samples, reference())
    covariance(samples, moved(1, 2))
    samples.columns(np.array([0, 3]))
    read = len(passes(samples))
    factor = np.linspace(0.5, 2.0, D)
    rescaled = samples.rescaled(factor)
    dense = DenseSamples(X / factor)
    for weights in (reference(), moved(1, 2), moved(2)):
        np.testing.assert_allclose(
            covariance(rescaled, weights), covariance(dense, weights), atol=1e-13
        )
        assert rescaled.typical_kurtosis(weights) == pytest.approx(
            dense.typical_kurtosis(weights), rel=1e-12
        )
    np.testing.assert_allclose(
        rescaled.columns(np.array([0, 3])).mean(reference()), (reference() @ dense.array)[[0, 3]]
    )
    assert len(passes(rescaled)) == read
