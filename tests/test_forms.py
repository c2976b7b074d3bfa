"""A form acts as the matrix it stands for."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from outweigh.forms import Form

Array = NDArray[np.float64]


def forms(d: int = 5) -> dict[str, Form]:
    rng = np.random.default_rng(0)
    entries = Form.from_entries(
        d, np.array([0, 1, 1, 4]), np.array([2, 1, 3, 0]), rng.standard_normal(4)
    )
    low_rank = Form.from_directions(rng.standard_normal((d, 2)), np.array([1.5, -0.5]))
    return {
        "zero": Form.zero(d),
        "entries": entries,
        "low rank": low_rank,
        "both": entries + low_rank,
    }


every_form = pytest.mark.parametrize("form", forms().values(), ids=forms())
every_shape = pytest.mark.parametrize("shape", [(5,), (5, 1), (5, 3)], ids=str)


@every_form
@every_shape
def test_a_product_is_that_of_the_array(form: Form, shape: tuple[int, ...]) -> None:
    V = np.random.default_rng(1).standard_normal(shape)
    np.testing.assert_allclose(form.product(V), form.to_array() @ V, atol=1e-12)


@every_form
@every_shape
def test_a_symmetric_product_is_that_of_the_array_and_its_transpose(
    form: Form, shape: tuple[int, ...]
) -> None:
    V = np.random.default_rng(1).standard_normal(shape)
    Z = form.to_array()
    np.testing.assert_allclose(form.symmetric_product(V), (Z + Z.T) @ V, atol=1e-12)


@pytest.mark.parametrize("left", forms())
@pytest.mark.parametrize("right", forms())
def test_forms_add_up_as_arrays_do(left: str, right: str) -> None:
    a, b = forms()[left], forms()[right]
    np.testing.assert_allclose((a + b).to_array(), a.to_array() + b.to_array(), atol=1e-12)


@every_form
@pytest.mark.parametrize("factor", [0.0, -2.5, 1e3])
def test_forms_scale_as_arrays_do(form: Form, factor: float) -> None:
    np.testing.assert_allclose((factor * form).to_array(), factor * form.to_array(), atol=1e-9)


@every_form
def test_a_lifted_form_is_zero_outside_its_coordinates(form: Form) -> None:
    coordinates = np.array([1, 2, 4, 7, 8])
    expected = np.zeros((9, 9))
    expected[np.ix_(coordinates, coordinates)] = form.to_array()
    np.testing.assert_allclose(form.lift(coordinates, 9).to_array(), expected, atol=1e-12)


@every_form
@pytest.mark.parametrize("rank", [1, 2])
def test_a_form_without_directions_does_not_see_them(form: Form, rank: int) -> None:
    basis = np.linalg.qr(np.random.default_rng(2).standard_normal((5, rank)))[0]
    core = basis.T @ form.without(basis).to_array() @ basis
    np.testing.assert_allclose(core + core.T, 0.0, atol=1e-12)


@every_form
def test_a_form_without_a_direction_is_the_formula(form: Form) -> None:
    u = np.linalg.qr(np.random.default_rng(3).standard_normal((5, 1)))[0]
    Z = form.to_array()
    expected = Z - (u.T @ Z @ u) * (u @ u.T)
    np.testing.assert_allclose(form.without(u).to_array(), expected, atol=1e-12)


def test_entries_named_more_than_once_add_up() -> None:
    form = Form.from_entries(3, np.array([0, 0, 2]), np.array([1, 1, 2]), np.array([1.0, 2.0, 4.0]))
    expected = np.array([[0.0, 3.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 4.0]])
    np.testing.assert_array_equal(form.to_array(), expected)
    np.testing.assert_array_equal(form.entries.toarray(), expected)
    np.testing.assert_array_equal(form.merged().to_array(), expected)
    assert form.merged().values.size == 2


@pytest.mark.parametrize("d", [3, 300])
def test_long_sums_of_forms_are_merged(d: int) -> None:
    rng = np.random.default_rng(0)
    total, expected = Form.zero(d), np.zeros((d, d))
    for _ in range(5):
        rows, cols = rng.integers(0, min(d, 50), (2, 20_000))
        values = rng.standard_normal(20_000)
        total = total + Form.from_entries(d, rows, cols, values)
        np.add.at(expected, (rows, cols), values)
    assert total.values.size < 3 * 20_000
    np.testing.assert_allclose(total.to_array(), expected, atol=1e-10)


def test_a_product_with_many_columns_is_that_of_the_array() -> None:
    form = forms()["both"]
    V = np.random.default_rng(1).standard_normal((5, 20))
    np.testing.assert_allclose(form.product(V), form.to_array() @ V, atol=1e-12)
