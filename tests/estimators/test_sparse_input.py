"""The means on scipy.sparse data: the answers of the dense copy, without ever making one."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import get_tags

from outweigh import ContaminationSearch, RobustMean, RobustPCA, RobustSparseMean, RobustSparsePCA
from outweigh.estimators.base import RobustEstimator
from outweigh.samples import SparseRows, SparseSamples
from outweigh.samples import sparse as sparse_module

Array = NDArray[np.float64]

N, D = 800, 60


def counts(density: float = 0.05, seed: int = 0, n: int = N, d: int = D) -> Array:
    """Like counts of words: mostly zeros, and every tenth row with more of six words."""
    rng = np.random.default_rng([7, seed])
    X = np.where(rng.random((n, d)) < density, 1.0 + rng.poisson(2.0, (n, d)), 0.0)
    X[::10, :6] += rng.poisson(3.0, (len(X[::10]), 6))
    return X


MEANS: dict[str, Callable[[], RobustEstimator]] = {
    "mean": lambda: RobustMean(),
    "mean, known share": lambda: RobustMean(contamination=0.1),
    "sparse mean": lambda: RobustSparseMean(5),
    "sparse mean, known share": lambda: RobustSparseMean(5, contamination=0.1),
    # More entries than a part of the features would hold: descended on all of them.
    "sparse mean, on all features": lambda: RobustSparseMean(25),
    "sparse mean, not scaled": lambda: RobustSparseMean(scale=None, covariance=None),
}
every_mean = pytest.mark.parametrize("name", MEANS)
FORMATS: dict[str, Callable[[Array], object]] = {
    "csr array": sp.csr_array,
    "csr matrix": sp.csr_matrix,
    "csc array": sp.csc_array,
    "csc matrix": sp.csc_matrix,
    "coo array": sp.coo_array,
    "coo matrix": sp.coo_matrix,
    "lil matrix": sp.lil_matrix,
}


def assert_same(found: RobustEstimator, expected: RobustEstimator) -> None:
    for attribute in ("location_", "weights_", "scale_", "offset_", "objective_", "contamination_"):
        want = np.asarray(getattr(expected, attribute))
        got = np.asarray(getattr(found, attribute))
        size = float(np.abs(want).max())
        np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-8 * size, err_msg=attribute)


@pytest.fixture(params=["one slice", "many slices"])
def slices(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once with all rows made dense at once, once with a hundred of them."""
    if request.param == "many slices":
        monkeypatch.setattr(sparse_module, "_SLICE_BYTES", 8 * D * 100)
        monkeypatch.setattr(sparse_module, "_ALWAYS", 0)


@every_mean
@pytest.mark.parametrize("density", [0.05, 0.3])
def test_fits_equal_those_of_the_dense_copy(slices: None, name: str, density: float) -> None:
    X = counts(density)
    plain = MEANS[name]().fit(X)
    # The outliers are found, or the fit says that it is in doubt: these are no fits of clean data.
    assert plain.contamination_ > 0.03 or plain.certificate_.trust == "in doubt"
    found = MEANS[name]().fit(sp.csr_array(X))
    assert_same(found, plain)
    assert not hasattr(found, "n_passes_")


@every_mean
def test_every_method_gives_the_answer_of_the_dense_copy(slices: None, name: str) -> None:
    X = counts(seed=1)
    S = sp.csc_array(X)
    found, plain = MEANS[name]().fit(S), MEANS[name]().fit(X)
    for method in ("score_samples", "decision_function", "predict", "reweighted_mean"):
        want = getattr(plain, method)(X)
        np.testing.assert_allclose(
            getattr(found, method)(S), want, rtol=1e-8, atol=1e-8 * np.abs(want).max()
        )
    explained, expected = found.explain(S), plain.explain(X)
    np.testing.assert_array_equal(explained.rows, expected.rows)
    np.testing.assert_allclose(explained.shares, expected.shares, atol=1e-8)
    np.testing.assert_allclose(explained.covered, expected.covered, atol=1e-8)


def test_certify_agrees_within_its_own_accuracy() -> None:
    X = counts(seed=2)
    est = RobustSparseMean(5, covariance=None)
    found = est.fit(sp.csr_array(X)).certify(sp.csr_array(X)).moreau
    plain = est.fit(X).certify(X).moreau
    assert found is not None
    assert plain is not None
    assert found.beta == pytest.approx(plain.beta, rel=1e-8)
    # An iterative answer, which is known no better than this on either side.
    slack = found.accuracy + plain.accuracy
    assert found.gradient_norm == pytest.approx(plain.gradient_norm, abs=slack)


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32, np.uint8])
def test_every_format_and_real_type_is_taken(kind: str, dtype: type[np.generic]) -> None:
    X = counts().astype(dtype)
    found = RobustSparseMean(5, contamination=0.1).fit(FORMATS[kind](X))
    assert_same(found, RobustSparseMean(5, contamination=0.1).fit(X))


