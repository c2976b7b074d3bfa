"""How far columns of few values go."""

from __future__ import annotations

import numpy as np
import pytest

from outweigh import RobustMean
from outweigh.fit.reach import Reach
from outweigh.fit.tuning import TUNING
from tests.reference.correlated import correlated


def test_a_value_is_beyond_at_ten_times_what_most_others_are_from_the_median() -> None:
    X = np.zeros((100, 3))
    X[:40, 0] = 1.0
    X[:30, 1] = np.arange(1.0, 31.0)
    reach = Reach.of(X, np.ones(100), np.arange(3), TUNING)
    # Of 1 to 30 six tenths are at most 18; the third column has one value.
    assert reach.columns.tolist() == [0, 1]
    np.testing.assert_allclose(reach.radius, [10.0, 180.0])
    np.testing.assert_allclose(reach.exceeded(np.array([[-20.0, 0.0, 9.0]])), [2.0])


def test_no_columns_have_no_reach() -> None:
    reach = Reach.of(np.ones((3, 2)), np.arange(1.0, 4.0), np.empty(0, dtype=np.intp), TUNING)
    assert reach.exceeded(np.ones((3, 2))).tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("measured", [0, 3])
def test_codes_for_missing_values_among_0_and_1_are_found_and_named(measured: int) -> None:
    """Beside columns that rows are judged by, and where there are none."""
    X = correlated(400, 8)
    X[:, measured:] = X[:, measured:] > 0.3
    X[:20, -1] = -999.0
    found = RobustMean().fit(X)
    assert np.flatnonzero(found.predict(X) < 0).tolist() == list(range(20))
    assert abs(found.location_[-1]) < 1.0
    assert all(features[0] == 7 for features in found.explain(X, top=1).features)


def test_values_out_of_range_are_finitely_far() -> None:
    reach = Reach(np.arange(2), np.zeros(2), np.array([1e-298, 1e300]))
    assert np.isfinite(reach.parts(np.array([[1e300, -1e300], [-1e300, 0.0]]))).all()
