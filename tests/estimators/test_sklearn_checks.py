"""Both means pass the checks of scikit-learn, but for three equal groups in the dense one."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sklearn.base import BaseEstimator
from sklearn.utils.estimator_checks import parametrize_with_checks

from outweigh import RobustMean, RobustSparseMean


def of_three_groups_none_is_wrong(estimator: BaseEstimator) -> dict[str, str]:
    """Return the checks that ask for outliers among three equal groups."""
    if not isinstance(estimator, RobustMean):
        return {}
    reason = "the rows are three groups of a third each: where the covariance is unknown, no row "
    reason += "is an outlier to them, and none is flagged"
    return dict.fromkeys(["check_outliers_train", "check_outliers_fit_predict"], reason)


# The checks fit constant columns, about which the estimators warn.
@pytest.mark.filterwarnings("ignore:.*features are constant.*:UserWarning")
@parametrize_with_checks(
    [RobustMean(), RobustSparseMean()], expected_failed_checks=of_three_groups_none_is_wrong
)
def test_the_means_pass_the_checks_of_scikit_learn(
    estimator: BaseEstimator, check: Callable[[BaseEstimator], None]
) -> None:
    check(estimator)
