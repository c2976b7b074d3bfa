"""The benchmarks that are tools: frozen fits, lines of the house, and mutants."""

from __future__ import annotations

import ast
from dataclasses import replace
from types import ModuleType, SimpleNamespace

import pytest

from benchmarks import freeze, house, mutants


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


def test_lines_of_code_are_neither_docstrings_nor_comments_nor_blank():
    text = (
        '"""A module."""\n\n# Why.\ndef f(\n    x: int,\n) -> int:\n    """Say."""\n    return x\n'
    )
    assert house.count_lines(text) == 4


def test_switches_are_parameters_and_fields_annotated_bool():
    text = (
        "class A:\n    a: bool = True\n    b: int\n    def f(self, c: bool | None, *, d: str): ..."
    )
    assert house.switches(text) == (1, 1)


def test_a_fit_enters_some_functions_of_some_files_and_every_kind_is_listed():
    table = house.fits(n=200, d=10, k=2)
    assert {"sparse mean", "mean", "sparse PCA", "PCA"} <= {line["fit"] for line in table}
    assert all(1 < int(line["files"]) < int(line["functions"]) for line in table)


def test_numbers_are_told_from_what_is_computed_with_names():
    values = [statement.value for statement in ast.parse("1\n-2.5, 2**20\n'x'\nf(1)\na").body]
    assert [house.is_number(value) for value in values] == [True, True, False, False, False]


def test_the_house_is_printed(monkeypatch, capsys):
    monkeypatch.setattr(house, "fits", lambda: [{"fit": "mean", "files": "1", "functions": "1"}])
    house.main(["--files"])
    printed = capsys.readouterr().out
    assert "| protocols.py |" in printed
    assert "| all |" in printed
    assert "switches in the core: " in printed


MODULE = '''"""A docstring."""

def small(x: int, limit: int = 3) -> bool:
    """Another, with 1 in it."""
    if not x:
        raise ValueError(f"{x + 1}")
    return x + 1 <= limit and x != 7
'''


def test_each_mutant_has_one_change_where_a_test_could_see_it():
    found = mutants.mutants(MODULE)
    changes = [mutant.difference(MODULE).split("\n+ ")[-1].strip() for mutant in found]
    assert changes == [
        "def small(x: int, limit: int = (4)) -> bool:",
        "def small(x: int, limit: int = (2)) -> bool:",
        "if (x):",
        "return (not (x + 1 <= limit and x != 7))",
        "return (x + 1 <= limit or x != 7)",
        "return (x + 1 < limit) and x != 7",
        "return (x - 1) <= limit and x != 7",
        "return x + (2) <= limit and x != 7",
        "return x + (0) <= limit and x != 7",
        "return x + 1 <= limit and (x == 7)",
        "return x + 1 <= limit and x != (8)",
        "return x + 1 <= limit and x != (6)",
    ]
    assert [mutant.line for mutant in found] == [3] * 2 + [5] + [7] * 9


@pytest.mark.slow
def test_a_mutant_that_no_test_notices_is_printed_and_remembered(tmp_path, monkeypatch, capsys):
    source, tests = tmp_path / "src", tmp_path / "tests"
    (source / "outweigh").mkdir(parents=True)
    tests.mkdir()
    (source / "outweigh" / "__init__.py").touch()
    (source / "outweigh" / "small.py").write_text("def more(x):\n    return x + 1\n")
    (tests / "test_small.py").write_text(
        "from outweigh.small import more\n\n\ndef test_more():\n    assert more(1) > 0\n"
    )
    places = {"ROOT": tmp_path, "SOURCE": source, "KEPT": tmp_path / "kept", "RESULTS": tmp_path}
    for name, value in (places | {"EQUIVALENT": tmp_path / "equivalent.txt"}).items():
        monkeypatch.setattr(mutants, name, value)
    shown = []
    monkeypatch.setattr(mutants, "show", lambda name, lines: shown.append((name, *lines)))
    assert mutants.main(["small"]) == 0
    printed = capsys.readouterr().out
    assert "small: 2 of 3 survive (67%)" in printed
    assert "+     return x + (2)" in printed
    assert "+     return (x - 1)" not in printed
    (tmp_path / "equivalent.txt").write_text("small: return x + (2)  # positive too\n")
    monkeypatch.delattr(mutants.Trial, "passes")  # what is known is not tried again
    assert mutants.main(["small"]) == 0
    assert "small: 1 of 2 survive (50%)" in capsys.readouterr().out
    table = {"module": "small", "mutants": "3", "tried": "3", "equivalent": "1"}
    assert shown[-1] == ("mutants", {**table, "survive": "1 (50.0%)"})
    (tests / "test_small.py").write_text("def test_more():\n    assert False\n")
    assert mutants.main(["small"]) == 2


def test_tests_that_run_the_changed_statement_come_first_the_quickest_first():
    seen = {"a": (1.0, {2}), "b": (3.0, {5}), "c": (2.0, {4, 6})}
    quick = mutants.Quick("small", "", {}, None, seen)
    items = [SimpleNamespace(nodeid=name) for name in "abc"]
    ranked = sorted(items, key=lambda item: quick._rank(item, {4, 5}))
    assert [item.nodeid for item in ranked] == ["c", "b", "a"]


def test_a_module_is_changed_for_those_who_have_imported_from_it():
    before = "A = 1\n\n\ndef f(x, y=2):\n    return A * x + y\n\n\nclass C:\n    g = property(f)\n"
    module = ModuleType("small")
    module.__file__ = "small.py"
    exec(compile(before, "small.py", "exec"), vars(module))
    f, kind = module.f, module.C
    for old, new, expected in (("A = 1", "A = 3", 32), ("y=2", "y=5", 15), ("A * x", "A - x", -7)):
        mutants.replace_source(module, before, before.replace(old, new))
        assert (module.f, module.C) == (f, kind)
        assert f(10) == expected
