"""Input that careless or hostile users give: a defined answer or a refusal that names the cause."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import IsolationForest
from sklearn.exceptions import NotFittedError

from outweigh import (
    ContaminationSearch,
    RobustMean,
    RobustPCA,
    RobustSparseMean,
    RobustSparsePCA,
)

EVERY = (RobustMean, RobustSparseMean, RobustPCA, RobustSparsePCA)
COMPONENTS = (RobustPCA, RobustSparsePCA)


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
