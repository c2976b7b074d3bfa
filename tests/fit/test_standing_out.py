"""The features of a sparse mean on which rows are judged."""

from __future__ import annotations

import numpy as np

from outweigh.fit.standing_out import judge_on_features
from outweigh.fit.tuning import TUNING
from tests.reference.correlated import correlated


def test_features_that_stand_out_hold_the_mean_and_what_outliers_moved() -> None:
    X = correlated(1000, 200)
    X[:, 3] += 1.0
    X[:100, 50:53] += 6.0
    features, judged = judge_on_features(X, np.ones(1000), None, 0.4, TUNING)
    assert {3, 50, 51, 52} <= set(features.tolist())
    assert features.size < 30
    assert np.mean(judged.clean[:100] < 0.5) > 0.9


def test_of_noise_alone_few_features_stand_out() -> None:
    X = correlated(1000, 200, seed=1)
    features, judged = judge_on_features(X, np.ones(1000), 5, 0.4, TUNING)
    assert 2 <= features.size <= 12
    assert np.mean(judged.clean < 0.5) < 0.01
