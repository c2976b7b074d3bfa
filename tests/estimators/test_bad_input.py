"""Bad input is refused by name before any work, and changes nothing."""

from __future__ import annotations

import re
import warnings
from datetime import date
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from outweigh import ContaminationSearch, RobustMean, RobustSparseMean
from outweigh.estimators.base import RobustEstimator
from tests.laws.members import ESTIMATORS, MEANS

Array = NDArray[np.float64]

every = pytest.mark.parametrize("name", ESTIMATORS)
every_mean = pytest.mark.parametrize("name", MEANS)


def rows(n: int = 60, d: int = 5) -> Array:
    return np.random.default_rng(0).standard_normal((n, d))


def with_entry(value: float) -> Array:
    X = rows()
    X[3, 2] = value
    return X


BAD_X: dict[str, tuple[object, str]] = {
    "nan": (with_entry(np.nan), "X contains NaN"),
    "inf": (with_entry(np.inf), "X contains infinity"),
    "minus inf": (with_entry(-np.inf), "X contains infinity"),
    "no rows": (np.empty((0, 5)), "0 sample"),
    "no columns": (np.empty((60, 0)), "0 feature"),
    "1-d": (np.ones(60), "2D array"),
    "3-d": (np.ones((5, 4, 3)), "dim 3|3D|ndim"),
    "one sample": (rows(1), "1 sample|minimum of 2"),
    "strings": (np.full((60, 5), "a"), "column 0 holds 'a' in row 0"),
    "records": (np.zeros(60, dtype=[("a", "f8")]), "X holds .* records"),
    "complex": (rows() + 1j, "[Cc]omplex"),
    "ragged": ([[1.0, 2.0], [1.0]], "inhomogeneous|sequence|array"),
    "nothing": (None, "None|array"),
    "a name twice": (pd.DataFrame(rows(), columns=list("abcbd")), "one column is called 'b'"),
    "a frame of no columns": (pd.DataFrame(index=range(60)), "X: has no columns"),
    "a number beyond floating point": (
        pd.DataFrame({"a": np.arange(60.0), "b": pd.Series([10**400] * 60, dtype=object)}),
        "column 'b' holds 1000",
    ),
}
BAD_PARAMETERS: dict[str, tuple[str, object]] = {
    "contamination -0.1": ("contamination", -0.1),
    "contamination 0.5": ("contamination", 0.5),
    "contamination 1": ("contamination", 1.0),
    "contamination nan": ("contamination", np.nan),
    "contamination word": ("contamination", "some"),
    "contamination None": ("contamination", None),
    "scale word": ("scale", "iqr"),
    "scale too short": ("scale", np.ones(3)),
    "scale zero": ("scale", np.array([1.0, 1.0, 0.0, 1.0, 1.0])),
    "scale negative": ("scale", np.array([1.0, 1.0, -1.0, 1.0, 1.0])),
    "scale nan": ("scale", np.array([1.0, 1.0, np.nan, 1.0, 1.0])),
    "scale inf": ("scale", np.array([1.0, 1.0, np.inf, 1.0, 1.0])),
    "solver": ("solver", "newton"),
    "max_iter 0": ("max_iter", 0),
    "max_iter 1.5": ("max_iter", 1.5),
    "tol 0": ("tol", 0.0),
    "tol negative": ("tol", -1.0),
    "random_state": ("random_state", "seed"),
}
BAD_N_NONZERO = [0, -1, 2.5, "all", None, np.nan]
BAD_WEIGHTS: dict[str, object] = {
    "negative": np.append(np.ones(59), -1.0),
    "nan": np.append(np.ones(59), np.nan),
    "inf": np.append(np.ones(59), np.inf),
    "too short": np.ones(59),
    "2-d": np.ones((60, 2)),
    "all zero": np.zeros(60),
    "one positive": np.append(np.zeros(59), 1.0),
    "dates": np.arange(60).astype("datetime64[D]"),
    "text": np.full(60, "1"),
}


@every
@pytest.mark.parametrize("case", BAD_X)
def test_bad_data_is_refused(name: str, case: str) -> None:
    X, message = BAD_X[case]
    with pytest.raises((ValueError, TypeError), match=message):
        ESTIMATORS[name]().fit(X)


