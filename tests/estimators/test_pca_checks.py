"""Both robust PCAs pass the checks of scikit-learn, but for three equal groups."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sklearn.base import BaseEstimator
from sklearn.utils.estimator_checks import parametrize_with_checks

from outweigh.estimators.pca import RobustPCA, RobustSparsePCA


def of_three_groups_none_is_wrong(estimator: BaseEstimator) -> dict[str, str]:
    """Return the checks that ask for outliers among three equal groups."""
    reason = "the rows are three groups of a third each: no row is far from the bulk, none is wrong"
    return dict.fromkeys(["check_outliers_train", "check_outliers_fit_predict"], reason)


# The checks fit constant columns, about which the estimators warn.
@pytest.mark.filterwarnings("ignore:.*features are constant.*:UserWarning")
@parametrize_with_checks(
    [RobustPCA(), RobustSparsePCA(), RobustSparsePCA(n_nonzero=1)],
    expected_failed_checks=of_three_groups_none_is_wrong,
)
def test_robust_pca_passes_the_checks_of_scikit_learn(
    estimator: BaseEstimator, check: Callable[[BaseEstimator], None]
) -> None:
    check(estimator)
