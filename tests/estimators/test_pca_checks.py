"""Both robust PCAs pass the checks of scikit-learn, none of which is expected to fail."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sklearn.base import BaseEstimator
from sklearn.utils.estimator_checks import parametrize_with_checks

from outweigh.estimators.pca import RobustPCA, RobustSparsePCA


# The checks fit constant columns, about which the estimators warn.
@pytest.mark.filterwarnings("ignore:.*features are constant.*:UserWarning")
@parametrize_with_checks([RobustPCA(), RobustSparsePCA(), RobustSparsePCA(n_nonzero=1)])
def test_robust_pca_passes_the_checks_of_scikit_learn(
    estimator: BaseEstimator, check: Callable[[BaseEstimator], None]
) -> None:
    check(estimator)
