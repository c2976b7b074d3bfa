from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from outweigh.experiments.spec import Experiment, parse

SMALL = """
title = "A small one"
adversary = "constant_bias"
algorithms = ["oracle", "median", "empirical"]
trials = 3
[fixed]
n_features = 6
n_nonzero = 2
contamination = 0.1
[grid]
n_samples = [20, 40]
[axes]
log_x = true
[quick]
values = [20]
trials = 2
"""


@pytest.fixture
def small() -> Experiment:
    return parse(SMALL, "small", "small.toml")


@pytest.fixture
def small_file(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    return path


@pytest.fixture
def edited(tmp_path: Path) -> Callable[..., Path]:
    """The small experiment with some text replaced, as a file."""

    def edit(*changes: tuple[str, str]) -> Path:
        text = SMALL
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        path = tmp_path / "edited.toml"
        path.write_text(text)
        return path

    return edit
