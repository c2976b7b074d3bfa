from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from outweigh.experiments.spec import Experiment
from outweigh.experiments.summary import defeats, summarise
from tests.experiments.made_up import VERSIONS, store_of


def test_a_cell_holds_the_median_and_the_quartiles_of_its_trials(
    small: Experiment, tmp_path: Path
) -> None:
    experiment = replace(small, trials=5)
    store = store_of(tmp_path / "r", experiment, lambda run: {"error": float(run.trial**2)})
    cell = summarise(experiment, store).cell(20.0, "median")
    assert (cell.lower, cell.median, cell.upper) == (1.0, 4.0, 9.0)
    assert (cell.n_done, cell.n_failed, cell.n_missing) == (5, 0, 0)
    assert cell.seconds == 0.5
    assert math.isnan(cell.peak_memory_mb)


def test_failures_and_missing_runs_are_counted_and_not_averaged(
    small: Experiment, tmp_path: Path
) -> None:
    outcomes = {0: {"error": 7.0}, 1: {"failure": "Boom: x"}, 2: None}
    store = store_of(tmp_path / "r", small, lambda run: outcomes[run.trial])
    summary = summarise(small, store)
    cell = summary.cell(40.0, "oracle")
    assert (cell.n_done, cell.n_failed, cell.n_missing, cell.median) == (1, 1, 1, 7.0)
    assert len(summary.failures) == 6
    assert summary.n_missing == 6
    assert summary.versions == (VERSIONS,)


def test_records_of_other_experiments_are_left_out(small: Experiment, tmp_path: Path) -> None:
    store = store_of(tmp_path / "r", replace(small, seed=1), lambda run: {"error": 1.0})
    summary = summarise(small, store)
    assert summary.n_missing == 18
    assert summary.xs == []
    assert summary.curve("oracle") == []


@pytest.mark.parametrize(
    ("rival", "expected"),
    [
        ((1.0, 1.0, 1.0), []),
        ((1.995, 1.995, 1.995), []),
        ((1.8, 1.8, 1.8), [False, False]),
        ((1.2, 1.2, 1.2), [True, True]),
    ],
    ids=["a rival that knows the truth", "level", "within the quartiles", "beyond them"],
)
def test_a_rival_with_a_lower_median_is_named(
    small: Experiment,
    tmp_path: Path,
    rival: tuple[float, float, float],
    expected: list[bool],
) -> None:
    who = "oracle" if rival[0] == 1.0 else "median"
    experiment = replace(small, algorithms=("outweigh", who))
    errors = {"outweigh": (1.0, 2.0, 3.0), who: rival}
    store = store_of(
        tmp_path / "r", experiment, lambda run: {"error": errors[run.algorithm][run.trial]}
    )
    found = list(defeats(summarise(experiment, store)))
    assert [rival.outside(ours) for ours, rival in found] == expected
    assert all((r.algorithm, o.algorithm) == ("median", "outweigh") for o, r in found)
    assert all(ours.median == 2.0 for ours, _ in found)


def test_without_ours_there_is_nobody_to_defeat(small: Experiment, tmp_path: Path) -> None:
    store = store_of(tmp_path / "r", small, lambda run: {"error": 1.0})
    assert list(defeats(summarise(small, store))) == []
