"""Sample weights: whole numbers are copies of rows, other numbers are relative.

Copies of a row are no further evidence, unless rows repeat by chance.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from outweigh import RobustMean
from outweigh.estimators.input import sample_weights
from outweigh.protocols import Status
from tests.laws.members import ESTIMATORS

Array = NDArray[np.float64]
N = 200


def rows() -> Array:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, 16))
    X[:, :3] += 2.0 * rng.standard_normal((N, 1))
    X[:20, 6:] += 3.0
    return X


def relative() -> Array:
    return np.random.default_rng(1).uniform(0.5, 1.5, N)


FACTORS = {
    "a thousandth": 1e-3,
    "to sum one": None,
    "tiny": 1e-300,
    "the least normal numbers": 2.3e-308,
    "huge": 1e300,
}


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("factor", FACTORS.values(), ids=FACTORS)
def test_a_common_factor_of_relative_weights_changes_nothing(
    name: str, factor: float | None
) -> None:
    s, X = relative(), rows()
    scaled = s / s.sum() if factor is None else factor * s
    plain = ESTIMATORS[name]().fit(X, sample_weight=s)
    found = ESTIMATORS[name]().fit(X, sample_weight=scaled)
    # Of numbers of 1e-308 the last digits are lost.
    np.testing.assert_allclose(found.weights_, plain.weights_, atol=1e-9 / N)
    scores = found.score_samples(X)
    assert np.isfinite(scores).all()
    np.testing.assert_allclose(scores, plain.score_samples(X), rtol=1e-6, atol=1e-9)
    assert found.contamination_ == pytest.approx(plain.contamination_, abs=1e-9)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_numbers_below_the_least_normal_one_give_finite_answers(name: str) -> None:
    found = ESTIMATORS[name]().fit(rows(), sample_weight=1e-310 * relative())
    assert np.isfinite(found.weights_).all()
    assert np.isfinite(found.score_samples(rows())).all()


def test_equal_weights_that_sum_to_one_count_as_the_rows_do() -> None:
    X = np.random.default_rng(2).standard_normal((N, 5))
    X[:40] += 10.0
    weighted = RobustMean().fit(X, sample_weight=np.full(N, 1 / N))
    flagged = weighted.predict(X) == -1
    assert flagged[:40].all()
    assert flagged[40:].sum() <= 4
    np.testing.assert_allclose(weighted.weights_, RobustMean().fit(X).weights_, atol=1e-12)


@pytest.mark.parametrize("factor", [1, 3])
def test_whole_numbers_stay_as_they_are(factor: int) -> None:
    counts = factor * np.array([0, 1, 2, 5])
    np.testing.assert_array_equal(sample_weights(counts, 4), counts)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_whole_numbers_are_copies(name: str) -> None:
    X, times = rows(), 1 + np.arange(N) % 3
    weighted = ESTIMATORS[name]().fit(X, sample_weight=times)
    repeated = ESTIMATORS[name]().fit(np.repeat(X, times, axis=0))
    np.testing.assert_allclose(
        np.repeat(weighted.weights_ / times, times), repeated.weights_, atol=1e-9 / N
    )


def test_relative_weights_count_as_many_rows_as_their_mean_is_worth() -> None:
    # Kish: (sum s)^2 / sum s^2.
    s = relative()
    assert sample_weights(s, N).sum() == pytest.approx(s.sum() ** 2 / (s @ s))
    assert sample_weights(np.full(N, 0.25), N).sum() == pytest.approx(N)


def attacked() -> Array:
    X = np.random.default_rng(0).standard_normal((N, 5))
    X[:40] += 10.0
    return X


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("counts", ["one", "one to three"])
def test_a_common_factor_of_whole_numbers_changes_nothing(name: str, counts: str) -> None:
    X, times = rows(), np.ones(N) if counts == "one" else 1.0 + np.arange(N) % 3
    once = ESTIMATORS[name]().fit(X, sample_weight=times)
    often = ESTIMATORS[name]().fit(X, sample_weight=12 * times)
    np.testing.assert_allclose(often.weights_, once.weights_, atol=1e-12 / N)
    assert often.certificate_.noise_floor == once.certificate_.noise_floor


@pytest.mark.parametrize("counts", ["ten", "a hundred", "five to fifteen"])
def test_copies_of_rows_are_no_further_evidence(counts: str) -> None:
    X = attacked()
    times = np.random.default_rng(1).integers(5, 16, N)
    if counts != "five to fifteen":
        times = np.full(N, 10 if counts == "ten" else 100)
    found = RobustMean().fit(X, sample_weight=times)
    assert found.certificate_.status is Status.REACHED
    np.testing.assert_array_equal(found.predict(X) == -1, np.arange(N) < 40)
    assert found.noise_floor_ == pytest.approx(RobustMean().fit(X).noise_floor_, rel=0.1)


def test_a_table_repeated_over_and_over_is_that_table() -> None:
    X = attacked()
    once, often = RobustMean().fit(X), RobustMean().fit(np.tile(X, (10, 1)))
    np.testing.assert_array_equal(often.location_, once.location_)
    np.testing.assert_allclose(often.weights_, np.tile(once.weights_, 10) / 10.0, rtol=1e-12)
    assert often.n_iter_ == once.n_iter_


def test_a_point_mass_is_one_row_of_evidence_and_found() -> None:
    X = np.random.default_rng(0).standard_normal((N, 5))
    X[:60] = 3.0
    found = RobustMean().fit(X)
    np.testing.assert_array_equal(found.predict(X)[:60], -1)
    assert np.mean(found.predict(X)[60:] == -1) < 0.05


def test_rows_of_counts_that_repeat_by_chance_are_evidence_each() -> None:
    X = np.random.default_rng(0).poisson(1.0, (2000, 3)).astype(float)
    often, few = (RobustMean(covariance=None).fit(rows) for rows in (X, X[:500]))
    assert often.noise_floor_ == pytest.approx(few.noise_floor_ / 2.0, rel=0.1)


def test_rows_too_many_to_be_put_in_order_are_told_apart_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X, times = attacked(), np.random.default_rng(1).integers(5, 16, N)
    plain = RobustMean().fit(X, sample_weight=times)
    for module in ("samples.rows", "fit.noise"):
        monkeypatch.setattr(f"outweigh.{module}.COPIED_BYTES", 0)
    weighted = RobustMean().fit(X, sample_weight=times)
    copied = RobustMean().fit(np.repeat(X, times, axis=0))
    for found in (weighted, copied):
        np.testing.assert_allclose(found.location_, plain.location_, atol=1e-9)
        assert found.noise_floor_ == pytest.approx(plain.noise_floor_, rel=1e-9)
