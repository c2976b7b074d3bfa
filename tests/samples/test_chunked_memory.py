"""What a pass over chunked rows brings home is not read again; what follows from it is exact."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from outweigh.protocols import Samples
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
    return ChunkedSamples(SlicedChunks.of(X, budget, (n // 2, n - 1 - n // 2, 1)), X.shape[1])


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


def test_moments_of_the_rows_within_a_radius_come_with_the_distances(X: Array) -> None:
    X[7] = 1e200
    samples = in_chunks(X)
    centre, radius_sq = np.full(D, 0.1), 2.0 * D
    with np.errstate(over="ignore"):
        near = np.sum((X - centre) ** 2, axis=1) <= radius_sq
    found = samples.squared_distances(centre, (radius_sq, reference()))
    np.testing.assert_array_equal(found <= radius_sq, near)
    weights = np.where(near, reference(), 0.0)
    dense = DenseSamples(np.where(near[:, None], X, 0.0))
    np.testing.assert_allclose(
        covariance(samples, weights / weights.sum()),
        covariance(dense, weights / weights.sum()),
        atol=1e-14,
    )
    assert passes(samples) == ["squared distances"]


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
