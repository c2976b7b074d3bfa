"""The algorithms of the paper, against a literal program of each."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from outweigh import RobustMean, RobustPCA, RobustSparseMean, RobustSparsePCA
from outweigh.baselines.plain import SparseComponentsDescent, SparseGradientDescent
from outweigh.estimators.base import RobustEstimator
from outweigh.protocols import Status
from tests.reference import paper

Array = NDArray[np.float64]

N, D, K, EPS, STEPS = 60, 6, 2, 0.2, 30
PROBLEMS = ("mean", "sparse mean", "pca", "sparse pca")
every_problem = pytest.mark.parametrize("problem", PROBLEMS)


def rows() -> Array:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D))
    X[:, :K] += 0.7 * rng.standard_normal((N, 1)) + 0.3
    X[:12, 3:] += 2.0
    return X


def estimator(problem: str, **options: object) -> RobustEstimator:
    given = {"contamination": EPS, "covariance": None, "solver": "paper", "max_iter": STEPS}
    given |= options
    if problem == "mean":
        return RobustMean(**{"scale": None, **given})
    if problem == "sparse mean":
        return RobustSparseMean(**{"n_nonzero": K, "scale": None, **given})
    given = {"assume_centered": True, **given}
    if problem == "pca":
        return RobustPCA(**given)
    return RobustSparsePCA(**{"n_nonzero": K, **given})


@cache
def expected(problem: str) -> tuple[Array, list[float]]:
    return paper.descend(problem, rows(), K, EPS, STEPS)


@every_problem
def test_the_weights_are_those_of_the_paper(problem: str) -> None:
    best, _ = expected(problem)
    found = estimator(problem).fit(rows()).weights_
    # The theorem's steps are short: what they moved is compared, not what they left.
    moved = best - 1.0 / N
    assert np.abs(moved).max() > 1e-7
    np.testing.assert_allclose(found - 1.0 / N, moved, atol=1e-6 * np.abs(moved).max())


@every_problem
def test_every_step_has_the_value_of_the_paper(problem: str) -> None:
    trace = estimator(problem).fit(rows()).trace_
    values = expected(problem)[1]
    # Steps are kept to seven digits, so that no answer hangs on the order of a sum.
    fall = values[0] - min(values)
    np.testing.assert_allclose([line.value for line in trace], values, atol=1e-6 * fall, rtol=0.0)


@every_problem
def test_all_evaluations_allowed_are_made(problem: str) -> None:
    for budget in (1, 7):
        found = estimator(problem, max_iter=budget).fit(rows())
        assert found.n_iter_ == budget
        assert found.certificate_.status is Status.EXHAUSTED


@every_problem
def test_the_answer_is_read_off_as_in_the_paper(problem: str) -> None:
    found = estimator(problem).fit(rows())
    answer = paper.read_out(problem, rows(), expected(problem)[0], K)
    if problem.endswith("mean"):
        np.testing.assert_allclose(found.location_, answer, atol=1e-7)
    else:
        assert abs(float(found.components_[0] @ answer)) == pytest.approx(1.0, abs=1e-9)


@every_problem
def test_rows_are_taken_as_they_are(problem: str) -> None:
    # No pruning, no shift, no units, no column left out.
    X = rows()
    X[0] *= 50.0
    X[:, 5] = 3.0
    with pytest.warns(UserWarning, match="constant"):
        found = estimator(problem).fit(X)
    best, values = paper.descend(problem, X, K, EPS, STEPS)
    seen = [line.value for line in found.trace_]
    np.testing.assert_allclose(seen, values, atol=1e-6 * values[0], rtol=0.0)
    np.testing.assert_allclose(found.weights_, best, atol=1e-6 / N)


@every_problem
def test_integer_weights_are_copies_of_rows(problem: str) -> None:
    X, times = rows()[:30], 1 + np.arange(30) % 3
    weighted = estimator(problem).fit(X, sample_weight=times)
    repeated = estimator(problem).fit(np.repeat(X, times, axis=0))
    np.testing.assert_allclose(
        np.repeat(weighted.weights_ / times, times), repeated.weights_, rtol=1e-7
    )


@every_problem
def test_halved_steps_go_further_in_as_many_evaluations(problem: str) -> None:
    kind = SparseGradientDescent if problem.endswith("mean") else SparseComponentsDescent
    n_nonzero = K if problem.startswith("sparse") else None
    X, values = rows(), expected(problem)[1]
    w = kind(n_nonzero, contamination=EPS, max_iter=STEPS).fit(X).weights_
    mu = w @ X if problem.endswith("mean") else np.zeros(D)
    A = (X.T * w) @ X - np.outer(mu, mu) - np.eye(D)
    assert float(np.sum(paper.maximizer(problem, A, K) * A)) < min(values)


REFUSED = {
    "unknown share": (PROBLEMS, {"contamination": "auto"}, "contamination="),
    "scales": (("mean", "sparse mean"), {"scale": "auto"}, "scale, covariance"),
    "scales of components": (("pca", "sparse pca"), {"scale": "mad"}, "scale, covariance"),
    "given scales": (PROBLEMS, {"scale": np.ones(D)}, "scale, covariance"),
    "covariance": (PROBLEMS, {"covariance": np.eye(D)}, "scale, covariance"),
    "unknown entries": (("sparse mean", "sparse pca"), {"n_nonzero": "auto"}, "n_nonzero="),
    "centred": (("pca", "sparse pca"), {"assume_centered": False}, "assume_centered=False"),
}


@pytest.mark.parametrize(
    ("problem", "options", "named"),
    [
        pytest.param(problem, options, named, id=f"{case}-{problem}")
        for case, (problems, options, named) in REFUSED.items()
        for problem in problems
    ],
)
def test_what_the_paper_does_not_have_is_refused_by_name(
    problem: str, options: dict[str, object], named: str
) -> None:
    with pytest.raises(ValueError, match=named):
        estimator(problem, **options).fit(rows())
