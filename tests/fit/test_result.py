"""What a fit ends with."""

from __future__ import annotations

import numpy as np
import pytest

from outweigh import RobustMean
from outweigh.fit.noise import first_look
from outweigh.fit.task import Settings, Task
from outweigh.fit.unknown import fit_elliptical
from outweigh.protocols import Status
from outweigh.samples import ArrayRows
from tests.reference.correlated import correlated


def test_the_covariance_of_equal_weights_is_the_unbiased_one() -> None:
    X = correlated(200, 4) * [1.0, 10.0, 0.1, 5.0]
    noise = first_look(ArrayRows(X), np.ones(200), "auto", None, 0.0, common_level=False)
    settings = Settings(0.0, "auto", None, "adaptive", 10, find_covariance=True)
    found = fit_elliptical(noise, Task(), settings)
    np.testing.assert_allclose(found.covariance(), np.cov(X.T), rtol=1e-9)
    np.testing.assert_allclose(RobustMean(contamination=0).fit(X).covariance_, np.cov(X.T))


def test_a_fit_in_doubt_is_neither_clean_nor_reached() -> None:
    X = correlated(200, 4)
    noise = first_look(ArrayRows(X), np.ones(200), "auto", None, 0.4, common_level=False)
    settings = Settings(None, "auto", None, "adaptive", 10, find_covariance=True)
    sure = fit_elliptical(noise, Task(), settings)
    doubted = sure.in_doubt(0.1)
    assert sure.certificate.clean
    assert not doubted.certificate.clean
    assert doubted.certificate.doubtful == pytest.approx(0.1)
    assert doubted.certificate.doubt == "white"
    assert doubted.found.status is Status.STATIONARY
