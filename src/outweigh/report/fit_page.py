"""The page about a fit: verdict, pictures, distrusted rows with reasons, the estimate."""

from __future__ import annotations

from os import PathLike, fspath
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy.sparse import issparse

from outweigh.displays import (
    BiplotDisplay,
    ComponentsDisplay,
    LocationDisplay,
    OutlierMapDisplay,
    RowsDisplay,
    TraceDisplay,
    WeightsDisplay,
)
from outweigh.displays.canvas import draw_rows, image, new_figure, plain_text
from outweigh.estimators.base import RobustEstimator
from outweigh.estimators.explanation import NEGLIGIBLE, as_deviation
from outweigh.estimators.input import each_row
from outweigh.files.writing import write_file
from outweigh.libraries import MissingLibrary, versions
from outweigh.report.fitted import Fitted
from outweigh.report.page import render
from outweigh.samples.rows import is_dask

MAX_ROWS = 500
"""Distrusted rows that the page lists; all of them go to the file of weights."""

MAX_FEATURES = 200

UNFOLDED = 20
"""Lines of a table that are shown at once; more are folded."""


def build_fit_report(fitted: Fitted) -> str:
    """Return the page.

    Parameters
    ----------
    fitted : Fitted

    Returns
    -------
    str
        An HTML document.
    """
    certificate = fitted.certificate
    numbers = [
        (f"{len(fitted.explanation):,}", "rows distrusted"),
        (f"{fitted.estimator.contamination_:.1%}", "of the weight removed"),
        (f"{certificate.contamination_bound:.1%}", "could have been removed"),
    ]
    if certificate.noise == "elliptical":
        farthest = f"{np.sqrt(certificate.objective):.2f}"
        numbers.append((farthest, "of the distance allowed: the farthest trusted row"))
    elif certificate.noise_floor.median > 0:
        numbers.append((f"{certificate.ratio:.2f}", "times the level of clean data"))
    pictures, no_pictures = [], ""
    try:
        pictures = _pictures(fitted)
    except MissingLibrary as error:
        no_pictures = str(error)
    return render(
        "fit.html",
        fitted=fitted,
        numbers=numbers,
        pictures=pictures,
        no_pictures=no_pictures,
        distrusted=_distrusted(fitted),
        unfolded=UNFOLDED,
        versions=versions(),
        **_estimate(fitted),
    )


# A component that has this part of its squared length in one column is that column.
_ALONE = 0.95


def write_report(estimator: RobustEstimator, X: Any, path: str | PathLike[str]) -> str:
    """Write the page of a fit to a file, and return its path: what `estimator.report` does."""
    if issparse(X):
        raise TypeError("X: a page shows rows that are not sparse; give X.toarray() if it fits")
    index = getattr(X, "index", None)
    if not is_dask(X):
        X = each_row(estimator, X, np.asarray)
    n = int(estimator.weights_.shape[0])
    if X.shape[0] != n:
        raise ValueError(f"X must hold the {n} rows of the fit; got {X.shape[0]}")
    labels = range(n) if index is None or callable(index) else index
    fitted = Fitted(estimator, X, [str(label) for label in labels], estimator._feature_names)
    return str(write_file(fspath(path), build_fit_report(fitted)))


