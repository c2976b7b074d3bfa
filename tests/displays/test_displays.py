"""Displays draw what the estimator holds, on the axes they are given."""

from __future__ import annotations

from functools import cache
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from matplotlib.figure import Figure
from numpy.typing import NDArray

from outweigh import RobustMean, RobustSparseMean
from outweigh.adversaries import spiked_mixture
from outweigh.displays import (
    BiplotDisplay,
    ComponentsDisplay,
    LocationDisplay,
    OutlierMapDisplay,
    RowsDisplay,
    ScreeDisplay,
    TraceDisplay,
    WeightsDisplay,
)
from outweigh.displays.canvas import image
from outweigh.estimators.base import RobustEstimator
from outweigh.estimators.pca import RobustPCA, RobustSparsePCA

mpl.use("Agg")

Array = NDArray[np.float64]

ESTIMATORS = {
    "mean": lambda: RobustMean(),
    "sparse mean": lambda: RobustSparseMean(3),
    "pca": lambda: RobustPCA(2),
    "sparse pca": lambda: RobustSparsePCA(1, n_nonzero=3),
}
PAIRS = [
    *((name, WeightsDisplay) for name in ESTIMATORS),
    *((name, TraceDisplay) for name in ESTIMATORS),
    ("mean", LocationDisplay),
    ("sparse mean", LocationDisplay),
    ("pca", OutlierMapDisplay),
    ("sparse pca", OutlierMapDisplay),
    ("pca", ComponentsDisplay),
    ("sparse pca", ComponentsDisplay),
    ("pca", ScreeDisplay),
    ("sparse pca", ScreeDisplay),
    ("pca", BiplotDisplay),
]
every_pair = pytest.mark.parametrize(("name", "display"), PAIRS)


@cache
def rows(name: str) -> pd.DataFrame:
    X = np.random.default_rng(0).standard_normal((300, 25))
    X[:, :3] += 1.0
    if name.endswith("pca"):
        X[:, :3] += 2.0 * np.random.default_rng(1).standard_normal((300, 1))
    X[:20, 5:9] += 5.0
    return pd.DataFrame(X, columns=[f"a${j}_{{" for j in range(25)])


@cache
def fitted(name: str) -> RobustEstimator:
    return ESTIMATORS[name]().fit(rows(name))


def drawn(name: str, display: Any) -> Any:
    ax = Figure().subplots()
    return display.from_estimator(fitted(name), rows(name), ax=ax)


@every_pair
def test_a_display_draws_on_the_axes_given(name: str, display: Any) -> None:
    ax = Figure().subplots()
    shown = display.from_estimator(fitted(name), rows(name), ax=ax)
    assert shown.ax_ is ax
    assert shown.figure_ is ax.figure
    assert ax.has_data()


@every_pair
def test_names_full_of_dollars_and_braces_are_drawn(name: str, display: Any) -> None:
    assert image(drawn(name, display).figure_, "png", 50).startswith(b"\x89PNG")


def test_new_axes_are_made_where_none_are_given() -> None:
    from matplotlib import pyplot

    shown = WeightsDisplay.from_estimator(fitted("mean"), rows("mean"))
    assert shown.ax_.has_data()
    pyplot.close(shown.figure_)


def test_a_display_can_be_drawn_again() -> None:
    shown = drawn("mean", WeightsDisplay)
    ax = Figure().subplots()
    assert shown.plot(ax).ax_ is ax


def test_the_weights_are_in_units_of_an_equal_share() -> None:
    shown = drawn("mean", WeightsDisplay)
    assert shown.weights.mean() == pytest.approx(1.0)
    assert shown.weights.max() <= shown.cap + 1e-9


@pytest.mark.xfail(
    strict=True,
    reason="three of the twenty lie just within the pruning radius; the rows that were pruned "
    "show the way they differ, but nothing looks along it yet",
)
def test_the_wrong_rows_are_flagged() -> None:
    assert drawn("mean", WeightsDisplay).flagged[:20].all()


def test_the_trace_ends_at_the_objective() -> None:
    shown = drawn("mean", TraceDisplay)
    assert shown.final == fitted("mean").objective_
    assert shown.values.size == fitted("mean").n_iter_
    assert shown.median < shown.upper


def test_the_location_shows_what_the_outliers_moved() -> None:
    shown = drawn("mean", LocationDisplay)
    labels = {tick.get_text() for tick in shown.ax_.get_yticklabels()[:4]}
    assert labels == {f"a\\${j}_{{" for j in (5, 6, 7, 8)}


def test_the_location_of_a_sparse_mean_shows_its_support_first() -> None:
    shown = drawn("sparse mean", LocationDisplay)
    labels = [tick.get_text() for tick in shown.ax_.get_yticklabels()[:3]]
    assert set(labels) == {f"a\\${j}_{{" for j in fitted("sparse mean").support_}


