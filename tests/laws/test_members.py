"""Nothing public escapes the laws."""

from __future__ import annotations

import outweigh.norms
import outweigh.objectives
from tests.laws.members import ESTIMATORS, NORMS, OBJECTIVES


def test_every_norm_of_matrices_is_listed() -> None:
    listed = {type(case.norm).__name__ for case in NORMS.values()}
    assert listed == set(outweigh.norms.__all__)


def test_every_objective_is_listed() -> None:
    assert set(OBJECTIVES) == set(outweigh.objectives.__all__) - {"MomentObjective"}


def test_every_robust_estimator_is_listed() -> None:
    assert {name for name in outweigh.__all__ if name.startswith("Robust")} == set(ESTIMATORS)
