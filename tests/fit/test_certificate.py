"""Certificates: stationarity, the level of clean rows, and the verdict."""

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
from outweigh.fit.certificate import Certificate, Moreau, stationarity, theorem_stationarity
from outweigh.norms import LargestEntries
from outweigh.norms.floor import NoiseFloor
from outweigh.objectives import MomentObjective
from outweigh.optimise.capped_simplex import CappedSimplex
from outweigh.protocols import Samples, Status

Array = NDArray[np.float64]
Kind = Callable[[Array], Samples]


def cross(size: float, d: int = 4) -> Array:
    return np.vstack([size * np.eye(d), -size * np.eye(d)])


def frobenius(samples: Samples) -> MomentObjective:
    return MomentObjective(samples, LargestEntries(10_000), centred=False)


def test_no_direction_descends_at_a_minimiser_known_by_symmetry(samples_of: Kind) -> None:
    domain = CappedSimplex.from_contamination(8, 0.25)
    w = domain.reference()
    g = frobenius(samples_of(cross(5.0))).evaluate(w).subgradient
    assert stationarity(domain, w, g) == pytest.approx(0.0, abs=1e-12)


def test_no_direction_descends_at_a_vertex_that_leaves_the_outlier_out(samples_of: Kind) -> None:
    X = np.vstack([cross(3.0), np.full((1, 4), 9.0)])
    domain = CappedSimplex.from_contamination(9, 1 / 9)
    w = np.append(np.full(8, 1 / 8), 0.0)
    g = frobenius(samples_of(X)).evaluate(w).subgradient
    assert stationarity(domain, w, g) == pytest.approx(0.0, abs=1e-12)


def test_a_long_descent_on_a_smooth_convex_case_ends_stationary(samples_of: Kind) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((12, 3)) * 2.0
    domain = CappedSimplex.from_contamination(12, 0.3)
    objective = frobenius(samples_of(X))
    w = domain.reference()
    first = stationarity(domain, w, objective.evaluate(w).subgradient)
    # The curvature of |M_w - I|_F is at most that of its square over the value, which exceeds one.
    step = 1.0 / np.linalg.norm((X @ X.T) ** 2, 2)
    for _ in range(1500):
        w = domain.project(w - step * objective.evaluate(w).subgradient)
    assert stationarity(domain, w, objective.evaluate(w).subgradient) < 1e-6 * first


def test_inside_the_set_stationarity_is_the_length_of_the_centred_gradient() -> None:
    domain = CappedSimplex.from_contamination(4, 0.5)
    g = np.array([1.0, 2.0, 0.0, -1.0])
    expected = np.linalg.norm(g - g.mean())
    assert stationarity(domain, domain.reference(), g) == pytest.approx(expected, rel=1e-12)


def test_stationarity_of_integer_weights_is_that_of_repeated_rows() -> None:
    repeats, g = np.array([1, 2, 3]), np.array([1.0, -1.0, 0.5])
    weighted = CappedSimplex.from_contamination(repeats.astype(float), 0.4)
    repeated = CappedSimplex.from_contamination(6, 0.4)
    by_weight = stationarity(weighted, weighted.reference(), g)
    by_rows = stationarity(repeated, repeated.reference(), np.repeat(g, repeats))
    assert by_weight == pytest.approx(by_rows, rel=1e-12)


@pytest.mark.parametrize(("n", "eps"), [(100, 0.1), (5000, 0.2)])
def test_the_threshold_of_the_theorem_is_its_formula(n: int, eps: float) -> None:
    delta = eps * np.sqrt(np.log(1 / eps))
    expected = n**0.5 * delta**2 * eps**-1.5
    assert theorem_stationarity(n, eps) == pytest.approx(expected, rel=1e-12)


def test_without_contamination_the_theorem_asks_for_zero() -> None:
    assert theorem_stationarity(100, 0.0) == 0.0


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
    assert all(part in text for part in ("clean level reached", "12.50%", "20.00%", "0.25"))


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
