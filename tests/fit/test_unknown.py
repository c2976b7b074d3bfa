"""Rows of unknown covariance on the road: when they are taken for such, and what is said."""

from __future__ import annotations

import numpy as np
import pytest

from outweigh.fit.noise import Noise, first_look
from outweigh.fit.task import Settings, Task
from outweigh.fit.unknown import fit_elliptical, looks_correlated
from outweigh.protocols import Status
from outweigh.samples import ArrayRows
from tests.reference.correlated import Array, correlated, with_cluster


def seen(X: Array) -> Noise:
    weight = np.ones(len(X))
    return first_look(ArrayRows(X), weight, "auto", None, 0.4, common_level=False)


def settings(contamination: float | None = None) -> Settings:
    return Settings(contamination, "auto", None, "adaptive", 100, find_covariance=True)


def test_correlated_rows_look_it_and_white_rows_do_not() -> None:
    white = np.random.default_rng(0).normal(size=(500, 8))
    assert looks_correlated(seen(correlated(500, 8)))
    assert not looks_correlated(seen(white))


def test_correlated_columns_of_few_values_look_it_too() -> None:
    assert looks_correlated(seen(np.round(correlated(500, 8))))


def test_so_few_rows_that_nothing_tells_are_taken_to_be_correlated() -> None:
    few = np.random.default_rng(0).normal(size=(40, 3))
    assert looks_correlated(seen(few))


def test_a_group_that_stands_apart_has_no_part_in_the_mean() -> None:
    found = fit_elliptical(seen(with_cluster(500, 6, 0.05, 8.0)), Task(), settings())
    assert found.certificate.apart + found.certificate.far == pytest.approx(0.05, abs=0.01)
    assert found.certificate.clean
    assert found.found.status is Status.REACHED
    assert found.weights[:25].sum() < 0.005


def test_rows_spared_for_want_of_a_larger_contamination_are_not_called_clean() -> None:
    found = fit_elliptical(seen(with_cluster(500, 6, 0.2, 8.0)), Task(), settings(0.05))
    assert found.certificate.spared > 0.1
    assert found.certificate.removed <= 0.05 + 1e-9
    assert not found.certificate.clean
    assert found.found.status is Status.STATIONARY
