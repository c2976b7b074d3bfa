"""One definition of clean: a search reaches its level exactly where the certificate says clean."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from outweigh.adversaries import MEAN_ADVERSARIES, SPIKE_ADVERSARIES, make
from outweigh.estimators.base import RobustEstimator
from outweigh.protocols import Status
from tests.laws.members import ESTIMATORS, MEANS

Array = NDArray[np.float64]

N, D, K, EPS = 400, 30, 3, 0.1
CASES = [
    (name, attack)
    for name in ESTIMATORS
    for attack in (MEAN_ADVERSARIES if name in MEANS else SPIKE_ADVERSARIES)
]
every_case = pytest.mark.parametrize(("name", "attack"), CASES)
# Less than there is, as much as there is, none, and to be found.
every_share = pytest.mark.parametrize("contamination", [0.0, 0.03, EPS, "auto"])


def fitted(name: str, X: Array, **options: object) -> RobustEstimator:
    return ESTIMATORS[name](**options).fit(X)


def assert_one_definition(est: RobustEstimator) -> None:
    certificate = est.certificate_
    if certificate.noise == "other":
        assert not certificate.clean
        assert certificate.status is not Status.REACHED
        return
    reached = certificate.status is Status.REACHED
    # Ranks that go together do not end a search, but are told.
    reached_alone = reached and certificate.support_level <= 1.0
    expected = certificate.removed <= certificate.expected + 1e-9
    assert certificate.clean == (reached_alone and expected)
    at_level = est.objective_ <= certificate.noise_floor.clean
    if certificate.noise != "elliptical":
        assert reached_alone == (at_level and certificate.support_level <= 1.0)
        assert certificate.verdict.startswith("clean level reached") == reached_alone
    elif certificate.far > certificate.removed + 1e-9:
        assert "contamination allows no more" in certificate.verdict


@every_case
@every_share
def test_the_search_ends_where_the_certificate_says_clean(
    name: str, attack: str, contamination: float | str
) -> None:
    X = make(attack, N, D, K, EPS, random_state=7).X
    assert_one_definition(fitted(name, X, contamination=contamination))


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("max_iter", [1, 2, 5])
def test_a_spent_budget_does_not_change_what_clean_is(name: str, max_iter: int) -> None:
    attack = "wrong_support" if name in MEANS else "spiked_mixture"
    X = make(attack, N, D, K, EPS, random_state=7).X
    assert_one_definition(fitted(name, X, contamination=EPS, max_iter=max_iter))


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("unit", [1e-3, 50.0])
def test_units_do_not_change_what_clean_is(name: str, unit: float) -> None:
    attack = "wrong_support" if name in MEANS else "spiked_mixture"
    X = unit * make(attack, N, D, K, EPS, random_state=8).X
    assert_one_definition(fitted(name, X))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_given_covariance_does_not_change_what_clean_is(name: str) -> None:
    rng = np.random.default_rng(0)
    covariance = 0.5 ** np.abs(np.subtract.outer(np.arange(D), np.arange(D)))
    X = rng.standard_normal((N, D)) @ np.linalg.cholesky(covariance).T
    X[:, :3] += 2.0 * rng.standard_normal((N, 1)) * (name not in MEANS)
    X[:40, 10:16] += 2.5
    est = fitted(name, X, covariance=covariance)
    assert est.certificate_.noise == "given"
    assert_one_definition(est)
