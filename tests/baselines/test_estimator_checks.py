"""Every baseline that needs no truth is a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sklearn.base import BaseEstimator
from sklearn.utils.estimator_checks import parametrize_with_checks

from outweigh.baselines import MEAN_BASELINES, PCA_BASELINES

# Oracles ask for the truth. The semidefinite program takes minutes here and shares its template.
BASELINES = [
    baseline()
    for group in (MEAN_BASELINES, PCA_BASELINES)
    for name, baseline in group.items()
    if name not in ("oracle", "sdp")
]


# The checks fit few rows of odd data, about which scikit-learn's own estimators warn.
@pytest.mark.filterwarnings("ignore:.*:UserWarning", "ignore:.*:RuntimeWarning:sklearn")
@parametrize_with_checks(BASELINES)
def test_baselines_pass_the_checks_of_scikit_learn(
    estimator: BaseEstimator, check: Callable[[BaseEstimator], None]
) -> None:
    check(estimator)
