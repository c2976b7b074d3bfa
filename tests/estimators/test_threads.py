"""The answer does not depend on the number of threads, also where passes run in float32."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from outweigh import RobustMean, RobustPCA, RobustSparseMean, RobustSparsePCA
from outweigh.adversaries import linear_hiding, spiked_mixture

# Large enough for passes in single precision.
N, D, K = 3000, 400, 8

ESTIMATORS = {
    "sparse mean": RobustSparseMean(K, contamination=0.1),
    "sparse mean, auto": RobustSparseMean(),
    "mean": RobustMean(contamination=0.1),
    "sparse PCA": RobustSparsePCA(n_nonzero=K, contamination=0.1),
    "PCA": RobustPCA(contamination=0.1),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ESTIMATORS)
def test_one_and_two_threads_give_the_same_answer(name: str) -> None:
    model = spiked_mixture if "PCA" in name else linear_hiding
    X = model(N, D, K, 0.1, 0).X
    answers = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            fitted = ESTIMATORS[name].fit(X)
        found = fitted.components_ if "PCA" in name else fitted.location_
        answers.append((found, fitted.weights_ * N, np.array([fitted.objective_])))
    for one, two in zip(*answers, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_rounding_does_not_grow_in_a_long_descent(seed: int) -> None:
    # Weights and repeated rows sum in another order. No weights make uniform noise in 30 features
    # look white on 15 rows, so a descent goes on for long among kinks.
    rng = np.random.default_rng(seed)
    X, times = 10.0 * rng.random((15, 30)), rng.integers(0, 5, 15)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Of the solvers this one goes on to the end, whatever it reaches.
        options = {
            "contamination": 0.2,
            "solver": "paper",
            "scale": None,
            "covariance": None,
            "max_iter": 300,
        }
        counted = RobustSparseMean(4, **options).fit(X, sample_weight=times)
        repeated = RobustSparseMean(4, **options).fit(X.repeat(times, axis=0))
    assert counted.n_iter_ == 300
    np.testing.assert_allclose(counted.score_samples(X), repeated.score_samples(X), rtol=1e-10)
