"""How many rows a mean needs."""

from __future__ import annotations

import math

import numpy as np
import pytest

from outweigh.cli import main
from outweigh.norms import KyFan, RowwiseLargest
from outweigh.norms.floor import noise_floor
from outweigh.objectives import MomentObjective
from outweigh.research.plan import rows_needed
from outweigh.samples import DenseSamples

EPS = 0.1


@pytest.mark.parametrize("n_nonzero", [None, 4])
@pytest.mark.parametrize(("times", "at_least"), [(1, 4), (2, 9)])
def test_outliers_show_from_as_many_rows_on(
    n_nonzero: int | None, times: int, at_least: int
) -> None:
    d, shift = 40, 0.35
    norm = KyFan(1) if n_nonzero is None else RowwiseLargest(n_nonzero)
    n = times * rows_needed(d, EPS, n_nonzero, shift=shift).visible
    moved = 4 if n_nonzero is None else n_nonzero
    seen = 0
    for seed in range(10):
        X = np.random.default_rng(seed).standard_normal((n, d))
        X[: round(EPS * n), :moved] += shift / EPS / math.sqrt(moved)
        objective = MomentObjective(DenseSamples(X), norm, centred=True)
        seen += objective.evaluate(np.full(n, 1.0 / n)).value > noise_floor(norm, n, d).upper
    assert seen >= at_least


@pytest.mark.parametrize("n_nonzero", [None, 10])
def test_the_rows_of_the_theory_are_its_formula(n_nonzero: int | None) -> None:
    delta = EPS * math.sqrt(math.log(1 / EPS))
    complexity = 500 if n_nonzero is None else 100 * math.log(500)
    assert rows_needed(500, EPS, n_nonzero).theory == math.ceil(complexity / delta**2)


def test_more_columns_and_smaller_shifts_take_more_rows() -> None:
    assert rows_needed(100, EPS).visible < rows_needed(1000, EPS).visible
    assert rows_needed(100, EPS, shift=0.5).visible < rows_needed(100, EPS, shift=0.2).visible


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"n_features": 0}, "'n_features' parameter of rows_needed must be an int"),
        ({"n_features": 10.5}, "'n_features' parameter of rows_needed must be an int"),
        ({"n_nonzero": 11}, "n_nonzero=11 is more than n_features=10"),
        ({"contamination": 0.5}, r"'contamination' .* in the range \(0.0, 0.5\)"),
        ({"contamination": float("nan")}, r"'contamination' .* in the range \(0.0, 0.5\)"),
        ({"shift": 0.0}, r"'shift' .* in the range \(0.0, inf\)"),
        ({"shift": 1e-12}, "shift: 1e-12 takes more than"),
    ],
)
def test_what_cannot_be_planned_is_named(arguments: dict[str, object], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        rows_needed(**{"n_features": 10, "contamination": EPS, **arguments})


def test_the_command_prints_what_the_function_returns(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--features", "1000", "--nonzero", "10"]) == 0
    printed = capsys.readouterr().out
    needed = rows_needed(1000, 0.1, 10)
    assert f"{needed.visible:,} rows for outliers" in printed
    assert f"{needed.theory:,} rows for the theorems" in printed


def test_the_command_refuses_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--features", "10", "--nonzero", "11"]) == 2
    assert capsys.readouterr().err.startswith("outweigh plan: error: n_nonzero=11 is more than")
