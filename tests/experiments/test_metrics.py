from __future__ import annotations

import numpy as np
import pytest

from outweigh.experiments.runs import ERRORS, projector


@pytest.mark.parametrize("n_components", [1, 2, 3])
def test_the_projector_distance_is_the_one_of_the_projections(n_components: int) -> None:
    rng = np.random.default_rng(0)
    U = np.linalg.qr(rng.standard_normal((7, n_components)))[0].T
    V = np.linalg.qr(rng.standard_normal((7, n_components)))[0].T
    assert projector(U, V) == pytest.approx(np.linalg.norm(U.T @ U - V.T @ V))


def test_the_projector_distance_ignores_length_and_sign() -> None:
    u, v = np.array([[3.0, 4.0]]), np.array([[1.0, 0.0]])
    assert projector(-7 * u, v) == pytest.approx(projector(u, v))


def test_an_answer_of_zero_misses_the_whole_projection() -> None:
    assert projector(np.zeros((1, 3)), np.eye(3)[:1]) == pytest.approx(1.0)


@pytest.mark.parametrize("task", list(ERRORS))
def test_the_truth_has_no_error(task: str) -> None:
    truth = np.array([[0.6, 0.8, 0.0]]) if task == "components" else np.arange(3.0)
    assert ERRORS[task][1](truth, truth) == pytest.approx(0.0, abs=1e-7)
