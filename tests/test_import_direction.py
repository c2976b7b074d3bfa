"""Data flows one way: a module imports only from its own room and the rooms before it.

The checks read the source and import nothing, so they also hold for imports inside functions and
under ``TYPE_CHECKING``, and for libraries that are not installed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import pytest

PACKAGE = "outweigh"
SOURCE = Path(__file__).resolve().parents[1] / "src" / PACKAGE

# A room is a module or a folder directly under src/outweigh, here in the order in which data flows.
ROOMS = (
    "libraries",
    "constraints",
    "forms",
    "protocols",
    "norms",
    "optimise",
    "adversaries",
    "samples",
    "objectives",
    "fit",
    "research",
    "estimators",
    "files",
    "baselines",
    "displays",
    "experiments",
    "report",
    "cli",
    "__main__",
)

# What users look for on an estimator though it is made in a later room: imported when it is called.
FORWARD = {("estimators/base.py", "outweigh.report.write_report")}

# The only files, or folders with a closing slash, that may import each optional library.
HOMES = {
    "cvxpy": ("baselines/weights.py",),
    "dask": ("samples/dask_chunks.py", "files/parts.py"),
    "distributed": ("samples/dask_chunks.py", "files/parts.py"),
    "h5py": ("files/parts.py",),
    "jinja2": ("report/page.py", "cli/main.py"),
    "matplotlib": ("displays/", "experiments/figures.py"),
    "mpl_toolkits": ("displays/", "experiments/figures.py"),
    "pandas": ("files/",),
    "polars": ("files/",),
    "pyarrow": ("files/",),
    "tqdm": ("cli/progress.py",),
    "zarr": ("files/parts.py",),
}


@dataclass(frozen=True)
class Module:
    """One source file: where it is, what it is called, what it says."""

    path: str
    name: str
    tree: ast.Module

    @property
    def room(self) -> str:
        """The room it stands in; empty for the package's own ``__init__.py``."""
        return self.name.split(".")[1] if "." in self.name else ""

    @property
    def package(self) -> str:
        return self.name if self.path.endswith("__init__.py") else self.name.rpartition(".")[0]


@dataclass(frozen=True)
class Import:
    """One imported dotted name; the last part may be a module or a name inside one."""

    target: str
    line: int


@dataclass(frozen=True, order=True)
class Violation:
    path: str
    line: int
    problem: str
    remedy: str

    def __str__(self) -> str:
        return f"src/{PACKAGE}/{self.path}:{self.line}: {self.problem}\n    -> {self.remedy}"


def test_every_module_stands_in_a_known_room(modules: list[Module]) -> None:
    fail_if_any(unknown_rooms(modules))


def test_imports_point_only_to_earlier_rooms(modules: list[Module]) -> None:
    fail_if_any(backward_imports(modules))


def test_modules_of_one_room_import_each_other_without_cycles(modules: list[Module]) -> None:
    fail_if_any(cycles(modules))


def test_optional_libraries_are_imported_only_where_they_belong(modules: list[Module]) -> None:
    fail_if_any(stray_libraries(modules))


def test_only_the_command_line_prints(modules: list[Module]) -> None:
    fail_if_any(stray_prints(modules))


def unknown_rooms(modules: Iterable[Module]) -> Iterator[Violation]:
    """Files whose room is not in the list, so that nobody decided what it may import."""
    for module in modules:
        if module.room and module.room not in ROOMS:
            yield Violation(
                module.path,
                1,
                f"'{module.room}' is not a room",
                "move the file into an existing room, or name the room in ROOMS of "
                "tests/test_import_direction.py, after all it imports and before all its importers",
            )


def backward_imports(modules: list[Module]) -> Iterator[Violation]:
    """Imports of a later room, or of the package's own front door."""
    unlisted = {module.room for module in modules} - {"", *ROOMS}  # reported by unknown_rooms
    for module in modules:
        if not module.room or module.room in unlisted:
            continue
        for found in imports_of(module):
            parts = found.target.split(".")
            room = parts[1] if len(parts) > 1 else ""
            if parts[0] != PACKAGE or room in unlisted or (module.path, found.target) in FORWARD:
                continue
            if room not in ROOMS:
                yield Violation(
                    module.path,
                    found.line,
                    f"imports {found.target} through {PACKAGE}/__init__.py",
                    "import from the module that defines it; the version is libraries.version_of",
                )
            elif ROOMS.index(room) > ROOMS.index(module.room):
                yield Violation(
                    module.path,
                    found.line,
                    f"'{module.room}' imports {found.target}, but '{room}' is a later room",
                    "take it as an argument, declare what is needed in 'protocols', or move the "
                    f"shared code to a room no later than '{module.room}'",
                )


