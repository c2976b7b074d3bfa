"""Groups of outliers along a direction, and how likely each row is to be in one."""

from __future__ import annotations

from collections.abc import Callable

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import binom, norm

from outweigh.fit.columns import weighted_quantile
from outweigh.fit.law import GAUSSIAN, Law, TypicalLaw
from outweigh.fit.mixture import Group, Groups
from outweigh.fit.posterior import groups_apart, groups_spread
from outweigh.fit.road import fit
from outweigh.fit.task import Settings, Task
from outweigh.optimise.capped_simplex import CappedSimplex
from outweigh.protocols import Samples
from outweigh.samples import ArrayRows, DenseSamples

Array = NDArray[np.float64]
Kind = Callable[[Array], Samples]

N, D, EPS = 1000, 20, 0.25
both = pytest.mark.parametrize("sparse", [True, False], ids=["sparse", "dense"])


gaussian = GAUSSIAN.along


def partly_cleaned(seed: int, share: float = 0.1) -> tuple[Array, CappedSimplex, Array, Array]:
    """Return rows whose first ones are wrong, the domain, and weights before and after a descent.

    The wrong rows lie three deviations away along three features; half of them were removed.
    """
    X = np.random.default_rng([41, seed]).standard_normal((N, D))
    wrong = int(share * N)
    X[:wrong, :3] += 3.0 / np.sqrt(3.0)
    domain = CappedSimplex.from_contamination(N, EPS)
    w = np.ones(N)
    w[: wrong // 2] = 0.0
    return X, domain, domain.reference(), w / w.sum()


def apart(
    samples: Samples, domain: CappedSimplex, start: Array, w: Array, sparse: bool
) -> tuple[Array, Groups, Array]:
    return groups_apart(samples, domain, start, w, np.asarray, lambda: GAUSSIAN, sparse=sparse)


# Groups that differ in their mean


@both
@pytest.mark.parametrize("share", [0.1, 0.15, 0.2])
def test_a_group_at_three_deviations_is_found_with_its_share_centre_and_spread(
    samples_of: Kind, sparse: bool, share: float
) -> None:
    X, domain, start, w = partly_cleaned(0, share)
    _, groups, _ = apart(samples_of(X), domain, start, w, sparse)
    (group,) = groups
    assert isinstance(group, Group)
    assert group.direction[:3].sum() / np.sqrt(3.0) > 0.9
    # Along the direction found the rows have these moments. A share is off by sqrt(p(1-p)/n), a
    # mean by 1/sqrt(pn); laws that overlap at three deviations double that. Four deviations.
    wrong = int(share * N)
    y = X @ group.direction
    assert float(group.shares.sum()) == pytest.approx(
        share, abs=8.0 * np.sqrt(share * (1.0 - share) / N)
    )
    mean = float(group.shares @ group.centres / group.shares.sum())
    assert mean == pytest.approx(float(y[:wrong].mean()), abs=8.0 / np.sqrt(wrong))
    assert group.centre == pytest.approx(float(y[wrong:].mean()), abs=8.0 / np.sqrt(N))
    assert group.spread == pytest.approx(1.0, abs=8.0 / np.sqrt(2.0 * N))
    np.testing.assert_allclose(group.spreads, 1.0, atol=8.0 / np.sqrt(2.0 * wrong))


CLEAN: dict[str, Callable[[np.random.Generator], Array]] = {
    "Gaussian": lambda rng: rng.standard_normal((N, D)),
    "t5": lambda rng: rng.standard_t(5, (N, D)) / np.sqrt(5.0 / 3.0),
    "Laplace": lambda rng: rng.laplace(scale=np.sqrt(0.5), size=(N, D)),
    "uniform": lambda rng: rng.uniform(-np.sqrt(3.0), np.sqrt(3.0), (N, D)),
}


@both
@pytest.mark.parametrize("law", CLEAN)
@pytest.mark.parametrize("contamination", [0.1, None])
def test_clean_rows_are_in_no_group_in_nearly_all_samples(
    law: str, sparse: bool, contamination: float | None
) -> None:
    # The first group needs a survey that shows more variance than noise has, so a whole fit.
    task = Task(n_nonzero=(3,) if sparse else None)
    settings = Settings(contamination, None, None, "polyak", 300)
    found = 0
    for seed in range(50):
        X = CLEAN[law](np.random.default_rng([44, seed]))
        fitted = fit(ArrayRows(X), np.ones(N), task, settings, None)
        # Pruning and the descent may take a row of heavy tails; groups take nothing from any.
        weights = fitted.found.weights
        found += bool(weights.groups) or bool(weights.wrong.any())
    # One in twenty samples shows more variance than noise has, at most: 8 of 50 are too many then.
    assert found < binom.isf(1e-3, 50, 0.05)


@both
def test_a_tight_cluster_is_removed_and_nothing_else(samples_of: Kind, sparse: bool) -> None:
    X, domain, start, w = partly_cleaned(1)
    X[:100] = 0.02 * X[:100]
    X[:100, :3] += 3.0
    found, groups, wrong = apart(samples_of(X), domain, start, w, sparse)
    assert len(groups) == 1
    assert np.all(wrong[:100] > 0.9)
    assert found[:100].sum() < 0.01
    # It is far narrower than clean rows, and so few of these are where it is.
    assert np.max(groups[0].spreads) < 0.3
    assert wrong[100:].sum() < 20.0


@both
def test_two_groups_are_found_one_after_the_other(samples_of: Kind, sparse: bool) -> None:
    X = np.random.default_rng(45).standard_normal((N, D))
    X[:100, 0] += 5.0
    X[100:200, 1] += 5.0
    domain = CappedSimplex.from_contamination(N, EPS)
    w = np.ones(N)
    w[50:150] = 0.0
    found, groups, wrong = apart(samples_of(X), domain, domain.reference(), w / w.sum(), sparse)
    assert groups
    assert wrong[:200].mean() > 0.9
    assert wrong[200:].mean() < 0.03
    assert found[:200].sum() < 0.03


@both
@pytest.mark.parametrize("seed", range(3))
def test_weights_stay_in_the_set(samples_of: Kind, sparse: bool, seed: int) -> None:
    X, _, start, w = partly_cleaned(seed, 0.2)
    for eps in (0.1, 0.2, 0.4):
        domain = CappedSimplex.from_contamination(N, eps)
        assert domain.contains(apart(samples_of(X), domain, start, w, sparse)[0], atol=1e-9)


@both
@pytest.mark.parametrize("seed", range(3))
def test_outliers_left_by_the_descent_are_removed(
    samples_of: Kind, sparse: bool, seed: int
) -> None:
    X, domain, start, w = partly_cleaned(seed)
    found, _, _ = apart(samples_of(X), domain, start, w, sparse)
    # Who knows the two laws leaves them this much: some rows at three deviations may be clean.
    y = X[:, :3].sum(axis=1) / np.sqrt(3.0)
    clean, wrong = 0.9 * norm.pdf(y), 0.1 * norm.pdf(y, 3.0)
    known = clean / (clean + wrong)
    assert found[:100].sum() < 1.25 * known[:100].sum() / known.sum()


@both
def test_the_mean_of_clean_rows_is_moved_by_no_more_than_those_taken_for_outliers(
    sparse: bool,
) -> None:
    # Clean rows lose weight on the side of the outliers, and outliers keep some: along the
    # direction the two cancel, so the mean of what is kept is that of clean rows.
    moves = []
    for seed in range(40):
        X, domain, start, w = partly_cleaned(seed)
        found, groups, _ = apart(DenseSamples(X), domain, start, w, sparse)
        assert groups
        moves.append(float((found @ X - X[100:].mean(axis=0))[:3].sum() / np.sqrt(3.0)))
    noise = np.std(moves) / np.sqrt(len(moves))
    assert abs(np.mean(moves)) <= 4.0 * noise


@both
def test_untouched_weights_point_nowhere(samples_of: Kind, sparse: bool) -> None:
    X, domain, start, _ = partly_cleaned(0)
    found, groups, wrong = apart(samples_of(X), domain, start, start, sparse)
    assert groups == ()
    assert not wrong.any()
    np.testing.assert_array_equal(found, start)


@both
def test_rows_removed_at_random_point_nowhere(samples_of: Kind, sparse: bool) -> None:
    domain = CappedSimplex.from_contamination(N, EPS)
    w = np.where(np.arange(N) < 50, 0.0, 1.0 / 950)
    found = 0
    for seed in range(20):
        X = np.random.default_rng([7, seed]).standard_normal((N, D))
        found += bool(apart(samples_of(X), domain, domain.reference(), w, sparse)[1])
    assert found <= 1


@both
def test_integer_sample_weights_act_as_repeated_rows_do(samples_of: Kind, sparse: bool) -> None:
    X, _, _, w = partly_cleaned(1)
    repeats = 1 + np.arange(N) % 2
    weighted = CappedSimplex.from_contamination(repeats.astype(float), EPS)
    repeated = CappedSimplex.from_contamination(int(repeats.sum()), EPS)
    after = w * repeats / (w @ repeats)
    copied = np.repeat(after / repeats, repeats)
    by_weight, groups, _ = apart(samples_of(X), weighted, weighted.reference(), after, sparse)
    rows = samples_of(np.repeat(X, repeats, axis=0))
    by_rows, _, _ = apart(rows, repeated, repeated.reference(), copied, sparse)
    assert groups
    np.testing.assert_allclose(np.repeat(by_weight / repeats, repeats), by_rows, atol=1e-10)


@both
def test_how_likely_rows_are_wrong_is_told_by_the_groups(sparse: bool) -> None:
    X, domain, start, w = partly_cleaned(0)
    _, groups, wrong = apart(DenseSamples(X), domain, start, w, sparse)
    clean = np.prod([1.0 - group.wrong(X @ group.direction) for group in groups], axis=0)
    assert np.median(wrong[:100]) > 0.5
    np.testing.assert_allclose(wrong, 1.0 - clean, rtol=1e-12, atol=1e-15)


def test_features_without_a_significant_difference_are_left_out_of_a_sparse_group() -> None:
    X, domain, start, w = partly_cleaned(0)
    # The largest of 20 Gaussians hardly exceeds sqrt(2 log 20) = 2.4; the first three do.
    (first, *_) = apart(DenseSamples(X), domain, start, w, True)[1]
    assert np.all(first.direction[:3] > 0.4)
    assert np.count_nonzero(first.direction) <= 5


# Noise that is not Gaussian

DRAWS: dict[str, Callable[[np.random.Generator, tuple[int, int]], Array]] = {
    "exponential": lambda rng, shape: rng.exponential(size=shape) - 1.0,
    "uniform": lambda rng, shape: rng.uniform(-np.sqrt(3.0), np.sqrt(3.0), shape),
    "Laplace": lambda rng, shape: rng.laplace(0.0, np.sqrt(0.5), shape),
}


def moved_rows(name: str, seed: int, spread: float = 1.0) -> tuple[Array, Law, Array]:
    """Return rows, a fifth of them moved by two deviations on four features; their law; which."""
    rng = np.random.default_rng([48, seed])
    X = DRAWS[name](rng, (4 * N, D))
    law = TypicalLaw(X, np.ones(4 * N))(np.ones(4 * N))
    wrong = np.arange(4 * N) < 0.2 * 4 * N
    X[wrong] *= spread
    X[wrong, :4] += 1.0
    return X, law, wrong


def weighed(X: Array, law: Law, wrong: Array) -> tuple[Array, Groups, Array]:
    domain = CappedSimplex.from_contamination(X.shape[0], 0.3)
    # A descent that removed half of the outliers.
    w = np.where(wrong & (np.arange(wrong.size) % 2 == 0), 0.0, 1.0)
    return groups_apart(
        DenseSamples(X),
        domain,
        domain.reference(),
        w / w.sum(),
        np.asarray,
        lambda: law,
        sparse=True,
    )


@pytest.mark.parametrize("name", DRAWS)
def test_moved_rows_are_told_in_each_feature(name: str) -> None:
    moves = []
    for seed in range(4):
        X, law, wrong = moved_rows(name, seed)
        w, groups, _ = weighed(X, law, wrong)
        (group,) = groups
        assert group.origin is not None
        # Of 4000 rows a share is known to 0.006, a mean of 800 to 0.035; overlap doubles that.
        assert group.shares.sum() == pytest.approx(0.2, abs=0.04)
        assert group.shares @ (group.centres - group.centre) == pytest.approx(0.4, abs=0.08)
        moves.append(float((w @ X - X[~wrong].mean(axis=0))[:4].sum() / 2.0))
        # All second moments of what is kept are those of clean rows, not only along the shift.
        kept = (X - w @ X)[:, :4]
        moments = kept.T @ (w[:, None] * kept) - np.eye(4)
        noise = np.abs(np.cov(X[~wrong, :4].T) - np.eye(4)).max() + 4.0 / np.sqrt(4 * N)
        assert np.abs(moments).max() <= 2.0 * noise
    # The mean of the 3200 clean rows is known to 0.018 along the shift.
    assert abs(np.mean(moves)) <= 4.0 * 0.018


def test_outliers_of_another_law_are_told_by_what_explains_them_best() -> None:
    X, law, wrong = moved_rows("exponential", 0)
    X[wrong] = np.random.default_rng(49).normal(0.0, 0.3, (int(wrong.sum()), D))
    X[wrong, :4] += 1.5
    _, _, found = weighed(X, law, wrong)
    assert found[wrong].mean() > 0.8
    assert found[~wrong].mean() < 0.01


def test_moved_rows_in_other_coordinates_are_the_same() -> None:
    X, law, wrong = moved_rows("exponential", 0)
    _, (group,), found = weighed(X, law, wrong)
    place = np.arange(D) + 3

    def lift(v: Array) -> Array:
        whole = np.zeros(D + 5)
        whole[place] = v
        return whole

    wide = np.random.default_rng(50).standard_normal((4 * N, D + 5))
    wide[:, place] = X
    lifted = group.lifted(lift)
    np.testing.assert_allclose(lifted.wrong(lifted.seen(DenseSamples(wide))), found, atol=1e-12)
    assert lifted.centre == pytest.approx(group.centre)


# Groups that differ in their spread


def leading(matrix: Array) -> Array:
    return np.asarray(np.linalg.eigh(matrix)[1][:, -1])


def spread_rows(seed: int) -> tuple[Array, CappedSimplex, Array]:
    """Return rows that vary most along the first axis, the first tenth also along the second."""
    X = np.random.default_rng([46, seed]).standard_normal((N, D))
    X[:, 0] *= 3.0
    X[:100, 1] *= 5.0
    w = np.ones(N)
    w[:50] = 0.0
    return X, CappedSimplex.from_contamination(N, EPS), w / w.sum()


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_a_direction_in_which_removed_rows_spread_is_found(
    samples_of: Kind, seed: int, centred: bool
) -> None:
    X, domain, w = spread_rows(seed)
    basis = np.eye(D)[:, :1]
    found, groups, wrong = groups_spread(
        samples_of(X),
        domain,
        domain.reference(),
        w,
        basis,
        leading,
        gaussian,
        centred=centred,
    )
    assert groups
    assert abs(groups[0].direction[1]) > 0.9
    assert groups[0].spreads[0] > 2.0 * groups[0].spread
    assert wrong[:100].mean() > 4.0 * wrong[100:].mean()
    assert domain.contains(found, atol=1e-9)


def test_the_first_direction_of_spread_need_not_pay_for_its_features() -> None:
    # A hundred and twenty features are dearer than so few outliers gain, but the survey saw them.
    n, d = 1000, 120
    X = np.random.default_rng(46).standard_normal((n, d))
    X[:100, 1] *= 4.0
    w = np.ones(n)
    w[:50] = 0.0
    domain = CappedSimplex.from_contamination(n, 0.2)
    reference, basis = domain.reference(), np.eye(d)[:, :1]
    found = groups_spread(
        DenseSamples(X), domain, reference, w / w.sum(), basis, leading, gaussian, centred=True
    )
    assert len(found[1]) == 1


def test_directions_of_clean_rows_are_not_looked_along() -> None:
    X, domain, w = spread_rows(0)
    basis = np.eye(D)[:, :2]
    found, groups, wrong = groups_spread(
        DenseSamples(X),
        domain,
        domain.reference(),
        w,
        basis,
        leading,
        gaussian,
        centred=True,
    )
    assert groups == ()
    assert not wrong.any()
    np.testing.assert_array_equal(found, w)


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
