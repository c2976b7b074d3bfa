"""Stationarity; the gradient of the Moreau envelope, against a brute-force proximal point."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from outweigh.norms import KyFan, LargestEntries, RowwiseLargest
from outweigh.objectives import MomentObjective
from outweigh.optimise.capped_simplex import CappedSimplex
from outweigh.protocols import Norm, Samples
from outweigh.research.moreau import moreau_gradient, stationarity, theorem_stationarity
from tests.reference import moments as brute
from tests.reference import norms
from tests.reference.convex import minimum_on_triangle

Array = NDArray[np.float64]
Kind = Callable[[Array], Samples]

MOREAU_CASES: dict[str, tuple[Norm, Callable[[Array], float], bool]] = {
    "F,1,1 centred": (RowwiseLargest(1), lambda A: norms.rowwise_largest(A, 1), True),
    "Frobenius centred": (LargestEntries(4), lambda A: norms.largest_entries(A, 4), True),
    "spectral centred": (KyFan(1), lambda A: norms.ky_fan(A, 1), True),
    "F,2 uncentred": (LargestEntries(2), lambda A: norms.largest_entries(A, 2), False),
    "Ky Fan 2 uncentred": (KyFan(2), lambda A: norms.ky_fan(A, 2), False),
}


@pytest.mark.parametrize("name", MOREAU_CASES)
@pytest.mark.parametrize("point", ["reference", "vertex"])
def test_the_moreau_gradient_is_that_of_a_brute_force_proximal_point(
    samples_of: Kind, name: str, point: str
) -> None:
    norm, brute_norm, centred = MOREAU_CASES[name]
    X = np.array([[1.6, 0.3], [-0.9, 1.1], [0.4, -2.2]])
    domain = CappedSimplex.from_contamination(3, 0.45)
    caps = np.asarray(domain.caps)
    w = domain.reference() if point == "reference" else domain.minimize_linear([3.0, 2.0, 1.0])
    found = moreau_gradient(
        MomentObjective(samples_of(X), norm, centred), domain, w, rtol=1e-3, max_evaluations=100
    )

    def proximal(v: Array) -> float:
        level = brute_norm(brute.deviation(X, v, centred=centred))
        return level + found.beta * float(np.sum((v - w) ** 2))

    nearest = minimum_on_triangle(proximal, caps)
    expected = 2.0 * found.beta * float(np.linalg.norm(nearest - w))
    assert found.gradient_norm == pytest.approx(expected, abs=found.accuracy + 1e-4)


@pytest.mark.parametrize("name", MOREAU_CASES)
def test_the_moreau_gradient_is_as_accurate_as_asked(samples_of: Kind, name: str) -> None:
    norm, _, centred = MOREAU_CASES[name]
    X = np.random.default_rng(1).standard_normal((15, 4))
    X[:3] += 2.0
    domain = CappedSimplex.from_contamination(15, 0.2)
    found = moreau_gradient(
        MomentObjective(samples_of(X), norm, centred), domain, domain.reference(), rtol=0.05
    )
    assert found.accuracy <= 0.05 * found.gradient_norm


def test_the_curvature_is_at_least_twice_the_squared_norm_of_the_data(samples_of: Kind) -> None:
    X = np.random.default_rng(1).standard_normal((15, 4))
    domain = CappedSimplex.from_contamination(15, 0.2)
    objective = MomentObjective(samples_of(X), RowwiseLargest(2), centred=True)
    beta = moreau_gradient(objective, domain, domain.reference()).beta
    assert beta >= 2.0 * np.linalg.norm(X, 2) ** 2 * (1 - 1e-9)


def test_the_moreau_gradient_vanishes_at_a_minimiser(samples_of: Kind) -> None:
    cross = np.vstack([5.0 * np.eye(4), -5.0 * np.eye(4)])
    domain = CappedSimplex.from_contamination(8, 0.25)
    objective = MomentObjective(samples_of(cross), LargestEntries(10_000), centred=False)
    found = moreau_gradient(objective, domain, domain.reference())
    assert found.gradient_norm == pytest.approx(0.0, abs=1e-9)


def cross(size: float, d: int = 4) -> Array:
    return np.vstack([size * np.eye(d), -size * np.eye(d)])


def frobenius(samples: Samples) -> MomentObjective:
    return MomentObjective(samples, LargestEntries(10_000), centred=False)


def test_no_direction_descends_at_a_minimiser_known_by_symmetry(samples_of: Kind) -> None:
    domain = CappedSimplex.from_contamination(8, 0.25)
    w = domain.reference()
    g = frobenius(samples_of(cross(5.0))).evaluate(w).subgradient
    assert stationarity(domain, w, g) == pytest.approx(0.0, abs=1e-12)


def test_no_direction_descends_at_a_vertex_that_leaves_the_outlier_out(samples_of: Kind) -> None:
    X = np.vstack([cross(3.0), np.full((1, 4), 9.0)])
    domain = CappedSimplex.from_contamination(9, 1 / 9)
    w = np.append(np.full(8, 1 / 8), 0.0)
    g = frobenius(samples_of(X)).evaluate(w).subgradient
    assert stationarity(domain, w, g) == pytest.approx(0.0, abs=1e-12)


def test_a_long_descent_on_a_smooth_convex_case_ends_stationary(samples_of: Kind) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((12, 3)) * 2.0
    domain = CappedSimplex.from_contamination(12, 0.3)
    objective = frobenius(samples_of(X))
    w = domain.reference()
    first = stationarity(domain, w, objective.evaluate(w).subgradient)
    # The curvature of |M_w - I|_F is at most that of its square over the value, which exceeds one.
    step = 1.0 / np.linalg.norm((X @ X.T) ** 2, 2)
    for _ in range(1500):
        w = domain.project(w - step * objective.evaluate(w).subgradient)
    assert stationarity(domain, w, objective.evaluate(w).subgradient) < 1e-6 * first


def test_inside_the_set_stationarity_is_the_length_of_the_centred_gradient() -> None:
    domain = CappedSimplex.from_contamination(4, 0.5)
    g = np.array([1.0, 2.0, 0.0, -1.0])
    expected = np.linalg.norm(g - g.mean())
    assert stationarity(domain, domain.reference(), g) == pytest.approx(expected, rel=1e-12)


def test_stationarity_of_integer_weights_is_that_of_repeated_rows() -> None:
    repeats, g = np.array([1, 2, 3]), np.array([1.0, -1.0, 0.5])
    weighted = CappedSimplex.from_contamination(repeats.astype(float), 0.4)
    repeated = CappedSimplex.from_contamination(6, 0.4)
    by_weight = stationarity(weighted, weighted.reference(), g)
    by_rows = stationarity(repeated, repeated.reference(), np.repeat(g, repeats))
    assert by_weight == pytest.approx(by_rows, rel=1e-12)


@pytest.mark.parametrize(("n", "eps"), [(100, 0.1), (5000, 0.2)])
def test_the_threshold_of_the_theorem_is_its_formula(n: int, eps: float) -> None:
    delta = eps * np.sqrt(np.log(1 / eps))
    expected = n**0.5 * delta**2 * eps**-1.5
    assert theorem_stationarity(n, eps) == pytest.approx(expected, rel=1e-12)


def test_without_contamination_the_theorem_asks_for_zero() -> None:
    assert theorem_stationarity(100, 0.0) == 0.0
