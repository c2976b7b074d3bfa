"""Certificates: the level of clean rows, and the verdict."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from outweigh import RobustMean, RobustSparseMean
from outweigh.fit.certificate import Certificate, Moreau
from outweigh.norms.floor import NoiseFloor
from outweigh.protocols import Samples, Status

Array = NDArray[np.float64]
Kind = Callable[[Array], Samples]


CLEAN = Certificate(
    objective=1.0,
    noise_floor=NoiseFloor(1.0, 1.2),
    stationarity=0.5,
    theorem_stationarity=2.0,
    removed=0.125,
    contamination_bound=0.2,
    status=Status.REACHED,
)


def test_the_verdict_at_the_clean_level_says_how_much_was_removed() -> None:
    assert CLEAN.verdict == "clean level reached: 12.5% of the weight removed"


def test_the_verdict_of_untouched_data_says_that_nothing_was_removed() -> None:
    assert replace(CLEAN, removed=0.0).verdict.startswith("clean level reached: nothing")


def test_the_verdict_above_the_clean_level_says_how_far_above() -> None:
    stalled = replace(CLEAN, objective=3.0, status=Status.STALLED)
    assert stalled.verdict.startswith("stalled above the clean level, at 3.00 times")


def test_the_verdict_of_a_spent_budget_says_what_to_raise() -> None:
    spent = replace(CLEAN, objective=3.0, status=Status.EXHAUSTED)
    assert spent.verdict.startswith("budget exhausted: raise max_iter")


def test_a_spent_budget_at_the_clean_level_is_clean() -> None:
    assert replace(CLEAN, status=Status.EXHAUSTED).clean


def test_a_level_far_above_the_floor_is_not_clean_whatever_the_status() -> None:
    assert not replace(CLEAN, objective=50.0, status=Status.REACHED).clean


def test_the_certificate_prints_its_numbers() -> None:
    text = str(replace(CLEAN, moreau=Moreau(0.25, 0.01, 3.0)))
    shown = ("clean level reached", "12.50%", "20.00%", "stationarity  0.5", "scale is 2)", "0.25")
    assert all(part in text for part in shown)


def test_what_takes_long_is_told_only_where_it_is_asked_for() -> None:
    X = np.random.default_rng(40).standard_normal((200, 5))
    X[:20] += 2.0
    est = RobustMean(scale=None, covariance=None, contamination=0.1).fit(X)
    found = est.certificate_
    assert found.stationarity is found.theorem_stationarity is found.moreau is None
    assert "stationarity" not in str(found)
    told = est.certify(X)
    assert told.moreau is not None
    assert told.stationarity is not None
    assert told.stationarity > 0.0
    expected = found.n_effective**0.5 * 0.1**0.5 * np.log(10.0)
    assert told.theorem_stationarity == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("estimator", [RobustMean, partial(RobustSparseMean, 4)])
def test_a_tenth_of_the_rows_is_seen_beyond_the_distance_that_is_told(
    estimator: Callable[..., Any], seed: int
) -> None:
    rng = np.random.default_rng([30, seed])
    X = rng.standard_normal((1000, 30))
    est = estimator(scale=None, covariance=None, contamination=0.0)
    unseen = est.fit(X).certificate_.unseen
    direction = np.append(np.full(4, 0.5), np.zeros(26))
    for times, seen in ((0.0, False), (1.2, True)):
        group = X + (np.arange(1000) < 100)[:, None] * times * unseen * direction
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            assert est.fit(group).certificate_.clean is not seen


def test_how_far_rows_may_lie_unseen_is_told_where_a_level_is_known_and_reached() -> None:
    # 0.1 (1 - 0.1) s^2 = 1.2
    assert CLEAN.unseen == pytest.approx(np.sqrt(1.2 / 0.09))
    assert "lie together up to 3.7 noise units away" in str(CLEAN)
    for noise in ("elliptical", "other"):
        assert replace(CLEAN, noise=noise).unseen == np.inf
        assert "unseen" not in str(replace(CLEAN, noise=noise))
    assert "unseen" not in str(replace(CLEAN, objective=1.3))


@pytest.mark.parametrize("noise", ["white", "given"])
def test_the_level_of_clean_rows_is_that_of_the_floor(noise: str) -> None:
    certificate = replace(CLEAN, noise=noise)
    level = certificate.noise_floor.clean
    assert replace(certificate, objective=level).clean
    assert not replace(certificate, objective=np.nextafter(level, np.inf)).clean


def test_where_the_noise_is_neither_white_nor_given_nothing_is_clean() -> None:
    other = replace(CLEAN, noise="other", noise_floor=NoiseFloor(0.0, 0.0))
    assert not other.clean
    assert other.ratio == 1.0
    assert "there is no level of clean data" in other.verdict
    assert "12.5% of the weight removed by distance" in other.verdict


def test_the_ratio_is_the_objective_over_the_median_of_clean_data() -> None:
    assert replace(CLEAN, objective=3.0, noise_floor=NoiseFloor(1.5, 2.0)).ratio == 2.0


def test_more_removed_than_is_to_be_expected_is_not_clean() -> None:
    found = replace(CLEAN, removed=0.2, expected=0.1)
    assert not found.clean
    assert found.verdict.endswith("look at these rows (explain) before you go on")
    assert replace(found, expected=0.2).clean


@pytest.mark.parametrize(
    ("doubt", "said"),
    [({"doubtful": 0.1}, "in doubt"), ({"spared": 0.1}, "contamination allows no more")],
)
def test_rows_in_doubt_are_not_clean(doubt: dict[str, float], said: str) -> None:
    found = replace(CLEAN, noise="elliptical", objective=0.5, noise_floor=NoiseFloor(1.0, 1.0))
    assert found.clean
    assert not replace(found, **doubt).clean
    assert said in replace(found, **doubt).verdict


def test_rows_cleaner_than_clean_rows_are_in_doubt_where_a_covariance_was_given() -> None:
    # 99 in 100 samples of clean rows are above 1 - 0.2.
    low = replace(CLEAN, removed=0.0, objective=0.7, noise="given")
    assert not low.clean
    assert "in doubt" in low.verdict
    assert replace(low, objective=0.9).clean
    assert replace(low, noise="white").clean
    assert replace(low, removed=0.05, expected=1.0).clean


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({}, "clean"),
        ({"removed": 0.2, "expected": 0.1}, "look"),
        ({"objective": 3.0}, "not clean"),
        ({"support_level": 1.1, "status": Status.STALLED}, "not clean"),
        ({"support_level": 1.1}, "in doubt"),
        ({"noise": "given", "removed": 0.0, "objective": 0.1}, "in doubt"),
        ({"noise": "elliptical", "spared": 0.1}, "in doubt"),
        ({"noise": "elliptical", "apart": 0.3, "doubtful": 0.1}, "in doubt"),
        ({"noise": "elliptical", "doubtful": 0.1, "doubt": "few values"}, "in doubt"),
        ({"noise": "elliptical", "seen": 0.5}, "clean"),
        ({"noise": "elliptical", "seen": 0.4}, "look"),
        ({"noise": "other"}, "no level"),
        ({"noise": "other", "doubtful": 0.1}, "in doubt"),
        ({"n_effective": 10.0 - 1e-12}, "clean"),
        ({"n_effective": 9.5}, "no level"),
        ({"n_effective": 9.5, "objective": 3.0}, "no level"),
    ],
)
def test_trust_is_the_word_of_the_first_test_that_says_less(
    change: dict[str, object], word: str
) -> None:
    found = replace(CLEAN, **change)
    assert found.trust == word
    assert found.clean == (word == "clean")
