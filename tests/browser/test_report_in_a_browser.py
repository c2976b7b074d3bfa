"""The report in a real browser: nothing on the console, every image there, fit for a phone."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from outweigh.experiments.figures import panel
from outweigh.experiments.spec import load_builtin
from outweigh.experiments.summary import summarise
from outweigh.report import build_report
from tests.experiments.made_up import store_of

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
PANELS = ("linear-hiding-n", "dense-mean", "sparse-pca-k")
BROWSER = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(
        BROWSER is None and "OUTWEIGH_NEEDS_BROWSER" not in os.environ,
        reason="no browser: install chromium (Debian: apt-get install chromium), or set CHROMIUM",
    ),
]

# Runs in a copy of the page only; the page itself has no script and forbids any.
PROBE = """<script>
const problems = [];
window.addEventListener("error", event => problems.push(String(event.message || event.target.src)),
                        true);
document.addEventListener("securitypolicyviolation", event => problems.push(event.blockedURI));
window.addEventListener("load", () => {
  const images = [...document.images].map(image => {
    const box = image.getBoundingClientRect();
    return {width: image.naturalWidth, shown: box.width, right: box.right,
            inside: getComputedStyle(image).visibility === "visible" && box.height > 0};
  });
  const found = {problems, images, width: document.documentElement.clientWidth,
    needed: document.documentElement.scrollWidth, text: document.body.innerText.length,
    loaded: performance.getEntriesByType("resource").map(entry => entry.name.slice(0, 40))};
  document.documentElement.setAttribute("data-found", JSON.stringify(found));
});
</script>"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of some panels, with failures and text that must be escaped."""
    folder = tmp_path_factory.mktemp("report")
    summaries = []
    for name in PANELS:
        experiment = replace(load_builtin(name).quickly(), about="<b>1 < 2</b> & so on")
        store = store_of(
            folder / f"{name}.jsonl",
            experiment,
            lambda run: (
                {"failure": "Boom: <img src=x onerror=alert(1)>"}
                if run.algorithm == "ransac"
                else {"error": 1.0 + run.trial + len(run.algorithm) / 10}
            ),
        )
        summaries.append(summarise(experiment, store))
    images = {s.experiment.name: panel(s)["png"] for s in summaries}
    path = folder / "report.html"
    path.write_text(build_report(summaries, images), encoding="utf-8")
    return path


def open_in_browser(page: Path, profile: Path, *options: str) -> subprocess.CompletedProcess[str]:
    assert BROWSER, "no browser: install chromium, or set CHROMIUM to the path of one"
    return subprocess.run(
        [
            BROWSER,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--hide-scrollbars",
            f"--user-data-dir={profile}",
            "--enable-logging=stderr",
            *options,
            page.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )


def probe(page: Path, folder: Path, *options: str) -> dict[str, Any]:
    """Open a copy of the page that measures itself, and return what it found."""
    text = page.read_text(encoding="utf-8")
    assert "default-src 'none';" in text
    text = text.replace("default-src 'none';", "default-src 'none'; script-src 'unsafe-inline';")
    text = text.replace("<title>", PROBE + "<title>")
    copy = folder / "probed.html"
    copy.write_text(text, encoding="utf-8")
    dom = open_in_browser(copy, folder / "profile", "--dump-dom", *options).stdout
    found = re.search(r'data-found="([^"]*)"', dom)
    assert found, "the page did not finish loading"
    result: dict[str, Any] = json.loads(unescape(found[1]))
    return result


def test_the_page_leaves_nothing_on_the_console(page: Path, tmp_path: Path) -> None:
    done = open_in_browser(page, tmp_path / "profile", "--dump-dom")
    assert [line for line in done.stderr.splitlines() if "CONSOLE" in line] == []
    assert "outweigh: experiments" in done.stdout


def test_the_console_would_show_an_error(tmp_path: Path) -> None:
    bad = tmp_path / "bad.html"
    bad.write_text("<!DOCTYPE html><script>nothing.there()</script>")
    done = open_in_browser(bad, tmp_path / "profile", "--dump-dom")
    assert any("CONSOLE" in line for line in done.stderr.splitlines())


def test_every_image_is_there_and_nothing_comes_from_elsewhere(page: Path, tmp_path: Path) -> None:
    found = probe(page, tmp_path, "--window-size=1200,900")
    assert found["problems"] == []
    assert len(found["images"]) == len(PANELS)
    for image in found["images"]:
        assert image["width"] == 1050
        assert image["inside"]
        assert image["shown"] > 400
    assert all(name.startswith("data:") for name in found["loaded"])


def test_on_a_phone_nothing_sticks_out(page: Path, tmp_path: Path) -> None:
    found = probe(page, tmp_path, "--window-size=390,844")
    assert found["width"] < 600
    assert found["needed"] <= found["width"]
    assert all(image["right"] <= found["width"] for image in found["images"])
    assert all(image["shown"] > 250 for image in found["images"])