def cycles(modules: list[Module]) -> Iterator[Violation]:
    """One violation per group of modules of a room that import each other in a circle."""
    by_name = {module.name: module for module in modules}
    edges: dict[str, dict[str, int]] = {}
    for module in modules:
        neighbours = edges.setdefault(module.name, {})
        for found in imports_of(module):
            target = resolve(found.target, by_name)
            if target and target != module.name and by_name[target].room == module.room:
                neighbours.setdefault(target, found.line)

    reported: set[frozenset[str]] = set()
    for start in edges:
        circle = shortest_circle(start, edges)
        if circle and frozenset(circle) not in reported:
            reported.add(frozenset(circle))
            yield Violation(
                by_name[start].path,
                edges[start][circle[1]],
                f"imports in a circle: {' -> '.join(circle)}",
                "move what they share into a module that imports neither",
            )


def stray_libraries(modules: Iterable[Module]) -> Iterator[Violation]:
    """Optional libraries imported outside their home."""
    for module in modules:
        for found in imports_of(module):
            library = found.target.split(".")[0]
            homes = HOMES.get(library)
            if homes and not any(lives_in(module.path, home) for home in homes):
                yield Violation(
                    module.path,
                    found.line,
                    f"imports {library}",
                    f"{library} belongs in {' or '.join(homes)}: move the code that needs it there",
                )


def lives_in(path: str, home: str) -> bool:
    return path.startswith(home) if home.endswith("/") else path == home


def stray_prints(modules: Iterable[Module]) -> Iterator[Violation]:
    """Uses of ``print`` outside the command line."""
    for module in modules:
        if module.room == "cli":
            continue
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Name) and node.id == "print":
                yield Violation(
                    module.path,
                    node.lineno,
                    "uses print",
                    "use logging.getLogger(__name__), or return the text and let cli print it",
                )


def read_modules(root: Path) -> list[Module]:
    """Parse every Python file under `root`, the folder of the package."""
    modules = []
    for file in sorted(root.rglob("*.py")):
        path = file.relative_to(root)
        parts = path.parent.parts if path.name == "__init__.py" else path.with_suffix("").parts
        tree = ast.parse(file.read_text(encoding="utf-8"), filename=str(file))
        modules.append(Module(path.as_posix(), ".".join((PACKAGE, *parts)), tree))
    return modules


def imports_of(module: Module) -> Iterator[Import]:
    """All imports of a module, made absolute; ``from a import b`` counts as ``a.b``."""
    for node in ast.walk(module.tree):
        match node:
            case ast.Import(names=names):
                for alias in names:
                    yield Import(alias.name, node.lineno)
            case ast.ImportFrom(module=name, names=names, level=level):
                base = name or ""
                if level:
                    parents = module.package.split(".")
                    base = ".".join(parents[: len(parents) - level + 1] + ([name] if name else []))
                for alias in names:
                    yield Import(base if alias.name == "*" else f"{base}.{alias.name}", node.lineno)
            case ast.Call(
                func=ast.Name(id="import_module" | "__import__" | "library")
                | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(name)), *_],
            ) if not name.startswith("."):
                yield Import(name, node.lineno)


def resolve(target: str, by_name: dict[str, Module]) -> str | None:
    """Name the module that a dotted name leads to: itself, or the one it is defined in."""
    while target and target not in by_name:
        target = target.rpartition(".")[0]
    return target or None


def shortest_circle(start: str, edges: dict[str, dict[str, int]]) -> list[str] | None:
    """Shortest way from `start` back to itself, by breadth-first search."""
    paths = [[start]]
    seen: set[str] = set()
    while paths:
        longer = []
        for path in paths:
            for target in edges.get(path[-1], {}):
                if target == start:
                    return [*path, start]
                if target not in seen:
                    seen.add(target)
                    longer.append([*path, target])
        paths = longer
    return None


def fail_if_any(violations: Iterable[Violation]) -> None:
    found = sorted(violations)
    if found:
        pytest.fail("\n" + "\n".join(map(str, found)), pytrace=False)


@pytest.fixture(scope="module")
def modules() -> list[Module]:
    found = read_modules(SOURCE)
    assert found, f"no Python files under {SOURCE}"
    return found


# The checks themselves, on small packages that break one rule each.


def package(tmp_path: Path, files: dict[str, str]) -> list[Module]:
    for path, text in files.items():
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(dedent(text), encoding="utf-8")
    return read_modules(tmp_path)