def test_the_outlier_map_has_the_cut_offs_of_the_estimator() -> None:
    shown = drawn("pca", OutlierMapDisplay)
    est = fitted("pca")
    assert shown.score_cutoff == est.score_cutoff_
    assert np.mean(shown.orthogonal_distances[:20] > shown.orthogonal_cutoff) > 0.9


def test_flagged_rows_that_neither_distance_shows_are_ringed_where_they_are() -> None:
    sample = spiked_mixture(600, 30, 4, 0.15, random_state=3, outlier_norm="unit")
    est = RobustPCA().fit(sample.X)
    shown = OutlierMapDisplay.from_estimator(est, sample.X)
    beside = est.orthogonal_distances(sample.X)
    beyond = (est.score_distances(sample.X) > est.score_cutoff_) | (beside > est.orthogonal_cutoff_)
    flagged = est.predict(sample.X) == -1
    assert np.all(flagged[beyond])
    labels = {line.get_label(): line for line in shown.ax_.get_lines()}
    ringed = labels[f"in an overlapping group ({np.sum(flagged & ~beyond)})"]
    np.testing.assert_array_equal(ringed.get_ydata(), beside[flagged & ~beyond])


def test_sparse_loadings_are_bars_with_names() -> None:
    shown = drawn("sparse pca", ComponentsDisplay)
    assert len(shown.ax_.patches) == np.count_nonzero(fitted("sparse pca").components_)


def test_a_display_of_the_wrong_estimator_says_which_is_right() -> None:
    with pytest.raises(TypeError, match="ComponentsDisplay is for principal components"):
        LocationDisplay.from_estimator(fitted("pca"), rows("pca"))
    with pytest.raises(TypeError, match="LocationDisplay is for means"):
        OutlierMapDisplay.from_estimator(fitted("mean"), rows("mean"))


def test_weights_of_other_rows_are_refused() -> None:
    with pytest.raises(ValueError, match="X must hold the 300 rows of the fit; got 10"):
        WeightsDisplay.from_estimator(fitted("mean"), rows("mean")[:10])


def test_a_notebook_shows_the_verdict_beside_the_diagram() -> None:
    html = fitted("mean")._repr_html_()
    assert fitted("mean").certificate_.verdict in html
    assert "sk-container" in html or "sk-estimator" in html
    assert fitted("mean").certificate_.verdict in fitted("mean")._repr_mimebundle_()["text/html"]
    assert "clean level" not in RobustMean()._repr_html_()


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_matrix])
def test_a_location_is_drawn_beside_the_plain_mean_of_a_sparse_matrix(kind: Any) -> None:
    X = np.random.default_rng(3).standard_normal((200, 6)).astype(np.float32)
    X[:, 3:] *= X[:, 3:] > 1.0
    rows = kind(X)
    shown = LocationDisplay.from_estimator(RobustMean(scale=None).fit(rows), rows)
    np.testing.assert_allclose(shown.plain, X.mean(axis=0, dtype=np.float64), rtol=1e-12)


def test_a_scree_shows_factors_above_the_edge_and_noise_below_it() -> None:
    shown = drawn("pca", ScreeDisplay)
    assert shown.robust[0] > shown.edges[0]
    assert shown.robust[1] < shown.edges[1]
    assert shown.plain[1] > shown.robust[1]


def test_a_biplot_needs_two_components() -> None:
    with pytest.raises(ValueError, match="must be two of the 1 components"):
        BiplotDisplay.from_estimator(fitted("sparse pca"), rows("sparse pca"))


def test_near_copies_of_a_feature_have_one_arrow() -> None:
    loadings = np.array([[0.6, 0.6, 0.599, 0.0], [0.0, 0.01, 0.0, 0.7]])
    scores = np.random.default_rng(0).standard_normal((30, 2))
    shown = BiplotDisplay(scores, np.zeros(30, dtype=bool), loadings, ["a", "a2", "a3", "b"]).plot()
    assert [text.get_text() for text in shown.ax_.texts if text.get_text()] == ["b", "a2"]


def test_loadings_are_drawn_against_wavelengths_where_names_are_numbers() -> None:
    names = [str(900.0 + j / 2) for j in range(40)]
    line = ComponentsDisplay(np.ones((1, 40)), names).plot(Figure().subplots()).ax_.lines[0]
    np.testing.assert_array_equal(line.get_xdata(), 900.0 + np.arange(40) / 2)


def test_the_rows_are_shown_in_the_columns_that_count_against_them() -> None:
    X = np.random.default_rng(4).standard_normal((200, 30))
    X[:8, [3, 7]] += 50.0
    display = RowsDisplay.from_estimator(RobustMean().fit(X), X, n_rows=5)
    shown = [text.get_text() for text in display.ax_.get_xticklabels()]
    assert {"x3", "x7"} <= set(shown)
    assert len(shown) == 4
    assert display.ax_.get_yscale() == "symlog"
    legend = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert "distrusted rows (the first 5 of 8)" in legend
