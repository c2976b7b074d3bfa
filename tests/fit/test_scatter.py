"""Mean and covariance with distances that leave each row out, against brute force."""

from __future__ import annotations

import numpy as np
import pytest

from outweigh.fit.scatter import Scatter
from tests.reference.correlated import correlated


def test_distances_leave_each_row_out_as_refitting_without_it_would() -> None:
    rows = correlated(30, 4)
    weight = np.ones(30)
    weight[25:] = 0.0
    scatter = Scatter.of(rows, weight, 4, shrink=False)
    found = scatter.distances(rows, weight > 0)
    for i in (0, 7, 27):
        others = np.delete(rows[:25], i, axis=0) if i < 25 else rows[:25]
        away = rows[i] - others.mean(axis=0)
        expected = away @ np.linalg.solve(np.cov(others.T), away)
        assert found[i] == pytest.approx(expected, rel=1e-9)


def test_a_scatter_of_weights_is_that_of_copies() -> None:
    rows = correlated(20, 3)
    weight = np.tile([1.0, 2.0], 10)
    copies = np.repeat(rows, weight.astype(int), axis=0)
    weighted = Scatter.of(rows, weight, 3, shrink=True)
    copied = Scatter.of(copies, np.ones(30), 3, shrink=True)
    np.testing.assert_allclose(weighted.whitener, copied.whitener)
    assert weighted.shrinkage == pytest.approx(copied.shrinkage)


def test_a_scatter_in_coordinates_of_the_span_has_the_distances_of_all_features() -> None:
    rows = correlated(15, 40)
    basis = np.linalg.svd(rows, full_matrices=False)[2]
    inside = Scatter.of(rows @ basis.T, np.ones(15), 40, shrink=True)
    whole = Scatter.of(rows, np.ones(15), 40, shrink=True)
    everything = np.ones(15, dtype=bool)
    np.testing.assert_allclose(
        inside.distances(rows @ basis.T, everything), whole.distances(rows, everything), rtol=1e-6
    )
