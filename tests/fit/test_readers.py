"""Components read off a matrix, each way against an independent computation."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from outweigh.estimators.pca import _adjusted_variances
from outweigh.fit.columns import largest_of
from outweigh.fit.readers import (
    DenseReader,
    SparseReader,
    best_sparse,
    count_entries,
    count_significant,
    effective_entries,
    entries_read_out,
    fix_signs,
    is_white,
    orthonormal,
    projected_out,
    top_eigenvectors,
    truncated_power,
)
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


def spiked(seed: int, d: int = 40, n: int = 2000, entries: int = 4) -> np.ndarray:
    """Return rows of unit noise with one component of five times their variance."""
    rng = np.random.default_rng(seed)
    v = np.zeros(d)
    v[:entries] = entries**-0.5
    return rng.standard_normal((n, d)) + 2.0 * rng.standard_normal((n, 1)) * v


@pytest.mark.parametrize("reader", [DenseReader(1), SparseReader((4,))], ids=["dense", "sparse"])
def test_a_spike_of_outliers_is_not_taken_for_the_component(
    reader: DenseReader | SparseReader,
) -> None:
    X = spiked(0)
    # A tenth of the rows, of more variance than the component has over all of them.
    X[:200, 10:14] += 8.0
    samples, weight = DenseSamples(X), np.ones(2000)
    excess = np.cov(X.T, bias=True) - np.eye(40)
    assert np.abs(top_eigenvectors(excess, 1)[10:14, 0]).min() > 0.4
    found = reader.initial(excess, samples, weight)[:, 0]
    assert np.linalg.norm(found[:4]) > 0.9


@pytest.mark.parametrize("reader", [DenseReader(1), SparseReader((4,))], ids=["dense", "sparse"])
def test_refined_components_stay_with_those_they_began_from(
    reader: DenseReader | SparseReader,
) -> None:
    X = spiked(1)
    X[:200, 10:14] += 8.0
    v = np.zeros((40, 1))
    v[:4] = 0.5
    excess = np.cov(X.T, bias=True) - np.eye(40)
    assert abs(float(v[:, 0] @ reader.refined(excess, v)[:, 0])) > 0.95


@pytest.mark.parametrize("seed", range(3))
def test_the_read_out_of_the_paper_is_its_formula(seed: int) -> None:
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal((7, 7))
    matrix = np.outer(noise[0], noise[0]) + 0.1 * (noise + noise.T)
    chosen = np.argsort(-np.abs(matrix).ravel())[:9]
    kept = np.zeros(49)
    kept[chosen] = matrix.ravel()[chosen]
    kept = kept.reshape(7, 7)
    expected = np.linalg.eigh(kept + kept.T)[1][:, -1]
    assert abs(float(entries_read_out(matrix, 3) @ expected)) == pytest.approx(1.0, abs=1e-9)


def test_several_components_are_read_out_by_deflation() -> None:
    matrix = np.diag([5.0, 0.0, 3.0, 0.0, 1.0])
    for found in (DenseReader(2).plain(matrix), SparseReader((1, 1)).plain(matrix)):
        np.testing.assert_allclose(np.abs(found), np.eye(5)[:, [0, 2]], atol=1e-12)


def test_a_component_is_not_found_twice_where_rows_vary_less_than_noise() -> None:
    excess = np.diag([-0.5, -0.9, -0.2, -0.7])
    for found in (
        SparseReader((1, 1, 1)).best(excess),
        SparseReader((1, 1, 1)).refined(excess, np.eye(4)[:, [2, 0, 3]]),
    ):
        np.testing.assert_allclose(np.abs(found), np.eye(4)[:, [2, 0, 3]], atol=1e-12)


@pytest.mark.parametrize("entries", [2, 6])
def test_the_entries_of_a_component_are_counted(entries: int) -> None:
    X = spiked(2, entries=entries, n=4000)
    excess = np.cov(X.T, bias=True) - np.eye(40)
    assert count_significant(excess, DenseSamples(X), np.ones(4000), 1, 4000.0) == (entries,)


def test_noise_has_few_significant_entries_and_at_least_one() -> None:
    X = np.random.default_rng(3).standard_normal((2000, 40))
    excess = np.cov(X.T, bias=True) - np.eye(40)
    (count,) = count_significant(excess, DenseSamples(X), np.ones(2000), 1, 2000.0)
    assert 1 <= count <= 3


def test_entries_of_a_mean_beyond_the_largest_of_noise_are_counted() -> None:
    limit = largest_of(5) / np.sqrt(400.0)
    mean = limit * np.array([1.01, -1.01, 0.99, 0.0, -3.0])
    assert count_entries(mean, 400.0) == 3
    assert count_entries(np.empty(0), 400.0) == 0


def test_equal_entries_are_counted_as_they_are() -> None:
    assert effective_entries(np.array([1.0, -1.0, 0.0, 1.0])) == 3
    assert effective_entries(np.array([1.0, 1e-6, 0.0, 0.0])) == 1


@pytest.mark.parametrize(("d", "shape"), [(60, "white"), (60, "spiked"), (60, "coloured")])
def test_white_noise_is_told_from_other_noise_spikes_or_not(d: int, shape: str) -> None:
    X = np.random.default_rng(5).standard_normal((600, d))
    if shape == "spiked":
        X[:, 0] *= 10.0
    if shape == "coloured":
        X *= 0.9 ** np.arange(d)
    moment = X.T @ X / 600
    moment /= np.median(np.diagonal(moment))
    assert is_white(moment, 600, d, 1, 2.0) == (shape != "coloured")


@pytest.mark.parametrize(("n", "d"), [(29, 60), (600, 12)])
def test_of_few_rows_or_features_no_noise_is_called_white(n: int, d: int) -> None:
    assert not is_white(np.eye(d), n, d, 1, 2.0)


@pytest.mark.parametrize("decay", [1.0, 0.9])
def test_a_huge_spike_hides_neither_white_noise_nor_other(decay: float) -> None:
    rng = np.random.default_rng(0)
    direction = np.linspace(1.0, 2.0, 40) / np.linalg.norm(np.linspace(1.0, 2.0, 40))
    for _ in range(5):
        X = rng.normal(size=(600, 40)) * np.sqrt(
            40.0 * decay ** np.arange(40) / sum(decay ** np.arange(40))
        )
        X += 1e6 * rng.normal(size=(600, 1)) * direction
        assert is_white(X.T @ X / 600, 600, 40, 1, 2.0) == (decay == 1.0)


def test_directions_projected_out_leave_nothing_along_them() -> None:
    rng = np.random.default_rng(6)
    noise = rng.standard_normal((6, 6))
    matrix, U = noise + noise.T, np.linalg.qr(rng.standard_normal((6, 2)))[0]
    P = np.eye(6) - U @ U.T
    np.testing.assert_allclose(projected_out(matrix, U), P @ matrix @ P, atol=1e-12)


@pytest.mark.parametrize("d", [5, 120])
def test_top_eigenvectors_are_those_of_the_largest_eigenvalues(d: int) -> None:
    rng = np.random.default_rng(7)
    Q = np.linalg.qr(rng.standard_normal((d, d)))[0]
    matrix = (Q * np.linspace(3.0, -9.0, d)) @ Q.T
    found = top_eigenvectors(matrix, 2)
    np.testing.assert_allclose(np.abs(found.T @ Q[:, :2]), np.eye(2), atol=1e-6)
