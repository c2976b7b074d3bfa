"""Every solver reaches the minimum of convex objectives, found here by cutting planes."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from outweigh.estimators.search import SOLVERS, SearchOptions, find_weights
from outweigh.norms import KyFan, LargestEntries, RowwiseLargest
from outweigh.objectives import MomentObjective
from outweigh.optimise.capped_simplex import CappedSimplex
from outweigh.protocols import Norm, Samples
from outweigh.samples import DenseSamples
from tests.reference import moments as brute
from tests.reference.convex import cutting_plane_minimum

Array = NDArray[np.float64]
Kind = Callable[[Array], Samples]

N, D, EPS = 20, 3, 0.2
CONVEX: dict[str, Norm] = {
    "Frobenius": LargestEntries(D * D),
    "F,2": LargestEntries(2),
    "F,2,2": RowwiseLargest(2),
    "Ky Fan 2": KyFan(2),
}
every_solver = pytest.mark.parametrize("solver", SOLVERS)
# The paper's step takes 1/accuracy^2 evaluations, too many for a test: its law is its theorem.
adaptive = pytest.mark.parametrize("solver", [name for name in SOLVERS if name != "constant"])


def rows() -> Array:
    X = np.random.default_rng(0).standard_normal((N, D))
    X[:4] *= 2.0
    X[:4, 0] += 2.0
    return X


def value_and_slope(norm: Norm, X: Array, w: Array) -> tuple[float, Array]:
    """Return value and subgradient of the norm of M_w - I, by whole arrays."""
    A = brute.deviation(X, w, centred=False)
    if isinstance(norm, KyFan):
        values, vectors = np.linalg.eigh(A)
        top = np.argsort(-np.abs(values))[: norm.rank]
        Z = (vectors[:, top] * np.sign(values[top])) @ vectors[:, top].T
    else:
        Z = np.zeros((D, D))
        if isinstance(norm, LargestEntries):
            chosen = np.argsort(-np.abs(A).ravel())[: norm.n_entries]
            Z.ravel()[chosen] = A.ravel()[chosen]
        else:
            k = norm.n_nonzero
            columns = np.argsort(-np.abs(A), axis=1)[:, :k]
            kept = np.zeros((D, D))
            np.put_along_axis(kept, columns, np.take_along_axis(A, columns, 1), 1)
            best = np.argsort(-(kept**2).sum(axis=1))[:k]
            Z[best] = kept[best]
        Z /= np.linalg.norm(Z)
    return float(np.sum(Z * A)), np.einsum("ij,jk,ik->i", X, Z, X)


@cache
def minimum(name: str) -> float:
    caps = CappedSimplex.from_contamination(N, EPS).caps
    X = rows()
    return cutting_plane_minimum(
        lambda w: value_and_slope(CONVEX[name], X, w), np.asarray(caps), gap=1e-5
    )


@adaptive
@pytest.mark.parametrize("name", CONVEX)
def test_every_solver_reaches_the_minimum_of_a_convex_case(solver: str, name: str) -> None:
    objective = MomentObjective(DenseSamples(rows()), CONVEX[name], centred=False)
    domain = CappedSimplex.from_contamination(N, EPS)
    search = SearchOptions(solver, max_iter=5000, tol=1e-7, stop_at_floor=False)
    assert find_weights(objective, domain, search).value == pytest.approx(minimum(name), abs=1e-3)


@pytest.mark.parametrize("name", CONVEX)
@pytest.mark.parametrize("budget", [100, 400])
def test_the_constant_step_keeps_the_bound_of_its_theorem(name: str, budget: int) -> None:
    # After T steps of length h the best value is within (R^2 / (h T) + h L^2) / 2 of the minimum;
    # at h = R / (L sqrt(T)) that is R L / sqrt(T), with L = sqrt(n) max |x_i|^2 r for a dual ball
    # of spectral radius 1 and rank r.
    X = rows()
    domain = CappedSimplex.from_contamination(N, EPS)
    objective = MomentObjective(DenseSamples(X), CONVEX[name], centred=False)
    search = SearchOptions("constant", max_iter=budget, stop_at_floor=False)
    result = find_weights(objective, domain, search)
    vertex = domain.minimize_linear(np.arange(N, dtype=float))
    radius = float(np.linalg.norm(vertex - domain.reference()))
    lipschitz = 2.0 * np.sqrt(N) * float(np.max(np.sum(X**2, axis=1)))
    assert result.value - minimum(name) <= 2.0 * radius * lipschitz / np.sqrt(budget)


def contaminated(seed: int = 0) -> Array:
    X = np.random.default_rng([5, seed]).standard_normal((300, 12))
    X[:30] += 2.0
    return X


def mean_objective(kind: Kind) -> MomentObjective:
    return MomentObjective(kind(contaminated()), RowwiseLargest(3), centred=True)


@every_solver
def test_every_solver_stays_in_the_set(samples_of: Kind, solver: str) -> None:
    domain = CappedSimplex.from_contamination(300, 0.1)
    result = find_weights(mean_objective(samples_of), domain, SearchOptions(solver, max_iter=100))
    assert domain.contains(result.weights, atol=1e-9)


@every_solver
def test_every_solver_returns_no_more_than_it_started_from(samples_of: Kind, solver: str) -> None:
    objective = mean_objective(samples_of)
    domain = CappedSimplex.from_contamination(300, 0.1)
    start = objective.evaluate(domain.reference()).value
    assert find_weights(objective, domain, SearchOptions(solver, max_iter=50)).value <= start


@every_solver
def test_every_solver_reports_the_objective_at_its_weights(samples_of: Kind, solver: str) -> None:
    objective = mean_objective(samples_of)
    domain = CappedSimplex.from_contamination(300, 0.1)
    result = find_weights(objective, domain, SearchOptions(solver, max_iter=50))
    assert result.value == pytest.approx(objective.evaluate(result.weights).value, rel=1e-12)


@every_solver
@pytest.mark.parametrize("budget", [1, 3, 20])
def test_every_solver_keeps_to_its_budget(samples_of: Kind, solver: str, budget: int) -> None:
    domain = CappedSimplex.from_contamination(300, 0.1)
    search = SearchOptions(solver, max_iter=budget)
    assert find_weights(mean_objective(samples_of), domain, search).n_iter <= budget


@every_solver
def test_every_solver_gives_the_same_answer_twice(samples_of: Kind, solver: str) -> None:
    domain = CappedSimplex.from_contamination(300, 0.1)
    first, second = (
        find_weights(mean_objective(samples_of), domain, SearchOptions(solver, max_iter=50)).weights
        for _ in range(2)
    )
    np.testing.assert_array_equal(first, second)


@every_solver
def test_every_solver_takes_integer_weights_for_repeated_rows(solver: str) -> None:
    X, repeats = contaminated(), 1 + np.arange(300) % 2
    search = SearchOptions(solver, max_iter=30, stop_at_floor=False)
    weighted = MomentObjective(DenseSamples(X), RowwiseLargest(3), centred=True)
    repeated = MomentObjective(
        DenseSamples(np.repeat(X, repeats, axis=0)), RowwiseLargest(3), centred=True
    )
    by_weight = find_weights(
        weighted, CappedSimplex.from_contamination(repeats.astype(float), 0.1), search
    )
    by_rows = find_weights(
        repeated, CappedSimplex.from_contamination(int(repeats.sum()), 0.1), search
    )
    copies = np.repeat(by_weight.weights / repeats, repeats)
    np.testing.assert_allclose(copies, by_rows.weights, atol=1e-9)


@every_solver
def test_every_solver_leaves_an_empty_choice_alone(samples_of: Kind, solver: str) -> None:
    domain = CappedSimplex.from_contamination(300, 0.0)
    result = find_weights(mean_objective(samples_of), domain, SearchOptions(solver, max_iter=20))
    np.testing.assert_allclose(result.weights, 1 / 300, rtol=1e-9)
