"""The page about a fit holds what it must, escaped, and nothing from elsewhere."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from outweigh import RobustMean, RobustPCA, RobustSparseMean
from outweigh.estimators.base import RobustEstimator
from outweigh.report import Fitted, build_fit_report


def fitted(estimator: RobustEstimator, wrong: int = 20, correlated: bool = False) -> Fitted:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 8))
    X[:, 0] += 2.0
    X[:wrong, 2:5] += 6.0
    if correlated:
        X += 2.0 * rng.standard_normal((300, 1))
    labels = [f"<b>{i}</b>" for i in range(300)]
    names = [f"<i>{j}" for j in range(8)]
    command = "outweigh fit mean 'a & b.csv'"
    return Fitted(estimator.fit(X), X, labels, names, "a & b.csv", ["left <out>"], command)


@pytest.fixture(scope="module")
def page() -> str:
    return build_fit_report(fitted(RobustSparseMean(2)))


def test_the_verdict_comes_first_in_plain_words(page: str) -> None:
    text = re.sub(r"<[^>]*>", " ", page[page.index("<main>") :])
    assert text.split(".")[0].strip().startswith("20 of 300 rows (6")
    assert "what is left looks like clean data" in text


@pytest.mark.parametrize("part", ["verdict", "pictures", "distrusted", "estimate", "notes", "how"])
def test_every_part_is_there(page: str, part: str) -> None:
    assert f'id="{part}"' in page


def test_names_and_values_are_escaped(page: str) -> None:
    body = page[page.index("<body>") :]
    assert "<b>3</b>" not in body
    assert "&lt;b&gt;3&lt;/b&gt;" in body
    assert "&lt;i&gt;2" in body
    assert "a &amp; b.csv" in body
    assert "left &lt;out&gt;" in body


def test_nothing_comes_from_elsewhere(page: str) -> None:
    assert re.findall(r'(?:src|href)="(?!data:)[^"]*"', page) == []
    assert "http://" not in page
    assert "https://" not in page


def test_only_the_sorting_script_may_run(page: str) -> None:
    assert page.count("<script>") == 1
    assert "script-src 'sha256-" in page
    assert "unsafe-inline'; script-src" in page


def test_the_way_to_do_it_again_is_given(page: str) -> None:
    assert "outweigh fit mean &#39;a &amp; b.csv&#39;" in page
    assert "numpy" in page
    assert "n_nonzero" in page


def test_a_fit_that_stalled_says_what_to_do() -> None:
    page = build_fit_report(
        fitted(RobustMean(contamination=0.05, covariance=None), correlated=True)
    )
    assert "verdict care" in page
    assert "Use with care" in page
    assert "--trusted FILE" in page
    assert re.search(r"if columns such as &lt;i&gt;\d and &lt;i&gt;\d are correlated", page)


def test_advice_names_skewed_columns() -> None:
    found = fitted(RobustMean(contamination=0.05, covariance=None), correlated=True)
    X = np.exp(found.X)
    again = Fitted(
        RobustMean(contamination=0.05, covariance=None).fit(X), X, found.labels, "abcdefgh"
    )
    assert not again.certificate.clean
    assert "are skewed, perhaps take logarithms of them" in again.advice


def test_advice_is_in_the_words_of_the_command_line_or_of_python() -> None:
    asked = fitted(RobustMean(contamination=0.05, covariance=None), correlated=True)
    assert "(--trusted FILE)" in asked.advice
    assert "with a higher --contamination" in asked.advice
    in_python = replace(asked, command="")
    assert "(covariance= fitted to them)" in in_python.advice
    assert "--" not in in_python.advice


def test_advice_does_not_send_to_rows_that_are_not_there() -> None:
    found = fitted(RobustPCA(2), wrong=0, correlated=True)
    assert (len(found.explanation), found.certificate.clean) == (0, False)
    assert "distrusted rows" not in found.advice
    assert "with --contamination 0.1" in found.advice


def test_a_descent_is_drawn_only_where_there_was_one() -> None:
    caption = "The descent against the level of clean data"
    assert caption in build_fit_report(fitted(RobustMean(covariance=None)))
    assert caption not in build_fit_report(fitted(RobustPCA(2), correlated=True))


def test_clean_data_has_no_distrusted_rows() -> None:
    page = build_fit_report(fitted(RobustMean(), wrong=0))
    assert "No evidence against any of the 300 rows." in page
    assert "None: no row has lost" in page


def test_paper_is_light_also_where_the_screen_is_dark(page: str) -> None:
    style = page[page.index("<style>") : page.index("</style>")]
    dark = "(prefers-color-scheme: dark)"
    assert dark in style
    assert style.count(dark) == style.count(f"@media screen and {dark}")


def correlated_table() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((300, 6)) + 2.0 * rng.standard_normal((300, 1))
    X[:12, 4] -= 12.0
    return pd.DataFrame(X, index=[f"r{i}" for i in range(300)]).add_prefix("c")


@pytest.mark.parametrize("kind", ["frame", "array", "holes", "masked"])
def test_a_page_is_written_from_python(kind: str, tmp_path: Path) -> None:
    X = correlated_table()
    incomplete = kind in ("holes", "masked")
    if incomplete:
        X.iloc[20, 1] = np.nan
    rows: Any = X if kind == "frame" else X.to_numpy()
    if kind == "masked":
        rows = np.ma.masked_array(np.nan_to_num(rows, nan=1e9), np.isnan(rows))
    est = RobustMean(missing="median" if incomplete else None).fit(rows)
    path = est.report(rows, tmp_path / "page.html")
    page = Path(path).read_text(encoding="utf-8")
    assert (">r11<" in page) == (kind == "frame")
    assert "Distrusted rows over the trusted ones" in page
    assert "The weightiest column against the one that it goes with most" in page
    assert "by the others" in page
    assert "1e+09" not in page


def test_a_page_of_components_is_written_from_python(tmp_path: Path) -> None:
    X = correlated_table()
    page = Path(RobustPCA(2).fit(X).report(X, tmp_path / "page.html")).read_text(encoding="utf-8")
    assert "Outlier map" in page
    assert ">r11<" in page


def test_a_page_needs_the_rows_of_the_fit(tmp_path: Path) -> None:
    X = correlated_table()
    est = RobustMean().fit(X)
    with pytest.raises(ValueError, match="X must hold the 300 rows of the fit; got 10"):
        est.report(X[:10], tmp_path / "page.html")
    with pytest.raises(TypeError, match="not sparse"):
        est.report(scipy.sparse.csr_array(X.to_numpy()), tmp_path / "page.html")


def test_long_lists_are_folded() -> None:
    page = build_fit_report(fitted(RobustMean(), wrong=25))
    assert page.count("<details>") == 1
    assert "5 more rows</summary>" in page
    assert "<details>" not in build_fit_report(fitted(RobustMean(), wrong=15))


def test_notebooks_show_certificate_and_reasons_escaped() -> None:
    X = correlated_table().rename(columns={"c4": "<b>"})
    est = RobustMean().fit(X)
    for shown in (est.explain(X)._repr_html_(), est.certificate_._repr_html_()):
        assert "<b>" not in shown
        assert "<table>" in shown
    reasons = est.explain(X)._repr_html_()
    assert "&lt;b&gt; (" in reasons
    assert "12 rows are distrusted" in reasons
    assert "and 2 more" in reasons
    assert est.certificate_.verdict in est.certificate_._repr_html_()
    assert est.explain(X.iloc[50:])._repr_html_() == "<p>no row is distrusted</p>"
