"""The page: verdict, pictures, distrusted rows with reasons, the estimate, how to reproduce it.

Pictures are embedded and nothing is loaded from elsewhere. Everything that is not markup is
escaped; the one script, which sorts tables, is allowed by its hash and no other can run.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
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
from outweigh.fit_report.fitted import Fitted
from outweigh.fit_report.style import PAGE, SCRIPT, SCRIPT_HASH, STYLE

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
    sections = [
        _verdict(fitted),
        _pictures(fitted),
        _distrusted(fitted),
        _estimate(fitted),
        _notes(fitted),
        _how(fitted),
    ]
    n, d = fitted.X.shape
    return PAGE.format(
        hash=SCRIPT_HASH,
        title=_text(f"{fitted.title}: {fitted.source}"),
        style=STYLE,
        script=SCRIPT,
        heading=_text(f"{fitted.title[0].upper()}{fitted.title[1:]}"),
        source=_text(f"{fitted.source}: {n:,} rows, {d:,} features"),
        body="\n".join(filter(None, sections)),
    )


def _verdict(fitted: Fitted) -> str:
    certificate = fitted.certificate
    kind = "verdict" if certificate.clean else "verdict care"
    facts = [
        (f"{fitted.n_distrusted:,}", "rows distrusted"),
        (f"{fitted.estimator.contamination_:.1%}", "of the weight removed"),
        (f"{certificate.contamination_bound:.1%}", "could have been removed"),
    ]
    if certificate.noise_floor.median > 0:
        facts.append((f"{certificate.ratio:.2f}", "times the level of clean data"))
    advice = "" if certificate.clean else f"<p>{_text(fitted.advice)}</p>"
    items = "".join(f"<li><b>{_text(a)}</b><span>{_text(b)}</span></li>" for a, b in facts)
    return (
        f'<div class="{kind}" id="verdict"><strong>{_text(fitted.headline)}</strong>'
        f"<p>{_text(_sentence(certificate.verdict))}</p>{advice}</div>"
        f'<ul class="facts">{items}</ul>'
    )


def _pictures(fitted: Fitted) -> str:
    est, names = fitted.estimator, [str(name) for name in fitted.names]
    try:
        ax = new_figure()
    except ImportError as error:
        return f'<section><p class="note">No pictures: {_text(str(error))}</p></section>'
    # From what is known of the fit already: the rows may be many, and are not read again.
    flagged = np.zeros(len(fitted.labels), dtype=bool)
    flagged[fitted.explanation.rows] = True
    cap = 1.0 / (1.0 - float(est.contamination_bound_))
    weights = WeightsDisplay(fitted.weights * flagged.size, flagged, cap).plot(ax)
    shown: list[tuple[str, Any]] = [("Weight of each row", weights)]
    if est.trace_ or fitted.is_mean:
        trace = TraceDisplay.from_estimator(est, None, new_figure())
        shown.append(("The descent against the level of clean data", trace))
    if fitted.is_mean:
        location, plain = est.location_ / est.scale_, fitted.plain_mean / est.scale_
        display = LocationDisplay(location, plain, getattr(est, "support_", None), names)
        shown.insert(0, ("The estimate beside the plain mean", display.plot(new_figure(5.0, 4.0))))
    else:
        loadings = ComponentsDisplay(est.components_, names).plot(new_figure(5.0, 4.0))
        rows = OutlierMapDisplay.from_estimator(est, fitted.rows, new_figure())
        shown[0:0] = [("Components", loadings), ("Outlier map", rows)]
    figures = "".join(
        f'<figure><img alt="{_text(caption)}" src="data:image/png;base64,{_encoded(display.ax_)}">'
        f"<figcaption>{_text(caption)}</figcaption></figure>"
        for caption, display in shown
    )
    return (
        f'<section id="pictures"><h2>Pictures</h2><div class="pictures">{figures}</div></section>'
    )


def _encoded(ax: object) -> str:
    return base64.b64encode(png(ax)).decode("ascii")


def _distrusted(fitted: Fitted) -> str:
    found = fitted.explanation
    if not len(found):
        return (
            '<section id="distrusted"><h2>Distrusted rows</h2><p>None: no row has lost so much '
            "of its weight that it would be called an outlier.</p></section>"
        )
    weights = fitted.weights * len(fitted.labels)
    rows = []
    for position in range(min(len(found), MAX_ROWS)):
        row = int(found.rows[position])
        reasons = "".join(
            f"<span>{_text(fitted.names[feature])} <b>{share:.0%}</b> "
            f"<small>{_text(as_deviation(away))}</small></span> "
            for feature, share, away in zip(
                found.features[position].tolist(),
                found.shares[position],
                found.deviations[position],
                strict=True,
            )
            if share >= 0.005
        )
        rows.append(
            f'<tr><td class="name">{_text(fitted.labels[row])}</td>'
            f"{_cell(found.scores[position], f'{found.scores[position]:.3g}')}"
            f"{_cell(weights[row], f'{weights[row]:.2f}')}"
            f'<td class="why">{reasons}</td></tr>'
        )
    more = ""
    if len(found) > MAX_ROWS:
        more = (
            f'<p class="note">The {MAX_ROWS} least trusted of {len(found):,} rows are listed; '
            "all of them are in the file that --weights writes.</p>"
        )
    head = _head([("Row", False), ("Score", True), ("Weight", True), ("Reasons", None)])
    return (
        '<section id="distrusted"><h2>Distrusted rows</h2>'
        '<p class="note">The least trusted first. Reasons are the features that pushed the row '
        "out, with their shares, and how far from the estimate the row is in them, in units of "
        "the feature's noise.</p>"
        f'{more}<div class="scroll"><table class="sortable"><thead>{head}</thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div></section>"
    )


def _estimate(fitted: Fitted) -> str:
    est = fitted.estimator
    shown = fitted.largest_entries(MAX_FEATURES).tolist()
    if fitted.is_mean:
        head = [("Feature", False), ("Robust mean", True), ("Plain mean", True)]
        head.append(("Difference, in units of noise", True))
        columns = [
            est.location_,
            fitted.plain_mean,
            (est.location_ - fitted.plain_mean) / est.scale_,
        ]
    else:
        head = [("Feature", False)]
        head += [(f"Component {j + 1}", True) for j in range(est.components_.shape[0])]
        columns = list(est.components_)
    rows = "".join(
        f'<tr><td class="name">{_text(fitted.names[j])}</td>'
        + "".join(_cell(column[j], _number(float(column[j]))) for column in columns)
        + "</tr>"
        for j in shown
    )
    left = len(fitted.names) - len(shown)
    zero = " They are zero." if hasattr(est, "support_") and left and _rest_is_zero(fitted) else ""
    more = f'<p class="note">{left:,} other features are not listed.{zero}</p>' if left else ""
    return (
        f'<section id="estimate"><h2>The estimate</h2>{_variances(fitted)}'
        f'<div class="scroll"><table class="sortable"><thead>{_head(head)}</thead>'
        f"<tbody>{rows}</tbody></table></div>{more}</section>"
    )


def _rest_is_zero(fitted: Fitted) -> bool:
    return bool(np.count_nonzero(fitted.estimator.location_) <= MAX_FEATURES)


def _variances(fitted: Fitted) -> str:
    if fitted.is_mean:
        return ""
    est = fitted.estimator
    parts = ", ".join(
        f"component {j + 1}: {_number(float(value))} ({ratio:.1%})"
        for j, (value, ratio) in enumerate(
            zip(est.explained_variance_, est.explained_variance_ratio_, strict=True)
        )
    )
    return f"<p>Variance along each, and its share of the total: {_text(parts)}.</p>"


def _notes(fitted: Fitted) -> str:
    if not fitted.notes:
        return ""
    items = "".join(f"<li>{_text(note)}</li>" for note in fitted.notes)
    return f'<section id="notes"><h2>The data</h2><ul>{items}</ul></section>'


def _how(fitted: Fitted) -> str:
    command = f"<p>To do it again:</p><pre>{_text(fitted.command)}</pre>" if fitted.command else ""
    return (
        '<section id="how"><h2>How it was computed</h2>'
        "<p>Every row got a weight, such that the weighted rows vary as clean ones would; the "
        "estimate is read off the weighted rows. A row is distrusted when it lost most of its "
        "weight. The level of clean data is what rows without outliers would score by chance.</p>"
        f"<pre>{_text(str(fitted.certificate))}</pre>"
        f'{command}<div class="two">{_pairs("Parameters", fitted.parameters)}'
        f"{_pairs('Versions', fitted.versions)}</div></section>"
    )


def _pairs(caption: str, pairs: Mapping[str, str]) -> str:
    rows = "".join(
        f"<tr><td>{_text(key)}</td><td>{_text(value)}</td></tr>" for key, value in pairs.items()
    )
    return f"<table><caption>{_text(caption)}</caption><tbody>{rows}</tbody></table>"


def _head(columns: Sequence[tuple[str, bool | None]]) -> str:
    """Return the head of a table; columns are text, numbers, or (None) not to be sorted."""
    cells: Iterable[str] = (
        f'<th scope="col"{" class=n" if numeric else ""}>'
        + (_text(name) if numeric is None else f'<button type="button">{_text(name)}</button>')
        + "</th>"
        for name, numeric in columns
    )
    return f"<tr>{''.join(cells)}</tr>"


def _cell(value: float, shown: str) -> str:
    number = value if math.isfinite(value) else math.copysign(1e308, value)
    return f'<td class="n" data-v="{float(number)!r}">{_text(shown)}</td>'


def _number(value: float) -> str:
    return "0" if value == 0 else f"{value:.4g}"


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _text(text: object) -> str:
    return escape(str(text), quote=True)
