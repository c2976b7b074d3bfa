"""More rows than weights are searched on: a sample is fitted, and every row gets a weight."""

from __future__ import annotations

import io
import logging
import pickle
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.base import clone

from outweigh import (
    ContaminationSearch,
    RobustMean,
    RobustPCA,
    RobustSparseMean,
    RobustSparsePCA,
)
from outweigh.adversaries import make
from outweigh.displays import WeightsDisplay
from outweigh.estimators.base import RobustEstimator
from outweigh.estimators.input import subsample_of
from outweigh.files.model import load_model, save_model
from outweigh.samples import rows as rows_module
from outweigh.samples.chunks import SlicedChunks

Array = NDArray[np.float64]

N, D, SIZE = 4000, 12, 600


def rows_of(seed: int = 0, n: int = N) -> Array:
    """Clean rows about a sparse mean with one strong direction, a tenth of them shifted."""
    rng = np.random.default_rng([77, seed])
    X = rng.standard_normal((n, D))
    X[:, :3] += [1.5, -2.0, 1.0]
    X[:, 9:] += rng.standard_normal((n, 1))
    X[rng.permutation(n)[: n // 10], 4:8] += 4.0
    return X


ESTIMATORS: dict[str, Callable[..., RobustEstimator]] = {
    "sparse mean": lambda **options: RobustSparseMean(3, **options),
    "mean, known share": lambda **options: RobustMean(contamination=0.1, **options),
    "components": lambda **options: RobustPCA(1, **options),
    "sparse components": lambda **options: RobustSparsePCA(1, n_nonzero=3, **options),
}
every_estimator = pytest.mark.parametrize("name", ESTIMATORS)

LAYOUTS = {
    "three": (1500, 1500, 1000),
    "uneven, the last of one row": (3000, 700, 299, 1),
    "empty": (0, 2500, 0, 1500, 0),
    "many": (250,) * 16,
}
FITTED = ("location_", "components_", "mean_", "weights_", "contamination_", "offset_", "scale_")


def chunked(X: Array, sizes: tuple[int, ...]) -> Any:
    da = pytest.importorskip("dask.array")
    return da.from_array(X, chunks=(sizes, X.shape[1]))


def configured(**options: Any) -> Any:
    dask = pytest.importorskip("dask")
    return dask.config.set({"scheduler": "synchronous", **options})


def assert_same(found: RobustEstimator, expected: RobustEstimator) -> None:
    np.testing.assert_array_equal(found.subsample_, expected.subsample_)
    for attribute in FITTED:
        if hasattr(expected, attribute):
            a, b = (np.asarray(getattr(est, attribute)) for est in (found, expected))
            np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-8 * np.abs(b).max())


@every_estimator
@pytest.mark.parametrize("budget", ["512MiB", 20_000], ids=["gathered", "left in chunks"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_dask_gives_the_answer_of_memory(name: str, layout: str, budget: object) -> None:
    X = rows_of()
    expected = ESTIMATORS[name](subsample=SIZE, random_state=3).fit(X)
    assert isinstance(expected.weights_, np.ndarray)
    with configured(**{"outweigh.gathered-bytes": budget}):
        found = ESTIMATORS[name](subsample=SIZE, random_state=3).fit(chunked(X, LAYOUTS[layout]))
        assert_same(found, expected)


@every_estimator
@pytest.mark.parametrize("budget", [10**9, 20_000], ids=["gathered", "left in slices"])
def test_an_array_on_disk_gives_the_answer_of_memory(
    name: str, budget: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = rows_of()
    expected = ESTIMATORS[name](subsample=SIZE).fit(X)
    np.save(tmp_path / "rows.npy", X)
    stored = np.load(tmp_path / "rows.npy", mmap_mode="r")
    monkeypatch.setattr(rows_module, "GATHERED_BYTES", 0)
    slices = partial(SlicedChunks.of, budget=budget, sizes=(3000, 999, 1))
    monkeypatch.setattr(SlicedChunks, "of", slices)
    found = ESTIMATORS[name](subsample=SIZE).fit(stored)
    assert isinstance(found.weights_, np.ndarray)
    assert_same(found, expected)


@pytest.mark.parametrize("name", ["sparse mean", "mean, known share"])
def test_sparse_rows_give_the_answer_of_dense_ones(name: str) -> None:
    X = rows_of()
    X[np.abs(X) < 1.0] = 0.0
    dense = ESTIMATORS[name](subsample=SIZE).fit(X)
    assert_same(ESTIMATORS[name](subsample=SIZE).fit(csr_array(X)), dense)


@every_estimator
def test_a_sample_that_fits_takes_two_passes(name: str) -> None:
    with configured():
        found = ESTIMATORS[name](subsample=SIZE).fit(chunked(rows_of(), LAYOUTS["three"]))
    assert found.n_passes_ == 2


@every_estimator
def test_weights_of_dask_rows_stay_lazy_in_the_chunks_of_the_rows(name: str) -> None:
    da = pytest.importorskip("dask.array")
    with configured():
        X = chunked(rows_of(), LAYOUTS["uneven, the last of one row"])
        found = ESTIMATORS[name](subsample=SIZE).fit(X)
        assert isinstance(found.weights_, da.Array)
        assert found.weights_.chunks == (X.chunks[0],)
        # One task a chunk beside those that make the rows, whatever the fit did.
        assert len(found.weights_.dask) <= len(X.dask) + 3 * X.numblocks[0]
        trusted = np.asarray(found.predict(X)) == 1
        np.testing.assert_allclose(np.asarray(found.weights_), trusted / trusted.sum())


@every_estimator
def test_trusted_rows_weigh_as_their_sample_weight_and_others_nothing(name: str) -> None:
    X = rows_of()
    weight = np.random.default_rng(5).integers(0, 4, N).astype(np.float64)
    found = ESTIMATORS[name](subsample=SIZE).fit(X, sample_weight=weight)
    assert weight[found.subsample_].min() > 0
    expected = np.where(found.predict(X) == 1, weight, 0.0)
    np.testing.assert_allclose(found.weights_, expected / expected.sum(), rtol=1e-12)
    assert found.contamination_ == pytest.approx(1.0 - expected.sum() / weight.sum())
    if isinstance(found, RobustMean):
        np.testing.assert_allclose(found.location_, expected @ X / expected.sum())
    with configured():
        da = pytest.importorskip("dask.array")
        lazy = ESTIMATORS[name](subsample=SIZE).fit(
            chunked(X, LAYOUTS["three"]), sample_weight=da.from_array(weight, chunks=700)
        )
        assert lazy.weights_.chunks == (LAYOUTS["three"],)
        assert_same(lazy, found)


def test_rows_of_no_weight_do_not_count_among_those_to_sample() -> None:
    weight = np.zeros(N)
    weight[:SIZE] = 1.0
    assert RobustMean(subsample=SIZE).fit(rows_of(), sample_weight=weight).subsample_ is None


@every_estimator
def test_the_same_seed_draws_the_same_rows_and_another_one_others(name: str) -> None:
    X = rows_of()
    first, again, other = (
        ESTIMATORS[name](subsample=SIZE, random_state=seed).fit(X) for seed in (1, 1, 2)
    )
    assert_same(first, again)
    assert not np.array_equal(first.subsample_, other.subsample_)
    assert first.objective_ != other.objective_


@every_estimator
def test_no_more_rows_than_asked_for_are_fitted_as_ever(name: str) -> None:
    X = rows_of(n=SIZE)
    found, always = (ESTIMATORS[name](subsample=size).fit(X) for size in (SIZE, None))
    assert found.subsample_ is None
    np.testing.assert_array_equal(found.weights_, always.weights_)


def test_none_searches_all_rows() -> None:
    X = rows_of()
    assert RobustMean(subsample=None).fit(X).subsample_ is None


def test_a_random_state_that_draws_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="random_state has no effect with subsample=None"):
        RobustMean(subsample=None, random_state=0).fit(np.eye(20))


@pytest.mark.parametrize("bad", [9, 1, 0, -5, 1.5, "all"])
def test_other_sizes_are_refused_by_name(bad: object) -> None:
    with pytest.raises(ValueError, match="subsample"):
        RobustMean(subsample=bad).fit(rows_of(n=20))  # type: ignore[arg-type]


@pytest.mark.parametrize("budget", ["512MiB", 20_000], ids=["gathered", "left in chunks"])
def test_a_bad_value_outside_of_the_sample_is_refused_by_its_place(budget: object) -> None:
    X = rows_of()
    est = RobustMean(subsample=SIZE).fit(X)
    row = int(np.setdiff1d(np.arange(3000, N), est.subsample_)[0])
    X[row, 7] = np.nan
    before = dict(vars(est))
    with (
        configured(**{"outweigh.gathered-bytes": budget}),
        pytest.raises(ValueError, match=f"chunk 2 holds NaN or infinity, first in row {row}, col"),
    ):
        est.fit(chunked(X, LAYOUTS["three"]))
    assert vars(est) == before


def test_huge_rows_outside_of_the_sample_are_not_trusted() -> None:
    X = rows_of()
    rows = np.setdiff1d(np.arange(N), RobustMean(subsample=SIZE).fit(X).subsample_)[:5]
    X[rows] = 1e300
    found = RobustMean(subsample=SIZE).fit(X)
    assert not np.intersect1d(found.subsample_, rows).size
    assert not found.weights_[rows].any()
    assert np.all(np.abs(found.location_) < 3.0)


@pytest.mark.parametrize("seed", range(8))
def test_a_sample_with_more_outliers_than_the_share_of_all_does_not_break_the_mean(
    seed: int,
) -> None:
    sample = make("far_outliers", 20_000, 10, 3, 0.1, random_state=seed)
    found = RobustMean(contamination=0.1, subsample=1000, random_state=seed).fit(sample.X)
    oracle = np.linalg.norm(sample.X[sample.inliers].mean(axis=0) - sample.truth)
    assert np.linalg.norm(found.location_ - sample.truth) < 3.0 * oracle + 1e-3


@pytest.mark.parametrize("attack", ["tight_cluster", "constant_bias", "far_outliers"])
def test_the_error_is_that_of_all_clean_rows_not_that_of_the_sample(attack: str) -> None:
    ratios, of_sample = [], []
    for seed in range(10):
        sample = make(attack, 40_000, 20, 4, 0.1, random_state=seed)
        found = RobustMean(contamination=0.1, subsample=4000, random_state=seed).fit(sample.X)
        clean = sample.X[sample.inliers]
        drawn = sample.X[found.subsample_[sample.inliers[found.subsample_]]]
        errors = [
            np.linalg.norm(mean - sample.truth)
            for mean in (found.location_, clean.mean(axis=0), drawn.mean(axis=0))
        ]
        ratios.append(errors[0] / errors[1])
        of_sample.append(errors[2] / errors[1])
    # A tenth of the rows: about three times the error.
    assert np.median(of_sample) > 2.0
    assert np.median(ratios) < 1.3


def test_constants_and_zeros_of_a_sparse_mean_are_kept() -> None:
    X = rows_of()
    X[:, 8] = 0.1
    with pytest.warns(UserWarning, match="constant"):
        found = RobustSparseMean(3, subsample=SIZE).fit(X)
    assert found.location_[8] == 0.1
    assert set(np.flatnonzero(found.location_)) == {0, 1, 2, 8}


def test_a_value_where_the_sample_is_constant_does_not_move_the_mean() -> None:
    X = rows_of()
    X[:, 8] = 0.1
    row = int(np.setdiff1d(np.arange(N), RobustPCA(subsample=SIZE).fit(rows_of()).subsample_)[0])
    X[row, 8] = 1e300
    with pytest.warns(UserWarning, match="constant"):
        found = RobustMean(subsample=SIZE).fit(X)
    assert found.location_[8] == 0.1


def test_a_data_frame_of_dask_keeps_its_names_and_knows_its_chunks() -> None:
    dd = pytest.importorskip("dask.dataframe")
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(rows_of()).add_prefix("f")
    with configured():
        found = RobustMean(subsample=SIZE).fit(dd.from_pandas(frame, npartitions=3))
        assert found.weights_.shape == (N,)
        assert found.feature_names_in_[0] == "f0"
        assert_same(found, RobustMean(subsample=SIZE).fit(frame))


@pytest.mark.parametrize("name", ["sparse mean", "mean, known share"])
def test_certify_speaks_of_the_rows_that_were_searched(name: str) -> None:
    X = rows_of()
    # The theorem that a certificate is measured by is about white noise.
    found = ESTIMATORS[name](subsample=SIZE, covariance=None).fit(X)
    # Share for share what the sample was fitted with.
    known = {} if name == "sparse mean" else {"contamination": found.contamination_bound_}
    alone = ESTIMATORS[name](covariance=None).set_params(**known).fit(X[found.subsample_])
    assert found.certificate_.objective == alone.certificate_.objective
    expected = alone.certify(X[found.subsample_]).moreau.gradient_norm
    assert found.certify(X).moreau.gradient_norm == pytest.approx(expected, rel=1e-6)
    with pytest.raises(ValueError, match=f"the {N} rows of the fit"):
        found.certify(X[found.subsample_])


@every_estimator
def test_lazy_weights_survive_pickling_and_are_left_out_of_model_files(name: str) -> None:
    X = rows_of()
    with configured():
        found = ESTIMATORS[name](subsample=SIZE).fit(chunked(X, LAYOUTS["three"]))
        copy = pickle.loads(pickle.dumps(found))
        np.testing.assert_array_equal(np.asarray(copy.weights_), np.asarray(found.weights_))
        file = io.BytesIO()
        save_model(found, file)
        loaded = load_model(io.BytesIO(file.getvalue()))
        assert not hasattr(loaded, "weights_")
        np.testing.assert_array_equal(loaded.subsample_, found.subsample_)
        np.testing.assert_array_equal(loaded.predict(X), found.predict(X))
        again = io.BytesIO()
        save_model(loaded, again)
        assert again.getvalue() == file.getvalue()
        assert clone(found).fit(X).subsample_.size == SIZE


def test_the_display_draws_lazy_weights() -> None:
    pytest.importorskip("matplotlib")
    with configured():
        X = chunked(rows_of(), LAYOUTS["three"])
        found = RobustMean(subsample=SIZE).fit(X)
        display = WeightsDisplay.from_estimator(found, X)
    assert display.weights.sum() == pytest.approx(N)


def test_a_search_for_the_contamination_works_on_samples() -> None:
    # Without the columns that share a direction: a mean asks for white noise.
    X = rows_of()[:, :9]
    search = ContaminationSearch(RobustSparseMean(3, subsample=SIZE), tol=0.05).fit(X)
    assert search.feasible_
    assert search.estimator_.subsample_.size == SIZE


def test_a_notebook_and_the_log_say_that_a_sample_was_fitted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.INFO, logger="outweigh"):
        found = RobustMean(subsample=SIZE).fit(rows_of())
    assert f"a random sample of {SIZE} of {N} rows" in caplog.text
    assert f"on a random sample of {SIZE} of 4,000 rows" in found._repr_html_()


class Counted:
    """Rows of which only the number is known."""

    def __init__(self, n: int) -> None:
        self.shape = (n, 1)

    def part(self, indices: NDArray[np.intp]) -> Counted:
        return Counted(indices.size)


def drawn(n: int, size: int, generator: np.random.RandomState) -> NDArray[np.intp]:
    found = subsample_of(Counted(n), None, size, generator)
    assert found is not None
    return found[0]


@pytest.mark.parametrize("size", [3, 20, 29])
def test_every_set_of_rows_is_as_likely_as_any_other(size: int) -> None:
    generator = np.random.RandomState(0)
    draws = np.array([drawn(30, size, generator) for _ in range(4000)])
    assert np.all(np.diff(draws, axis=1) > 0)
    counts = np.bincount(draws.ravel(), minlength=30)
    share = size / 30
    # Five standard deviations of a binomial count.
    assert np.all(np.abs(counts - 4000 * share) < 5.0 * np.sqrt(4000 * share * (1 - share)))


@pytest.mark.parametrize("n", [45_000, 10**7, 10**9])
def test_rows_are_drawn_in_the_memory_of_the_sample(n: int) -> None:
    tracemalloc.start()
    try:
        found = drawn(n, 20_000, np.random.RandomState(0))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert np.unique(found).size == 20_000
    # A set of Python's integers, whatever the number of all rows: less than 200 bytes for each.
    assert peak < 200 * found.size


def test_the_client_holds_less_than_a_number_for_each_row() -> None:
    da = pytest.importorskip("dask.array")
    n, d, size = 2_000_000, 4, 20_000

    def block(block_info: Any = None) -> Array:
        first, last = block_info[None]["array-location"][0]
        rng = np.random.default_rng(first)
        rows = rng.standard_normal((last - first, d))
        rows[::10] += 5.0
        return rows

    def lazily(count: int) -> Any:
        return da.map_blocks(block, chunks=((20_000,) * count, (d,)), dtype=np.float64)

    X = lazily(n // 20_000)
    model = RobustMean(subsample=size, contamination=0.1, scale=None, covariance=None)
    with configured():
        # What is imported or remembered on the way is not to be counted.
        model.fit(lazily(2))
        tracemalloc.start()
        try:
            found = model.fit(X)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    # The blocks at work and what is held for each row of the sample, some 6 MB.
    assert peak < 8 * n
    assert np.linalg.norm(found.location_) < 0.01
    assert isinstance(found.weights_, da.Array)


@pytest.mark.parametrize("make_estimator", [RobustMean, RobustSparseMean])
@pytest.mark.parametrize("contamination", [0.0, 0.1, "auto"])
def test_clean_rows_keep_their_weight_on_a_sample_too(
    make_estimator: type[RobustMean], contamination: float | str
) -> None:
    X = np.random.default_rng(71).standard_normal((6000, 10))
    est = make_estimator(contamination=contamination, subsample=1000).fit(X)
    assert est.contamination_ == 0.0
    np.testing.assert_allclose(est.weights_, 1.0 / len(X))
    if make_estimator is RobustMean:
        np.testing.assert_allclose(est.location_, X.mean(axis=0), atol=1e-12)


def test_no_more_of_all_rows_is_removed_than_the_search_removed() -> None:
    # Skewed rows: a cut at the share given would move their mean.
    X = np.random.default_rng(72).exponential(size=(20000, 8))
    est = RobustMean(contamination=0.1, subsample=10000).fit(X)
    assert est.contamination_ < 0.02
