"""The part of feature space that a descent runs in: what it takes in, and what it says of rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from outweigh import objectives
from outweigh.fit.problem import Problem
from outweigh.fit.tuning import TUNING
from outweigh.fit.workspace import Basis, Columns, Everything, Part, workspace_for
from outweigh.forms import Form
from outweigh.norms import KyFan
from outweigh.objectives import MomentObjective
from outweigh.optimise.capped_simplex import CappedSimplex
from outweigh.protocols import Indices, Survey
from outweigh.samples import ArrayMoment, DenseSamples

Array = NDArray[np.float64]

N, D, K, EPS = 1500, 140, 3, 0.1
DOMAIN = CappedSimplex.from_contamination(N, EPS)
UNIFORM = np.full(N, 1.0 / N)


def rows(seed: int = 0, shift: float = 1.0, n_evident: int = 6) -> Array:
    rng = np.random.default_rng([77, seed])
    X = rng.standard_normal((N, D))
    X[: int(EPS * N), :n_evident] += shift
    return X


def problem_of(objective: MomentObjective, kurtosis: float = 3.0) -> Problem:
    n = objective.samples.n_samples
    nothing = np.empty(0, dtype=np.intp)
    return Problem(objective, np.ones(n), nothing, kurtosis, objective.n_features)


def dense(X: Array) -> Problem:
    return problem_of(objectives.mean(DenseSamples(X)))


def sparse(X: Array, kurtosis: float = 3.0) -> Problem:
    return problem_of(objectives.sparse_mean(DenseSamples(X), K), kurtosis)


def widened(X: Array, weights: Array = UNIFORM) -> Basis:
    space = Basis(dense(X))
    space.survey(weights)
    space.widen(weights)
    return space


def basis_of(space: Basis) -> Array:
    assert space.part.basis is not None
    return space.part.basis


# Parts


def parts() -> dict[str, Part]:
    Q = np.linalg.qr(np.random.default_rng(1).standard_normal((9, 4)))[0]
    return {
        "all": Part(9),
        "columns": Part(9, columns=np.array([1, 4, 5, 8])),
        "basis": Part(9, basis=Q),
    }


@pytest.mark.parametrize("name", ["all", "columns", "basis"])
def test_a_lifted_form_says_of_a_row_what_the_form_says_of_its_part(name: str) -> None:
    part = parts()[name]
    X = np.random.default_rng(2).standard_normal((7, 9))
    seen = X @ part.lift(np.eye({"all": 9}.get(name, 4)))
    rng = np.random.default_rng(3)
    m = seen.shape[1]
    form = Form.from_directions(rng.standard_normal((m, 2)), np.array([1.0, -2.0]))
    drift = rng.standard_normal(m)
    found = DenseSamples(X).quadratic(part.lift_form(form), part.lift(drift))
    np.testing.assert_allclose(found, DenseSamples(seen).quadratic(form, drift), atol=1e-12)


def test_entries_are_lifted_to_the_columns_they_stand_for() -> None:
    part = parts()["columns"]
    form = Form.from_entries(4, np.array([0, 2]), np.array([3, 2]), np.array([1.0, -1.0]))
    expected = np.zeros((9, 9))
    expected[1, 8], expected[5, 5] = 1.0, -1.0
    np.testing.assert_array_equal(part.lift_form(form).to_array(), expected)


# Which


@pytest.mark.parametrize(
    ("n_features", "n_entries", "kind"),
    [(140, 3, Columns), (59, 3, Everything), (140, 0, Basis), (63, 0, Everything)],
)
def test_a_part_is_descended_on_where_features_are_many(
    n_features: int, n_entries: int, kind: type
) -> None:
    X = np.random.default_rng(0).standard_normal((50, n_features))
    make = sparse if n_entries else dense
    assert type(workspace_for(make(X), n_entries)) is kind


def test_beside_components_directions_hold_them_and_take_them_out() -> None:
    X, component = rows(), np.linalg.qr(np.random.default_rng(5).standard_normal((D, 2)))[0]
    problem = dense(X + 3.0 * np.random.default_rng(6).standard_normal((N, 1)) * component[:, 0])
    beside = problem.with_objective(replace(problem.objective, removed=component))
    space = Basis(beside)
    survey = space.survey(UNIFORM)
    assert survey.value == pytest.approx(beside.objective.verify(UNIFORM), rel=1e-12)
    space.widen(UNIFORM)
    np.testing.assert_allclose(basis_of(space)[:, :2], component)
    # The direction of most variance beside them is in the basis, and is all the norm sees there.
    assert space.objective.evaluate(UNIFORM).value == pytest.approx(survey.value, rel=1e-9)
    form = space.part.lift_form(space.objective.evaluate(UNIFORM).form)
    np.testing.assert_allclose(component.T @ form.to_array() @ component, 0.0, atol=1e-12)


def test_everything_is_surveyed_as_the_objective_is_and_misses_nothing() -> None:
    X = rows()
    space = Everything(sparse(X))
    value = objectives.sparse_mean(DenseSamples(X), K).evaluate(UNIFORM).value
    assert space.survey(UNIFORM).value == pytest.approx(value, rel=1e-12)
    space.widen(UNIFORM)
    assert not space.misses(UNIFORM)
    assert space.objective.evaluate(UNIFORM).value == pytest.approx(value, rel=1e-12)


# Directions


def spectrum_with_a_gap_after(count: int) -> Array:
    values = np.linspace(1.0, 0.9, 40)
    values[:3] += 2.0
    values[count:] -= 0.5
    Q = np.linalg.qr(np.random.default_rng(3).standard_normal((40, 40)))[0]
    return np.asarray((Q * values) @ Q.T)


def leading(matrix: Array, level: float) -> tuple[Array, int] | None:
    """Return the directions chosen where a survey found this matrix and clean is that level."""
    n, d = 10_000, len(matrix)
    space = Basis(problem_of(objectives.mean(DenseSamples(np.zeros((n, d))))))
    space._matrix = ArrayMoment(matrix)
    scale = level / space._problem.floor(np.full(n, 1.0 / n)).median
    space._matrix = ArrayMoment(matrix / scale)
    return space._leading(np.full(n, 1.0 / n))


@pytest.mark.parametrize("count", [4, 5])
def test_the_directions_end_where_eigenvalues_have_their_widest_gap(count: int) -> None:
    found = leading(spectrum_with_a_gap_after(count), 1.5)
    assert found is not None
    assert (found[0].shape[1], found[1]) == (count, 3)


def test_more_directions_than_allowed_are_none_at_all() -> None:
    values = np.r_[np.full(13, 3.0), np.linspace(1.0, 0.1, 27)]
    assert leading(np.diag(values), 1.5) is None


def test_eigenvalues_of_either_sign_are_evidence() -> None:
    values = np.r_[-3.0, 2.0, np.linspace(0.5, 0.1, 38)]
    found = leading(np.diag(values), 1.0)
    assert found is not None
    assert found[1] == 2
    np.testing.assert_allclose(np.abs(found[0][:2, :2]), np.eye(2), atol=1e-9)


def test_more_pairs_than_first_computed_are_found_where_they_exceed_the_level() -> None:
    values = np.r_[np.linspace(3.0, 2.0, 40), np.linspace(1.0, 0.1, 260)]
    found = leading(np.diag(values), 1.5)
    assert found is not None
    assert found[1] == 40


def test_the_basis_is_orthonormal_and_the_rows_are_projected_on_it() -> None:
    X = rows()
    space = widened(X)
    V = basis_of(space)
    np.testing.assert_allclose(V.T @ V, np.eye(V.shape[1]), atol=1e-12)
    projected = space.objective.samples.project(np.eye(V.shape[1]))
    np.testing.assert_allclose(projected, X @ V, atol=1e-12)


def test_the_value_on_the_span_is_the_norm_of_the_matrix_seen_in_it() -> None:
    X = rows()
    space = widened(X)
    V = basis_of(space)
    w = DOMAIN.project(np.random.default_rng(1).random(N) / N)
    S = (X - w @ X).T @ (w[:, None] * (X - w @ X)) - np.eye(D)
    expected = np.abs(np.linalg.eigvalsh(V.T @ S @ V)).max()
    assert space.objective.evaluate(w).value == pytest.approx(expected, rel=1e-10)


def test_a_second_survey_at_the_same_weights_names_nothing_new() -> None:
    space = widened(rows())
    before = basis_of(space).shape[1]
    space.survey(UNIFORM)
    assert not space.misses(UNIFORM)
    space.widen(UNIFORM)
    assert basis_of(space).shape[1] == before


def test_evidence_outside_the_span_is_missed_until_the_span_is_widened() -> None:
    X = rows()
    space = widened(X)
    before = basis_of(space).shape[1]
    # Weight on rows that are long in one direction puts evidence there.
    w = 1.0 + X[:, 40] ** 2
    w /= w.sum()
    space.survey(w)
    assert space.misses(w)
    space.widen(w)
    V = basis_of(space)
    assert V.shape[1] > before
    np.testing.assert_allclose(V.T @ V, np.eye(V.shape[1]), atol=1e-10)
    assert not space.misses(w)


def test_evidence_in_most_directions_is_descended_on_everywhere() -> None:
    X = rows()
    X[: int(EPS * N)] *= 3.0
    space = widened(X)
    assert space.part.basis is None
    full = objectives.mean(DenseSamples(X)).evaluate(UNIFORM).value
    assert space.objective.evaluate(UNIFORM).value == pytest.approx(full, rel=1e-12)
    assert not space.misses(UNIFORM)


def test_the_level_on_directions_is_that_of_all_features() -> None:
    assert widened(rows()).n_noise == D


@pytest.mark.parametrize("space", [Everything(dense(rows())), widened(rows())])
def test_a_spectral_norm_is_spread_over_all_directions_above_the_clean_level(
    space: Everything | Basis,
) -> None:
    norm = space.objective.norm
    assert isinstance(norm, KyFan)
    assert norm.level == pytest.approx(dense(rows()).floor(UNIFORM).median)


# Features


def columns_at(survey: Survey, kurtosis: float = 3.0) -> Columns:
    space = Columns(sparse(np.zeros((N, len(survey.energy))), kurtosis), 6)
    space._survey = survey
    return space


def evident(survey: Survey, factor: float = 1.0, kurtosis: float = 3.0) -> list[int]:
    found: Indices = columns_at(survey, kurtosis)._evident(UNIFORM, factor)
    return found.tolist()


def test_evidence_is_energy_beyond_that_of_noise() -> None:
    energy = np.full(100, 10.0 / N)
    energy[:3] = [35.0 / N, 45.0 / N, 80.0 / N]
    survey = Survey(1.0, np.arange(3), energy, np.zeros(100), 10)
    # Of 10 squares of unit noise, one in 2000 sums exceeds 31.4, and half more is 47.1.
    assert evident(survey) == [0, 1, 2]
    assert evident(survey, TUNING.clear_evidence) == [2]


def test_heavy_tails_are_no_evidence_on_the_diagonal() -> None:
    own = np.zeros(100)
    own[0] = 90.0 / N
    survey = Survey(1.0, np.arange(3), np.full(100, 10.0 / N), own, 10)
    assert evident(survey) == [0]
    assert evident(survey, kurtosis=10.0) == []


def taken_in(X: Array) -> Indices:
    space = Columns(sparse(X), 6)
    space.survey(UNIFORM)
    space.widen(UNIFORM)
    return space.coordinates


def test_all_features_that_show_evidence_are_taken_in_at_once() -> None:
    assert np.isin(np.arange(30), taken_in(rows(shift=1.2, n_evident=30))).sum() >= 28


def test_where_most_features_show_evidence_a_few_of_them_will_do() -> None:
    assert taken_in(rows(shift=1.2, n_evident=D)).size < 15


def test_of_noise_little_more_than_asked_is_taken_in() -> None:
    assert taken_in(rows(shift=0.0)).size <= 6 + K + 1


def test_features_once_in_stay_in_and_the_rows_are_seen_on_them() -> None:
    X = rows(shift=2.0)
    space = Columns(sparse(X), 6)
    space.survey(UNIFORM)
    assert space.misses(UNIFORM)
    space.widen(UNIFORM)
    first = space.coordinates
    assert not space.misses(UNIFORM)
    w = np.where(np.arange(N) < EPS * N, 0.0, 1.0)
    w = w * (1.0 + X[:, 40] ** 2)
    w /= w.sum()
    space.survey(w)
    space.widen(w)
    assert np.isin(first, space.coordinates).all()
    assert 40 in space.coordinates
    seen = space.objective.samples.project(np.eye(space.n_noise))
    np.testing.assert_allclose(seen, X[:, space.coordinates])


def test_the_value_surveyed_is_that_of_all_features() -> None:
    X = rows()
    full = objectives.sparse_mean(DenseSamples(X), K).evaluate(UNIFORM).value
    assert Columns(sparse(X), 6).survey(UNIFORM).value == pytest.approx(full, rel=1e-5)


@pytest.mark.parametrize("k", [1, 20, 30])
def test_the_descent_of_a_sparse_answer_is_on_a_part_however_many_entries_it_has(k: int) -> None:
    X = np.random.default_rng(3).standard_normal((300, 90))
    objective = objectives.sparse_mean(DenseSamples(X), k)
    problem = Problem(objective, np.ones(300), np.empty(0, dtype=np.intp), 3.0, 90)
    space = workspace_for(problem, k)
    space.survey(problem.untouched)
    space.widen(problem.untouched)
    # Half of the features, and the rows of the maximiser.
    assert k <= space.objective.n_features <= 45 + k
    assert space.objective.n_features < 90
