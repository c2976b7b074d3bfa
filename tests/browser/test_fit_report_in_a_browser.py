"""The page about a fit in a real browser: it sorts, it is quiet, and nothing in it is executed."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from outweigh import RobustMean
from outweigh.estimators.pca import RobustPCA
from outweigh.files.frames import named_frame
from outweigh.report import Fitted, build_fit_report
from tests.browser.test_report_in_a_browser import open_in_browser, pytestmark

__all__ = ["pytestmark"]

HOSTILE = [
    "<img src=x onerror=\"document.title='owned'\">",
    "\"><script>document.title='owned'</script>",
    "a$\\frac{b$ & <b>bold</b>",
    "</script><script>document.title='owned'</script>",
    "{style}{0}%s",
    "x" * 200,
]

# Runs in a copy of the page only: sorts by every column and measures.
PROBE = """<script>
const problems = [];
window.addEventListener("error", event => problems.push(String(event.message)), true);
window.addEventListener("load", () => {
  const table = document.querySelector("#distrusted table.sortable");
  const column = n => [...table.tBodies[0].rows].map(row => row.cells[n].textContent);
  const heads = [...table.querySelectorAll("thead th")];
  const before = column(1);
  heads[1].querySelector("button").click();
  const up = column(1), upState = heads[1].getAttribute("aria-sort");
  heads[1].querySelector("button").click();
  const down = column(1), downState = heads[1].getAttribute("aria-sort");
  heads[0].querySelector("button").click();
  const found = {problems, before, up, down, upState, downState, labels: column(0),
    title: document.title, text: document.body.innerText,
    scripts: document.querySelectorAll("main script, main img[onerror]").length,
    images: [...document.images].map(image => image.naturalWidth),
    width: document.documentElement.clientWidth, needed: document.documentElement.scrollWidth,
    loaded: performance.getEntriesByType("resource").map(entry => entry.name.slice(0, 40))};
  document.documentElement.setAttribute("data-found", JSON.stringify(found));
});
</script>"""


def fitted(kind: str) -> Fitted:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 12))
    X[:20, :4] += 6.0
    names = [*HOSTILE, *(f"c{j}" for j in range(6))]
    labels = [HOSTILE[i % 5] if i < 5 else f"row {i}" for i in range(300)]
    estimator = RobustMean() if kind == "mean" else RobustPCA(1)
    estimator.fit(named_frame(X, names))
    return Fitted(estimator, X, labels, names, HOSTILE[0], [HOSTILE[1]], f"outweigh {HOSTILE[3]}")


@pytest.fixture(scope="module", params=["mean", "pca"])
def page(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("fit") / f"{request.param}.html"
    path.write_text(build_fit_report(fitted(request.param)), encoding="utf-8")
    return path


def probe(page: Path, folder: Path, *options: str) -> dict[str, Any]:
    text = page.read_text(encoding="utf-8")
    text, changed = re.subn(r"script-src 'sha256-[^']*'", "script-src 'unsafe-inline'", text)
    assert changed == 1
    copy = folder / "probed.html"
    copy.write_text(text.replace("</body>", PROBE + "</body>"), encoding="utf-8")
    dom = open_in_browser(copy, folder / "profile", "--dump-dom", *options).stdout
    found = re.search(r'data-found="([^"]*)"', dom)
    assert found, "the page did not finish loading"
    result: dict[str, Any] = json.loads(unescape(found[1]))
    return result


def test_the_page_leaves_nothing_on_the_console(page: Path, tmp_path: Path) -> None:
    done = open_in_browser(page, tmp_path / "profile", "--dump-dom")
    assert [line for line in done.stderr.splitlines() if "CONSOLE" in line] == []
    assert "<title>owned" not in done.stdout


def test_the_tables_sort_and_hostile_names_are_shown_not_executed(
    page: Path, tmp_path: Path
) -> None:
    found = probe(page, tmp_path, "--window-size=1200,900")
    assert found["problems"] == []
    up = [float(cell) for cell in found["up"]]
    assert len(up) >= 18
    assert up == sorted(up)
    assert found["down"] == found["up"][::-1]
    assert (found["upState"], found["downState"]) == ("ascending", "descending")
    rows = [label for label in found["labels"] if label.startswith("row ")]
    assert rows == sorted(rows, key=lambda label: int(label.split()[1]))
    assert "owned" not in found["title"] or found["title"].endswith(HOSTILE[0])
    assert found["scripts"] == 0
    for name in HOSTILE[:4]:
        assert name in found["text"]
    assert all(width > 300 for width in found["images"])
    assert len(found["images"]) >= 3
    assert all(name.startswith("data:") for name in found["loaded"])


def test_on_a_phone_nothing_sticks_out(page: Path, tmp_path: Path) -> None:
    found = probe(page, tmp_path, "--window-size=390,844")
    assert found["needed"] <= found["width"]
