"""A search: rounds of survey, descent and groups, what ends them, and what they leave behind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from numpy.typing import NDArray

from outweigh import objectives
from outweigh.fit.problem import Problem
from outweigh.fit.search import Found, Search, Weights, near_or_slow
from outweigh.fit.workspace import Basis, Columns, Everything, Workspace, workspace_for
from outweigh.forms import Form
from outweigh.objectives import MomentObjective
from outweigh.optimise.capped_simplex import CappedSimplex
from outweigh.optimise.descent import Iterate
from outweigh.optimise.steps import SOLVERS
from outweigh.protocols import Samples, Status, Survey
from outweigh.samples import DenseSamples

Array = NDArray[np.float64]
Kind = Callable[[Array], Samples]

N, D, K, EPS = 800, 80, 3, 0.1
DOMAIN = CappedSimplex.from_contamination(N, EPS)
seeds = pytest.mark.parametrize("seed", range(3))


def rows(seed: int = 0, shift: float = 2.5) -> Array:
    rng = np.random.default_rng([21, seed])
    X = rng.standard_normal((N, D))
    X[:80, rng.choice(D, 4, replace=False)] += shift
    return X


def problem_of(objective: MomentObjective) -> Problem:
    n = objective.samples.n_samples
    nothing = np.empty(0, dtype=np.intp)
    return Problem(objective, np.ones(n), nothing, 3.0, objective.n_features)


def sparse(samples: Samples) -> Problem:
    return problem_of(objectives.sparse_mean(samples, K))


def dense(samples: Samples) -> Problem:
    return problem_of(objectives.mean(samples))


PROBLEMS = {
    "features": (sparse, lambda problem: Columns(problem, 3 * K)),
    "directions": (dense, Basis),
    "all, sparse": (sparse, Everything),
    "all, dense": (dense, Everything),
}
every_space = pytest.mark.parametrize("space", PROBLEMS)


def searching(
    problem: Problem,
    space: Workspace,
    *,
    solver: str = "polyak",
    max_iter: int = 300,
    share: float = EPS,
    groups: bool = False,
    start: Weights | None = None,
    callback: Callable[[Iterate], bool | None] | None = None,
) -> Search:
    domain = problem.domain(share)
    return Search(
        problem,
        domain,
        space,
        solver,
        max_iter,
        group_domain=domain if groups else None,
        start=start,
        sparse=not isinstance(space, Basis),
        callback=callback,
    )


def found_on(name: str, samples: Samples, **options: object) -> tuple[Problem, Found]:
    make, space = PROBLEMS[name]
    problem = make(samples)
    return problem, searching(problem, space(problem), **options).run()


@every_space
@seeds
def test_the_clean_level_is_reached_whatever_is_descended_on(
    samples_of: Kind, space: str, seed: int
) -> None:
    problem, found = found_on(space, samples_of(rows(seed)))
    assert found.status is Status.REACHED
    full = problem.objective.evaluate(found.weights.values).value
    assert full <= problem.floor(found.weights.values).clean * (1 + 1e-5)


@every_space
def test_the_value_is_that_of_a_full_pass_at_the_returned_weights(
    samples_of: Kind, space: str
) -> None:
    problem, found = found_on(space, samples_of(rows()), groups=True)
    full = problem.objective.evaluate(found.weights.values).value
    assert found.value == pytest.approx(full, rel=1e-5)


@every_space
def test_the_force_recorded_row_by_row_is_the_function_recorded(
    samples_of: Kind, space: str
) -> None:
    samples = samples_of(rows())
    _, found = found_on(space, samples)
    weights = found.weights
    assert (weights.force.n_features, weights.drift.size) == (D, D)
    expected = samples.quadratic(weights.force, weights.drift)
    assert np.ptp(expected) > 0.0
    np.testing.assert_allclose(weights.pushed, expected, rtol=1e-9, atol=1e-12)


@every_space
@pytest.mark.parametrize("budget", [1, 2, 5, 12])
def test_the_budget_counts_every_evaluation_but_the_last_survey(
    samples_of: Kind, space: str, budget: int
) -> None:
    # Without that nothing would be known of the weights found.
    seen: list[Iterate] = []
    _, found = found_on(
        space, samples_of(rows()), max_iter=budget, callback=lambda line: seen.append(line)
    )
    assert len(seen) == len(found.trace) <= budget + 1


@every_space
def test_a_spent_budget_is_not_reported_as_the_clean_level(samples_of: Kind, space: str) -> None:
    problem, found = found_on(space, samples_of(rows()), max_iter=1)
    assert not problem.is_clean(found.value, found.weights.values)
    assert found.status is Status.EXHAUSTED


@every_space
def test_clean_data_is_verified_by_one_full_pass(samples_of: Kind, space: str) -> None:
    X = np.random.default_rng(9).standard_normal((N, D))
    _, found = found_on(space, samples_of(X), groups=True)
    assert (len(found.trace), found.status, found.weights.moved) == (1, Status.REACHED, False)
    np.testing.assert_allclose(found.weights.values, 1 / N, rtol=1e-12)


@every_space
def test_the_trace_counts_through_and_names_full_passes(samples_of: Kind, space: str) -> None:
    _, found = found_on(space, samples_of(rows()))
    assert [line.iteration for line in found.trace] == list(range(len(found.trace)))
    assert found.trace[-1].value == found.value
    # A survey takes no step, and what it found counts.
    assert (found.trace[-1].step, found.trace[-1].accepted) == (0.0, True)
    assert found.support_level == 0.0


@every_space
def test_evidence_that_withstands_the_descent_ends_the_search(space: str) -> None:
    # Half of the rows are wrong and a tenth may go.
    X = rows()
    X[:400, :4] += 2.5
    problem, found = found_on(space, DenseSamples(X))
    assert found.status is Status.STALLED
    assert not problem.is_clean(found.value, found.weights.values)


# Rounds, one by one


@dataclass
class Scripted:
    """A workspace whose surveys return the listed values, and that misses evidence or not."""

    inner: Everything
    values: list[float]
    missing: bool
    seen: list[Array] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.part, self.objective = self.inner.part, self.inner.objective
        self.n_noise = self.inner.n_noise

    def survey(self, weights: Array) -> Survey:
        value = self.values[min(len(self.seen), len(self.values) - 1)]
        self.seen.append(weights.copy())
        return Survey(value)

    def misses(self, weights: Array) -> bool:
        return self.missing

    def widen(self, weights: Array) -> None:
        pass


def scripted(values: list[float], *, missing: bool) -> tuple[Scripted, Found]:
    problem = dense(DenseSamples(rows()))
    space = Scripted(Everything(problem), values, missing)
    return space, searching(problem, space, max_iter=40).run()


def test_rounds_go_on_while_evidence_is_missed_and_evaluations_are_left() -> None:
    space, found = scripted([10.0], missing=True)
    assert len(space.seen) > 2
    assert found.status is Status.EXHAUSTED
    # The last survey is the first that there was no evaluation left to descend after.
    assert len(found.trace) in (40, 41)


def test_rounds_end_after_the_first_descent_where_nothing_is_missed() -> None:
    space, found = scripted([10.0], missing=False)
    assert (len(space.seen), found.status) == (2, Status.STALLED)


def test_the_best_of_all_surveys_is_kept() -> None:
    space, found = scripted([10.0, 4.0, 6.0], missing=True)
    assert found.value == 4.0
    np.testing.assert_array_equal(found.weights.values, space.seen[1])


def test_where_two_score_alike_the_earlier_is_kept() -> None:
    space, found = scripted([10.0, 10.0 * (1 - 1e-9)], missing=True)
    np.testing.assert_array_equal(found.weights.values, space.seen[0])
    assert not found.weights.moved


def test_weights_that_are_clean_are_the_answer_even_where_earlier_ones_scored_less() -> None:
    # The level depends on how many rows the weights amount to.
    problem = dense(DenseSamples(rows()))
    clean = problem.floor(problem.untouched).clean
    space, found = scripted([10.0, 0.9 * clean], missing=True)
    assert (len(space.seen), found.status) == (2, Status.REACHED)


def test_features_that_another_search_took_in_are_descended_on_first() -> None:
    problem = sparse(DenseSamples(rows()))
    space = Columns(problem, 9)
    first = searching(problem, space, share=0.4).run()
    again = searching(problem, space).run(first)
    # A full pass takes no step.
    assert first.trace[0].step == 0.0
    assert again.trace[0].step > 0.0
    assert again.status is Status.REACHED


def test_a_descent_continues_where_an_earlier_one_over_more_weights_ended() -> None:
    problem = dense(DenseSamples(rows()))
    space = Basis(problem)
    first = searching(problem, space, share=0.4).run()
    again = searching(problem, space, share=EPS).run(first)
    assert problem.domain(EPS).contains(again.weights.values, atol=1e-9)
    # What pushed rows down before is part of what explains their weights.
    samples = problem.samples
    expected = samples.quadratic(again.weights.force, again.weights.drift)
    np.testing.assert_allclose(again.weights.pushed, expected, rtol=1e-9, atol=1e-12)


# Groups


@pytest.mark.parametrize("space", ["features", "directions"])
def test_groups_found_in_a_part_are_groups_of_the_rows(space: str) -> None:
    X = rows(shift=1.5)
    _, found = found_on(space, DenseSamples(X), groups=True)
    assert found.weights.groups
    clean = np.prod([1.0 - g.wrong(X @ g.direction) for g in found.weights.groups], axis=0)
    assert clean.min() < 0.1
    np.testing.assert_allclose(found.weights.wrong, 1.0 - clean, atol=1e-9)


def test_without_a_domain_for_them_there_are_no_groups() -> None:
    _, found = found_on("features", DenseSamples(rows()), groups=False)
    assert found.weights.moved
    assert found.weights.groups == ()
    assert not found.weights.wrong.any()


@every_space
def test_groups_leave_the_weights_in_their_domain(space: str) -> None:
    _, found = found_on(space, DenseSamples(rows(shift=1.5)), groups=True)
    assert DOMAIN.contains(found.weights.values, atol=1e-9)


@pytest.mark.parametrize("space", ["features", "directions"])
def test_groups_take_weight_from_the_outliers_that_a_descent_left(space: str) -> None:
    X = rows(shift=1.5)
    alone, grouped = (found_on(space, DenseSamples(X), groups=g)[1] for g in (False, True))
    assert grouped.weights.values[:80].sum() < alone.weights.values[:80].sum()


def test_a_further_search_only_removes_more() -> None:
    problem = sparse(DenseSamples(rows(shift=1.5)))
    first = searching(problem, Columns(problem, 9), groups=True).run()
    assert first.weights.groups
    again = searching(problem, Columns(problem, 9), groups=True, start=first.weights).run()
    # Nothing is left to do: the first survey finds the rows clean, with the weights as they were.
    assert (len(again.trace), again.status) == (1, Status.REACHED)
    np.testing.assert_array_equal(again.weights.values, first.weights.values)
    assert again.weights.groups == first.weights.groups


def test_a_further_search_keeps_the_groups_found_before() -> None:
    X = rows()
    X[80:160, :2] -= 3.0
    problem = sparse(DenseSamples(X))
    first = searching(problem, Columns(problem, 9), groups=True).run()
    assert not problem.is_clean(first.value, first.weights.values)
    space = Columns(problem, 9)
    again = searching(problem, space, groups=True, share=0.2, start=first.weights).run()
    assert again.weights.groups[: len(first.weights.groups)] == first.weights.groups
    assert np.all(again.weights.wrong >= first.weights.wrong - 1e-12)


# Weights


def test_untouched_weights_have_not_moved_and_have_no_groups() -> None:
    weights = Weights.untouched(np.full(4, 0.25), 3)
    assert not weights.moved
    assert weights.groups == ()
    assert not weights.pushed.any()


def test_weights_with_a_force_have_moved() -> None:
    force = Form.from_directions(np.ones((3, 1)), np.ones(1))
    assert replace(Weights.untouched(np.full(4, 0.25), 3), force=force).moved


@pytest.mark.parametrize("space", ["features", "directions", "all, dense"])
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_copy_of_the_weights_begun_with_changes_nothing(space: str, solver: str) -> None:
    """No meaning rides on which array it is: neither where it begins nor what it is handed."""

    class Copying(Search):
        def _descend(self, begin: Weights) -> Weights:
            found = super()._descend(replace(begin, values=begin.values.copy()))
            return replace(found, values=found.values.copy())

        def _weigh(self, descended: Weights) -> Weights:
            found = super()._weigh(replace(descended, values=descended.values.copy()))
            return replace(found, values=found.values.copy())

    make, make_space = PROBLEMS[space]
    problem = make(DenseSamples(rows(shift=1.5)))
    domain = problem.domain(EPS)
    answers = []
    for kind in (Search, Copying):
        part = make_space(problem)
        first = Search(problem, problem.domain(0.4), part, solver, 100).run()
        if kind is Copying:
            weights = replace(first.weights, values=first.weights.values.copy())
            first = replace(first, weights=weights)
        search = kind(problem, domain, part, solver, 100, group_domain=domain, sparse=True)
        answers.append(search.run(first))
    plain, copied = answers
    np.testing.assert_array_equal(copied.weights.values, plain.weights.values)
    assert copied.status is plain.status
    assert copied.weights.moved is plain.weights.moved
    assert len(copied.weights.groups) == len(plain.weights.groups)


def test_outliers_in_several_directions_are_all_seen_at_first() -> None:
    rng = np.random.default_rng(33)
    X = rng.standard_normal((8 * N, D))
    for i, size in enumerate((3.0, 1.5, 1.5, 1.5)):
        X[160 * i : 160 * (i + 1), 8 * i : 8 * (i + 1)] += size
    problem = problem_of(objectives.sparse_mean(DenseSamples(X), 8))
    space = workspace_for(problem, 8)
    assert isinstance(space, Columns)
    space.survey(problem.untouched)
    space.widen(problem.untouched)
    assert np.isin(np.arange(8), space.coordinates).all()
    found = searching(problem, space).run()
    assert np.isin(np.arange(32), space.coordinates).all()
    assert found.status is Status.REACHED


def test_a_descent_ends_at_its_level_or_after_two_slow_steps_in_a_row() -> None:
    ends = near_or_slow(level=1.0, slow=0.9)
    none = np.empty(0)
    # Quick, slow, quick, slow, slow: only two in a row end it.
    assert [ends(value, none) for value in (10.0, 9.5, 5.0, 4.9, 4.8)] == [False] * 4 + [True]
    # A step that is exactly as quick as asked for is not slow.
    ends = near_or_slow(level=1.0, slow=0.5)
    assert [ends(value, none) for value in (8.0, 4.0, 2.0, 1.0)] == [False] * 3 + [True]


@seeds
def test_a_search_to_go_on_from_leaves_the_last_survey_to_the_next(seed: int) -> None:
    problem = sparse(DenseSamples(rows(seed)))
    whole = searching(problem, Columns(problem, 3 * K), share=0.35).run()
    space = Columns(problem, 3 * K)
    begun = searching(problem, space, share=0.35).loosely()
    assert whole.status is Status.REACHED
    assert begun.status is None
    assert len(begun.trace) < len(whole.trace)
    ended = searching(problem, space, share=0.35, start=begun.weights).run()
    assert ended.status is Status.REACHED


def test_rows_that_are_clean_are_surveyed_whoever_goes_on() -> None:
    problem = sparse(DenseSamples(rows(shift=0.0)))
    found = searching(problem, Columns(problem, 3 * K)).loosely()
    assert found.status is Status.REACHED
    assert not found.weights.moved
