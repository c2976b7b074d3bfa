"""Every norm obeys the axioms, and its maximiser attains it from the dual ball."""

from __future__ import annotations

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from outweigh.protocols import Maximum
from outweigh.samples import ArrayMoment
from tests.laws.members import NORMS, NormCase

Array = NDArray[np.float64]

every_norm = pytest.mark.parametrize("case", NORMS.values(), ids=NORMS)


@st.composite
def symmetric(draw: st.DrawFn, max_size: int = 5) -> Array:
    d = draw(st.integers(1, max_size))
    A = draw(hnp.arrays(np.float64, (d, d), elements=st.floats(-8, 8, width=32)))
    return np.tril(A) + np.tril(A, -1).T


@st.composite
def symmetric_pairs(draw: st.DrawFn) -> tuple[Array, Array]:
    A = draw(symmetric())
    B = draw(hnp.arrays(np.float64, A.shape, elements=st.floats(-8, 8, width=32)))
    return A, np.tril(B) + np.tril(B, -1).T


def maximum(case: NormCase, A: Array) -> Maximum:
    return case.norm.maximize(ArrayMoment(A))


@every_norm
@given(A=symmetric())
def test_the_value_is_that_of_brute_force(case: NormCase, A: Array) -> None:
    assert maximum(case, A).value == pytest.approx(case.brute(A), rel=1e-9, abs=1e-9)


@every_norm
@given(A=symmetric())
def test_the_maximiser_attains_the_value(case: NormCase, A: Array) -> None:
    found = maximum(case, A)
    attained = float(np.sum(found.form.to_array() * A))
    assert attained == pytest.approx(case.brute(A), rel=1e-9, abs=1e-9)


@every_norm
@given(A=symmetric())
def test_what_is_said_to_be_attained_is_attained(case: NormCase, A: Array) -> None:
    found = maximum(case, A)
    assert found.attained == pytest.approx(np.sum(found.form.to_array() * A), rel=1e-9, abs=1e-9)


@every_norm
@given(pair=symmetric_pairs())
def test_the_maximiser_lies_in_the_dual_ball(case: NormCase, pair: tuple[Array, Array]) -> None:
    A, B = pair
    Z = maximum(case, A).form.to_array()
    assert np.sum(Z * B) <= case.brute(B) + 1e-9


@every_norm
@given(A=symmetric(), factor=st.floats(-100, 100))
def test_the_value_is_homogeneous(case: NormCase, A: Array, factor: float) -> None:
    expected = abs(factor) * maximum(case, A).value
    assert maximum(case, factor * A).value == pytest.approx(expected, rel=1e-9, abs=1e-9)


@every_norm
@given(pair=symmetric_pairs())
def test_the_value_obeys_the_triangle_inequality(case: NormCase, pair: tuple[Array, Array]) -> None:
    A, B = pair
    assert maximum(case, A + B).value <= maximum(case, A).value + maximum(case, B).value + 1e-9


@every_norm
@given(A=symmetric(), data=st.data())
def test_the_value_does_not_depend_on_the_order_of_features(
    case: NormCase, A: Array, data: st.DataObject
) -> None:
    order = np.array(data.draw(st.permutations(range(len(A)))))
    expected = maximum(case, A).value
    assert maximum(case, A[np.ix_(order, order)]).value == pytest.approx(expected, abs=1e-9)


@every_norm
def test_the_zero_matrix_has_value_zero_and_a_zero_maximiser(case: NormCase) -> None:
    found = maximum(case, np.zeros((3, 3)))
    assert (found.value, np.abs(found.form.to_array()).sum()) == (0.0, 0.0)
