"""One way along the road: from rows in given units to weights, and whether the units were right."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from outweigh.fit.attempt import Attempt, Solution, better_units, is_explained, mean_in_units
from outweigh.fit.noise import Noise, first_look
from outweigh.fit.search import Weights
from outweigh.fit.task import Settings, Task
from outweigh.fit.widened import LawOfRows
from outweigh.forms import Form
from outweigh.protocols import Status
from outweigh.samples import ArrayRows

N, D, SHARE = 800, 20, 0.1
WRONG = np.arange(N) < int(SHARE * N)
AUTO = Settings(None, "auto", None, "polyak", 300)


def rows(seed: int = 0) -> NDArray[np.float64]:
    X = np.random.default_rng([31, seed]).standard_normal((N, D)) + 2.0
    X[WRONG, :5] += 4.0
    return X


def noise_of(X: NDArray[np.float64]) -> Noise:
    return first_look(ArrayRows(X), np.ones(len(X)), "auto", None, 0.4)


def solved(noise: Noise, settings: Settings = AUTO, task: Task | None = None) -> Solution:
    task = Task() if task is None else task
    counts = task.n_nonzero or ()
    return Attempt(noise, task, counts, settings, None, LawOfRows(noise)).solve()


@pytest.mark.parametrize("task", [Task(), Task(n_nonzero=(D,))], ids=["mean", "sparse mean"])
def test_the_wrong_rows_lose_their_weight(task: Task) -> None:
    found = solved(noise_of(rows()), task=task).found
    assert found.status is Status.REACHED
    assert found.weights.values[WRONG].sum() < 0.01


@pytest.mark.parametrize("share", [0.05, 0.1, 0.2])
def test_no_more_is_removed_than_a_share_that_is_given(share: float) -> None:
    solution = solved(noise_of(rows()), replace(AUTO, contamination=share))
    assert solution.bound == pytest.approx(share)
    assert solution.found.weights.values.max() <= (1.0 + 1e-9) / ((1.0 - share) * N)


def test_a_share_that_is_found_is_no_less_than_what_was_removed() -> None:
    solution = solved(noise_of(rows()))
    removed = solution.problem.removed(solution.found.weights.values)
    assert SHARE - 0.02 < removed <= solution.bound + 1e-9


def test_units_that_are_twice_too_large_are_found_to_be() -> None:
    noise = noise_of(rows()).rescaled(np.where(np.arange(D) == 3, 2.0, 1.0))
    factor = better_units(solved(noise), AUTO)
    assert factor is not None
    assert factor[3] == pytest.approx(0.5, rel=0.1)
    np.testing.assert_allclose(np.delete(factor, 3), 1.0, atol=0.2)


def test_units_that_were_given_are_not_questioned() -> None:
    noise = noise_of(rows()).rescaled(np.full(D, 2.0))
    assert better_units(solved(noise), replace(AUTO, scale=None)) is None


def test_white_noise_explains_rows_without_weight_only_as_groups() -> None:
    found = solved(noise_of(rows())).found
    assert found.weights.groups
    assert is_explained(found)
    assert not is_explained(replace(found, status=Status.STALLED))
    # Removed by the descent alone: their reason is unknown.
    pushed = replace(found.weights, groups=(), force=Form.from_directions(np.eye(D), np.ones(D)))
    assert not is_explained(replace(found, weights=pushed))
    assert is_explained(replace(found, weights=Weights.untouched(np.full(N, 1.0 / N), D)))


def test_the_mean_is_about_zero_whatever_the_origin() -> None:
    X = rows()
    noise = noise_of(X)
    expected = X.mean(axis=0) / noise.standardizer.scale
    np.testing.assert_allclose(mean_in_units(noise, np.full(N, 1.0 / N)), expected)
