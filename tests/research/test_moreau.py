"""The gradient of the Moreau envelope, against a brute-force proximal point."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from outweigh.norms import KyFan, LargestEntries, RowwiseLargest
from outweigh.objectives import MomentObjective
from outweigh.optimise.capped_simplex import CappedSimplex
from outweigh.protocols import Norm, Samples
from outweigh.research.moreau import moreau_gradient
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
