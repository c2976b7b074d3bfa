"""Every solver reaches the minimum of convex objectives, found here by cutting planes.

A step rule that is listed in `SOLVERS` is tested by these laws, and in all four estimators.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from outweigh.adversaries import make
from outweigh.estimators.base import RobustEstimator
from outweigh.norms import KyFan, LargestEntries, RowwiseLargest
from outweigh.norms.floor import noise_floor
from outweigh.objectives import MomentObjective
from outweigh.optimise.capped_simplex import CappedSimplex
from outweigh.optimise.descent import Result, descend
from outweigh.optimise.steps import SOLVERS, Subgradient, steps_for
from outweigh.protocols import Norm, Samples
from outweigh.research.algorithms import constant_step
from outweigh.samples import DenseSamples
from tests.laws.members import ESTIMATORS
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


def solve(solver: str, objective: MomentObjective, domain: CappedSimplex, max_iter: int) -> Result:
    """Descend from untouched weights toward the level of clean rows."""
    make_rule, update = steps_for(solver, domain)
    start = domain.reference()
    level = noise_floor(objective.norm, domain.n_effective(start), objective.n_features, 3.0)
    return descend(objective, update, make_rule(level.median), start, max_iter=max_iter)


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


@every_solver
@pytest.mark.parametrize("name", CONVEX)
def test_every_solver_reaches_the_minimum_of_a_convex_case(solver: str, name: str) -> None:
    objective = MomentObjective(DenseSamples(rows()), CONVEX[name], centred=False)
    domain = CappedSimplex.from_contamination(N, EPS)
    # Without a level to aim at, and to more digits than a fit needs.
    make_rule, update = steps_for(solver, domain)
    patience = {} if solver == "backtracking" else {"patience": 100}
    rule = replace(make_rule(0.0), tol=1e-7, **patience)
    found = descend(objective, update, rule, domain.reference(), max_iter=5000)
    assert found.value == pytest.approx(minimum(name), abs=1e-3)


@pytest.mark.parametrize("name", CONVEX)
@pytest.mark.parametrize("budget", [100, 400])
def test_the_constant_step_keeps_the_bound_of_its_theorem(name: str, budget: int) -> None:
    # After T steps of length h the best value is within (R^2 / (h T) + h L^2) / 2 of the minimum;
    # at h = R / (L sqrt(T)) that is R L / sqrt(T), with L = sqrt(n) max |x_i|^2 r for a dual ball
    # of spectral radius 1 and rank r.
    X = rows()
    domain = CappedSimplex.from_contamination(N, EPS)
    objective = MomentObjective(DenseSamples(X), CONVEX[name], centred=False)
    rule = constant_step(objective, domain, budget)
    result = descend(objective, Subgradient(domain), rule, domain.reference(), max_iter=budget)
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
    result = solve(solver, mean_objective(samples_of), domain, 100)
    assert domain.contains(result.weights, atol=1e-9)


@every_solver
def test_every_solver_returns_no_more_than_it_started_from(samples_of: Kind, solver: str) -> None:
    objective = mean_objective(samples_of)
    domain = CappedSimplex.from_contamination(300, 0.1)
    start = objective.evaluate(domain.reference()).value
    assert solve(solver, objective, domain, 50).value <= start


@every_solver
def test_every_solver_reports_the_objective_at_its_weights(samples_of: Kind, solver: str) -> None:
    objective = mean_objective(samples_of)
    domain = CappedSimplex.from_contamination(300, 0.1)
    result = solve(solver, objective, domain, 50)
    assert result.value == pytest.approx(objective.evaluate(result.weights).value, rel=1e-12)


@every_solver
@pytest.mark.parametrize("budget", [1, 3, 20])
def test_every_solver_keeps_to_its_budget(samples_of: Kind, solver: str, budget: int) -> None:
    domain = CappedSimplex.from_contamination(300, 0.1)
    assert solve(solver, mean_objective(samples_of), domain, budget).n_iter <= budget


@every_solver
def test_every_solver_gives_the_same_answer_twice(samples_of: Kind, solver: str) -> None:
    domain = CappedSimplex.from_contamination(300, 0.1)
    first, second = (
        solve(solver, mean_objective(samples_of), domain, 50).weights for _ in range(2)
    )
    np.testing.assert_array_equal(first, second)


@every_solver
def test_every_solver_takes_integer_weights_for_repeated_rows(solver: str) -> None:
    X, repeats = contaminated(), 1 + np.arange(300) % 2
    weighted = MomentObjective(DenseSamples(X), RowwiseLargest(3), centred=True)
    repeated = MomentObjective(
        DenseSamples(np.repeat(X, repeats, axis=0)), RowwiseLargest(3), centred=True
    )
    by_weight = solve(
        solver, weighted, CappedSimplex.from_contamination(repeats.astype(float), 0.1), 30
    )
    by_rows = solve(solver, repeated, CappedSimplex.from_contamination(int(repeats.sum()), 0.1), 30)
    copies = np.repeat(by_weight.weights / repeats, repeats)
    np.testing.assert_allclose(copies, by_rows.weights, atol=1e-9)


@every_solver
def test_every_solver_leaves_an_empty_choice_alone(samples_of: Kind, solver: str) -> None:
    domain = CappedSimplex.from_contamination(300, 0.0)
    result = solve(solver, mean_objective(samples_of), domain, 20)
    np.testing.assert_allclose(result.weights, 1 / 300, rtol=1e-9)


def attacked(name: str) -> Array:
    """Return rows on which the estimator of that name has something to remove."""
    attack = "spiked_mixture" if name.endswith("PCA") else "wrong_support"
    return make(attack, 600, 30, 3, 0.1, random_state=3).X


def white(name: str, **options: object) -> RobustEstimator:
    """Return an estimator that takes noise to be what the attacks are made on."""
    return ESTIMATORS[name](scale=None, covariance=None, **options)


@cache
def trace_of(name: str, solver: str) -> tuple[tuple[float, float], ...]:
    est = white(name, contamination=0.1, solver=solver).fit(attacked(name))
    return tuple((line.value, line.step) for line in est.trace_)


@every_solver
@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_solver_finds_the_outliers_in_every_estimator(name: str, solver: str) -> None:
    X = attacked(name)
    for contamination in (0.1, "auto"):
        est = white(name, contamination=contamination, solver=solver).fit(X)
        assert est.certificate_.clean
        assert est.contamination_ > 0.03


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_solver_is_what_every_estimator_descends_by(name: str) -> None:
    traces = {trace_of(name, solver) for solver in SOLVERS}
    assert len(traces) == len(SOLVERS)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_name_that_is_no_solver_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="solver"):
        ESTIMATORS[name](solver="newton").fit(attacked(name))
