"""Every tuned number is named, explained, and has a value that switches its rule off."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import re
from pathlib import Path

import pytest

import outweigh
from outweigh.fit.tuning import TUNING, Tuning, tuned

FIELDS = [field.name for field in dataclasses.fields(Tuning)]


@pytest.mark.parametrize("name", FIELDS)
def test_every_number_is_explained(name: str) -> None:
    assert re.search(rf"^    (\w+, )*{name}(, \w+)*$", Tuning.__doc__ or "", re.MULTILINE)


def test_nothing_is_explained_that_is_no_number() -> None:
    explained = re.findall(r"^    (\w+(?:, \w+)*)$", Tuning.__doc__ or "", re.MULTILINE)
    assert {name for line in explained for name in line.split(", ")} - {"Attributes"} == set(FIELDS)


@pytest.mark.parametrize("field", dataclasses.fields(Tuning), ids=lambda field: field.name)
def test_every_number_has_another_one_that_switches_its_rule_off(
    field: dataclasses.Field[float],
) -> None:
    assert field.metadata["off"] != field.default


def test_every_number_is_read_somewhere() -> None:
    source = Path(outweigh.__file__).parent
    trees = [ast.parse(file.read_text(encoding="utf-8")) for file in source.rglob("*.py")]
    read = {
        node.attr for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Attribute)
    }
    assert set(FIELDS) <= read


def test_numbers_of_a_study_are_put_back() -> None:
    with contextlib.suppress(KeyboardInterrupt), tuned(groups=0, slow=0.5):
        assert (TUNING.groups, TUNING.slow) == (0, 0.5)
        raise KeyboardInterrupt
    assert Tuning() == TUNING


def test_numbers_cannot_be_changed_by_accident() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        TUNING.slow = 2.0  # type: ignore[misc]
