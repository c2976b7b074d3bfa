"""The parts of a PCA fit, each against an independent computation."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from outweigh.estimators.components import (
    DenseReader,
    SparseReader,
    best_sparse,
    entries_read_out,
    fix_signs,
    orthonormal,
    truncated_power,
)
from outweigh.estimators.pca_coloured import _concentrate, n_leading
from outweigh.estimators.pca_scatter import robust_scatter, robust_variance
from outweigh.estimators.pca_template import _adjusted_variances
from outweigh.optimise.capped_simplex import CappedSimplex
from outweigh.samples import DenseSamples
from outweigh.samples.dense import column_energy, in_span


def best_of_all_supports(matrix: np.ndarray, k: int) -> float:
    return max(
        float(np.linalg.eigvalsh(matrix[np.ix_(s, s)])[-1])
        for s in map(list, combinations(range(len(matrix)), k))
    )


@pytest.mark.parametrize("seed", range(5))
def test_truncated_power_finds_the_best_support_of_a_spiked_matrix(seed: int) -> None:
    rng = np.random.default_rng(seed)
    v = np.zeros(10)
    v[rng.choice(10, 3, replace=False)] = 3**-0.5
    noise = rng.standard_normal((10, 10))
    matrix = np.outer(v, v) + 0.05 * (noise + noise.T)
    u = best_sparse(matrix, 3)
    assert float(u @ matrix @ u) == pytest.approx(best_of_all_supports(matrix, 3))


def test_truncated_power_never_uses_more_entries() -> None:
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((12, 12))
    assert np.count_nonzero(truncated_power(noise + noise.T, rng.standard_normal(12), 4)) == 4


def test_the_papers_read_out_on_an_exact_spike() -> None:
    v = np.array([0.0, 0.6, 0.0, -0.8, 0.0])
    u = entries_read_out(2.0 * np.outer(v, v), 2)
    assert abs(u @ v) == pytest.approx(1.0)


def test_norms_count_the_entries_of_the_paper() -> None:
    assert SparseReader((4,)).norm.n_entries == 2 * 4**2
    assert SparseReader((4, 3)).norm.n_entries == 4**2 + 3**2 + 4**2
    assert DenseReader(2).norm.rank == 3


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


def test_coordinates_in_the_span_keep_all_inner_products() -> None:
    rows = np.random.default_rng(0).standard_normal((6, 40))
    coordinates, basis = in_span(DenseSamples(rows), np.ones(6))
    np.testing.assert_allclose(coordinates.array @ coordinates.array.T, rows @ rows.T)
    np.testing.assert_allclose(basis.T @ basis, np.eye(6), atol=1e-12)


def test_column_energy_is_the_row_norm_of_the_covariance() -> None:
    rows = np.random.default_rng(0).standard_normal((7, 5))
    weights = np.full(7, 1 / 7)
    covariance = np.cov(rows.T, bias=True)
    np.testing.assert_allclose(
        column_energy(DenseSamples(rows), weights), np.square(covariance).sum(axis=1)
    )


def test_concentration_steps_never_raise_the_volume() -> None:
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((60, 3))
    domain = CappedSimplex.from_contamination(60, 0.25)
    volumes = [
        _concentrate(rows, domain, domain.reference(), True, steps)[1] for steps in range(1, 6)
    ]
    assert np.all(np.diff(volumes) <= 1e-9)


def test_the_leading_directions_leave_rows_to_estimate_them_from() -> None:
    assert n_leading(40, 5, np.ones(39)) == 8
    assert n_leading(1000, 2, np.array([1.0, 1e-9, 1e-9])) == 3


def test_adjusted_variances_are_those_of_a_qr_decomposition() -> None:
    rng = np.random.default_rng(0)
    scores = rng.standard_normal((200, 3)) @ rng.standard_normal((3, 3))
    covariance = scores.T @ scores / 200
    order, variances = _adjusted_variances(covariance)
    triangle = np.linalg.qr(scores[:, order])[1]
    np.testing.assert_allclose(variances, np.diagonal(triangle) ** 2 / 200)
    assert np.all(np.diff(variances) <= 0)


def test_signs_do_not_depend_on_the_sign_given() -> None:
    rows = np.random.default_rng(0).standard_normal((3, 6))
    np.testing.assert_array_equal(fix_signs(rows), fix_signs(-rows))


def test_an_orthonormal_basis_drops_dependent_columns() -> None:
    columns = np.array([[1.0, 2.0], [0.0, 0.0], [1.0, 2.0]])
    assert orthonormal(columns).shape == (3, 1)
