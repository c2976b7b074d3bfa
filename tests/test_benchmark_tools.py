"""The benchmarks that are tools: what fits answered before a change, and what the house is like."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks import freeze


@pytest.fixture(scope="module")
def tiny() -> dict[str, freeze.Record]:
    return freeze.run("tiny")


def test_a_study_that_is_saved_and_read_is_bitwise_equal(tiny, tmp_path):
    freeze.write(tmp_path / "frozen", tiny)
    assert "4 of 4 fits bitwise equal" in freeze.compare(
        freeze.read(tmp_path / "frozen"), tiny, 0.0
    )


def test_a_fit_that_moved_is_shown_with_its_error(tiny):
    name = "mean/tiny"
    record = tiny[name]
    facts = {**record.facts, "error": 2.0 * record.facts["error"]}
    after = {**tiny, name: replace(record, answer=record.answer + 1.0, facts=facts)}
    text = freeze.compare(tiny, after, 0.0)
    assert "3 of 4 fits" in text
    assert f"| {name} |" in text
    assert f"worst 2.000 ({name})" in text


def test_a_fit_that_moved_less_than_the_tolerance_is_not_shown(tiny):
    moved = {name: replace(r, answer=r.answer * (1.0 + 1e-9)) for name, r in tiny.items()}
    assert "4 of 4 fits equal within 1e-06" in freeze.compare(tiny, moved, 1e-6)
    assert "0 of 4 fits bitwise equal" in freeze.compare(tiny, moved, 0.0)


def test_a_fit_that_raises_is_compared_by_what_it_says(tiny):
    name = "pca/tiny"
    after = {**tiny, name: freeze.Record(facts={"raised": "ValueError: no"})}
    assert "- -> ValueError: no" in freeze.compare(tiny, after, 1e-6)


def test_fits_are_chosen_by_a_part_of_their_name():
    assert freeze.matches("sparse mean/tiny", "mean/t*y")
    assert not freeze.matches("sparse mean/tiny", "pca")
