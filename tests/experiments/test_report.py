from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from outweigh.experiments.spec import Experiment
from outweigh.experiments.summary import summarise
from outweigh.report import build_report
from tests.experiments.made_up import store_of

VOID = {"meta", "img", "link", "br"}
HOSTILE = "<script>alert(1)</script>\"'&"


class Checker(HTMLParser):
    """Notes tags, text and addresses, and that every tag is closed by its own."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.sources: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.sources += [v or "" for k, v in attrs if k in ("src", "href") and tag != "a"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def checked(page: str) -> Checker:
    checker = Checker()
    checker.feed(page)
    checker.close()
    assert checker.open == []
    return checker


@pytest.fixture
def ours(small: Experiment) -> Experiment:
    return replace(small, algorithms=("oracle", "outweigh", "median"))


def test_the_page_loads_nothing_from_elsewhere(ours: Experiment, tmp_path: Path) -> None:
    store = store_of(tmp_path / "r", ours, lambda run: {"error": 1.0})
    page = build_report([summarise(ours, store)], {"small": b"png"})
    checker = checked(page)
    assert checker.tags.count("img") == 1
    assert all(source.startswith("data:") for source in checker.sources)
    assert "http" not in page.replace("http-equiv", "")
    assert "script" not in checker.tags


def test_everything_that_is_not_markup_is_escaped(ours: Experiment, tmp_path: Path) -> None:
    hostile = replace(ours, title=HOSTILE, about=HOSTILE, source=HOSTILE)
    store = store_of(tmp_path / "r", hostile, lambda run: {"failure": HOSTILE})
    page = build_report([summarise(hostile, store)], {"small": b"png"})
    checker = checked(page)
    assert "script" not in checker.tags
    assert checker.text.count(HOSTILE) == 4 + 18


def test_medians_failures_missing_runs_and_versions_are_shown(
    ours: Experiment, tmp_path: Path
) -> None:
    outcomes = {0: {"error": 1.234}, 1: {"failure": "Boom: out of luck"}, 2: None}
    store = store_of(tmp_path / "r", ours, lambda run: outcomes[run.trial])
    text = checked(build_report([summarise(ours, store)], {})).text
    assert "1.234" in text
    assert "1 failed" in text
    assert text.count("Boom: out of luck") == 6
    assert "6 runs of this panel are not done yet" in text
    assert "outweigh 1.0" in text
    assert "No figure" in text


def test_points_where_a_rival_is_better_are_listed(ours: Experiment, tmp_path: Path) -> None:
    errors = {"oracle": 0.1, "outweigh": 0.5, "median": 0.25}
    store = store_of(tmp_path / "r", ours, lambda run: {"error": errors[run.algorithm]})
    text = checked(build_report([summarise(ours, store)], {})).text
    assert "coordinatewise median0.2500.500no" in text
    errors["median"] = 0.75
    store = store_of(tmp_path / "s", ours, lambda run: {"error": errors[run.algorithm]})
    text = checked(build_report([summarise(ours, store)], {})).text
    assert "At no point is the median error of a rival below ours." in text


def test_records_of_different_versions_are_pointed_out(ours: Experiment, tmp_path: Path) -> None:
    store = store_of(
        tmp_path / "r", ours, lambda run: {"error": 1.0, "versions": {"numpy": str(run.trial)}}
    )
    text = checked(build_report([summarise(ours, store)], {})).text
    assert "different versions" in text