def test_truth_values_are_taken() -> None:
    X = counts() > 0
    assert_same(RobustMean().fit(sp.csr_array(X)), RobustMean().fit(X))


def test_places_named_twice_and_stored_zeros_count_as_they_should() -> None:
    X = counts()
    stored = sp.csr_array(X)
    twice = sp.csr_array(
        (stored.data.repeat(2) / 2.0, stored.indices.repeat(2), 2 * stored.indptr), shape=X.shape
    )
    zeros = stored.copy()
    zeros.data[X[stored.nonzero()] == 3.0] = 0.0
    assert np.count_nonzero(zeros.data) < zeros.nnz
    before = twice.data.copy()
    plain = RobustMean().fit(X)
    assert_same(RobustMean().fit(twice), plain)
    assert_same(RobustMean().fit(zeros), RobustMean().fit(zeros.toarray()))
    np.testing.assert_array_equal(twice.data, before)


@every_mean
def test_sample_weights_and_constant_columns_give_the_same_answer(name: str) -> None:
    X = counts()
    X[:, [4, 9]] = [0.0, 5.0]
    weight = np.arange(N) % 3 * 1.0
    with pytest.warns(UserWarning, match="constant"):
        plain = MEANS[name]().fit(X, sample_weight=weight)
    with pytest.warns(UserWarning, match="constant"):
        found = MEANS[name]().fit(sp.csr_array(X), sample_weight=weight)
    assert_same(found, plain)


@every_mean
@pytest.mark.parametrize("origin", [30.0, 1e7])
def test_columns_far_from_zero_give_the_same_answer(name: str, origin: float) -> None:
    # A near origin is subtracted implicitly; a far one would cost digits so.
    X = counts(seed=3)
    X[:, -1] = origin + np.random.default_rng(0).standard_normal(N)
    rows = SparseRows.of(sp.csr_array(X))
    est = MEANS[name]().fit(X)
    standardizer = est._score.standardizer
    samples = rows.samples(standardizer.view, D, standardizer)
    if est.scale is not None:
        assert standardizer.origin.any()
        assert isinstance(samples, SparseSamples) == (origin < 100.0)
    assert_same(MEANS[name]().fit(sp.csr_array(X)), est)


@every_mean
def test_rows_of_1e300_give_the_same_answer(name: str) -> None:
    X = counts()
    X[::40] *= 1e300
    X[1::40, 7] = -1e299
    X[:, -1] = 30.0 + np.random.default_rng(0).standard_normal(N)
    assert_same(MEANS[name]().fit(sp.csr_array(X)), MEANS[name]().fit(X))


def test_a_known_covariance_gives_the_same_answer() -> None:
    X = counts(0.3)
    covariance = np.cov(counts(0.3, seed=9), rowvar=False)
    for make in (RobustMean, RobustSparseMean):
        found = make(covariance=covariance).fit(sp.csr_array(X))
        plain = make(covariance=covariance).fit(X)
        assert_same(found, plain)
        np.testing.assert_allclose(
            found.score_samples(sp.csr_array(X)), plain.score_samples(X), rtol=1e-7
        )


# Counts are not white noise: no share makes them so, and both kinds must say it alike.
@pytest.mark.filterwarnings("ignore:no contamination up to")
def test_a_search_for_the_contamination_takes_sparse_data() -> None:
    X = counts(n=400)
    found = ContaminationSearch(RobustSparseMean(5), tol=0.05).fit(sp.csr_array(X))
    plain = ContaminationSearch(RobustSparseMean(5), tol=0.05).fit(X)
    # Shares are sums of weights, which sparse and dense rows round differently.
    assert found.contamination_ == pytest.approx(plain.contamination_, rel=1e-12)
    assert get_tags(found).input_tags.sparse


@pytest.fixture(scope="module")
def flagged() -> NDArray[np.bool_]:
    X = sp.csr_array(counts())
    return np.asarray(RobustSparseMean(6, contamination=0.1).fit(X).predict(X) == -1)


@pytest.mark.xfail(strict=True, reason="counts told by their learned law: 63 of 80")
def test_planted_rows_are_found(flagged: NDArray[np.bool_]) -> None:
    assert np.mean(flagged[::10]) > 0.8