@every
@pytest.mark.parametrize("case", BAD_PARAMETERS)
def test_a_bad_parameter_is_refused_by_name(name: str, case: str) -> None:
    parameter, value = BAD_PARAMETERS[case]
    with pytest.raises((ValueError, TypeError), match=parameter):
        ESTIMATORS[name]().set_params(**{parameter: value}).fit(rows())


@pytest.mark.parametrize("value", BAD_N_NONZERO, ids=str)
def test_a_bad_number_of_entries_is_refused_by_name(value: object) -> None:
    with pytest.raises((ValueError, TypeError), match="n_nonzero"):
        ESTIMATORS["RobustSparseMean"]().set_params(n_nonzero=value).fit(rows())


@every
@pytest.mark.parametrize("case", BAD_WEIGHTS)
def test_bad_sample_weights_are_refused_by_name(name: str, case: str) -> None:
    with pytest.raises((ValueError, TypeError), match=r"[Ss]ample[_ ]weight"):
        ESTIMATORS[name]().fit(rows(), sample_weight=BAD_WEIGHTS[case])


@every
@pytest.mark.parametrize("method", ["predict", "score_samples", "decision_function"])
def test_another_number_of_features_is_refused(name: str, method: str) -> None:
    est = ESTIMATORS[name]().fit(rows())
    with pytest.raises(ValueError, match=r"X has 4 features, but .* expecting 5"):
        getattr(est, method)(rows(d=4))


@every
@pytest.mark.parametrize("case", ["nan", "inf", "1-d", "strings", "complex"])
def test_bad_data_is_refused_at_prediction(name: str, case: str) -> None:
    est = ESTIMATORS[name]().fit(rows())
    with pytest.raises((ValueError, TypeError), match=BAD_X[case][1]):
        est.predict(BAD_X[case][0])


def same_state(left: dict[str, object], right: dict[str, object]) -> bool:
    return left.keys() == right.keys() and all(left[key] is right[key] for key in left)


@every
@pytest.mark.parametrize("case", BAD_X)
def test_a_failed_fit_leaves_an_earlier_fit_as_it_was(name: str, case: str) -> None:
    est = ESTIMATORS[name]().fit(rows())
    before = dict(vars(est))
    with pytest.raises((ValueError, TypeError)):
        est.fit(BAD_X[case][0])
    assert same_state(vars(est), before)


