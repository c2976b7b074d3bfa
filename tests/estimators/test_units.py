"""By default no answer depends on the units of the columns, nor on a scaler beforehand."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.preprocessing import RobustScaler, StandardScaler

from outweigh import RobustMean, RobustSparseMean
from outweigh.estimators.mean import MeanEstimator

Array = NDArray[np.float64]

D, K = 20, 3
MEANS: dict[str, Callable[[], MeanEstimator]] = {
    "mean": lambda: RobustMean(),
    "sparse mean": lambda: RobustSparseMean(K),
}
# A scaler moves the origin too, from which a sparse mean counts its entries: what it flags depends
# on the features of the answer, where the true mean of the others is no longer zero.
SCALERS: dict[str, Callable[[], object]] = {
    "standard": lambda: StandardScaler(with_mean=False),
    "robust": lambda: RobustScaler(with_centering=False),
}
CENTRING: dict[str, Callable[[], object]] = {"standard": StandardScaler, "robust": RobustScaler}
UNITS = np.random.default_rng(0).permutation(np.logspace(-3, 3, D))

every_mean = pytest.mark.parametrize("name", MEANS)
every_sample = pytest.mark.parametrize(
    ("noise", "share", "n"),
    [
        (noise, share, n)
        for noise in ("white", "correlated")
        for share in (0.0, 0.1)
        for n in (400, 3000)
    ],
)


@cache
def rows(noise: str, share: float, n: int) -> Array:
    rng = np.random.default_rng([91, n])
    X = rng.standard_normal((n, D))
    if noise == "correlated":
        X @= np.linalg.cholesky(0.7 ** np.abs(np.subtract.outer(np.arange(D), np.arange(D)))).T
    X[:, :K] += [2.0, -2.0, 1.5]
    X[: int(share * n), 8:12] += [4.0, -4.0, 4.0, -4.0]
    return X


@cache
def fitted(name: str, noise: str, share: float, n: int) -> MeanEstimator:
    return MEANS[name]().fit(rows(noise, share, n))


def assert_same_rows(found: MeanEstimator, X: Array, plain: MeanEstimator, own: Array) -> None:
    """Compare weights, relative to those of equal rows, and flags."""
    np.testing.assert_allclose(len(X) * found.weights_, len(X) * plain.weights_, atol=1e-6)
    np.testing.assert_array_equal(found.predict(X), plain.predict(own))


@every_mean
@every_sample
def test_units_change_no_weight_and_no_flag(name: str, noise: str, share: float, n: int) -> None:
    X, plain = rows(noise, share, n), fitted(name, noise, share, n)
    found = MEANS[name]().fit(X * UNITS)
    assert_same_rows(found, X * UNITS, plain, X)
    np.testing.assert_allclose(found.scale_, plain.scale_ * UNITS, rtol=1e-6)
    np.testing.assert_allclose(found.location_ / UNITS, plain.location_, atol=1e-6)


@every_mean
@every_sample
@pytest.mark.parametrize("scaler", SCALERS)
def test_a_scaler_beforehand_changes_no_weight_and_no_flag(
    name: str, noise: str, share: float, n: int, scaler: str
) -> None:
    X, plain = rows(noise, share, n), fitted(name, noise, share, n)
    # The dense mean has no origin: there the centre is moved too.
    made = CENTRING[scaler]() if name == "mean" else SCALERS[scaler]()
    scaled = made.fit_transform(X)
    assert_same_rows(MEANS[name]().fit(scaled), scaled, plain, X)


@every_mean
@pytest.mark.parametrize("noise", ["white", "correlated"])
def test_the_outliers_are_flagged_and_clean_rows_are_not(name: str, noise: str) -> None:
    flagged = fitted(name, noise, 0.1, 3000).predict(rows(noise, 0.1, 3000)) == -1
    assert flagged[:300].mean() >= 0.95
    assert flagged[300:].mean() <= 0.02
    clean = fitted(name, noise, 0.0, 3000).predict(rows(noise, 0.0, 3000)) == -1
    assert clean.mean() <= 0.01
