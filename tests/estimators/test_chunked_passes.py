"""How often a fit goes through rows in chunks, and that few passes give the answer of memory."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from outweigh import RobustMean, RobustPCA, RobustSparseMean
from outweigh.adversaries import make
from outweigh.estimators.mean import MeanEstimator

da = pytest.importorskip("dask.array")
import dask  # noqa: E402 - only where Dask is installed

Array = NDArray[np.float64]

N, D, K = 3000, 160, 6
# The rows take 3.8 MB: room for a working set of columns, or for the rows whose weights change.
ROOM = {"outweigh.gathered-bytes": "2MB", "scheduler": "synchronous"}
UNITS = np.logspace(0, 2, D)
# The world of the paper: unit, uncorrelated noise.
WHITE = {"scale": None, "covariance": None}
MEANS: dict[str, Callable[..., MeanEstimator]] = {
    "sparse mean": lambda share, **o: RobustSparseMean(K, contamination=share, **o),
    "sparse mean, number unknown": lambda share, **o: RobustSparseMean(contamination=share, **o),
    "mean": lambda share, **o: RobustMean(contamination=share, **o),
}
every_mean = pytest.mark.parametrize("name", MEANS)
shares = pytest.mark.parametrize("share", [0.1, "auto"])


def fitted(name: str, share: float | str, X: Array, **options: object) -> MeanEstimator:
    with dask.config.set({**ROOM, "outweigh.gathered-bytes": 2_000_000 * len(X) // N}):
        chunked = da.from_array(X, chunks=(3 * len(X) // 20, D))
        return MEANS[name](share, **options).fit(chunked)


def assert_same(found: MeanEstimator, expected: MeanEstimator) -> None:
    for attribute in ("location_", "weights_", "scale_", "objective_", "offset_"):
        want = np.asarray(getattr(expected, attribute))
        size = float(np.abs(want).max())
        np.testing.assert_allclose(
            getattr(found, attribute), want, rtol=1e-8, atol=1e-8 * size, err_msg=attribute
        )


STRONG = ["wrong_support", "hidden_at_zero", "tight_cluster", "constant_bias", "doubled_mean"]
OTHERS = ["duplicates", "linear_hiding", "multi_direction"]
# Where their number is unknown, outliers that look like entries take a second search: below.
FEW_PASSES = [(name, attack, 0.05) for name in MEANS for attack in STRONG] + [
    (name, attack, 0.01) for name in ("sparse mean", "mean") for attack in OTHERS
]


@shares
@pytest.mark.parametrize(("name", "attack", "least"), FEW_PASSES)
def test_a_mean_takes_ten_passes_or_twelve_where_the_share_is_unknown(
    name: str, attack: str, least: float, share: float | str
) -> None:
    X = make(attack, N, D, K, 0.1, random_state=5).X
    found = fitted(name, share, X, **WHITE)
    # The weights moved, so that these are not the few passes that clean data takes.
    assert found.contamination_ > least
    assert_same(found, MEANS[name](share, **WHITE).fit(X))
    # Two of them look at the support of a sparse answer.
    assert found.n_passes_ <= (10 if share == 0.1 else 12)


@shares
@pytest.mark.parametrize("attack", ["duplicates", "linear_hiding"])
def test_a_wrong_count_at_first_gives_the_answer_of_memory(attack: str, share: float | str) -> None:
    X = make(attack, N, D, K, 0.1, random_state=5).X
    found = fitted("sparse mean, number unknown", share, X, **WHITE)
    assert_same(found, MEANS["sparse mean, number unknown"](share, **WHITE).fit(X))
    # The road is taken twice: with the first count, and with the better one.
    assert found.n_passes_ <= 28


@every_mean
@shares
def test_unknown_scales_take_a_few_more(name: str, share: float | str) -> None:
    X = make("wrong_support", N, D, K, 0.1, random_state=5).X * UNITS
    found = fitted(name, share, X, covariance=None)
    assert found.contamination_ > 0.05
    assert np.all(np.abs(found.scale_ / UNITS - 1.0) < 0.1)
    # A search in the first units, and one in those of the rows that it trusts.
    assert found.n_passes_ <= (13 if share == 0.1 else 16)
    assert_same(found, MEANS[name](share, covariance=None).fit(X))


@every_mean
@shares
@pytest.mark.parametrize("attack", ["wrong_support", "duplicates"])
def test_by_default_a_fit_takes_no_more_than_twenty_five_passes(
    name: str, share: float | str, attack: str
) -> None:
    X = make(attack, N, D, K, 0.1, random_state=5).X * UNITS
    found = fitted(name, share, X)
    assert_same(found, MEANS[name](share).fit(X))
    assert found.n_passes_ <= 25


@shares
def test_evidence_on_few_features_takes_one_round(share: float | str) -> None:
    X = make("linear_hiding", 2 * N, D, K, 0.1, random_state=5).X
    assert fitted("sparse mean", share, X, **WHITE).n_passes_ <= 10


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("attack", ["linear_hiding", "multi_direction", "wrong_support"])
def test_dense_means_along_directions_equal_those_of_memory(attack: str, seed: int) -> None:
    X = make(attack, 2000, D, K, 0.1, random_state=seed).X
    with dask.config.set({**ROOM, "outweigh.gathered-bytes": "1MB"}):
        found = RobustMean().fit(da.from_array(X, chunks=(330, D)))
    assert_same(found, RobustMean().fit(X))


def test_pruned_rows_are_scored_as_new_ones() -> None:
    X = make("wrong_support", N, D, K, 0.05, random_state=5).X * UNITS
    X[:60] += 1e4 * UNITS
    est = RobustMean(contamination=0.1)
    with dask.config.set(ROOM):
        chunked = da.from_array(X, chunks=(450, D))
        est.fit(chunked)
        scores = est.score_samples(chunked).compute()
    assert est.n_passes_ <= 10
    flagged = scores < est.offset_
    assert flagged[:60].all()
    assert abs(flagged.mean() - 0.1) < 0.001
    assert_same(est, RobustMean(contamination=0.1).fit(X))


def test_components_of_rows_beyond_the_budget_are_read_off_a_few_passes() -> None:
    X = make("wrong_support", N, 40, K, 0.1, random_state=2).X
    X[:, 20:] += 2.0 * np.random.default_rng(2).standard_normal((N, 1))
    with dask.config.set({**ROOM, "outweigh.gathered-bytes": "1MB"}):
        found = RobustPCA(contamination=0.1).fit(da.from_array(X, chunks=(450, 40)))
    assert found.n_passes_ <= 18