@every
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_a_fit_that_fails_late_leaves_an_earlier_fit_as_it_was(
    name: str, error: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise error("late")

    est = ESTIMATORS[name]().fit(rows())
    before = dict(vars(est))
    monkeypatch.setattr("outweigh.estimators.base._offset", fail)
    with pytest.raises(error, match="late"):
        est.fit(rows(50, 4))
    assert same_state(vars(est), before)


@every
def test_a_failed_first_fit_leaves_nothing_fitted(name: str) -> None:
    est = ESTIMATORS[name]()
    with pytest.raises(ValueError, match="NaN"):
        est.fit(with_entry(np.nan))
    assert not [key for key in vars(est) if key.endswith("_")]


@every_mean
@pytest.mark.parametrize("contamination", ["auto", 0.1, 0.0])
def test_one_feature_works(name: str, contamination: object) -> None:
    X = rows(200, 1) + 3.0
    X[:10] = 50.0
    est = ESTIMATORS[name](contamination=contamination).fit(X)
    assert est.location_.shape == (1,)
    if contamination != 0.0:
        assert est.location_[0] == pytest.approx(X[10:].mean(), abs=0.15)


@every_mean
@pytest.mark.parametrize("n", [2, 3, 5])
def test_a_handful_of_rows_works_with_a_warning(name: str, n: int) -> None:
    with pytest.warns(UserWarning, match=f"only {n} rows count") as caught:
        est = ESTIMATORS[name]().fit(rows(n))
    assert np.all(np.isfinite(est.location_))
    assert [warning.filename for warning in caught] == [__file__]


@every
def test_rows_of_no_weight_do_not_count_as_rows(name: str) -> None:
    weight = np.append(np.ones(4), np.zeros(56))
    with pytest.warns(UserWarning, match="only 4 rows count"):
        ESTIMATORS[name]().fit(rows(), sample_weight=weight)


@every
def test_six_rows_are_fitted_without_a_warning(name: str) -> None:
    ESTIMATORS[name]().fit(rows(6))


@every_mean
def test_more_features_than_rows_work(name: str) -> None:
    assert np.all(np.isfinite(ESTIMATORS[name]().fit(rows(20, 60)).location_))


@every_mean
def test_equal_rows_but_one_work(name: str) -> None:
    X = np.ones((20, 3))
    X[0] = 5.0
    assert np.all(np.isfinite(ESTIMATORS[name]().fit(X).location_))


def fit_with_one_warning(est: RobustEstimator, X: Array, message: str) -> RobustEstimator:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        est.fit(X)
    assert [message in str(w.message) for w in caught] == [True]
    return est


def with_constants() -> Array:
    X = rows(200, 6)
    X[:, 0], X[:, 3] = 7.0, -1e9
    X[:, 2] += 5.0
    return X


@every_mean
def test_constant_columns_give_one_warning(name: str) -> None:
    fit_with_one_warning(ESTIMATORS[name](), with_constants(), "constant")


@every_mean
def test_constant_columns_in_other_units_give_one_warning(name: str) -> None:
    fit_with_one_warning(ESTIMATORS[name](), 50.0 * with_constants(), "constant")


@every_mean
def test_the_location_of_a_constant_column_is_the_constant(name: str) -> None:
    with pytest.warns(UserWarning, match="constant"):
        est = ESTIMATORS[name]().fit(with_constants())
    assert est.location_[[0, 3]].tolist() == [7.0, -1e9]


@every_mean
def test_constant_columns_do_not_change_the_weights(name: str) -> None:
    X = with_constants()
    X[:20, [1, 4]] += 4.0
    with pytest.warns(UserWarning, match="constant"):
        est = ESTIMATORS[name]().fit(X)
    alone = ESTIMATORS[name]().fit(X[:, [1, 2, 4, 5]])
    np.testing.assert_allclose(est.weights_, alone.weights_, atol=1e-12)


def test_the_support_names_columns_of_the_data_beside_constant_ones() -> None:
    with pytest.warns(UserWarning, match="constant"):
        est = ESTIMATORS["RobustSparseMean"](n_nonzero=1).fit(with_constants())
    assert est.support_.tolist() == [2]


@every_mean
def test_constant_columns_alone_are_their_own_location(name: str) -> None:
    with pytest.warns(UserWarning, match="constant"):
        est = ESTIMATORS[name]().fit(np.full((10, 3), 4.0))
    assert est.location_.tolist() == [4.0, 4.0, 4.0]


def test_more_entries_than_features_are_clipped_with_one_warning() -> None:
    est = ESTIMATORS["RobustSparseMean"](n_nonzero=9)
    fit_with_one_warning(est, rows(), "n_nonzero")
    assert est.n_nonzero_ == 5


def test_more_entries_than_features_in_other_units_give_one_warning() -> None:
    X = 1000.0 * rows()
    X[:6] += 9000.0
    fit_with_one_warning(ESTIMATORS["RobustSparseMean"](n_nonzero=9), X, "n_nonzero")


HUGE = {
    "one entry": lambda X: X.__setitem__((0, 0), 1e300),
    "one row": lambda X: X.__setitem__(0, -1e300),
    "a tenth of the rows": lambda X: X.__setitem__(slice(0, 20), 1e300),
    "mixed signs": lambda X: X.__setitem__(
        slice(0, 20), 1e300 * np.sign(np.random.default_rng(1).standard_normal((20, 5)))
    ),
    "everything": lambda X: X.__imul__(1e299),
    "one column": lambda X: X[:, 1].__imul__(1e300),
    "tiny and huge": lambda X: X.__imul__(np.array([1e-300, 1.0, 1e300, 1e-150, 1e150])),
}


@every_mean
@pytest.mark.parametrize("case", HUGE)
@pytest.mark.parametrize("contamination", ["auto", 0.2])
@pytest.mark.parametrize("scale", ["auto", "mad", None], ids=str)
def test_values_of_1e300_work_or_are_refused(
    name: str, case: str, contamination: object, scale: str | None
) -> None:
    X = rows(200)
    HUGE[case](X)
    est = ESTIMATORS[name](contamination=contamination, scale=scale)
    try:
        est.fit(X)
    except ValueError as refused:
        assert "X" in str(refused)  # noqa: PT017
    else:
        assert np.all(np.isfinite(est.location_))
        assert np.all(np.isfinite(est.score_samples(X)))


@every_mean
@pytest.mark.parametrize("scale", ["auto", "mad", None], ids=str)
def test_a_tenth_of_the_rows_at_1e300_does_not_move_the_location(
    name: str, scale: str | None
) -> None:
    X = rows(200)
    X[:20] = 1e300
    est = ESTIMATORS[name](contamination=0.1, scale=scale).fit(X)
    assert np.linalg.norm(est.location_) < 0.5


@pytest.mark.parametrize(
    ("parameter", "value"),
    [("upper", 0.0), ("upper", 0.5), ("tol", 0.0), ("tol", -1.0), ("estimator", "mean")],
)
def test_a_bad_parameter_of_the_search_is_refused_by_name(parameter: str, value: object) -> None:
    search = ContaminationSearch(ESTIMATORS["RobustMean"]()).set_params(**{parameter: value})
    with pytest.raises((ValueError, TypeError), match=parameter):
        search.fit(rows())


def test_bad_data_is_refused_by_the_search() -> None:
    with pytest.raises(ValueError, match="NaN"):
        ContaminationSearch(ESTIMATORS["RobustMean"]()).fit(with_entry(np.nan))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_warning_of_constant_columns_points_at_the_call_of_fit(name: str) -> None:
    with pytest.warns(UserWarning, match="constant") as caught:
        ESTIMATORS[name]().fit(with_constants())
    assert [warning.filename for warning in caught] == [__file__]


@pytest.mark.parametrize("est", [RobustMean(), RobustSparseMean()], ids=str)
def test_the_warning_counts_all_columns_where_all_are_constant(est: RobustEstimator) -> None:
    with pytest.warns(UserWarning, match=r"4 of 4 features are constant \(columns 0, 1, 2, 3\)"):
        est.fit(np.ones((10, 4)))


def test_a_certificate_refuses_negative_sample_weights() -> None:
    X = rows()
    est = RobustMean().fit(X)
    with pytest.raises(ValueError, match="sample_weight"):
        est.certify(X, sample_weight=np.where(np.arange(len(X)) == 0, -1.0, 1.0))


FRAME_FAULTS: dict[str, tuple[object, str]] = {
    "nan": (np.nan, "nan in row 3"),
    "inf": (np.inf, "inf in row 3"),
    "nothing": (None, "None in row 3"),
    "text": ("tall", "'tall' in row 3"),
    "complex": (1j, "1j in row 3"),
    "a date": (pd.Timestamp("2020-01-01"), "Timestamp"),
}


@every
@pytest.mark.parametrize("case", FRAME_FAULTS)
def test_what_is_wrong_in_a_frame_is_told_by_its_column(name: str, case: str) -> None:
    value, said = FRAME_FAULTS[case]
    frame = pd.DataFrame(rows(), columns=list("abcde")).astype(object)
    est = ESTIMATORS[name]().fit(frame)
    frame.loc[3, "c"] = value
    for method in (est.fit, est.predict):
        with pytest.raises(ValueError, match=f"column 'c' holds .*{re.escape(said)}"):
            method(frame)


@every
@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("alone", [True, False], ids=["alone", "beside numbers"])
@pytest.mark.parametrize("kind", ["dates", "time spans"])
def test_dates_and_time_spans_are_refused_by_column(
    name: str, library: str, alone: bool, kind: str
) -> None:
    times = pd.date_range("2020", periods=60)
    table = {} if alone else {"height": rows()[:, 0]}
    table["day"] = times if kind == "dates" else times - times[0]
    frame = pd.DataFrame(table)
    X = frame if library == "pandas" else pytest.importorskip("polars").from_pandas(frame)
    with pytest.raises(ValueError, match="column 'day' holds dates or time spans"):
        ESTIMATORS[name]().fit(X)


@every
@pytest.mark.parametrize("dtype", ["datetime64[s]", "timedelta64[s]"])
def test_an_array_of_dates_or_time_spans_is_refused(name: str, dtype: str) -> None:
    with pytest.raises(ValueError, match="X holds dates, time spans or records"):
        ESTIMATORS[name]().fit(np.arange(120).reshape(60, 2).astype(dtype))


@every
def test_what_is_wrong_in_an_array_of_objects_is_told_by_its_column(name: str) -> None:
    X = rows().astype(object)
    X[3, 2] = "tall"
    with pytest.raises(ValueError, match="column 2 holds 'tall' in row 3"):
        ESTIMATORS[name]().fit(X)


@every
def test_masked_values_are_missing_values(name: str) -> None:
    X = np.ma.masked_greater(rows(), 1.5)
    est = ESTIMATORS[name]().fit(rows())
    for method in (est.fit, est.predict):
        with pytest.raises(ValueError, match=r"which are missing values: column [0-9] holds nan"):
            method(X)


@every
def test_a_masked_array_without_masked_values_is_an_array(name: str) -> None:
    masked = ESTIMATORS[name]().fit(np.ma.masked_array(rows()))
    np.testing.assert_array_equal(masked.weights_, ESTIMATORS[name]().fit(rows()).weights_)


@every
@pytest.mark.parametrize("time", [np.datetime64("2020"), np.timedelta64(5, "s"), date(2020, 1, 1)])
@pytest.mark.parametrize("container", [np.array, list, pd.DataFrame])
def test_times_among_objects_are_refused_by_column(name: str, time: object, container: Any) -> None:
    X = rows(d=2).astype(object)
    X[7, 1] = time
    with pytest.raises(ValueError, match=r"column 1 holds .*(date|time).* in row 7"):
        ESTIMATORS[name]().fit(container(X.tolist() if container is list else X))


@every
def test_a_number_beyond_floating_point_is_told_by_its_column(name: str) -> None:
    X = rows(d=2).astype(object)
    X[7, 1] = 10**400
    with pytest.raises(ValueError, match=r"column 1 holds 10+ in row 7"):
        ESTIMATORS[name]().fit(X)


@every
def test_masked_rows_in_a_list_are_refused(name: str) -> None:
    masked = np.ma.masked_greater(rows(), 1.5)
    with pytest.raises(ValueError, match="X holds masked values"):
        ESTIMATORS[name]().fit(list(masked))


@every
@pytest.mark.parametrize(
    ("values", "told"),
    [
        (np.ma.masked_array([1.0, 2.0], mask=[True, False]), "holds masked values"),
        (np.array(["2020", "2021"], dtype="datetime64[Y]"), "must hold numbers"),
        (["1", "2"], "must hold numbers"),
        (np.array([1j, 2j]), "must hold numbers"),
    ],
    ids=["masked", "dates", "text", "complex"],
)
def test_parameters_that_are_no_numbers_are_refused(name: str, values: Any, told: str) -> None:
    for parameter in ("scale", "covariance"):
        with pytest.raises(ValueError, match=f"{parameter} {told}"):
            ESTIMATORS[name](**{parameter: values}).fit(rows(d=2))


@every
def test_masked_sample_weights_are_refused(name: str) -> None:
    weight = np.ma.masked_array(np.ones(60), mask=np.arange(60) == 3)
    with pytest.raises(ValueError, match="sample_weight holds masked values"):
        ESTIMATORS[name]().fit(rows(), sample_weight=weight)


@every
def test_constant_columns_of_a_frame_are_warned_of_by_name(name: str) -> None:
    frame = pd.DataFrame(with_constants(), columns=list("abcdef"))
    with pytest.warns(UserWarning, match=r"constant \(columns a, d\)"):
        ESTIMATORS[name]().fit(frame)


@every
def test_a_lazy_frame_is_refused_with_what_to_do(name: str) -> None:
    lazy = pytest.importorskip("polars").DataFrame({"a": np.arange(9.0), "b": np.ones(9)}).lazy()
    with pytest.raises(TypeError, match=r"pass X\.collect\(\)"):
        ESTIMATORS[name]().fit(lazy)


@every
def test_one_weight_beyond_all_others_is_refused_as_a_weight(name: str) -> None:
    weight = np.r_[1e300, np.full(59, 0.5)]
    with pytest.raises(ValueError, match="sample_weight"):
        ESTIMATORS[name]().fit(rows(), sample_weight=weight)
