"""Missing values are refused by column, left out, or filled in with medians."""

from __future__ import annotations

import io

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.impute import SimpleImputer
from sklearn.utils import get_tags

from outweigh import ContaminationSearch, RobustMean, RobustPCA
from outweigh.files.model import load_model, save_model
from tests.laws.members import ESTIMATORS

Array = NDArray[np.float64]

every = pytest.mark.parametrize("name", ESTIMATORS)
HOLES = [(3, 2), (17, 0), (17, 4), (50, 2)]
ROWS = [3, 17, 50]


def rows() -> Array:
    X = np.random.default_rng(0).standard_normal((200, 5)) + 2.0
    X[:10] += 8.0
    return X


def with_holes(X: Array) -> Array:
    X = X.copy()
    for hole in HOLES:
        X[hole] = np.nan
    return X


@every
def test_rows_left_out_are_of_sample_weight_zero(name: str) -> None:
    weight = np.ones(200)
    weight[ROWS] = 0.0
    est = ESTIMATORS[name](missing="drop").fit(with_holes(rows()))
    other = ESTIMATORS[name]().fit(rows(), sample_weight=weight)
    np.testing.assert_array_equal(est.weights_, other.weights_)
    assert not est.weights_[ROWS].any()
    assert est.offset_ == other.offset_
    assert "3 rows were left out for missing values" in est.certificate_.verdict
    assert "3 rows were left out" in str(est.certificate_)


@every
def test_survey_weights_of_rows_left_out_do_not_count(name: str) -> None:
    weight = np.random.default_rng(1).uniform(0.5, 1.5, 200)
    est = ESTIMATORS[name](missing="drop").fit(with_holes(rows()), sample_weight=weight)
    left = weight.copy()
    left[ROWS] = 0.0
    other = ESTIMATORS[name]().fit(rows(), sample_weight=left)
    np.testing.assert_allclose(est.weights_, other.weights_, rtol=1e-9)


@every
def test_medians_take_the_place_of_what_is_missing(name: str) -> None:
    X = with_holes(rows())
    est = ESTIMATORS[name](missing="median").fit(X)
    complete = SimpleImputer(strategy="median").fit_transform(X)
    other = ESTIMATORS[name]().fit(complete)
    np.testing.assert_allclose(est.weights_, other.weights_, rtol=1e-9)
    assert "3 rows were filled in with medians for missing values" in est.certificate_.verdict


@every
@pytest.mark.parametrize("missing", ["drop", "median"])
def test_rows_are_judged_with_the_medians_of_the_fit(name: str, missing: str) -> None:
    X = with_holes(rows())
    est = ESTIMATORS[name](missing=missing).fit(X)
    new = np.full((2, 5), np.nan)
    new[1] = 30.0
    medians = np.nanmedian(X, axis=0)
    complete = np.array([medians, new[1]])
    for method in ("score_samples", "predict", "decision_function"):
        np.testing.assert_allclose(getattr(est, method)(new), getattr(est, method)(complete))
    assert est.predict(new).tolist() == [1, -1]
    assert est.explain(new).rows.tolist() == [1]
    if isinstance(est, RobustPCA):
        np.testing.assert_allclose(est.transform(new), est.transform(complete))
        assert est.transform(new.astype(np.float32)).dtype == np.float32


@every
def test_a_copy_is_a_weight_for_medians_too(name: str) -> None:
    X, weight = with_holes(rows()), np.ones(200)
    weight[100:150] = 2.0
    weight[180:] = 0.0
    est = ESTIMATORS[name](missing="median").fit(X, sample_weight=weight)
    copies = np.repeat(X, weight.astype(int), axis=0)
    np.testing.assert_allclose(est._medians, np.nanmedian(copies, axis=0))


