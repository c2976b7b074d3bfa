"""Random tables, parameters and weights: each fit is refused clearly or answered soundly."""

from __future__ import annotations

import time

import pytest

from benchmarks import fuzz

CASES = 300
# Once failed, each in its own way: rows given back that are too far out or infinitely so, ties on a
# lattice, columns constant in a sample, laws of distances without a density, one feature twice,
# no volume at all, rows as far from a subspace as each other, models of columns in tiny units,
# rows given back whose squares overflow, components in units whose squares underflow.
MENDED = (
    *(603199, 604352, 706970, 727105, 728610, 740963, 752026, 768067, 710120, 711578, 730659),
    *(804931, 910408),
)


@pytest.mark.parametrize("seed", [*range(CASES), *MENDED])
def test_a_random_fit_is_refused_clearly_or_answered_soundly(seed: int) -> None:
    case = fuzz.draw(seed)
    failure = fuzz.failure_of(case)
    assert not failure, case.reproduction(failure)


def test_a_case_depends_on_its_seed_alone() -> None:
    first, again = (fuzz.draw(3) for _ in range(2))
    assert (first.values == again.values).all()
    assert repr(first.estimator) == repr(again.estimator)
    assert first.story == again.story


def test_a_fit_that_takes_too_long_is_ended() -> None:
    with pytest.raises(TimeoutError, match="no answer"), fuzz.time_limit(0.01):
        time.sleep(10.0)
