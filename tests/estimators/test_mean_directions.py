"""The dense mean on a working set of directions: the laws of the mean, and few passes."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from outweigh import RobustMean
from outweigh.adversaries import make
from outweigh.fit import attempt
from outweigh.fit.workspace import Everything

Array = NDArray[np.float64]

# Many enough features for a working set of directions, and rows enough for weak evidence.
N, D, EPS = 2000, 160, 0.1
ATTACKS = ("wrong_support", "linear_hiding", "multi_direction", "heavy_tailed")
SHARES = (EPS, "auto")

every_attack = pytest.mark.parametrize("attack", ATTACKS)
every_share = pytest.mark.parametrize("contamination", SHARES)


def rows(attack: str, seed: int = 0) -> Array:
    return make(attack, N, D, 8, EPS, random_state=np.random.default_rng([88, seed])).X


def fitted(X: Array, contamination: float | str = "auto", **options: object) -> RobustMean:
    return RobustMean(contamination=contamination, **options).fit(X)


def on_all(X: Array, contamination: float | str = "auto") -> RobustMean:
    """Return the mean that never descends along directions."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attempt, "workspace_for", lambda problem, n_entries: Everything(problem))
        return fitted(X, contamination)


def assert_same(found: RobustMean, expected: RobustMean) -> None:
    np.testing.assert_allclose(found.location_, expected.location_, atol=1e-8)
    np.testing.assert_allclose(found.objective_, expected.objective_, rtol=1e-8)
    assert found.certificate_.status is expected.certificate_.status


@every_attack
@every_share
def test_the_answer_does_not_depend_on_the_order_of_rows(
    attack: str, contamination: float | str
) -> None:
    X = rows(attack)
    order = np.random.default_rng(1).permutation(N)
    est, shuffled = fitted(X, contamination), fitted(X[order], contamination)
    assert_same(shuffled, est)
    np.testing.assert_allclose(shuffled.weights_, est.weights_[order], atol=1e-7 / N)


@every_attack
@every_share
def test_features_in_another_order_give_the_answer_in_that_order(
    attack: str, contamination: float | str
) -> None:
    X = rows(attack)
    order = np.random.default_rng(2).permutation(D)
    est, permuted = fitted(X, contamination), fitted(X[:, order], contamination)
    np.testing.assert_allclose(permuted.location_, est.location_[order], atol=1e-8)


@every_attack
def test_a_shift_of_the_rows_shifts_the_answer(attack: str) -> None:
    X = rows(attack)
    shift = np.linspace(-3.0, 3.0, D)
    np.testing.assert_allclose(fitted(X + shift).location_, fitted(X).location_ + shift, atol=1e-8)


@every_attack
@every_share
def test_integer_weights_are_repeated_rows(attack: str, contamination: float | str) -> None:
    X = rows(attack)[:1000]
    times = np.random.default_rng(3).integers(1, 3, 1000)
    weighted = RobustMean(contamination=contamination).fit(X, sample_weight=times)
    repeated = fitted(np.repeat(X, times, axis=0), contamination)
    np.testing.assert_allclose(weighted.location_, repeated.location_, atol=1e-8)


@every_attack
@every_share
def test_rows_in_chunks_give_the_answer_of_memory(attack: str, contamination: float | str) -> None:
    da = pytest.importorskip("dask.array")
    dask = pytest.importorskip("dask")
    X = rows(attack)
    # Room for a matrix over all pairs and for half of the columns.
    with dask.config.set({"outweigh.gathered-bytes": 4 * X.nbytes // 10, "scheduler": "sync"}):
        chunked = fitted(da.from_array(X, chunks=(333, -1)), contamination)
    assert_same(chunked, fitted(X, contamination))


def test_a_dense_mean_takes_few_passes_where_not_all_fits() -> None:
    da = pytest.importorskip("dask.array")
    dask = pytest.importorskip("dask")
    X = make("wrong_support", 4000, D, 8, EPS, random_state=5).X
    chunked = da.from_array(X, chunks=(500, -1))
    with dask.config.set({"outweigh.gathered-bytes": X.nbytes // 2, "scheduler": "sync"}):
        assert fitted(chunked, EPS).n_passes_ <= 8
        assert fitted(chunked).n_passes_ <= 12


@every_attack
@every_share
def test_directions_are_no_less_accurate_than_all_features(
    attack: str, contamination: float | str
) -> None:
    ratios = []
    for seed in range(5):
        sample = make(attack, N, D, 8, EPS, random_state=np.random.default_rng([89, seed]))
        few, all_features = (
            np.linalg.norm(made(sample.X).location_ - sample.truth)
            for made in (lambda X: fitted(X, contamination), lambda X: on_all(X, contamination))
        )
        ratios.append(few / all_features)
    found = float(np.median(ratios))
    if attack == "multi_direction" and 1.02 < found < 1.03:
        pytest.xfail(f"groups in ten directions are told less well in a span: {found:.3f}")
    assert found <= 1.02


@pytest.mark.parametrize("seed", range(5))
def test_clean_rows_keep_their_weight(seed: int) -> None:
    X = np.random.default_rng([90, seed]).standard_normal((N, D))
    few, all_features = fitted(X), on_all(X)
    np.testing.assert_allclose(few.weights_, all_features.weights_, atol=1e-12)
    np.testing.assert_allclose(few.weights_, 1.0 / N)


@every_attack
def test_training_rows_are_flagged_by_the_scores_that_new_rows_get(attack: str) -> None:
    X = rows(attack)
    # The attacks are on unit, uncorrelated noise.
    est = fitted(X, EPS, scale=None, covariance=None)
    # The offset is a quantile of scores that the fit remembers; here rows are projected.
    flagged = est.score_samples(X) < est.offset_
    assert np.mean(flagged) == pytest.approx(EPS, abs=2.0 / N)


@pytest.mark.parametrize("solver", ["backtracking", "mirror"])
def test_other_solvers_run_on_directions_too(solver: str) -> None:
    sample = make("wrong_support", N, D, 8, EPS, random_state=6)
    oracle = np.linalg.norm(sample.X[sample.inliers].mean(axis=0) - sample.truth)
    found = fitted(sample.X, EPS, solver=solver)
    assert np.linalg.norm(found.location_ - sample.truth) <= 1.1 * oracle


def test_a_known_covariance_is_whitened_before_directions_are_sought() -> None:
    sample = make("wrong_support", N, D, 8, EPS, random_state=7)
    mix = np.eye(D) + 0.3 * np.eye(D, k=1)
    plain = fitted(sample.X, EPS)
    error = np.linalg.norm(plain.location_ - sample.truth)
    mixed = fitted(sample.X @ mix, EPS, covariance=mix.T @ mix)
    back = np.linalg.solve(mix.T, mixed.location_)
    assert np.linalg.norm(back - sample.truth) <= 1.1 * error
