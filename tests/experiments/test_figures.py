from __future__ import annotations

import struct
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from outweigh.experiments.algorithms import ALGORITHMS
from outweigh.experiments.figures import panel
from outweigh.experiments.spec import GUIDES, Experiment
from outweigh.experiments.summary import Summary, summarise
from outweigh.libraries import MissingLibrary
from tests.experiments.made_up import store_of

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def summary(small: Experiment, tmp_path: Path) -> Summary:
    store = store_of(tmp_path / "r", small, lambda run: {"error": 1.0 + run.trial})
    return summarise(small, store)


def pixels(png: bytes) -> tuple[int, int]:
    assert png.startswith(b"\x89PNG")
    width, height = struct.unpack(">II", png[16:24])
    return width, height


def test_a_panel_is_one_column_wide_at_print_resolution(summary: Summary) -> None:
    width, height = pixels(panel(summary)["png"])
    assert width == 3.5 * 300
    assert height > width / 2


def test_the_drawing_holds_a_curve_in_the_colour_of_every_algorithm(summary: Summary) -> None:
    svg = panel(summary)["svg"].decode()
    ET.fromstring(svg)
    for name in summary.experiment.algorithms:
        assert ALGORITHMS[name].colour.lower() in svg


def test_the_axis_is_called_as_the_experiment_says(summary: Summary) -> None:
    named = replace(summary, experiment=replace(summary.experiment, axes={"label": "Rows in all"}))
    assert "<!-- Rows in all -->" in panel(named)["svg"].decode()
    assert "<!-- Number of samples $n$ -->" in panel(summary)["svg"].decode()


@pytest.mark.parametrize("guide", GUIDES)
def test_a_rate_of_the_paper_is_drawn_with_its_name(summary: Summary, guide: str) -> None:
    label = GUIDES[guide][0]
    guided = replace(summary, experiment=replace(summary.experiment, axes={"guide": guide}))
    assert f"<!-- {label} -->" in panel(guided)["svg"].decode()
    assert f"<!-- {label} -->" not in panel(summary)["svg"].decode()


def test_the_rates_are_those_of_the_paper(small: Experiment) -> None:
    point = next(small.points())  # eps = 0.1, k = 2
    rates = {name: rate(point) for name, (_, rate) in GUIDES.items()}
    assert rates["worst_case"] == pytest.approx(0.1 * np.sqrt(np.log(10.0)))
    assert rates["one_row_at_a_time"] == pytest.approx(0.1 * np.sqrt(2.0))


def test_the_same_records_give_the_same_bytes(summary: Summary) -> None:
    assert panel(summary) == panel(summary)


@pytest.mark.parametrize("errors", [(0.0, 0.0, 0.0), (1e-12, 1.0, 1e6), (2.0, 2.0, 2.0)])
def test_any_errors_can_be_drawn(
    small: Experiment, tmp_path: Path, errors: tuple[float, float, float]
) -> None:
    store = store_of(tmp_path / "r", small, lambda run: {"error": errors[run.trial]})
    assert pixels(panel(summarise(small, store))["png"])[0] == 1050


def test_a_panel_without_any_result_is_empty_but_drawn(small: Experiment, tmp_path: Path) -> None:
    store = store_of(tmp_path / "r", small, lambda run: {"failure": "Boom: x"})
    assert pixels(panel(summarise(small, store))["png"])[0] == 1050


def test_an_algorithm_that_failed_everywhere_has_no_curve(
    small: Experiment, tmp_path: Path
) -> None:
    store = store_of(
        tmp_path / "r",
        small,
        lambda run: {"failure": "Boom: x"} if run.algorithm == "median" else {"error": 1.0},
    )
    svg = panel(summarise(small, store))["svg"].decode()
    assert ALGORITHMS["median"].colour.lower() not in svg


def test_an_option_of_the_adversary_can_be_the_axis(small: Experiment, tmp_path: Path) -> None:
    experiment = replace(
        small,
        grid={"bias": (-2.0, 0.5)},
        axes={},
        fixed={**small.fixed, "n_samples": 20},
    )
    store = store_of(tmp_path / "r", experiment, lambda run: {"error": 1.0})
    assert panel(summarise(experiment, store))["png"]


def test_without_matplotlib_the_message_says_what_to_install(
    summary: Summary, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingLibrary, match=r"pip install 'outweigh\[plot\]'"):
        panel(summary)


def test_drawing_does_not_change_the_users_settings(summary: Summary) -> None:
    import matplotlib

    before = dict(matplotlib.rcParams)
    panel(summary)
    assert dict(matplotlib.rcParams) == before
