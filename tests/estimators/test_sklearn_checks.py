"""Both means pass the checks of scikit-learn, none of which is expected to fail."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sklearn.base import BaseEstimator
from sklearn.utils.estimator_checks import parametrize_with_checks

from outweigh import RobustMean, RobustSparseMean


# The checks fit constant columns, about which the estimators warn.
@pytest.mark.filterwarnings("ignore:.*features are constant.*:UserWarning")
@parametrize_with_checks([RobustMean(), RobustSparseMean()])
def test_the_means_pass_the_checks_of_scikit_learn(
    estimator: BaseEstimator, check: Callable[[BaseEstimator], None]
) -> None:
    check(estimator)
