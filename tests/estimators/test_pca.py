"""What a user of the robust PCAs may rely on."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.decomposition import PCA

from outweigh.adversaries import dense_spike, spiked_mixture
from outweigh.estimators.pca import RobustPCA, RobustSparsePCA

ESTIMATORS = (RobustPCA, RobustSparsePCA)


@pytest.fixture(scope="module")
def sample():
    return spiked_mixture(1500, 60, 5, 0.1, 7, n_components=2, spike=[3.0, 1.5])


@pytest.fixture(scope="module")
def fitted(sample):
    return RobustSparsePCA(2, 5).fit(sample.X)


def curves(seed: int, band: float = 2.0) -> tuple[np.ndarray, np.ndarray]:
    """Smooth curves in 200 channels, n=40, six of them with an added band."""
    rng = np.random.default_rng(seed)
    x = np.linspace(0.0, 1.0, 200)
    peaks = np.exp(-((x - 0.3) ** 2) / 0.02) + 0.7 * np.exp(-((x - 0.65) ** 2) / 0.03)
    modes = [np.exp(-((x - c) ** 2) / 0.05) for c in (0.2, 0.45, 0.7)]
    modes += [x, x**2]
    factors = rng.standard_normal((40, 5)) * [1.0, 0.4, 0.2, 0.1, 0.05]
    X = (1.0 + 0.1 * rng.standard_normal((40, 1))) * peaks + factors @ np.array(modes)
    X += 0.002 * rng.standard_normal(X.shape)
    marked = np.zeros(40, dtype=bool)
    marked[rng.choice(40, 6, replace=False)] = True
    X[marked] += band * np.exp(-((x - 0.85) ** 2) / 0.0005) * rng.uniform(0.8, 1.2, (6, 1))
    return X, marked


def test_components_are_unit_rows_with_a_positive_largest_entry(fitted) -> None:
    np.testing.assert_allclose(np.linalg.norm(fitted.components_, axis=1), 1.0)
    assert (fitted.components_.max(axis=1) == np.abs(fitted.components_).max(axis=1)).all()


def test_components_are_sorted_by_explained_variance(fitted) -> None:
    assert np.all(np.diff(fitted.explained_variance_) <= 0)


def test_sparse_components_have_the_entries_asked_for(sample) -> None:
    est = RobustSparsePCA(2, [5, 3]).fit(sample.X)
    assert sorted(est.n_nonzero_) == [3, 5]


def test_the_supports_of_two_components_are_found(sample, fitted) -> None:
    assert np.array_equal(np.flatnonzero(fitted.components_.any(axis=0)), sample.support)


def test_variances_are_those_of_the_clean_rows(sample, fitted) -> None:
    # Population values 1 + 3 and 1 + 1.5; a variance of n Gaussians has relative sd sqrt(2 / n).
    expected = 1.0 + sample.spikes
    np.testing.assert_allclose(fitted.explained_variance_, expected, rtol=4 * np.sqrt(2 / 1350))
    assert abs(fitted.noise_variance_ - 1.0) < 0.05


def test_the_number_of_entries_is_found(sample) -> None:
    est = RobustSparsePCA(2).fit(sample.X)
    assert np.array_equal(np.sort(est.n_nonzero_), [5, 5])


def test_the_number_of_entries_of_pure_noise_is_small() -> None:
    X = np.random.default_rng(0).standard_normal((800, 60))
    assert RobustSparsePCA().fit(X).n_nonzero_[0] <= 5


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_clean_data_keeps_its_weights(estimator) -> None:
    X = np.random.default_rng(3).standard_normal((1000, 40))
    assert estimator().fit(X).contamination_ < 0.02


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_origin_and_units_do_not_matter(estimator, sample) -> None:
    options = {"n_nonzero": 5} if estimator is RobustSparsePCA else {}
    first = estimator(**options).fit(sample.X)
    second = estimator(**options).fit(1e3 * sample.X + 7e4)
    np.testing.assert_allclose(second.components_, first.components_, atol=1e-6)
    np.testing.assert_allclose(second.explained_variance_, 1e6 * first.explained_variance_)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_the_order_of_rows_does_not_matter(estimator, sample) -> None:
    options = {"n_nonzero": 5} if estimator is RobustSparsePCA else {}
    order = np.random.default_rng(1).permutation(len(sample.X))
    first = estimator(**options).fit(sample.X)
    second = estimator(**options).fit(sample.X[order])
    np.testing.assert_allclose(second.components_, first.components_, atol=1e-6)
    np.testing.assert_allclose(second.weights_, first.weights_[order], atol=1e-9)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_integer_sample_weights_equal_repeated_rows(estimator) -> None:
    sample = spiked_mixture(300, 20, 3, 0.1, 2, spike=3.0)
    weight = np.random.default_rng(0).integers(0, 3, 300)
    options = {"n_nonzero": 3} if estimator is RobustSparsePCA else {}
    first = estimator(**options).fit(sample.X, sample_weight=weight)
    second = estimator(**options).fit(np.repeat(sample.X, weight, axis=0))
    np.testing.assert_allclose(second.components_, first.components_, atol=1e-8)


def test_without_contamination_it_is_ordinary_pca() -> None:
    X = np.random.default_rng(0).standard_normal((200, 12)) * np.linspace(3.0, 1.0, 12)
    est, ordinary = RobustPCA(3, contamination=0.0).fit(X), PCA(3).fit(X)
    overlap = np.abs(np.sum(est.components_ * ordinary.components_, axis=1))
    np.testing.assert_allclose(overlap, 1.0, atol=1e-9)
    np.testing.assert_allclose(est.explained_variance_, ordinary.explained_variance_)
    np.testing.assert_allclose(est.noise_variance_, ordinary.noise_variance_)
    np.testing.assert_allclose(est.explained_variance_ratio_, ordinary.explained_variance_ratio_)


def test_inverse_transform_projects(sample, fitted) -> None:
    scores = fitted.transform(sample.X)
    back = fitted.inverse_transform(scores)
    np.testing.assert_allclose(fitted.transform(back), scores, atol=1e-9)


def test_float32_gives_float32(sample, fitted) -> None:
    scores = fitted.transform(sample.X.astype(np.float32))
    assert scores.dtype == np.float32
    assert fitted.inverse_transform(scores).dtype == np.float32


def test_feature_names_and_pandas_output(sample) -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(sample.X, columns=[f"gene{j}" for j in range(60)])
    est = RobustSparsePCA(2, 5).set_output(transform="pandas").fit(frame)
    assert list(est.transform(frame).columns) == ["robustsparsepca0", "robustsparsepca1"]


def test_score_and_orthogonal_distances_add_up(sample, fitted) -> None:
    est = RobustPCA(2).fit(sample.X)
    scores = est.transform(sample.X)
    total = np.square(sample.X - est.mean_).sum(axis=1)
    left = total - np.square(scores).sum(axis=1)
    np.testing.assert_allclose(est.orthogonal_distances(sample.X) ** 2, left, rtol=1e-6)


def test_in_white_noise_no_trusted_row_is_beyond_the_cutoffs(sample) -> None:
    est = RobustPCA(2).fit(sample.X)
    beyond = est.score_distances(sample.X) > est.score_cutoff_
    beyond |= est.orthogonal_distances(sample.X) > est.orthogonal_cutoff_
    flagged = est.predict(sample.X) == -1
    np.testing.assert_array_equal(flagged, est.weights_ < 0.5 * est.weights_.max())
    assert beyond.any()
    assert np.all(flagged[beyond])


def test_far_points_are_never_trusted_more() -> None:
    sample = spiked_mixture(600, 20, 3, 0.1, 2)
    ray = np.random.default_rng(0).standard_normal(20)
    for est in (RobustPCA().fit(sample.X), RobustPCA().fit(curves(0)[0][:, ::10])):
        start = est.mean_
        far = np.array([start + t * ray for t in (10.0, 100.0, 1e3, 1e4, 1e6)])
        assert np.all(np.diff(est.score_samples(far)) <= 0)


def test_outliers_are_flagged(sample, fitted) -> None:
    flagged = fitted.predict(sample.X) == -1
    assert np.mean(~sample.inliers[flagged]) > 0.8


@pytest.mark.parametrize("n_components", [1, 2, 3, 5])
@pytest.mark.parametrize("seed", range(3))
def test_curves_with_an_added_band_are_exactly_the_flagged(n_components: int, seed: int) -> None:
    X, marked = curves(seed)
    est = RobustPCA(n_components, contamination=6 / 40)
    assert np.array_equal(est.fit_predict(X) == -1, marked)
    assert est.certificate_.noise == "other"
    assert "not white" in str(est.certificate_)


@pytest.mark.parametrize("n_components", [1, 2, 3, 5])
def test_curves_with_an_added_band_are_among_few_flagged_when_nothing_is_known(
    n_components: int,
) -> None:
    X, marked = curves(3)
    flagged = RobustPCA(n_components).fit_predict(X) == -1
    assert flagged[marked].all()
    assert flagged.sum() <= 10


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_fewer_rows_than_columns(estimator) -> None:
    rng = np.random.default_rng(0)
    direction = np.zeros(2000)
    direction[:10] = 10**-0.5
    X = rng.standard_normal((120, 2000)) + 8.0 * rng.standard_normal((120, 1)) * direction
    X[:12] += 20.0 * rng.standard_normal((12, 1)) * np.roll(direction, 50)
    options = {"n_nonzero": 10} if estimator is RobustSparsePCA else {}
    est = estimator(**options).fit(X)
    assert abs(est.components_[0] @ direction) > 0.7


@pytest.mark.slow
def test_fifty_thousand_features_need_no_square_array() -> None:
    rng = np.random.default_rng(0)
    direction = np.zeros(50_000)
    direction[:20] = 20**-0.5
    X = rng.standard_normal((150, 50_000)) + 12.0 * rng.standard_normal((150, 1)) * direction
    for est in (RobustPCA(), RobustSparsePCA(n_nonzero=20)):
        assert abs(est.fit(X).components_[0] @ direction) > 0.5


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("shape", [(2, 1), (2, 3), (5, 1), (3, 2), (10, 2)])
@pytest.mark.filterwarnings("ignore:X. only . rows count")
def test_tiny_data_gives_finite_answers(estimator, shape) -> None:
    X = np.random.default_rng(0).standard_normal(shape)
    est = estimator(min(shape)).fit(X)
    assert np.isfinite(est.components_).all()
    assert np.isfinite(est.explained_variance_).all()
    np.testing.assert_allclose(np.linalg.norm(est.components_, axis=1), 1.0)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_equal_rows_are_refused(estimator) -> None:
    with pytest.raises(ValueError, match="all rows are equal"):
        estimator().fit(np.ones((10, 3)))


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_too_many_components_are_refused(estimator) -> None:
    with pytest.raises(ValueError, match="n_components=4 must be at most"):
        estimator(4).fit(np.random.default_rng(0).standard_normal((10, 3)))


@pytest.mark.parametrize("n_nonzero", [[3], [3, 3, 3], [3, 0], [3, 2.5]])
def test_entries_per_component_are_checked(n_nonzero) -> None:
    with pytest.raises(ValueError, match="n_nonzero must hold"):
        RobustSparsePCA(2, n_nonzero).fit(np.random.default_rng(0).standard_normal((50, 10)))


def test_too_many_entries_are_clipped_with_a_warning() -> None:
    X = np.random.default_rng(0).standard_normal((100, 5))
    with pytest.warns(UserWarning, match="n_nonzero=9 is larger"):
        assert RobustSparsePCA(n_nonzero=9).fit(X).n_nonzero_[0] == 5


def test_infinitely_far_rows_are_pruned() -> None:
    sample = dense_spike(500, 20, 20, 0.01, 0, spike=4.0)
    X = sample.X.copy()
    X[:5] = 1e300
    est = RobustPCA().fit(X)
    assert est.weights_[:5].max() == 0.0
    assert abs(est.components_[0] @ sample.truth[0]) > 0.9


def test_assume_centered_subtracts_nothing(sample) -> None:
    est = RobustSparsePCA(n_nonzero=5, assume_centered=True).fit(sample.X)
    assert not est.mean_.any()
    assert abs(est.components_[0] @ sample.truth[0]) > 0.97


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_the_plain_algorithm_of_the_paper_lowers_its_objective(estimator, sample) -> None:
    options = {"n_nonzero": 5} if estimator is RobustSparsePCA else {}
    est = estimator(
        **options,
        contamination=0.1,
        covariance=None,
        solver="paper",
        assume_centered=True,
        max_iter=20,
    ).fit(sample.X)
    assert est.objective_ < est.trace_[0].value
    assert est.weights_.max() <= 1.0 / (0.9 * 1500) + 1e-12


def test_scaling_finds_components_of_features_in_other_units(sample) -> None:
    units = np.logspace(-2, 2, 60)
    est = RobustSparsePCA(2, 5, scale="mad").fit(sample.X * units)
    assert np.array_equal(np.flatnonzero(est.components_.any(axis=0)), sample.support)


@pytest.mark.parametrize("cls", [RobustPCA, RobustSparsePCA])
def test_scores_keep_single_precision_and_its_digits_far_from_zero(cls: type) -> None:
    sample = spiked_mixture(5000, 20, 4, 0.1, 0, spike=4.0)
    X = sample.X.astype(np.float32) + np.float32(1000.0)
    est = cls().fit(X)
    scores = est.transform(X)
    assert scores.dtype == np.float32
    assert est.inverse_transform(scores).dtype == np.float32
    assert est.components_.dtype == np.float64
    exact = (X.astype(np.float64) - est.mean_) @ est.components_.T
    np.testing.assert_allclose(scores, exact, rtol=1e-6, atol=1e-6)
    assert est.transform(X.astype(np.float64)).dtype == np.float64
    assert est.__sklearn_tags__().transformer_tags.preserves_dtype == ["float64", "float32"]


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_three_tenths_of_the_rows_far_away_are_found(estimator) -> None:
    X = np.random.default_rng(0).standard_normal((200, 5))
    X[:60] += 100.0
    est = estimator().fit(X)
    flagged = est.predict(X) == -1
    assert flagged[:60].all()
    # One clean row in forty is beyond each of two cut-offs: 7 of 140, and three deviations more.
    assert flagged[60:].sum() <= 14
    assert est.weights_[:60].sum() < 1e-9


@pytest.mark.parametrize("contamination", ["auto", 0.1])
def test_certify_looks_at_the_objective_that_the_certificate_speaks_of(contamination) -> None:
    sample = dense_spike(600, 15, 15, 0.1, random_state=4, spike=3.0)
    est = RobustPCA(contamination=contamination, covariance=None).fit(sample.X)
    found = est.certify(sample.X)
    assert found.objective == est.certificate_.objective
    # The largest eigenvalue beside the components of the weighted covariance less the identity.
    scale = est._score.standardizer.scale
    away = (sample.X - est.mean_) / scale
    second = (away * est.weights_[:, None]).T @ away - np.eye(15)
    beside = np.eye(15) - est._aside @ est._aside.T
    largest = np.abs(np.linalg.eigvalsh(beside @ second @ beside)).max()
    assert found.objective == pytest.approx(largest, rel=1e-6)
    assert 0.0 < found.moreau.accuracy < found.moreau.gradient_norm


def test_certify_of_sparse_components_is_zero_where_nothing_was_removed() -> None:
    X = np.random.default_rng(5).standard_normal((400, 40))
    est = RobustSparsePCA(n_nonzero=4, contamination=0.0, covariance=None).fit(X)
    assert est.certify(X).moreau.gradient_norm == pytest.approx(0.0, abs=1e-9)


def test_certify_has_nothing_to_add_where_no_objective_was_minimised() -> None:
    X = np.random.default_rng(6).standard_normal((100, 5)) * np.arange(1.0, 6.0)
    est = RobustPCA().fit(X)
    assert est.certify(X) == est.certificate_
    with pytest.raises(ValueError, match="the 100 rows of the fit; got 99"):
        est.certify(X[1:])