def _pictures(fitted: Fitted) -> list[tuple[str, bytes]]:
    est, names = fitted.estimator, [str(name) for name in fitted.names]
    # From what is known of the fit already: the rows may be many, and are not read again.
    cap = 1.0 / (1.0 - float(est.contamination_bound_))
    weights = WeightsDisplay(fitted.weights * len(fitted.labels), fitted.distrusted, cap)
    shown: dict[str, Any] = {}
    if len(fitted.explanation) and isinstance(fitted.X, np.ndarray):
        rows = RowsDisplay.from_explanation(fitted.X, fitted.explanation)
        caption = "Distrusted rows over the trusted ones, in the columns that count against them"
        shown[caption] = rows.plot(new_figure(5.0, 4.0))
        pair = _off_a_correlation(fitted)
        if pair is not None:
            ax = new_figure(5.0, 4.0)
            draw_rows(ax, fitted.X[:, pair[0]], fitted.X[:, pair[1]], fitted.distrusted)
            ax.set(xlabel=plain_text(names[pair[0]]), ylabel=plain_text(names[pair[1]]))
            ax.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2)
            caption = "The weightiest column against the one that it goes with most"
            shown[caption] = SimpleNamespace(ax_=ax)
    if fitted.is_mean:
        location, plain = est.location_ / est.scale_, fitted.plain_mean / est.scale_
        display = LocationDisplay(location, plain, getattr(est, "support_", None), names)
        shown["The estimate beside the plain mean"] = display.plot(new_figure(5.0, 4.0))
    else:
        loadings = ComponentsDisplay(est.components_, names)
        shown["Components"] = loadings.plot(new_figure(5.0, 4.0))
        if est.n_components_ > 1:
            biplot = BiplotDisplay.from_estimator(est, fitted.rows, new_figure(5.0, 4.0))
            shown["Scores with loadings"] = biplot
        shown["Outlier map"] = OutlierMapDisplay.from_estimator(est, fitted.rows, new_figure())
    shown["Weight of each row"] = weights.plot(new_figure())
    # Other rows are judged without a descent.
    if fitted.certificate.noise in ("white", "given") and (est.trace_ or fitted.is_mean):
        trace = TraceDisplay.from_estimator(est, None, new_figure())
        shown["The descent against the level of clean data"] = trace
    return [(caption, image(display.ax_.figure)) for caption, display in shown.items()]


def _off_a_correlation(fitted: Fitted) -> tuple[int, int] | None:
    """Return the column that counts most against rows, and the one most correlated with it.

    Such a pair shows rows that are ordinary in every column and not in how two columns go together.
    None where rows were not judged by the shape of their cloud.
    """
    found, together = fitted.explanation, fitted.rank_correlations
    if fitted.certificate.noise != "elliptical" or together is None:
        return None
    reasons = np.zeros(len(fitted.names))
    np.add.at(reasons, found.features, found.shares)
    first = int(reasons.argmax())
    return int(together[first].argmax()), first


def _distrusted(fitted: Fitted) -> list[tuple[Any, ...]]:
    """Return name, score, weight and reasons of the least trusted rows."""
    found = fitted.explanation
    weights = fitted.weights[found.rows] * len(fitted.labels)
    rows = []
    for i in range(min(len(found), MAX_ROWS)):
        reasons = [
            (name, f"{share:.0%}", as_deviation(away), foretold)
            for name, share, away, foretold in found.features_of(i)
            if share >= NEGLIGIBLE
        ]
        rows.append((found.labels[i], found.scores[i], weights[i], reasons))
    return rows


def _estimate(fitted: Fitted) -> dict[str, Any]:
    est = fitted.estimator
    shown = fitted.largest_entries(MAX_FEATURES)
    variances, rest_is_zero = "", False
    columns = {name.capitalize(): entries for name, entries in fitted.estimate.items()}
    if fitted.is_mean:
        difference = (est.location_ - fitted.plain_mean) / est.scale_
        columns["Difference, in units of noise"] = difference
        rest_is_zero = hasattr(est, "support_") and not np.delete(est.location_, shown).any()
    else:
        each = zip(est.explained_variance_, est.explained_variance_ratio_, strict=True)
        variances = ", ".join(
            f"component {j}: {value:.4g} ({share:.1%})"
            for j, (value, share) in enumerate(each, start=1)
        )
        for j, component in enumerate(est.components_, start=1):
            largest = int(np.argmax(np.abs(component)))
            if est.scale is None and _ALONE < component[largest] ** 2 < 1.0:
                variances += (
                    f"; component {j} is the column {fitted.names[largest]} nearly alone "
                    f"({component[largest] ** 2:.1%}): scale columns of unlike units"
                )
    values = np.column_stack(list(columns.values()))
    return {
        "columns": list(columns),
        # A sum with 0.0 has no negative zeros.
        "features": [(fitted.names[j], values[j] + 0.0) for j in shown],
        "n_unlisted": len(fitted.names) - shown.size,
        "rest_is_zero": rest_is_zero,
        "variances": variances,
    }
