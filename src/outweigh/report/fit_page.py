"""The page about a fit: verdict, pictures, distrusted rows with reasons, the estimate."""

from __future__ import annotations

from typing import Any

import numpy as np

from outweigh.displays import (
    ComponentsDisplay,
    LocationDisplay,
    OutlierMapDisplay,
    TraceDisplay,
    WeightsDisplay,
)
from outweigh.displays.canvas import new_figure, png
from outweigh.estimators.explanation import as_deviation
from outweigh.libraries import MissingLibrary, versions
from outweigh.report.fitted import Fitted
from outweigh.report.page import render

__all__ = ["build_fit_report"]

MAX_ROWS = 500
"""Distrusted rows that the page lists; all of them go to the file of weights."""

MAX_FEATURES = 200


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
        (f"{fitted.n_distrusted:,}", "rows distrusted"),
        (f"{fitted.estimator.contamination_:.1%}", "of the weight removed"),
        (f"{certificate.contamination_bound:.1%}", "could have been removed"),
    ]
    if certificate.noise_floor.median > 0:
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
        versions=versions(),
        **_estimate(fitted),
    )


def _pictures(fitted: Fitted) -> list[tuple[str, bytes]]:
    est, names = fitted.estimator, [str(name) for name in fitted.names]
    # From what is known of the fit already: the rows may be many, and are not read again.
    cap = 1.0 / (1.0 - float(est.contamination_bound_))
    weights = WeightsDisplay(fitted.weights * len(fitted.labels), fitted.distrusted, cap)
    shown: dict[str, Any] = {}
    if fitted.is_mean:
        location, plain = est.location_ / est.scale_, fitted.plain_mean / est.scale_
        display = LocationDisplay(location, plain, getattr(est, "support_", None), names)
        shown["The estimate beside the plain mean"] = display.plot(new_figure(5.0, 4.0))
    else:
        loadings = ComponentsDisplay(est.components_, names)
        shown["Components"] = loadings.plot(new_figure(5.0, 4.0))
        shown["Outlier map"] = OutlierMapDisplay.from_estimator(est, fitted.rows, new_figure())
    shown["Weight of each row"] = weights.plot(new_figure())
    if est.trace_ or fitted.is_mean:
        trace = TraceDisplay.from_estimator(est, None, new_figure())
        shown["The descent against the level of clean data"] = trace
    return [(caption, png(display.ax_)) for caption, display in shown.items()]


def _distrusted(fitted: Fitted) -> list[tuple[Any, ...]]:
    """Return name, score, weight and reasons of the least trusted rows."""
    found = fitted.explanation
    weights = fitted.weights[found.rows] * len(fitted.labels)
    rows = []
    for i in range(min(len(found), MAX_ROWS)):
        features = zip(
            found.features[i].tolist(), found.shares[i], found.deviations[i], strict=True
        )
        reasons = [
            (fitted.names[feature], f"{share:.0%}", as_deviation(away))
            for feature, share, away in features
            if share >= 0.005
        ]
        rows.append((found.labels[i], found.scores[i], weights[i], reasons))
    return rows


def _estimate(fitted: Fitted) -> dict[str, Any]:
    est = fitted.estimator
    shown = fitted.largest_entries(MAX_FEATURES)
    variances, rest_is_zero = "", False
    if fitted.is_mean:
        columns = ["Robust mean", "Plain mean", "Difference, in units of noise"]
        difference = (est.location_ - fitted.plain_mean) / est.scale_
        values = np.column_stack([est.location_, fitted.plain_mean, difference])
        rest_is_zero = hasattr(est, "support_") and not np.delete(est.location_, shown).any()
    else:
        columns = [f"Component {j + 1}" for j in range(est.components_.shape[0])]
        values = est.components_.T
        each = zip(est.explained_variance_, est.explained_variance_ratio_, strict=True)
        variances = ", ".join(
            f"component {j}: {value:.4g} ({share:.1%})"
            for j, (value, share) in enumerate(each, start=1)
        )
    return {
        "columns": columns,
        # A sum with 0.0 has no negative zeros.
        "features": [(fitted.names[j], values[j] + 0.0) for j in shown],
        "n_unlisted": len(fitted.names) - shown.size,
        "rest_is_zero": rest_is_zero,
        "variances": variances,
    }
