"""The same estimators on rows in chunks: the same answers, in few passes, or a clear refusal."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from outweigh import RobustMean, RobustPCA, RobustSparseMean, RobustSparsePCA
from outweigh.adversaries import ADVERSARIES
from outweigh.estimators.base import RobustEstimator
from outweigh.samples import rows as rows_module
from outweigh.samples.chunks import SlicedChunks

da = pytest.importorskip("dask.array")
import dask  # noqa: E402 - only where Dask is installed

Array = NDArray[np.float64]

N, D = 900, 24
# The world of the paper: unit, uncorrelated noise.
WHITE = {"scale": None, "covariance": None}


def contaminated(seed: int = 0, n: int = N) -> Array:
    rng = np.random.default_rng([41, seed])
    X = rng.standard_normal((n, D))
    X[:, :3] += [1.5, -2.0, 1.0]
    X[: n // 10, 5:11] += 2.5
    return X


def spiked(seed: int = 0) -> Array:
    rng = np.random.default_rng([42, seed])
    X = rng.standard_normal((N, D))
    X[:, :4] += 1.2 * rng.standard_normal((N, 1))
    X[: N // 10, 8:12] += 2.0 * rng.standard_normal((N // 10, 1))
    return X


def uneven(X: Array) -> da.Array:
    n = len(X)
    return da.from_array(X, chunks=((n // 2, n // 3, n - 1 - n // 2 - n // 3, 1), X.shape[1]))


LAYOUTS: dict[str, Callable[[Array], da.Array]] = {
    "five": lambda X: da.from_array(X, chunks=(-(-len(X) // 5), -1)),
    "twenty": lambda X: da.from_array(X, chunks=(-(-len(X) // 20), -1)),
    "uneven, the last of one row": uneven,
    "empty chunks": lambda X: da.from_array(X, chunks=((0, 300, 0, len(X) - 300, 0), X.shape[1])),
    "columns too": lambda X: da.from_array(X, chunks=(100, 7)),
}

ESTIMATORS: dict[str, Callable[[], RobustEstimator]] = {
    "sparse mean": lambda: RobustSparseMean(3),
    "sparse mean, known share": lambda: RobustSparseMean(3, contamination=0.1),
    "mean": lambda: RobustMean(),
    "sparse components": lambda: RobustSparsePCA(1, 4),
    "components": lambda: RobustPCA(1, contamination=0.1),
}
every_estimator = pytest.mark.parametrize("name", ESTIMATORS)


def data_for(name: str, seed: int = 0) -> Array:
    return spiked(seed) if "component" in name else contaminated(seed)


@cache
def in_memory(name: str) -> RobustEstimator:
    """Return the fit to the rows of `data_for` in memory."""
    return ESTIMATORS[name]().fit(data_for(name))


IN_CHUNKS = {"outweigh.gathered-bytes": 100_000, "scheduler": "synchronous"}
"""Room for some columns of the data below, not for all of it."""

FITTED = [
    "location_",
    "components_",
    "mean_",
    "weights_",
    "objective_",
    "offset_",
    "scale_",
    "contamination_",
    "support_",
]


def assert_same(chunked: RobustEstimator, plain: RobustEstimator, rtol: float = 1e-8) -> None:
    for attribute in FITTED:
        if hasattr(plain, attribute):
            expected = np.asarray(getattr(plain, attribute), dtype=float)
            found = np.asarray(getattr(chunked, attribute), dtype=float)
            size = float(np.abs(expected).max(initial=0.0))
            np.testing.assert_allclose(
                found, expected, rtol=rtol, atol=rtol * size, err_msg=attribute
            )


@pytest.fixture(params=["everything", "a working set", "a matrix"])
def room(request: pytest.FixtureRequest):
    """Room for all rows, for some of their columns, or for a matrix over all pairs alone."""
    # All rows take 173 kB; a working set of thirty columns of them more than the least budget.
    budget = {"everything": 2**29, "a working set": 100_000, "a matrix": 8 * D * D}[request.param]
    with dask.config.set({"outweigh.gathered-bytes": budget, "scheduler": "synchronous"}):
        yield


@every_estimator
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_gives_the_answer_of_memory(name: str, layout: str) -> None:
    with dask.config.set(IN_CHUNKS):
        chunked = ESTIMATORS[name]().fit(LAYOUTS[layout](data_for(name)))
    assert_same(chunked, in_memory(name))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("model", ["linear_hiding", "constant_bias", "tail_flipping"])
def test_means_equal_those_of_memory_on_every_seed(model: str, seed: int) -> None:
    X = ADVERSARIES[model](1200, 60, 4, 0.1, seed).X
    plain = RobustSparseMean(4).fit(X)
    # Room for a working set of the 1200 rows, not for all their columns.
    with dask.config.set({"outweigh.gathered-bytes": 400_000, "scheduler": "synchronous"}):
        chunked = RobustSparseMean(4).fit(da.from_array(X, chunks=(170, 60)))
    assert_same(chunked, plain)


@every_estimator
def test_a_small_budget_gives_the_same_answer(room: None, name: str) -> None:
    X = data_for(name)
    chunked = ESTIMATORS[name]().fit(da.from_array(X, chunks=(250, D)))
    assert_same(chunked, in_memory(name))


@every_estimator
def test_units_and_constants_give_the_same_answer(name: str) -> None:
    X = data_for(name) * np.logspace(0, 3, D) + 7.0
    X = np.column_stack([X, np.full(N, 1e12)])
    with pytest.warns(UserWarning, match="constant"):
        plain = ESTIMATORS[name]().fit(X)
    with pytest.warns(UserWarning, match="constant"), dask.config.set(IN_CHUNKS):
        chunked = ESTIMATORS[name]().fit(da.from_array(X, chunks=(300, 25)))
    assert_same(chunked, plain)


@every_estimator
def test_rows_of_1e300_give_the_same_answer(name: str) -> None:
    X = data_for(name)
    X[::30] = 1e300
    with dask.config.set(IN_CHUNKS):
        chunked = ESTIMATORS[name]().fit(da.from_array(X, chunks=(300, D)))
    assert_same(chunked, ESTIMATORS[name]().fit(X))


@every_estimator
@pytest.mark.parametrize("layout", ["five", "empty chunks"])
def test_sample_weights_give_the_same_answer(name: str, layout: str) -> None:
    X = data_for(name)
    weight = np.arange(N) % 3 * 1.0
    with dask.config.set(IN_CHUNKS):
        given = da.from_array(weight, chunks=100)
        chunked = ESTIMATORS[name]().fit(LAYOUTS[layout](X), sample_weight=given)
    assert_same(chunked, ESTIMATORS[name]().fit(X, sample_weight=weight))


def test_a_known_share_takes_eight_passes_and_an_unknown_one_twelve() -> None:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((6000, 120))
    X[:, :5] += 1.0
    X[:600, 3:13] += 1.0
    # The rows take 5.8 MB, the columns of a working set a third of that.
    with dask.config.set({"outweigh.gathered-bytes": "4MB", "scheduler": "synchronous"}):
        chunked = da.from_array(X, chunks=(1000, 120))
        known = RobustSparseMean(5, contamination=0.1, **WHITE).fit(chunked)
        unknown = RobustSparseMean(5, **WHITE).fit(chunked)
        default = RobustSparseMean(5).fit(chunked)
    # The weights moved, so that these are not the few passes that clean data takes.
    assert known.contamination_ > 0.05
    assert unknown.contamination_ > 0.05
    assert known.n_passes_ <= 8
    assert unknown.n_passes_ <= 12
    # The scales, whether rows are correlated, and a second search in better units.
    assert default.n_passes_ <= 18


def test_data_that_fits_the_budget_is_read_twice() -> None:
    with dask.config.set(scheduler="synchronous"):
        est = RobustSparseMean(3).fit(da.from_array(contaminated(), chunks=(300, D)))
    assert est.n_passes_ == 2


def test_each_pass_is_told_to_the_logger(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "outweigh"), dask.config.set(scheduler="synchronous"):
        est = RobustMean().fit(da.from_array(contaminated(), chunks=(300, D)))
    begun = [message for message in caplog.messages if message.startswith("pass ")]
    assert len([message for message in begun if " over " in message]) == est.n_passes_


@pytest.mark.parametrize("scheduler", ["threads", "processes"])
def test_threads_and_processes_work(scheduler: str) -> None:
    X = contaminated(n=300)
    # Forked processes start at once; spawned ones import everything anew for each pass.
    with dask.config.set({"scheduler": scheduler, "multiprocessing.context": "fork"}):
        chunked = RobustMean(contamination=0.1).fit(da.from_array(X, chunks=(150, D)))
    assert_same(chunked, RobustMean(contamination=0.1).fit(X))


@every_estimator
def test_scores_are_lazy_and_equal_those_of_memory(name: str) -> None:
    X = data_for(name)
    est = ESTIMATORS[name]().fit(X)
    chunked = da.from_array(X, chunks=(400, D))
    for method in ("score_samples", "decision_function", "predict", "transform"):
        if not hasattr(est, method):
            continue
        lazy = getattr(est, method)(chunked)
        assert isinstance(lazy, da.Array)
        assert lazy.chunks[0] == (400, 400, 100)
        np.testing.assert_allclose(lazy.compute(), getattr(est, method)(X), rtol=1e-12)
    explained, expected = est.explain(chunked), est.explain(X)
    np.testing.assert_array_equal(explained.rows, expected.rows)
    np.testing.assert_array_equal(explained.features, expected.features)


def test_a_fit_on_a_sample_extends_to_the_rest_in_one_lazy_pass() -> None:
    X = contaminated(n=5000)
    order = np.random.default_rng(0).permutation(5000)
    est = RobustSparseMean(3).fit(X[order[:1000]])
    lazy = est.reweighted_mean(da.from_array(X, chunks=(999, D)))
    assert isinstance(lazy, da.Array)
    np.testing.assert_allclose(lazy.compute(), est.reweighted_mean(X), rtol=1e-10)
    trusted = X[est.predict(X) == 1].mean(axis=0)
    np.testing.assert_allclose(est.reweighted_mean(X)[est.support_], trusted[est.support_])
    truth = np.zeros(D)
    truth[:3] = [1.5, -2.0, 1.0]
    oracle = X[500:].mean(axis=0) * (truth != 0)
    error = np.linalg.norm(est.reweighted_mean(X) - truth)
    assert error <= 1.5 * np.linalg.norm(oracle - truth) + 0.01
    assert error < np.linalg.norm(est.location_ - truth)


def test_a_data_frame_of_dask_keeps_its_names() -> None:
    pd = pytest.importorskip("pandas")
    dd = pytest.importorskip("dask.dataframe")
    frame = pd.DataFrame(contaminated(), columns=[f"gene {j}" for j in range(D)])
    lazy = dd.from_pandas(frame, npartitions=3)
    with dask.config.set(scheduler="synchronous"):
        est = RobustSparseMean(3).fit(lazy)
        scores = est.score_samples(lazy).compute()
    plain = RobustSparseMean(3).fit(frame)
    assert_same(est, plain)
    assert list(est.feature_names_in_) == list(frame.columns)
    np.testing.assert_allclose(scores, plain.score_samples(frame), rtol=1e-9)
    with pytest.raises(ValueError, match="feature names"):
        est.score_samples(lazy.rename(columns={"gene 0": "other"}))


def test_text_in_a_data_frame_of_dask_is_refused_by_name() -> None:
    pd = pytest.importorskip("pandas")
    dd = pytest.importorskip("dask.dataframe")
    frame = pd.DataFrame({"a": np.arange(6.0), "town": list("abcdef")})
    with pytest.raises(ValueError, match="town"):
        RobustMean().fit(dd.from_pandas(frame, npartitions=2))


@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_an_array_on_disk_is_read_in_slices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dtype: type[np.generic]
) -> None:
    X = (10 * contaminated()).astype(dtype)
    np.save(tmp_path / "rows.npy", X)
    stored = np.load(tmp_path / "rows.npy", mmap_mode="r")
    monkeypatch.setattr(rows_module, "GATHERED_BYTES", 1000)
    slices = partial(SlicedChunks.of, budget=100_000, sizes=(400, 400, 100))
    monkeypatch.setattr(SlicedChunks, "of", slices)
    est = RobustSparseMean(3).fit(stored)
    assert est.n_passes_ > 0
    assert_same(est, RobustSparseMean(3).fit(X.astype(float)))
    np.testing.assert_allclose(
        est.score_samples(stored), est.score_samples(X.astype(float)), rtol=1e-12
    )


def test_wide_rows_need_no_matrix_over_all_pairs() -> None:
    rng = np.random.default_rng(5)
    X = rng.standard_normal((400, 300))
    X[:40, :10] += 3.0
    # 300 x 300 numbers are 720 kB; 100 kB hold a working set of thirty columns.
    with dask.config.set({"outweigh.gathered-bytes": "100kB", "scheduler": "synchronous"}):
        chunked = RobustSparseMean(5, contamination=0.1).fit(da.from_array(X, chunks=(100, 300)))
    assert_same(chunked, RobustSparseMean(5, contamination=0.1).fit(X))


BAD: dict[str, tuple[Callable[[Array], da.Array], str]] = {
    "unknown row chunks": (lambda X: _filtered(X), "compute_chunk_sizes"),
    "objects": (lambda X: da.from_array(X.astype(object), chunks=(100, D)), "dtype is object"),
    "complex numbers": (lambda X: da.from_array(X + 1j, chunks=(100, D)), "dtype is complex"),
    "a nan in the eighth chunk": (
        lambda X: da.from_array(_with_nan(X), chunks=(100, D)),
        "chunk 7",
    ),
    "a vector": (lambda X: da.from_array(X[:, 0], chunks=100), "two dimensions"),
    "one row": (lambda X: da.from_array(X[:1], chunks=(1, D)), "minimum of 2"),
    "unknown columns": (lambda X: _filtered(X.T).T, "columns is unknown"),
}


def _filtered(X: Array) -> da.Array:
    chunked = da.from_array(X, chunks=(10, X.shape[1]))
    return chunked[chunked[:, 0] > -10.0]


def _with_nan(X: Array) -> Array:
    X = X.copy()
    X[731, 3] = np.nan
    return X


@every_estimator
@pytest.mark.parametrize("bad", BAD)
def test_bad_input_is_refused_and_nothing_is_half_fitted(name: str, bad: str) -> None:
    make, message = BAD[bad]
    est = ESTIMATORS[name]()
    with dask.config.set(scheduler="synchronous"), pytest.raises(ValueError, match=message):
        est.fit(make(data_for(name)))
    assert not [key for key in vars(est) if key.endswith("_")]


def test_the_place_of_a_bad_value_is_named() -> None:
    X = da.from_array(_with_nan(contaminated()), chunks=(100, D))
    with pytest.raises(ValueError, match="row 731, column 3"):
        RobustMean().fit(X)
    est = RobustMean().fit(contaminated())
    with pytest.raises(ValueError, match="NaN or infinity in row 31 of a chunk"):
        est.score_samples(X).compute()


def test_a_refit_that_fails_leaves_the_fit_before() -> None:
    est = RobustMean().fit(contaminated())
    before = est.location_
    with pytest.raises(ValueError, match="chunk 7"):
        est.fit(da.from_array(_with_nan(contaminated()), chunks=(100, D)))
    assert est.location_ is before
    assert not hasattr(est, "n_passes_")


def test_passes_are_forgotten_by_a_fit_in_memory() -> None:
    est = RobustMean().fit(da.from_array(contaminated(), chunks=(300, D)))
    assert est.n_passes_
    assert not hasattr(est.fit(contaminated()), "n_passes_")


@every_estimator
@pytest.mark.parametrize("method", ["score_samples", "predict", "explain", "reweighted_mean"])
def test_nan_is_refused_by_every_method(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, method: str
) -> None:
    est = ESTIMATORS[name]().fit(data_for(name))
    if not hasattr(est, method):
        pytest.skip("means only")
    bad = _with_nan(data_for(name))
    np.save(tmp_path / "rows.npy", bad)
    monkeypatch.setattr(rows_module, "GATHERED_BYTES", 1000)
    with pytest.raises(ValueError, match="row 731, column 3"):
        getattr(est, method)(np.load(tmp_path / "rows.npy", mmap_mode="r"))
    with pytest.raises(ValueError, match="NaN or infinity"):
        np.asarray(getattr(est, method)(da.from_array(bad, chunks=(100, D))))


def test_certify_refuses_nan_in_chunks() -> None:
    est = RobustMean().fit(contaminated())
    with pytest.raises(ValueError, match="row 731, column 3"):
        est.certify(da.from_array(_with_nan(contaminated()), chunks=(100, D)))


def test_a_file_that_is_gone_is_not_a_lost_scheduler() -> None:
    def read(block: Array) -> Array:
        raise FileNotFoundError("part-2 is gone")

    X = da.from_array(contaminated(), chunks=(300, D))
    X = X.map_blocks(read, dtype=float, meta=np.empty((0, 0)))
    with pytest.raises(RuntimeError, match=r"could not be read.*part-2 is gone"):
        RobustMean().fit(X)


OTHER_KINDS: dict[str, tuple[Callable[[], object], str]] = {
    "a bag": (lambda: pytest.importorskip("dask.bag").from_sequence([1, 2]), "only arrays"),
    "complex": (lambda: da.ones((9, D), chunks=3, dtype=complex), "real numbers"),
    "objects": (lambda: da.from_array(np.ones((9, D), dtype=object), chunks=3), "real numbers"),
    "three dimensions": (lambda: da.ones((9, D, 2), chunks=3), "two dimensions"),
    "a vector": (lambda: da.ones(9, chunks=3), "two dimensions"),
    "no columns": (lambda: da.ones((9, 0), chunks=3), "minimum of 1"),
}


@pytest.mark.parametrize("kind", OTHER_KINDS)
def test_scores_refuse_what_a_fit_refuses(kind: str) -> None:
    make, message = OTHER_KINDS[kind]
    est = RobustMean().fit(contaminated())
    with pytest.raises((TypeError, ValueError), match=message):
        est.score_samples(make())
    with pytest.raises((TypeError, ValueError), match=message):
        RobustMean().fit(make())


def test_unknown_row_chunks_are_scored_lazily_even_in_column_chunks() -> None:
    X = contaminated()
    est = RobustMean().fit(X)
    filtered = _filtered(X).rechunk({1: 5})
    np.testing.assert_allclose(est.score_samples(filtered).compute(), est.score_samples(X))


def test_single_precision_is_kept_and_summed_in_double(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = contaminated().astype(np.float32)
    mean = RobustMean().fit(X)
    lazy = mean.reweighted_mean(da.from_array(X, chunks=(100, D)))
    np.testing.assert_allclose(lazy.compute(), mean.reweighted_mean(X), rtol=1e-12)
    pca = RobustPCA().fit(X)
    np.save(tmp_path / "rows.npy", X)
    monkeypatch.setattr(rows_module, "GATHERED_BYTES", 1000)
    stored = np.load(tmp_path / "rows.npy", mmap_mode="r")
    assert pca.transform(stored).dtype == pca.transform(X).dtype == np.float32


def test_nullable_columns_become_numbers() -> None:
    pd = pytest.importorskip("pandas")
    dd = pytest.importorskip("dask.dataframe")
    frame = pd.DataFrame(contaminated(), columns=[f"x{j}" for j in range(D)])
    nullable = dd.from_pandas(frame.astype("Float64"), npartitions=3)
    assert_same(RobustMean().fit(nullable), RobustMean().fit(frame))


def test_where_no_row_is_trusted_there_is_no_mean() -> None:
    est = RobustSparseMean(3).fit(contaminated())
    found = est.reweighted_mean(np.full((5, D), 1e6))
    assert np.isnan(found[est.support_]).all()
    assert np.count_nonzero(np.isnan(found)) == 3


def test_another_number_of_columns_is_refused() -> None:
    est = RobustMean().fit(contaminated())
    with pytest.raises(ValueError, match="features"):
        est.score_samples(da.zeros((10, D + 1), chunks=(5, D + 1)))


def test_the_library_does_not_import_dask_by_itself() -> None:
    import subprocess
    import sys

    code = (
        "import sys, numpy as np, outweigh;"
        "outweigh.RobustMean().fit(np.random.default_rng(0).standard_normal((50, 3)));"
        "assert 'dask' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
