"""A cut trims outliers along one direction, and clean rows symmetrically."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from outweigh.fit.cuts import Cut, cut_along_removed, weighted_quantile

from outweigh.fit.tuning import TUNING
from outweigh.optimise.capped_simplex import CappedSimplex
from outweigh.protocols import Samples
from outweigh.samples import DenseSamples

Array = NDArray[np.float64]
Kind = Callable[[Array], Samples]

N, D, EPS = 1000, 20, 0.2
both = pytest.mark.parametrize("sparse", [True, False], ids=["sparse", "dense"])


def cut(
    samples: Samples, domain: CappedSimplex, w: Array, sparse: bool
) -> tuple[Array, tuple[Cut, ...]]:
    return cut_along_removed(samples, domain, w, sparse, TUNING)[:2]


def partly_cleaned(seed: int) -> tuple[Array, CappedSimplex, Array]:
    """Return rows of which the first tenth is wrong, D, and weights that removed half of those."""
    X = np.random.default_rng(seed).standard_normal((N, D))
    X[:100, :3] += 3.0
    domain = CappedSimplex.from_contamination(N, EPS)
    w = np.ones(N)
    w[:50] = 0.0
    return X, domain, w / w.sum()


@both
@pytest.mark.parametrize("seed", range(3))
def test_weights_stay_in_the_set(samples_of: Kind, sparse: bool, seed: int) -> None:
    X, domain, w = partly_cleaned(seed)
    assert domain.contains(cut(samples_of(X), domain, w, sparse)[0], atol=1e-9)


@both
@pytest.mark.parametrize("seed", range(3))
def test_outliers_left_by_the_descent_are_removed(
    samples_of: Kind, sparse: bool, seed: int
) -> None:
    X, domain, w = partly_cleaned(seed)
    found, _ = cut(samples_of(X), domain, w, sparse)
    assert found[:100].sum() < 0.25 * w[:100].sum()


@both
def test_the_mean_of_symmetric_clean_rows_is_not_moved_on_average(
    samples_of: Kind, sparse: bool
) -> None:
    # Clean rows after the descent took a twentieth of them from one side at random. The weighted
    # mean of n rows has noise 1/sqrt(n) in each feature; over 40 samples a bias shows at a sixth.
    moves = []
    for seed in range(40):
        X, domain, w = partly_cleaned(seed)
        found, cuts = cut(samples_of(X), domain, w, sparse)
        assert cuts
        clean = np.arange(N) >= 100
        before, after = (v * clean / (v @ clean) @ X for v in (w, found))
        moves.append((after - before)[:3].mean())
    noise = np.std(moves) / np.sqrt(len(moves))
    assert abs(np.mean(moves)) <= 4.0 * noise


@both
def test_mirrored_rows_keep_their_mean_to_rounding(samples_of: Kind, sparse: bool) -> None:
    half = np.random.default_rng(3).standard_normal((500, D))
    X = np.vstack([half, -half, np.full((100, D), 3.0)])
    domain = CappedSimplex.from_contamination(len(X), EPS)
    w = np.ones(len(X))
    w[1000:] = 0.0
    found, cuts = cut(samples_of(X), domain, w / w.sum(), sparse)
    assert cuts
    np.testing.assert_allclose(found @ X, 0.0, atol=2e-3)


@both
def test_uniform_weights_point_nowhere(samples_of: Kind, sparse: bool) -> None:
    X, domain, _ = partly_cleaned(0)
    uniform = domain.reference()
    found, cuts = cut(samples_of(X), domain, uniform, sparse)
    assert cuts == ()
    np.testing.assert_allclose(found, uniform, rtol=1e-12)


@both
def test_rows_removed_at_random_point_nowhere_in_most_samples(
    samples_of: Kind, sparse: bool
) -> None:
    found = 0
    for seed in range(20):
        X = np.random.default_rng([7, seed]).standard_normal((N, D))
        domain = CappedSimplex.from_contamination(N, EPS)
        w = np.where(np.arange(N) < 50, 0.0, 1.0 / 950)
        found += bool(cut(samples_of(X), domain, w, sparse)[1])
    assert found <= 10


@both
def test_integer_sample_weights_act_as_repeated_rows_do(samples_of: Kind, sparse: bool) -> None:
    X, _, w = partly_cleaned(1)
    repeats = 1 + np.arange(N) % 2
    weighted = CappedSimplex.from_contamination(repeats.astype(float), EPS)
    repeated = CappedSimplex.from_contamination(int(repeats.sum()), EPS)
    start = w * repeats / (w @ repeats)
    copied = np.repeat(start / repeats, repeats)
    by_weight, _ = cut(samples_of(X), weighted, start, sparse)
    rows = samples_of(np.repeat(X, repeats, axis=0))
    by_rows, _ = cut(rows, repeated, copied, sparse)
    np.testing.assert_allclose(np.repeat(by_weight / repeats, repeats), by_rows, atol=1e-10)


def test_a_cut_counts_both_sides_alike() -> None:
    slab = Cut(np.array([1.0]), centre=2.0, spread=0.5, limit=3.0)
    np.testing.assert_allclose(slab.excess(np.array([4.0, 0.0, 2.0])), [1.0, 1.0, 0.0])


def test_a_cut_along_a_lifted_direction_is_the_same_slab() -> None:
    slab = Cut(np.array([1.0]), centre=2.0, spread=0.5, limit=3.0)
    lifted = slab.along(np.array([0.0, 1.0]))
    assert (lifted.centre, lifted.spread, lifted.limit) == (2.0, 0.5, 3.0)
    assert lifted.direction.tolist() == [0.0, 1.0]


@both
def test_how_far_rows_are_beyond_is_the_sum_over_the_cuts(sparse: bool) -> None:
    X, domain, w = partly_cleaned(0)
    _, cuts, beyond = cut_along_removed(DenseSamples(X), domain, w, sparse, TUNING)
    expected = sum(slab.excess(X @ slab.direction) for slab in cuts)
    assert np.median(beyond[:100]) > 0.0
    np.testing.assert_allclose(beyond, expected, rtol=1e-12)


@both
def test_limits_stay_between_the_nearest_and_the_farthest(sparse: bool) -> None:
    X, domain, w = partly_cleaned(0)
    for size in (0.5, 1.0, 30.0):
        for slab in cut(DenseSamples(X * np.where(np.arange(D) < 3, size, 1.0)), domain, w, sparse)[
            1
        ]:
            assert TUNING.nearest_cut <= slab.limit <= TUNING.farthest_cut


def test_without_rounds_nothing_is_cut() -> None:
    X, domain, w = partly_cleaned(0)
    none = replace(TUNING, cut_rounds=0)
    found, cuts, beyond = cut_along_removed(DenseSamples(X), domain, w, True, none)
    assert cuts == ()
    assert not beyond.any()
    np.testing.assert_allclose(found, w, atol=1e-15)


def test_features_without_a_significant_difference_are_left_out_of_a_sparse_cut() -> None:
    X, domain, w = partly_cleaned(0)
    # The largest of 20 Gaussians hardly exceeds sqrt(2 log 20) = 2.4; the first three do.
    (first, *_) = cut(DenseSamples(X), domain, w, True)[1]
    assert np.all(first.direction[:3] > 0.4)
    assert np.count_nonzero(first.direction) <= 5


@given(
    values=hnp.arrays(np.float64, st.integers(1, 10), elements=st.integers(-3, 3).map(float)),
    data=st.data(),
)
def test_a_weighted_quantile_is_that_of_repeated_values(values: Array, data: st.DataObject) -> None:
    repeats = data.draw(hnp.arrays(np.int64, values.size, elements=st.integers(1, 3)))
    levels = [0.25, 0.5, 0.75]
    found = weighted_quantile(values, repeats.astype(float), levels)
    expected = np.quantile(np.repeat(values, repeats), levels, method="inverted_cdf")
    np.testing.assert_array_equal(found, expected)
