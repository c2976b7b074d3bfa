"""The stability of clean samples: its value, what it must exceed, and what is refused."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from outweigh import stability
from tests.reference import moments as brute
from tests.reference import norms

X = np.random.default_rng(0).standard_normal((200, 6))
SPIKE = {"component": np.eye(6)[0], "spike": 1.0}


def test_no_weights_found_by_chance_exceed_the_bound() -> None:
    found = stability(X, problem="mean", contamination=0.1, mean=np.zeros(6))
    rng = np.random.default_rng(1)
    for _ in range(200):
        kept = rng.choice(200, 160, replace=False)
        assert np.linalg.norm(X[kept].mean(axis=0)) <= found.delta_lower_bound


@pytest.mark.parametrize("spike", [np.nan, np.inf, -1.0, "1"])
def test_a_spike_that_is_no_strength_is_refused(spike: object) -> None:
    with pytest.raises(ValueError, match=r"'spike' parameter .* for 'pca' must be a float"):
        stability(X, problem="pca", contamination=0.1, component=np.eye(6)[0], spike=spike)


@pytest.mark.parametrize("n_nonzero", [2.5, 3.0, 0, True, "3", None])
def test_a_sparsity_that_is_no_count_is_refused(n_nonzero: object) -> None:
    with pytest.raises(ValueError, match=r"'n_nonzero' .* must be an int in the range \[1, inf"):
        stability(X, problem="sparse pca", contamination=0.1, n_nonzero=n_nonzero, **SPIKE)


def test_a_sparsity_beyond_the_features_is_refused() -> None:
    with pytest.raises(ValueError, match="n_nonzero=7 is more than the 6 features of X"):
        stability(X, problem="sparse pca", contamination=0.1, n_nonzero=7, **SPIKE)


@pytest.mark.parametrize("contamination", [0.0, 0.5, np.nan, "auto"])
def test_a_contamination_outside_the_definition_is_refused(contamination: object) -> None:
    with pytest.raises(ValueError, match="'contamination' parameter of stability must be a float"):
        stability(X, problem="pca", contamination=contamination, **SPIKE)


def test_a_missing_spike_is_named() -> None:
    with pytest.raises(ValueError, match=r"'spike' parameter .* for 'pca' must be a float"):
        stability(X, problem="pca", contamination=0.1, component=np.eye(6)[0])


# Ten rows, of which weights in D(n, 2 eps) may leave out two: the largest mean, and the largest
# second moment about zero, are at one of the 45 vertices.
FEW = [np.random.default_rng(seed).standard_normal((10, 3)) for seed in range(6)]
VERTICES = [
    np.where(np.isin(np.arange(10), pair), 0.0, 0.125) for pair in combinations(range(10), 2)
]
AXIS = np.eye(3)[0]


@pytest.mark.parametrize(
    ("problem", "name", "given"),
    [
        ("mean", "n_nonzero", 2),
        ("pca", "n_nonzero", 2),
        ("mean", "spike", 1.0),
        ("sparse mean", "component", np.eye(6)[0]),
        ("sparse pca", "mean", np.zeros(6)),
    ],
)
def test_what_has_no_effect_is_refused(problem: str, name: str, given: object) -> None:
    X = np.random.default_rng(0).standard_normal((50, 6))
    needed = {"mean": {"mean": np.zeros(6)}, "pca": SPIKE}[problem.split()[-1]]
    if problem.startswith("sparse"):
        needed = {**needed, "n_nonzero": 2}
    with pytest.raises(ValueError, match=f"'{name}' parameter .* for '{problem}' must be None"):
        stability(X, problem=problem, contamination=0.1, **{**needed, name: given})


@pytest.mark.parametrize("rows", FEW)
@pytest.mark.parametrize("n_nonzero", [None, 2])
def test_the_deviation_of_the_mean_is_that_of_every_vertex(
    rows: np.ndarray, n_nonzero: int | None
) -> None:
    problem = "mean" if n_nonzero is None else "sparse mean"
    found = stability(
        rows, problem=problem, contamination=0.1, n_nonzero=n_nonzero, mean=np.zeros(3)
    )
    expected = max(norms.vector_largest(w @ rows, n_nonzero or 3) for w in VERTICES)
    assert found.mean_deviation == pytest.approx(expected, rel=1e-9)
    assert found.delta_lower_bound == max(
        found.mean_deviation, np.sqrt(0.1 * found.moment_deviation)
    )


@pytest.mark.parametrize("rows", FEW)
@pytest.mark.parametrize("n_nonzero", [None, 1])
def test_the_deviation_of_components_is_at_most_that_of_every_vertex_and_near_it(
    rows: np.ndarray, n_nonzero: int | None
) -> None:
    problem = "pca" if n_nonzero is None else "sparse pca"
    found = stability(
        rows, problem=problem, contamination=0.1, n_nonzero=n_nonzero, component=AXIS, spike=0.5
    )
    reference = np.eye(3) + 0.5 * np.outer(AXIS, AXIS)
    matrices = [brute.deviation(rows, w, centred=False, reference=reference) for w in VERTICES]
    norm = norms.ky_fan if n_nonzero is None else norms.largest_entries
    expected = max(norm(matrix, 2) for matrix in matrices)
    assert 0.85 * expected <= found.moment_deviation <= expected * (1 + 1e-9)
    assert found.delta_lower_bound == found.moment_deviation


@pytest.mark.parametrize("problem", ["mean", "sparse mean"])
def test_rows_on_two_points_have_the_stability_that_a_hand_computes(problem: str) -> None:
    # Twelve rows at +1, eight at -1, of mean 0.2; four of twenty may go. Those at -1: the mean is
    # (12 - 4) / 16 = 0.5 and the variance 1 - 0.5^2.
    rows = np.repeat([1.0, -1.0], [12, 8])[:, None]
    k = 1 if problem.startswith("sparse") else None
    found = stability(rows, problem=problem, contamination=0.1, n_nonzero=k, mean=[0.2])
    assert found.mean_deviation == pytest.approx(0.3)
    assert found.moment_deviation == pytest.approx(0.25)
    assert found.delta_lower_bound == pytest.approx(0.3)


@pytest.mark.parametrize("problem", ["pca", "sparse pca"])
def test_components_of_two_lengths_have_the_stability_that_a_hand_computes(problem: str) -> None:
    # Ten rows of square 1 and ten of square 3 in one column: the mean square is 2 = 1 + rho, and
    # 2.25 without four of the shorter ones.
    rows = np.sqrt(np.repeat([[1.0], [3.0]], 10, axis=0))
    k = 1 if problem.startswith("sparse") else None
    found = stability(
        rows, problem=problem, contamination=0.1, n_nonzero=k, component=[1.0], spike=1.0
    )
    assert found.moment_deviation == pytest.approx(1 / 4)
    assert found.mean_deviation is None
    assert found.n_samples_theory == pytest.approx(
        (1.0 if problem == "pca" else np.log(2.0)) / (0.1 * np.log(10.0)) ** 2
    )
