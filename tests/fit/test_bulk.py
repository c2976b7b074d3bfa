"""Variance and scatter of the bulk: those of a Gaussian, and blind to a share of wrong rows."""

from __future__ import annotations

import numpy as np
import pytest

from outweigh.fit.bulk import column_bulks, robust_scatter, robust_variance
from outweigh.fit.columns import MAD_TO_SD


def test_robust_variance_ignores_a_cluster_and_a_second_spike() -> None:
    rng = np.random.default_rng(0)
    # Of a wide spike a share of about its bulk's width over its own stays inside the bulk.
    for wrong, inside in ((np.full(1000, 6.0), 0.0), (8.0 * rng.standard_normal(1000), 0.25)):
        values = np.concatenate([rng.standard_normal(4000), wrong])
        assert robust_variance(values, np.ones(5000)) == pytest.approx(1.0, abs=0.1 + inside)


def test_robust_scatter_is_that_of_clean_gaussians() -> None:
    rng = np.random.default_rng(1)
    root = np.array([[2.0, 0.0], [1.0, 0.5]])
    rows = rng.standard_normal((20_000, 2)) @ root.T
    np.testing.assert_allclose(
        robust_scatter(rows, np.ones(20_000)), root @ root.T, rtol=0.1, atol=0.05
    )


def test_robust_scatter_takes_integer_weights_as_repeats() -> None:
    rng = np.random.default_rng(2)
    rows, weight = rng.standard_normal((60, 2)), rng.integers(1, 4, 60).astype(float)
    repeated = np.repeat(rows, weight.astype(int), axis=0)
    np.testing.assert_allclose(
        robust_scatter(rows, weight), robust_scatter(repeated, np.ones(len(repeated))), rtol=1e-8
    )


@pytest.mark.parametrize("factor", [1e-3, 1e4])
def test_robust_scatter_follows_units_and_turns(factor: float) -> None:
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((500, 3)) * [1.0, 2.0, 0.5]
    Q = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    found = robust_scatter(factor * rows @ Q, np.ones(500))
    expected = factor**2 * Q.T @ robust_scatter(rows, np.ones(500)) @ Q
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6 * factor**2)


def test_rows_that_mostly_coincide_have_the_scatter_that_was_begun_with() -> None:
    values = np.zeros(100)
    values[:10] = 3.0
    assert robust_variance(values, np.ones(100)) == 0.0


def test_a_bulk_that_shrinks_to_equal_rows_has_the_scatter_that_was_begun_with() -> None:
    rows = np.random.default_rng(0).standard_normal((300, 6))
    rows[:30] = 0.0
    values = np.linalg.eigvalsh(robust_scatter(rows, np.ones(300)))
    assert values.min() > 0.5
    assert values.max() < 1.5


@pytest.mark.parametrize(("pairs", "median"), [(10, 0.5), (32, 1.5)])
def test_a_bulk_that_shrinks_to_one_heavy_row_has_the_variance_that_was_begun_with(
    pairs: int, median: float
) -> None:
    # It has 0.45 of the weight. Of pairs of rows 0.5, 1, ... away, with 0.55 / pairs each, it takes
    # one or three to half of the weight: so far away is the median.
    away = np.arange(1, pairs + 1) / 2.0
    values = np.concatenate([-away, away, [0.0]])
    weight = np.append(np.full(2 * pairs, 0.275 / pairs), 0.45)
    assert robust_variance(values, weight) == pytest.approx((MAD_TO_SD * median) ** 2)


def test_the_bulks_of_columns_leave_out_far_groups() -> None:
    rng = np.random.default_rng(2)
    Z = rng.standard_normal((2000, 3))
    Z[:300, 1] += 8.0
    Z[0, 2] = 1e6
    centre, variance = column_bulks(Z, np.ones(2000))
    np.testing.assert_allclose(centre, 0.0, atol=0.1)
    np.testing.assert_allclose(variance, 1.0, atol=0.12)