@pytest.mark.parametrize("path", ["_helpers.py", "utils.py", "tools/sorting.py"])
def test_an_unlisted_room_is_reported(tmp_path: Path, path: str) -> None:
    (violation,) = unknown_rooms(package(tmp_path, {path: "", "__init__.py": "", "report.py": ""}))
    assert violation.path == path


@pytest.mark.parametrize(
    "statement",
    [
        "import outweigh.optimise.descent",
        "from outweigh import optimise",
        "from outweigh.optimise import descent",
        "from outweigh.optimise.descent import run",
        "from ..optimise import descent",
        "from ..optimise.descent import *",
        "from .. import optimise",
        "def f():\n    import outweigh.optimise",
        "importlib.import_module('outweigh.optimise')",
        "if TYPE_CHECKING:\n    from outweigh.optimise.descent import Loop",
    ],
)
def test_an_import_of_a_later_room_is_reported(tmp_path: Path, statement: str) -> None:
    files = {"norms/entrywise.py": f"import numpy\n{statement}", "optimise/descent.py": ""}
    (violation,) = backward_imports(package(tmp_path, files))
    assert violation.path == "norms/entrywise.py"
    assert violation.line in (2, 3)
    assert "later room" in violation.problem


@pytest.mark.parametrize(
    "statement",
    [
        "from outweigh.norms.entrywise import LargestEntries",
        "from ..norms import entrywise",
        "from . import steps",
        "import numpy.solvers",
    ],
)
def test_an_import_of_an_earlier_room_or_the_same_one_is_accepted(
    tmp_path: Path, statement: str
) -> None:
    files = {"norms/entrywise.py": "", "optimise/descent.py": statement, "optimise/steps.py": ""}
    assert not list(backward_imports(package(tmp_path, files)))


@pytest.mark.parametrize("statement", ["import outweigh", "from outweigh import RobustMean"])
def test_an_import_through_the_front_door_is_reported(tmp_path: Path, statement: str) -> None:
    files = {"__init__.py": "from outweigh.report import text", "report.py": statement}
    (violation,) = backward_imports(package(tmp_path, files))
    assert violation.path == "report.py"


def test_a_circle_inside_a_room_is_reported_once(tmp_path: Path) -> None:
    files = {
        "optimise/__init__.py": "from outweigh.optimise.descent import run",
        "optimise/descent.py": "from outweigh.optimise import steps",
        "optimise/steps.py": "from .trace import Trace",
        "optimise/trace.py": "\nfrom outweigh.optimise.descent import run",
    }
    (violation,) = cycles(package(tmp_path, files))
    assert "descent -> outweigh.optimise.steps -> outweigh.optimise.trace" in violation.problem


def test_a_module_that_imports_from_its_own_folder_s_front_door_is_reported(tmp_path: Path) -> None:
    files = {
        "norms/__init__.py": "from outweigh.norms.entrywise import LargestEntries",
        "norms/entrywise.py": "from outweigh.norms import spectral, KyFan",
        "norms/spectral.py": "",
    }
    (violation,) = cycles(package(tmp_path, files))
    assert violation.problem.count("outweigh.norms.entrywise") == 1


def test_a_chain_inside_a_room_is_no_circle(tmp_path: Path) -> None:
    files = {
        "norms/__init__.py": "from outweigh.norms import entrywise, spectral",
        "norms/entrywise.py": "from outweigh.norms import spectral",
        "norms/spectral.py": "import numpy",
    }
    assert not list(cycles(package(tmp_path, files)))


@pytest.mark.parametrize(
    ("statement", "path", "home"),
    [
        ("import dask.array as da", "samples/dense.py", "samples/dask_chunks.py"),
        ("from matplotlib import pyplot", "experiments/runs.py", "experiments/figures.py"),
        ("import matplotlib", "report.py", "displays/weights.py"),
        ("import pandas as pd", "estimators/base.py", "files/"),
        ("from polars import DataFrame", "__init__.py", "files/"),
        ("def f():\n    import cvxpy", "baselines/filtering.py", "baselines/weights.py"),
        ("x = library('h5py', 'it needs')", "files/reading.py", "files/parts.py"),
    ],
)
def test_an_optional_library_outside_its_home_is_reported(
    tmp_path: Path, statement: str, path: str, home: str
) -> None:
    (violation,) = stray_libraries(package(tmp_path, {path: statement, home: statement}))
    assert violation.path == path


def test_print_outside_the_command_line_is_reported(tmp_path: Path) -> None:
    files = {
        "cli.py": "print('fine')",
        "report.py": "'''print('in a docstring is fine')'''\n\nprint('not here')",
    }
    (violation,) = stray_prints(package(tmp_path, files))
    assert (violation.path, violation.line) == ("report.py", 3)
