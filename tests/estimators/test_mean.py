"""What the fitted means offer beyond the laws: attributes, options, and scikit-learn's company."""

from __future__ import annotations

import logging
import pickle
import subprocess
import sys

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from outweigh import RobustMean, RobustSparseMean
from outweigh.optimise.steps import SOLVERS
from tests.laws.members import MEANS

Array = NDArray[np.float64]

every_mean = pytest.mark.parametrize("name", MEANS)


def contaminated(n: int = 400, d: int = 40) -> Array:
    X = np.random.default_rng(0).standard_normal((n, d))
    X[:, :4] += [2.0, -2.0, 1.5, -1.5]
    X[: n // 10, 10:15] += 3.0
    return X


def test_the_location_is_zero_outside_the_support() -> None:
    est = RobustSparseMean(4).fit(contaminated())
    assert np.flatnonzero(est.location_).tolist() == est.support_.tolist() == [0, 1, 2, 3]


def test_the_location_on_the_support_is_the_weighted_mean() -> None:
    X = contaminated()
    est = RobustSparseMean(4).fit(X)
    np.testing.assert_allclose(est.location_[est.support_], (est.weights_ @ X)[est.support_])


def test_the_dense_location_is_the_weighted_mean() -> None:
    X = contaminated()
    est = RobustMean().fit(X)
    np.testing.assert_allclose(est.location_, est.weights_ @ X, atol=1e-9)


@pytest.mark.parametrize("k", [1, 3, 40])
def test_as_many_entries_are_kept_as_asked_for(k: int) -> None:
    est = RobustSparseMean(k).fit(contaminated())
    assert est.n_nonzero_ == est.support_.size == k


@every_mean
def test_the_estimated_contamination_is_near_the_true_one(name: str) -> None:
    assert 0.07 <= MEANS[name]().fit(contaminated()).contamination_ <= 1.3 * 0.1 + 0.03


@every_mean
@pytest.mark.parametrize("solver", SOLVERS)
def test_every_solver_fits(name: str, solver: str) -> None:
    est = MEANS[name](solver=solver, contamination=0.1, max_iter=30).fit(contaminated())
    assert np.all(np.isfinite(est.location_))


@every_mean
@pytest.mark.parametrize("solver", SOLVERS)
def test_every_solver_removes_the_outliers(name: str, solver: str) -> None:
    est = MEANS[name](solver=solver, contamination=0.1).fit(contaminated())
    assert est.weights_[:40].sum() < 0.02


def test_the_plain_algorithm_of_the_paper_lowers_the_objective() -> None:
    X = contaminated()
    plain = RobustSparseMean(
        4, contamination=0.1, scale=None, covariance=None, solver="paper", max_iter=200
    ).fit(X)
    untouched = RobustSparseMean(4, contamination=0.0, scale=None, covariance=None).fit(X)
    assert plain.objective_ < untouched.objective_


@every_mean
def test_no_contamination_is_the_mean_of_all_rows(name: str) -> None:
    X = contaminated()
    est = MEANS[name](contamination=0.0).fit(X)
    np.testing.assert_allclose(est.weights_, 1 / len(X), rtol=1e-9)


@every_mean
def test_given_scales_are_used(name: str) -> None:
    X, units = contaminated(), np.geomspace(0.01, 100.0, 40)
    est = MEANS[name](scale=units).fit(X * units)
    plain = MEANS[name](scale=None).fit(X)
    np.testing.assert_allclose(est.weights_, plain.weights_, atol=1e-9)


@every_mean
def test_the_scale_attribute_says_what_was_divided_by(name: str) -> None:
    units = np.geomspace(0.01, 100.0, 40)
    est = MEANS[name](scale=units).fit(contaminated())
    np.testing.assert_array_equal(est.scale_, units)


@every_mean
def test_declared_unit_noise_is_left_in_its_units(name: str) -> None:
    assert np.all(MEANS[name](scale=None).fit(contaminated()).scale_ == 1.0)


@every_mean
def test_scales_in_other_units_are_those_of_the_clean_rows(name: str) -> None:
    units = np.geomspace(0.01, 100.0, 40)
    est = MEANS[name]().fit(contaminated(2000) * units)
    assert np.median(np.abs(est.scale_ / units - 1.0)) < 0.05


@every_mean
def test_verbosity_does_not_change_the_answer(name: str) -> None:
    quiet, loud = (MEANS[name](verbose=v).fit(contaminated()) for v in (False, True))
    np.testing.assert_array_equal(quiet.location_, loud.location_)


@every_mean
def test_verbosity_logs_and_never_prints(
    name: str, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    with caplog.at_level(logging.INFO, logger="outweigh"):
        MEANS[name](verbose=True).fit(contaminated())
    assert caplog.records
    assert capsys.readouterr().out == ""


def test_verbosity_is_seen_without_logging_being_set_up() -> None:
    code = (
        "import numpy as np; from outweigh import RobustSparseMean as R; import logging\n"
        "X = np.random.default_rng(0).standard_normal((200, 20)); X[:20, :3] += 4\n"
        "R(verbose=1).fit(X); R().fit(X); log = logging.getLogger('outweigh')\n"
        "print(log.handlers, log.level)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    lines = done.stderr.splitlines()
    assert lines
    assert all(line.startswith("RobustSparseMean: evaluation ") for line in lines)
    assert done.stdout == "[] 0\n"


@every_mean
def test_a_fitted_estimator_survives_pickling(name: str) -> None:
    X = contaminated()
    est = MEANS[name]().fit(X)
    again = pickle.loads(pickle.dumps(est))
    np.testing.assert_array_equal(again.score_samples(X), est.score_samples(X))


@every_mean
def test_fitting_does_not_change_the_parameters(name: str) -> None:
    est = MEANS[name]()
    before = clone(est).get_params()
    assert est.fit(contaminated()).get_params() == before


@every_mean
def test_a_pipeline_flags_the_outliers(name: str) -> None:
    pipeline = make_pipeline(StandardScaler(), MEANS[name](contamination=0.1))
    flagged = pipeline.fit(contaminated()).predict(contaminated()) == -1
    assert flagged[:40].mean() > 0.9


@every_mean
def test_a_grid_search_with_a_scoring_callable_works(name: str) -> None:
    def kept_score(est: RobustMean, X: Array, y: object = None) -> float:
        return float(np.median(est.score_samples(X)))

    search = GridSearchCV(
        MEANS[name](), {"contamination": [0.05, 0.1, "auto"]}, scoring=kept_score, cv=2
    ).fit(contaminated())
    assert search.best_params_["contamination"] in (0.05, 0.1, "auto")
    assert np.all(np.isfinite(search.cv_results_["mean_test_score"]))