def test_few_rows_are_flagged_beside_planted_ones(flagged: NDArray[np.bool_]) -> None:
    assert np.mean(np.delete(flagged, np.s_[::10])) < 0.05


def test_a_dense_fit_scores_sparse_rows_and_the_other_way_round() -> None:
    X = counts()
    by_dense, by_sparse = RobustMean().fit(X), RobustMean().fit(sp.csr_array(X))
    np.testing.assert_allclose(
        by_dense.score_samples(sp.csr_array(X)), by_sparse.score_samples(X), rtol=1e-8
    )


def test_a_frame_of_sparse_columns_is_taken() -> None:
    pd = pytest.importorskip("pandas")
    X = counts()
    frame = pd.DataFrame.sparse.from_spmatrix(sp.csr_matrix(X), columns=[f"w{j}" for j in range(D)])
    est = RobustSparseMean(5).fit(frame)
    assert list(est.feature_names_in_[:2]) == ["w0", "w1"]
    assert_same(est, RobustSparseMean(5).fit(X))
    np.testing.assert_array_equal(est.predict(frame), RobustSparseMean(5).fit(X).predict(X))


def with_entry(value: float) -> sp.csr_array:
    X = counts()
    X[31, 7] = value
    return sp.csr_array(X)


BAD: dict[str, tuple[Callable[[], object], str]] = {
    "nan": (lambda: with_entry(np.nan), "NaN or infinity, first in row 31, column 7"),
    "infinity": (lambda: with_entry(-np.inf), "NaN or infinity, first in row 31, column 7"),
    "complex": (lambda: sp.csr_array(counts() + 1j), "Complex data not supported"),
    "objects": (lambda: _of_objects(), "real numbers; its dtype is object"),
    "one row": (lambda: sp.csr_array(counts()[:1]), "minimum of 2"),
    "no rows": (lambda: sp.csr_array((0, D)), "0 sample"),
    "no columns": (lambda: sp.csr_array((N, 0)), "0 feature"),
    "a vector": (lambda: sp.coo_array(np.ones(N)), "2D array"),
}


def _of_objects() -> sp.csr_array:
    made = sp.csr_array(counts())
    made.data = made.data.astype(object)
    return made


@every_mean
@pytest.mark.parametrize("bad", BAD)
def test_bad_input_is_refused_and_nothing_is_half_fitted(name: str, bad: str) -> None:
    make, message = BAD[bad]
    est = MEANS[name]()
    with pytest.raises(ValueError, match=message):
        est.fit(make())
    assert not [key for key in vars(est) if key.endswith("_")]


def test_bad_rows_are_refused_at_prediction() -> None:
    est = RobustMean().fit(sp.csr_array(counts()))
    with pytest.raises(ValueError, match="row 31, column 7"):
        est.predict(with_entry(np.nan))
    with pytest.raises(ValueError, match=f"X has 4 features, but .* expecting {D}"):
        est.predict(sp.csr_array(counts()[:, :4]))


@pytest.mark.parametrize("make", [RobustPCA, RobustSparsePCA])
def test_components_refuse_sparse_data(make: type[RobustEstimator]) -> None:
    assert not get_tags(make()).input_tags.sparse
    with pytest.raises(TypeError, match="dense data is required"):
        make().fit(sp.csr_array(counts()))
    with pytest.raises(TypeError, match="dense data is required"):
        make().fit(counts(0.5)).predict(sp.csr_array(counts()))


def large(d: int) -> sp.csr_array:
    """20000 rows at a density of 0.01: with 2000 columns 5 MB, and 320 MB if they were dense."""
    rng = np.random.default_rng(0)
    X = sp.random_array((20000, d), density=0.01, format="csr", rng=rng)
    shift = sp.random_array((2000, 10), density=0.5, format="csr", rng=rng) * 6.0
    shift.resize((20000, d))
    return sp.csr_array(X + shift)


# With 2000 features the dense mean takes more than two minutes here.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "d"), [(RobustMean, 500), (lambda **k: RobustSparseMean(10, **k), 2000)]
)
def test_memory_stays_well_below_that_of_the_dense_copy(
    make: Callable[..., RobustEstimator], d: int
) -> None:
    X = large(d)
    dense = 8 * X.shape[0] * X.shape[1]
    tracemalloc.start()
    try:
        est = make(contamination=0.1, max_iter=4, scale=None).fit(X)
        peaks = [tracemalloc.get_traced_memory()[1]]
        for method in ("score_samples", "predict", "explain", "reweighted_mean"):
            tracemalloc.reset_peak()
            getattr(est, method)(X)
            peaks.append(tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()
    assert max(peaks) < 0.6 * dense
