"""Input that careless or hostile users give: a defined answer or a refusal that names the cause."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.ensemble import IsolationForest
from sklearn.exceptions import NotFittedError

from outweigh import (
    ContaminationSearch,
    RobustMean,
    RobustPCA,
    RobustSparseMean,
    RobustSparsePCA,
)
from outweigh.estimators.input import sample_weights
from outweigh.estimators.pca import _projected
from tests.reference.correlated import correlated

EVERY = (RobustMean, RobustSparseMean, RobustPCA, RobustSparsePCA)
COMPONENTS = (RobustPCA, RobustSparsePCA)


@pytest.mark.parametrize("kind", [RobustMean, RobustPCA, RobustSparsePCA])
@pytest.mark.parametrize("seed", range(3))
def test_the_origin_of_whole_numbers_changes_nothing_to_the_last_bit(kind: type, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (120, 6)).astype(float)
    X[:12] += rng.integers(3, 6, 6)
    shift = rng.integers(-50, 50, 6)
    here, there = kind().fit(X), kind().fit(X + shift)
    np.testing.assert_array_equal(there.weights_, here.weights_)
    np.testing.assert_array_equal(there.score_samples(X + shift), here.score_samples(X))


@pytest.mark.parametrize("kind", [RobustMean, RobustSparseMean])
@pytest.mark.parametrize("share", [0.1, 0.25, 0.4, 0.49])
@pytest.mark.parametrize("d", [1, 2, 3, 10])
def test_exactly_the_given_share_is_flagged_in_few_dimensions(
    kind: type, share: float, d: int
) -> None:
    X = np.random.default_rng(d).standard_normal((400, d))
    flagged = kind(contamination=share).fit_predict(X) == -1
    assert flagged.sum() == round(400 * share)


@pytest.mark.parametrize("kind", COMPONENTS)
@pytest.mark.parametrize("contamination", ["auto", 0.1, 0.45])
def test_many_identical_rows_give_finite_unit_components(
    kind: type, contamination: float | str
) -> None:
    rng = np.random.default_rng(0)
    X = np.vstack([np.ones((50, 3)), rng.standard_normal((5, 3))])
    est = kind(contamination=contamination).fit(X)
    np.testing.assert_allclose(np.linalg.norm(est.components_, axis=1), 1.0)
    assert np.isfinite(est.score_samples(X)).all()


@pytest.mark.parametrize("kind", COMPONENTS)
@pytest.mark.parametrize("size", [1e153, 1e300, 1e-160, 1e-300])
def test_rows_whose_squares_are_beyond_floating_point_are_refused(kind: type, size: float) -> None:
    X = np.random.default_rng(0).standard_normal((60, 5)) * size
    with pytest.raises(ValueError, match=r"X: .*rescale"):
        kind().fit(X)


@pytest.mark.parametrize("kind", COMPONENTS)
def test_one_huge_row_that_may_not_be_removed_is_refused(kind: type) -> None:
    X = np.random.default_rng(0).standard_normal((60, 5))
    X[0] = 1e300
    with pytest.raises(ValueError, match="raise contamination"):
        kind(contamination=0.0).fit(X)


def test_sparse_rows_that_are_all_huge_beside_a_covariance_are_refused_without_a_warning() -> None:
    X = csr_array(np.random.default_rng(0).uniform(-1e300, 1e300, (37, 5)))
    with pytest.raises(ValueError, match="noise units"):
        RobustMean(covariance=np.eye(5)).fit(X)


@pytest.mark.parametrize("kind", COMPONENTS)
@pytest.mark.parametrize("method", ["score_distances", "orthogonal_distances"])
def test_distances_before_a_fit_say_so(kind: type, method: str) -> None:
    with pytest.raises(NotFittedError):
        getattr(kind(), method)(np.ones((3, 3)))


@pytest.mark.parametrize("kind", [RobustMean, RobustSparseMean])
def test_a_handful_of_rows_is_averaged_in_any_order(kind: type) -> None:
    X = np.array([[2.0, 3.0], [4.0, 5.0], [6.0, 7.0]])
    for rows in (X, X[::-1], X + 100.0):
        with pytest.warns(UserWarning, match="only 3 rows count"):
            assert kind().fit(rows).contamination_ == 0.0


@pytest.mark.parametrize("kind", EVERY)
def test_weights_of_infinite_sum_are_relative(kind: type) -> None:
    X = np.random.default_rng(0).standard_normal((200, 4))
    X[:20, 0] += 4.0
    # Not whole numbers, which would be copies of rows.
    relative = 0.5 + np.arange(200) % 3
    huge, plain = (kind().fit(X, sample_weight=size * relative) for size in (1e307, 1.0))
    np.testing.assert_allclose(huge.weights_, plain.weights_, rtol=1e-9, atol=1e-12)


def test_a_search_that_finds_no_sufficient_contamination_warns() -> None:
    rng = np.random.default_rng(0)
    common = rng.standard_normal((300, 1))
    X = rng.standard_normal((300, 12)) + 2.0 * common
    with pytest.warns(UserWarning, match="no contamination up to"):
        search = ContaminationSearch(RobustMean(scale=None, covariance=None), upper=0.1).fit(X)
    assert not search.feasible_


def test_a_search_over_another_library_s_estimator_is_refused() -> None:
    with pytest.raises(TypeError, match="one of this library"):
        ContaminationSearch(IsolationForest()).fit(np.ones((5, 2)))


@pytest.mark.parametrize("kind", COMPONENTS)
def test_more_components_than_columns_that_vary_are_filled_up_with_axes(kind: type) -> None:
    X = np.random.default_rng(0).standard_normal((60, 4)) * [1.0, 3.0, 0.0, 0.0]
    with pytest.warns(UserWarning, match="constant"):
        est = kind(4).fit(X)
    np.testing.assert_allclose(est.components_ @ est.components_.T, np.eye(4), atol=1e-9)
    assert est.explained_variance_[2:].tolist() == [0.0, 0.0]


def test_with_a_scale_all_components_are_at_right_angles_in_its_units() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 2)) @ rng.standard_normal((2, 5))
    scale = np.array([1.0, 2.0, 0.5, 3.0, 1.0])
    found = RobustPCA(5, scale=scale).fit(X).components_
    np.testing.assert_allclose(found @ found.T, np.eye(5), atol=1e-6)


def test_a_variance_beyond_floating_point_gives_a_location_and_no_covariance() -> None:
    X = 1e200 * np.random.default_rng(0).standard_normal((60, 3))
    est = RobustMean().fit(X)
    assert np.isfinite(est.location_).all()
    assert not hasattr(est, "covariance_")


@pytest.mark.parametrize("kind", EVERY)
def test_weights_of_a_sample_count_as_rows_by_their_own_size(kind: type) -> None:
    # One row outweighs all others, and is mostly not in the sample.
    X = np.random.default_rng(0).standard_normal((60, 3))
    weight = np.append(1e12, np.full(59, 1.5))
    est = kind(subsample=20, random_state=1).fit(X, sample_weight=weight)
    assert 0 not in est.subsample_
    assert np.isfinite(est.score_samples(X)).all()


@pytest.mark.parametrize("kind", EVERY)
@pytest.mark.parametrize("sparse", [False, True])
def test_rows_that_tie_are_not_told_apart_by_their_order(kind: type, sparse: bool) -> None:
    """Lattice rows, among which many distances are equal: the same answer to the last bit."""
    if sparse and kind in COMPONENTS:
        pytest.skip("components need dense rows")
    rng = np.random.default_rng(0)
    X = rng.integers(-3, 4, (18, 24)).astype(float)
    X[0] = 20.0 * rng.standard_normal(24)
    weight, order = rng.integers(0, 3, 18), rng.permutation(18)
    as_given = csr_array if sparse else np.asarray
    est = kind().fit(as_given(X), sample_weight=weight)
    other = kind().fit(as_given(X[order]), sample_weight=weight[order])
    np.testing.assert_array_equal(other.weights_, est.weights_[order])
    assert other.offset_ == est.offset_


@pytest.mark.parametrize("kind", [RobustMean, RobustSparseMean])
@pytest.mark.parametrize("share", [0.05, 0.1, 0.3])
def test_exactly_the_given_share_of_correlated_rows_is_flagged(kind: type, share: float) -> None:
    X = correlated(200, 6)
    est = kind(contamination=share).fit(X)
    assert est.certificate_.noise == "elliptical"
    assert np.sum(est.predict(X) == -1) == 200 * share


@pytest.mark.filterwarnings("ignore:3 of 3 features are constant")
@pytest.mark.parametrize("kind", [RobustMean, RobustSparseMean])
def test_what_is_unlike_rows_that_are_all_equal_scores_low_and_finite(kind: type) -> None:
    est = kind().fit(np.full((30, 3), 7.5))
    scores = est.score_samples(np.array([[7.5, 7.5, 7.5], [0.0, 1.0, 1e6]]))
    assert np.isfinite(scores).all()
    assert scores[1] < est.offset_ <= scores[0]


def test_columns_of_large_and_small_numbers_have_a_covariance_beside_a_known_one() -> None:
    """Rows of rank one, in columns that a known covariance mixes: no variance below zero."""
    units = np.geomspace(1e-4, 1e4, 12)
    X = np.random.default_rng(0).standard_normal((40, 1)) * units + 3.0
    found = RobustMean(covariance=np.eye(12) + 0.5, max_iter=1).fit(X).covariance_
    least = np.linalg.eigvalsh(found / units / units[:, None]).min()
    assert least > -1e-9


def test_rows_that_all_are_far_from_one_heavy_row_have_components() -> None:
    rng = np.random.default_rng(0)
    X, weight = rng.standard_normal((15, 16)), np.full(15, 1e-9)
    weight[3] = 1e9
    est = RobustPCA(1, contamination=0.3, covariance=np.eye(16) * 1e-4).fit(X, sample_weight=weight)
    np.testing.assert_allclose(np.linalg.norm(est.components_), 1.0)


def test_numbers_of_the_least_and_the_largest_size_in_one_table_raise_no_warning() -> None:
    X = np.random.default_rng(0).standard_normal((12, 3)) * 1e-100
    X[0] = 1e300
    assert np.isfinite(RobustMean().fit(X).location_).all()


def test_the_support_among_entries_that_are_equal_but_for_rounding_is_the_first_of_them() -> None:
    rng = np.random.default_rng(0)
    X = np.outer(rng.standard_normal(60) + 3.0, [0.1, 0.7, 1.3, 1.9])
    for order in (np.arange(60), rng.permutation(60)):
        np.testing.assert_array_equal(RobustSparseMean(2).fit(X[order]).support_, [0, 1])


@pytest.mark.parametrize("kind", COMPONENTS)
def test_scores_of_rows_of_1e300_in_tiny_units_are_finite(kind: type) -> None:
    X = 1e-20 * np.random.default_rng(0).standard_normal((80, 4))
    est = kind(scale="mad").fit(X)
    assert np.isfinite(est.transform(np.array([[1e300, -1e300, 1e300, -1e300]]))).all()


def test_relative_sample_weights_do_not_depend_on_the_order_of_the_rows() -> None:
    weight = np.random.default_rng(0).random(1001)
    order = np.random.default_rng(1).permutation(1001)
    np.testing.assert_array_equal(
        sample_weights(weight[order], 1001), sample_weights(weight, 1001)[order]
    )


@pytest.mark.parametrize("d", range(2, 30))
def test_scores_of_the_largest_single_precision_numbers_stay_finite(d: int) -> None:
    rows = np.full((2, d), np.finfo(np.float32).max)
    rows[1] *= -1
    component = np.random.default_rng(d).uniform(0.1, 1.0, (1, d))
    component /= np.linalg.norm(component)
    with np.errstate(all="raise"):
        assert np.isfinite(_projected(rows, np.zeros(d), component)).all()


def test_correlated_rows_out_of_range_beyond_the_given_share_are_refused() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 1)) + 0.3 * rng.standard_normal((60, 6))
    X[np.arange(30), np.arange(30) % 6] = 1e300
    with pytest.raises(ValueError, match="raise contamination"):
        RobustMean(contamination=0.4).fit(X)
