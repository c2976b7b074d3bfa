"""Separation trims outliers along one direction, and clean rows symmetrically."""

from __future__ import annotations

from collections.abc import Callable

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from outweigh.optimise.capped_simplex import CappedSimplex
from outweigh.protocols import Samples
from outweigh.separation import Cut, separate, weighted_quantile

Array = NDArray[np.float64]
Kind = Callable[[Array], Samples]

N, D, EPS = 1000, 20, 0.2
both = pytest.mark.parametrize("sparse", [True, False], ids=["sparse", "dense"])


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
    assert domain.contains(separate(samples_of(X), domain, w, sparse=sparse)[0], atol=1e-9)


@both
@pytest.mark.parametrize("seed", range(3))
def test_outliers_left_by_the_descent_are_removed(
    samples_of: Kind, sparse: bool, seed: int
) -> None:
    X, domain, w = partly_cleaned(seed)
    found, _ = separate(samples_of(X), domain, w, sparse=sparse)
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
        found, cuts = separate(samples_of(X), domain, w, sparse=sparse)
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
    found, cuts = separate(samples_of(X), domain, w / w.sum(), sparse=sparse)
    assert cuts
    np.testing.assert_allclose(found @ X, 0.0, atol=2e-3)


@both
def test_uniform_weights_point_nowhere(samples_of: Kind, sparse: bool) -> None:
    X, domain, _ = partly_cleaned(0)
    uniform = domain.reference()
    found, cuts = separate(samples_of(X), domain, uniform, sparse=sparse)
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
        found += bool(separate(samples_of(X), domain, w, sparse=sparse)[1])
    assert found <= 10


@both
def test_integer_sample_weights_act_as_repeated_rows_do(samples_of: Kind, sparse: bool) -> None:
    X, _, w = partly_cleaned(1)
    repeats = 1 + np.arange(N) % 2
    weighted = CappedSimplex.from_contamination(repeats.astype(float), EPS)
    repeated = CappedSimplex.from_contamination(int(repeats.sum()), EPS)
    start = w * repeats / (w @ repeats)
    copied = np.repeat(start / repeats, repeats)
    by_weight, _ = separate(samples_of(X), weighted, start, sparse=sparse)
    rows = samples_of(np.repeat(X, repeats, axis=0))
    by_rows, _ = separate(rows, repeated, copied, sparse=sparse)
    np.testing.assert_allclose(np.repeat(by_weight / repeats, repeats), by_rows, atol=1e-10)


def test_a_cut_counts_both_sides_alike() -> None:
    cut = Cut(np.array([1.0]), centre=2.0, spread=0.5, limit=3.0)
    np.testing.assert_allclose(cut.excess(np.array([4.0, 0.0, 2.0])), [1.0, 1.0, -3.0])


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


@pytest.mark.parametrize(("left_out", "held"), [(0.6, True), (3.0, False)])
def test_a_direction_that_few_features_nearly_hold_is_sought_on_these(
    samples_of: Kind, left_out: float, held: bool
) -> None:
    X, domain, w = partly_cleaned(0)
    X[:100, 7] += left_out
    w[:100] = 0.0
    w /= w.sum()
    everywhere, among = (
        separate(samples_of(X), domain, w, sparse=True, features=features)[1][0].direction
        for features in (None, np.arange(5))
    )
    assert everywhere[7] != 0.0
    assert bool(among[7] == 0.0) == held
