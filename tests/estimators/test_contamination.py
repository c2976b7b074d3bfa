"""The binary search on the contamination."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from outweigh import ContaminationSearch, RobustMean, RobustSparseMean

Array = NDArray[np.float64]

# The search is for weights under which white rows look clean.
WHITE = {"scale": None, "covariance": None}


def contaminated(share: float, n: int = 1000, d: int = 30) -> Array:
    X = np.random.default_rng(0).standard_normal((n, d))
    X[: round(share * n)] += 2.5
    return X


@pytest.mark.parametrize("estimator", [RobustMean(**WHITE), RobustSparseMean(5, **WHITE)], ids=str)
@pytest.mark.parametrize("share", [0.1, 0.2])
def test_a_contamination_that_shows_is_found(estimator: RobustMean, share: float) -> None:
    search = ContaminationSearch(estimator).fit(contaminated(share))
    assert search.contamination_ == pytest.approx(share, abs=0.3 * share)


def test_clean_data_needs_no_contamination() -> None:
    search = ContaminationSearch(RobustSparseMean(5)).fit(contaminated(0.0))
    assert (search.contamination_, len(search.trials_)) == (0.0, 1)


def test_the_estimate_has_the_room_of_auto() -> None:
    X = contaminated(0.1)
    search = ContaminationSearch(RobustSparseMean(5, **WHITE)).fit(X)
    auto = RobustSparseMean(5, **WHITE).fit(X)
    np.testing.assert_array_equal(search.estimator_.location_, auto.location_)
    assert search.contamination_ < auto.contamination_bound_ + search.tol


def test_the_contamination_found_is_clean() -> None:
    search = ContaminationSearch(RobustSparseMean(5, **WHITE)).fit(contaminated(0.1))
    assert search.feasible_
    assert search.estimator_.certificate_.clean


@pytest.mark.parametrize("tol", [0.1, 0.01])
def test_the_contamination_just_below_the_one_found_is_not_clean(tol: float) -> None:
    search = ContaminationSearch(RobustSparseMean(5, **WHITE), tol=tol).fit(contaminated(0.1))
    failed = [share for share, _, clean in search.trials_ if not clean]
    assert 0.0 < search.contamination_ - max(failed) <= tol


def test_the_estimator_given_is_not_fitted() -> None:
    estimator = RobustSparseMean(5)
    ContaminationSearch(estimator).fit(contaminated(0.1))
    assert not hasattr(estimator, "location_")


def test_a_level_out_of_reach_is_said_to_be() -> None:
    # Correlated features of unit variance have no clean level at any contamination.
    Z = np.random.default_rng(1).standard_normal((500, 11))
    X = 0.5 * Z[:, :10] + np.sqrt(0.75) * Z[:, [10]]
    with pytest.warns(UserWarning, match="no contamination up to"):
        search = ContaminationSearch(RobustSparseMean(5, **WHITE), upper=0.2).fit(X)
    assert (search.feasible_, search.contamination_) == (False, 0.2)


def test_integer_weights_find_what_repeated_rows_find() -> None:
    X, repeats = contaminated(0.1, 300), 1 + np.arange(300) % 2
    search = ContaminationSearch(RobustSparseMean(5), tol=0.05)
    by_weight = search.fit(X, sample_weight=repeats).contamination_
    assert search.fit(np.repeat(X, repeats, axis=0)).contamination_ == by_weight


def test_it_is_an_outlier_detector_with_the_attributes_of_one() -> None:
    frame = pd.DataFrame(contaminated(0.1)).add_prefix("c")
    search = ContaminationSearch(RobustMean())
    assert not hasattr(search, "n_features_in_")
    labels = search.fit_predict(frame)
    np.testing.assert_array_equal(labels, search.predict(frame))
    assert search.n_features_in_ == 30
    assert search.feature_names_in_.tolist() == list(frame.columns)
    assert search.offset_ == search.estimator_.offset_
    np.testing.assert_allclose(
        search.decision_function(frame), search.score_samples(frame) - search.offset_
    )


def test_rows_without_names_give_none() -> None:
    search = ContaminationSearch(RobustMean()).fit(contaminated(0.0))
    assert not hasattr(search, "feature_names_in_")


def test_false_is_no_contamination() -> None:
    with pytest.raises(ValueError, match="contamination"):
        RobustMean(contamination=False).fit(contaminated(0.0))
    RobustMean(contamination=0).fit(contaminated(0.0))
