"""The working set: descend on a few features, verify on all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.typing import NDArray

from outweigh import objectives
from outweigh.estimators.search import SearchOptions, find_weights, floor_at
from outweigh.forms import Form
from outweigh.objectives import MomentObjective
from outweigh.optimise import (
    Polyak,
    ProjectedSubgradient,
    WorkingSet,
    descend,
    descend_on_working_set,
)
from outweigh.optimise.capped_simplex import CappedSimplex
from outweigh.optimise.descent import Result
from outweigh.protocols import Evaluation, Indices, Objective, Samples, Status, Survey
from outweigh.samples import DenseSamples

Array = NDArray[np.float64]
Kind = Callable[[Array], Samples]

N, D, K, EPS = 800, 80, 3, 0.1
DOMAIN = CappedSimplex.from_contamination(N, EPS)
seeds = pytest.mark.parametrize("seed", range(3))


def rows(seed: int) -> Array:
    rng = np.random.default_rng([21, seed])
    X = rng.standard_normal((N, D))
    X[:80, rng.choice(D, 4, replace=False)] += 2.5
    return X


def both_ways(kind: Kind, seed: int, **changes: object) -> tuple[Result, Result]:
    objective = objectives.sparse_mean(kind(rows(seed)), K)
    direct, rounds = (
        find_weights(objective, DOMAIN, SearchOptions(working_set=size, **changes))
        for size in (0, 3 * K)
    )
    return direct, rounds


@seeds
def test_the_working_set_reaches_the_clean_level_as_the_direct_descent_does(
    samples_of: Kind, seed: int
) -> None:
    direct, rounds = both_ways(samples_of, seed)
    assert direct.status is rounds.status is Status.REACHED


@seeds
def test_the_working_set_is_at_the_level_of_the_direct_descent_on_all_features(
    samples_of: Kind, seed: int
) -> None:
    # Verified weights may be 5 % above the median of clean data.
    objective = objectives.sparse_mean(samples_of(rows(seed)), K)
    _, rounds = both_ways(samples_of, seed)
    level = floor_at(objective, DOMAIN, rounds.weights, 3.0).median
    assert objective.evaluate(rounds.weights).value <= 1.05 * level * (1 + 1e-5)


@seeds
def test_the_value_is_that_of_a_full_pass_at_the_returned_weights(
    samples_of: Kind, seed: int
) -> None:
    objective = objectives.sparse_mean(samples_of(rows(seed)), K)
    _, rounds = both_ways(samples_of, seed)
    assert rounds.value == pytest.approx(objective.evaluate(rounds.weights).value, rel=1e-5)


@seeds
def test_the_force_explains_the_weights_as_one_of_all_features(samples_of: Kind, seed: int) -> None:
    _, rounds = both_ways(samples_of, seed)
    assert (rounds.force.n_features, rounds.drift.size) == (D, D)


@pytest.mark.parametrize("budget", [1, 5, 12])
def test_the_budget_counts_the_steps_on_the_working_set(samples_of: Kind, budget: int) -> None:
    objective = objectives.sparse_mean(samples_of(rows(0)), K)
    steps = 0

    def count(_: object) -> None:
        nonlocal steps
        steps += 1

    search = SearchOptions(working_set=3 * K, max_iter=budget, stop_at_floor=False)
    find_weights(objective, DOMAIN, search, count)
    assert steps <= budget


def test_a_spent_budget_is_not_reported_as_the_clean_level(samples_of: Kind) -> None:
    objective = objectives.sparse_mean(samples_of(rows(0)), K)
    result = find_weights(objective, DOMAIN, SearchOptions(working_set=3 * K, max_iter=1))
    level = floor_at(objective, DOMAIN, result.weights, 3.0).upper
    assert objective.evaluate(result.weights).value > level
    assert result.status is not Status.REACHED


def test_clean_data_is_verified_by_one_full_pass(samples_of: Kind) -> None:
    X = np.random.default_rng(9).standard_normal((N, D))
    objective = objectives.sparse_mean(samples_of(X), K)
    result = find_weights(objective, DOMAIN, SearchOptions(working_set=3 * K))
    assert (result.n_iter, result.status) == (1, Status.REACHED)


def inner(restricted: Objective, weights: Array, n_features: int) -> Result:
    update = ProjectedSubgradient(DOMAIN)
    return descend(restricted, update, Polyak(0.0, tol=1e-5), weights, max_iter=80)


@pytest.fixture(scope="module", name="rounds")
def rounds_without_an_end(samples_of: Kind) -> Result:
    objective = objectives.sparse_pca(samples_of(rows(1)), 1)
    start = DOMAIN.reference()
    return descend_on_working_set(objective, inner, start, lambda *_: False, WorkingSet(6, 20))


def test_a_convex_case_ends_at_the_level_of_the_direct_descent(
    samples_of: Kind, rounds: Result
) -> None:
    # The rounds end where a full pass gains less than their sufficient decrease, 3 %.
    direct = inner(objectives.sparse_pca(samples_of(rows(1)), 1), DOMAIN.reference(), D)
    assert rounds.value <= 1.03 * direct.value


def test_rounds_without_progress_are_reported_as_stalled(rounds: Result) -> None:
    assert rounds.status is Status.STALLED


def test_a_spent_number_of_rounds_is_reported(samples_of: Kind) -> None:
    objective = objectives.sparse_pca(samples_of(rows(1)), 1)
    rounds = descend_on_working_set(
        objective, inner, DOMAIN.reference(), lambda *_: False, WorkingSet(2, max_rounds=1)
    )
    assert rounds.status is Status.EXHAUSTED


@pytest.mark.parametrize("size", [0, 3 * K], ids=["direct", "rounds"])
def test_the_force_recorded_row_by_row_is_the_function_recorded(
    samples_of: Kind, size: int
) -> None:
    samples = samples_of(rows(0))
    options = SearchOptions(working_set=size)
    result = find_weights(objectives.sparse_mean(samples, K), DOMAIN, options)
    expected = samples.quadratic(result.force) - samples.project(result.drift)
    assert result.pushed is not None
    assert np.ptp(expected) > 0.0
    np.testing.assert_allclose(result.pushed, expected, rtol=1e-9, atol=1e-12)


@dataclass
class Counted:
    """An objective that counts its full passes; the weights are ever cleaner, or never."""

    objective: MomentObjective
    falls: bool
    n_passes: int = 0

    @property
    def n_features(self) -> int:
        return self.objective.n_features

    def evaluate(self, weights: Array) -> Evaluation:
        return self.objective.evaluate(weights)

    def restrict(self, coordinates: Indices) -> Objective:
        return self.objective.restrict(coordinates)

    def survey(self, weights: Array, n_coordinates: int, levels: Sequence[float] = ()) -> Survey:
        self.n_passes += 1
        found = self.objective.survey(weights, n_coordinates, levels)
        return replace(found, value=10.0 * 0.9 ** (self.n_passes if self.falls else 0))


def _same(weights: Array, features: Indices) -> Array:
    return weights.copy()


@pytest.mark.parametrize(("falls", "n_passes"), [(True, 3), (False, 3)])
def test_weights_before_the_polish_are_looked_at_only_where_it_did_not_help(
    samples_of: Kind, falls: bool, n_passes: int
) -> None:
    counted = Counted(objectives.sparse_pca(samples_of(rows(1)), 1), falls)
    rounds = WorkingSet(6, max_rounds=3 if falls else 2)
    start = DOMAIN.reference()
    descend_on_working_set(counted, inner, start, lambda *_: False, rounds, _same)
    # A pass at the start; then one a round, and a second where the first was no lower.
    assert counted.n_passes == n_passes


def test_no_rounds_at_all_are_refused(samples_of: Kind) -> None:
    objective = objectives.sparse_pca(samples_of(rows(1)), 1)
    with pytest.raises(ValueError, match="max_rounds"):
        descend_on_working_set(
            objective, inner, DOMAIN.reference(), lambda *_: True, WorkingSet(6, max_rounds=0)
        )


def spread_evidence(n_evident: int) -> MomentObjective:
    """Rows of which a tenth differs a little in so many features."""
    rng = np.random.default_rng(31)
    X = rng.standard_normal((N, D))
    X[:80, :n_evident] += 1.2
    return objectives.sparse_mean(DenseSamples(X), K)


def noise(weights: Array) -> float:
    return 1.0 / DOMAIN.n_effective(weights)


def descended_on(objective: MomentObjective, rounds: WorkingSet) -> list[int]:
    """Return how many features each descent ran on; each comes to its end where it began."""
    sizes: list[int] = []

    def counted(restricted: Objective, weights: Array, n_features: int) -> Result:
        sizes.append(n_features)
        update, rule = ProjectedSubgradient(DOMAIN), Polyak(0.0)
        return descend(restricted, update, rule, weights, max_iter=9, reached=lambda *_: True)

    descend_on_working_set(objective, counted, DOMAIN.reference(), lambda *_: False, rounds)
    return sizes


def test_the_first_descent_runs_on_all_features_that_show_evidence() -> None:
    objective = spread_evidence(30)
    without = descended_on(objective, WorkingSet(6, max_rounds=2))
    found = descended_on(objective, WorkingSet(6, max_rounds=2, noise=noise))
    assert without[0] < 15
    assert found[0] >= 28


def test_where_most_features_show_evidence_a_few_of_them_will_do() -> None:
    found = descended_on(spread_evidence(D), WorkingSet(6, max_rounds=2, noise=noise))
    assert found[0] < 15


def test_rounds_end_where_no_feature_shows_evidence() -> None:
    objective = objectives.sparse_mean(
        DenseSamples(np.random.default_rng(32).standard_normal((N, D))), K
    )
    # A level that is never reached: without a measure of noise, noise is descended on.
    assert len(descended_on(objective, WorkingSet(6, noise=noise))) == 1
    assert len(descended_on(objective, WorkingSet(6))) > 1


def test_rounds_end_where_only_features_of_the_descent_show_evidence() -> None:
    # Outliers that no descent removes here: each ends where it began.
    rounds = WorkingSet(6, noise=noise)
    assert len(descended_on(spread_evidence(5), rounds)) == 1
    assert len(descended_on(spread_evidence(5), WorkingSet(6))) > 1


def test_heavy_tails_are_no_evidence_on_the_diagonal() -> None:
    own = np.zeros(100)
    own[0] = 90.0 / N
    survey = Survey(1.0, Form.zero(100), np.arange(3), np.full(100, 10.0 / N), own, 10)
    weights = DOMAIN.reference()
    gaussian = WorkingSet(6, noise=lambda weights: 1.0 / N)
    assert gaussian.evident(survey, weights).tolist() == [0]
    assert replace(gaussian, own_noise=9.0).evident(survey, weights).size == 0


def test_evidence_in_a_row_of_its_own_counts_too() -> None:
    by_row = np.full(100, 20.0 / N)
    by_row[4:6] = [31.0 / N, 46.0 / N]
    nothing = np.zeros(100)
    survey = Survey(1.0, Form.zero(100), np.arange(3), nothing, nothing, 10, by_row)
    weights = DOMAIN.reference()
    rounds = WorkingSet(6, noise=lambda weights: 1.0 / N, row_noise=30.0)
    assert rounds.evident(survey, weights).tolist() == [4, 5]
    assert rounds.evident(survey, weights, clear=True).tolist() == [5]
    assert replace(rounds, row_noise=None).evident(survey, weights).size == 0


def test_outliers_in_several_directions_are_all_seen_at_first() -> None:
    rng = np.random.default_rng(33)
    X = rng.standard_normal((8 * N, D))
    for i, size in enumerate((3.0, 1.5, 1.5, 1.5)):
        X[160 * i : 160 * (i + 1), 8 * i : 8 * (i + 1)] += size
    objective = objectives.sparse_mean(DenseSamples(X), 8)
    domain = CappedSimplex.from_contamination(8 * N, EPS)
    found = find_weights(objective, domain, SearchOptions(working_set=24))
    assert found.coordinates is not None
    first = find_weights(objective, domain, SearchOptions(working_set=24, verify=False))
    assert np.isin(np.arange(32), first.coordinates).all()


def test_evidence_is_energy_beyond_that_of_noise() -> None:
    energy = np.full(100, 10.0 / N)
    energy[:3] = [35.0 / N, 45.0 / N, 80.0 / N]
    survey = Survey(1.0, Form.zero(100), np.arange(3), energy, np.zeros(100), 10)
    # Of 10 squares of unit noise, one in 2000 sums exceeds 31.4, and half more is 47.1.
    rounds = WorkingSet(6, noise=lambda weights: 1.0 / N)
    weights = DOMAIN.reference()
    assert rounds.evident(survey, weights).tolist() == [0, 1, 2]
    assert rounds.evident(survey, weights, clear=True).tolist() == [2]


def test_a_first_look_adds_to_known_features_only_those_that_show_evidence() -> None:
    objective = spread_evidence(5)
    known = np.arange(5)
    rounds = WorkingSet(6, max_rounds=2, initial=known, look_first=True, noise=noise)
    # One in twenty times a feature without any seems to show some; it would be six by default.
    assert descended_on(objective, rounds)[0] <= 6
    rounds = WorkingSet(6, max_rounds=2, initial=known, look_first=True)
    assert descended_on(objective, rounds)[0] == 5
    rounds = WorkingSet(6, max_rounds=2, initial=known[:2], look_first=True, noise=noise)
    assert descended_on(objective, rounds)[0] >= 5


def test_unverified_weights_take_one_pass_and_one_descent() -> None:
    counted = Counted(spread_evidence(5), falls=True)
    start = DOMAIN.reference()
    rounds = WorkingSet(6, verify=False)
    found = descend_on_working_set(counted, inner, start, lambda *_: False, rounds, _same)
    assert counted.n_passes == 1
    assert DOMAIN.total_variation(found.weights) > 0.01
    assert found.coordinates is not None