@pytest.mark.parametrize("missing", ["drop", "median"])
def test_all_that_is_missing_is_missing(missing: str) -> None:
    X = with_holes(rows())
    expected = RobustMean(missing=missing).fit(X)
    frame = pd.DataFrame(X, columns=list("abcde"))
    as_objects = frame.astype(object)
    forms = {
        "masked": np.ma.masked_array(rows(), mask=np.isnan(X)),
        "nullable": frame.astype("Float64"),
        "None": as_objects.mask(frame.isna(), None),
        "NA": as_objects.mask(frame.isna(), pd.NA),
        "polars": pytest.importorskip("polars").from_pandas(frame),
    }
    for form, given in forms.items():
        est = RobustMean(missing=missing).fit(given)
        np.testing.assert_array_equal(est.weights_, expected.weights_, err_msg=form)
        np.testing.assert_array_equal(est.predict(given), expected.predict(X), err_msg=form)


@every
@pytest.mark.parametrize("missing", [None, "drop", "median"])
def test_refusals_name_the_column_and_the_way_out(name: str, missing: str | None) -> None:
    X = with_holes(rows())
    est = ESTIMATORS[name](missing=missing)
    if missing is None:
        with pytest.raises(ValueError, match=r'column 0 holds nan in row 17.*missing="drop"'):
            est.fit(X)
        frame = pd.DataFrame(X, columns=list("abcde"))
        with pytest.raises(ValueError, match=r"column 'a' holds nan in row 17.*\"median\""):
            est.fit(frame)
        return
    X[:, 3] = np.nan
    with pytest.raises(ValueError, match="column 3 holds no value"):
        est.fit(X)
    with pytest.raises(ValueError, match="column 'd' holds no value"):
        est.fit(pd.DataFrame(X, columns=list("abcde")))
    X[:, 3] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        est.fit(X)


def test_text_beside_missing_values_is_refused() -> None:
    frame = pd.DataFrame(with_holes(rows()), columns=list("abcde")).astype(object)
    frame.loc[60, "c"] = "tall"
    with pytest.raises(ValueError, match="column 'c' holds 'tall' in row 60"):
        RobustMean(missing="drop").fit(frame)


def test_too_few_complete_rows_are_refused() -> None:
    X = rows()
    X[1:, 0] = np.nan
    with pytest.raises(ValueError, match=r"fewer than two .* no missing values"):
        RobustMean(missing="drop").fit(X)


@pytest.mark.parametrize("of", [da.from_array, sp.csr_array])
def test_only_dense_rows_in_memory_may_have_missing_values(of: object) -> None:
    X = of(rows())  # type: ignore[operator]
    with pytest.raises(ValueError, match="missing: must be None for sparse rows"):
        RobustMean(missing="median").fit(X)
    scores = RobustMean(missing="median").fit(rows()).score_samples(X)
    assert np.isfinite(np.asarray(scores)).all()


@every
def test_a_model_file_scores_rows_with_missing_values(name: str) -> None:
    X = with_holes(rows())
    est = ESTIMATORS[name](missing="drop").fit(X)
    file = io.BytesIO()
    save_model(est, file)
    file.seek(0)
    loaded = load_model(file)
    np.testing.assert_array_equal(loaded.score_samples(X), est.score_samples(X))
    assert loaded.certificate_.verdict == est.certificate_.verdict


def test_a_certificate_leaves_out_the_same_rows() -> None:
    weight = np.ones(200)
    weight[ROWS] = 0.0
    X = with_holes(rows())
    found = RobustMean(covariance=None, missing="drop").fit(X).certify(X)
    other = RobustMean(covariance=None).fit(rows(), sample_weight=weight)
    assert found.moreau == other.certify(rows(), sample_weight=weight).moreau


def test_a_sample_leaves_them_out_too() -> None:
    X = with_holes(rows())
    est = RobustMean(missing="drop", subsample=100).fit(X)
    assert not np.isin(ROWS, est.subsample_).any()
    assert not est.weights_[ROWS].any()


def test_the_tags_say_whether_missing_values_are_taken() -> None:
    assert not get_tags(RobustMean()).input_tags.allow_nan
    assert get_tags(ContaminationSearch(RobustMean(missing="drop"))).input_tags.allow_nan
