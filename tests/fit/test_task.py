"""What a user sets, and what follows from it."""

from __future__ import annotations

import numpy as np
import pytest

from outweigh.fit.task import Settings, Task
from outweigh.fit.tuning import TUNING
from outweigh.norms import KyFan, RowwiseLargest


def settings(contamination: float | None, *, find: bool) -> Settings:
    return Settings(contamination, None, None, "adaptive", 10, find_covariance=find)


def test_the_bound_is_what_is_given_or_the_loose_one() -> None:
    assert settings(0.2, find=False).bound == 0.2
    assert settings(None, find=False).bound == TUNING.loose_bound


@pytest.mark.parametrize(
    ("contamination", "find", "expected"),
    [(None, False, 1.0), (None, True, 0.1), (0.05, True, 0.1), (0.3, True, 0.3)],
)
def test_where_noise_is_found_a_tenth_removed_or_what_was_told_is_no_surprise(
    contamination: float | None, find: bool, expected: float
) -> None:
    assert settings(contamination, find=find).expected == expected


def test_noise_is_declared_white_where_nothing_else_is_said() -> None:
    assert settings(None, find=False).is_white
    assert not settings(None, find=True).is_white
    known = Settings(None, None, np.eye(2), "adaptive", 10)
    assert not known.is_white


def test_the_norm_of_a_mean_is_sparse_where_the_mean_is() -> None:
    assert isinstance(Task().norm(3), KyFan)
    assert isinstance(Task(n_nonzero=(3,)).norm(3), RowwiseLargest)
