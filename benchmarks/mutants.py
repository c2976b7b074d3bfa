"""Small changes to a module, one at a time: which of them does its own test file not notice?

A mutant is the module with one comparison, sign, number, `and`, `not` or returned value changed.
It is *killed* when a test fails, or takes far longer than before; else it *survives*, and either a
test is missing or the change makes no difference: the mutant is *equivalent*, and stands with the
reason in benchmarks/equivalent.txt. Nothing is written into the source: tests run on a copy of it.

    python -m benchmarks mutants MODULE ... [--sample N] [--seed S] [--tests PATH ...]

MODULE is a path below src/outweigh, such as norms/floor; its tests are tests/norms/test_floor.py,
others of that name, and laws of that name. Results are kept in .mutants, so that a run that was
interrupted goes on; another source or test file begins anew. Each module has its line in the table
`mutants`, which is saved.
"""

from __future__ import annotations

import ast
import compileall
import copy
import difflib
import gc
import hashlib
import json
import multiprocessing
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import pytest
from threadpoolctl import threadpool_limits

from benchmarks.options import asked
from benchmarks.pairing import RESULTS
from benchmarks.tables import Line, show

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src"
KEPT = ROOT / ".mutants"
EQUIVALENT = ROOT / "benchmarks" / "equivalent.txt"
# Seconds that the tests of a module may take.
LONGEST = 300.0

SWAPPED: dict[type, type] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
# What a value that is returned may be for its negation to be one too.
NEGATED = {"bool": ast.Not, "float": ast.USub, "int": ast.USub, "Array": ast.USub}


@dataclass(frozen=True)
class Mutant:
    """A module with one change."""

    line: int
    source: str

    def difference(self, original: str) -> str:
        """Return the lines that changed."""
        lines = difflib.ndiff(original.splitlines(), self.source.splitlines())
        return "\n".join(line for line in lines if line[0] in "+-")

    def is_equivalent(self, module: str, original: str) -> bool:
        """Whether the changed line is listed as one that makes no difference."""
        added = [line[1:] for line in self.difference(original).splitlines() if line[0] == "+"]
        changed = " ".join(" ".join(added).split())
        listed = EQUIVALENT.read_text().splitlines() if EQUIVALENT.exists() else []
        return f"{module}: {changed}" in (line.partition("  # ")[0] for line in listed)


def mutants(source: str) -> list[Mutant]:
    """Return all mutants of a module, from top to bottom.

    Examples
    --------
    >>> for mutant in mutants("def f(x: int) -> bool:\\n    return x < 1\\n"):
    ...     print(mutant.source.splitlines()[1])
        return (not x < 1)
        return (x <= 1)
        return x < (2)
        return x < (0)
    """
    tree = ast.parse(source)
    starts = [0]
    for line in source.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = []
    for node, changed in _changes(tree):
        # Offsets are in bytes. What is between stays as it is: comments, and the other lines.
        begin = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + node.end_col_offset  # type: ignore[operator]
        data = source.encode()
        text = f"({ast.unparse(changed)})".encode()
        found.append(Mutant(node.lineno, (data[:begin] + text + data[end:]).decode()))
    return found


def _changes(node: ast.AST, returns: str = "") -> Iterator[tuple[ast.expr, ast.expr]]:
    """Give expressions below a node, each with what it becomes; what says nothing is left out."""
    if isinstance(node, ast.FunctionDef):
        returns = ast.unparse(node.returns) if node.returns else ""
    if isinstance(node, ast.Return) and node.value and returns in NEGATED:
        yield node.value, ast.UnaryOp(NEGATED[returns](), node.value)
    if isinstance(node, ast.expr):
        yield from ((node, changed) for changed in _changed(node))
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list"):
            continue
        for child in value if isinstance(value, list) else [value]:
            docstring = isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)
            if isinstance(child, ast.AST) and not docstring and not _is_message(child):
                yield from _changes(child, returns)


def _is_message(node: ast.AST) -> bool:
    """Whether it only says what is wrong, to a person."""
    return isinstance(node, ast.Raise | ast.JoinedStr)


def _changed(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.Compare):
        for i, operator in enumerate(node.ops):
            if type(operator) in SWAPPED:
                changed = copy.deepcopy(node)
                changed.ops[i] = SWAPPED[type(operator)]()
                yield changed
    elif isinstance(node, ast.BinOp | ast.BoolOp) and type(node.op) in SWAPPED:
        changed_op = copy.deepcopy(node)
        changed_op.op = SWAPPED[type(node.op)]()
        yield changed_op
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        yield node.operand
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
        yield ast.Constant(node.value + 1)
        yield ast.Constant(node.value - 1)
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield ast.Constant(not node.value)


def own_tests(module: str) -> list[Path]:
    """Return the test files of a module, the laws of its name among them."""
    *rooms, name = module.split("/")
    folders = (ROOT.joinpath("tests", *rooms), ROOT / "tests" / "laws")
    return [path for folder in folders for path in sorted(folder.glob(f"test_{name}*.py"))]


def statements(source: str) -> dict[int, range]:
    """Return for each line the lines of the innermost statement that it is part of, without a body.

    Examples
    --------
    >>> statements("if (a and\\n    b):\\n    c()\\n")
    {1: range(1, 3), 2: range(1, 3), 3: range(3, 4)}
    """
    found: dict[int, range] = {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            end = body[0].lineno if body else node.end_lineno + 1  # type: ignore[operator]
            found |= dict.fromkeys(range(node.lineno, end), range(node.lineno, end))
    return found


@dataclass
class Quick:
    """Runs the tests of a module with each of its mutants, in forks of one process.

    A plugin of pytest: tests are collected once. A fork changes the functions and the constants of
    the module where they are, and runs first the tests that run the changed statement, the quickest
    first. What was imported by others cannot be changed so: who survives is tried again by `Trial`.

    Attributes
    ----------
    module, source : str
    chosen : dict of Mutant
        By their numbers.
    killed : Path
        Where the numbers of those that a test notices are written.
    """

    module: str
    source: str
    chosen: dict[int, Mutant]
    killed: Path
    seen: dict[str, tuple[float, set[int]]] = field(default_factory=dict)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        started = time.monotonic()
        self._watch(session)
        limit = int(5.0 + 5.0 * (time.monotonic() - started))
        same = Mutant(1, self.source)
        if not self._forked(session, same, limit):
            session.testsfailed += 1
            return True
        for number, mutant in self.chosen.items():
            if not self._forked(session, mutant, limit):
                with self.killed.open("a") as file:
                    file.write(f"{json.dumps([number, False])}\n")
        return True

    def _watch(self, session: pytest.Session) -> None:
        """Learn how long each test takes and which lines it runs, in a fork as well."""
        ours, theirs = multiprocessing.Pipe(duplex=False)
        file = sys.modules[self._name].__file__
        if os.fork() == 0:
            seen = {}
            for item, after in _pairs(session.items):
                lines: set[int] = set()

                def trace(frame: Any, event: str, _: object, lines: set[int] = lines) -> Any:
                    if frame.f_code.co_filename != file:
                        return None
                    lines.add(frame.f_lineno)
                    return trace

                started = time.monotonic()
                sys.settrace(trace)
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
                sys.settrace(None)
                seen[item.nodeid] = (time.monotonic() - started, lines)
            theirs.send(seen)
            os._exit(0)
        theirs.close()
        self.seen = ours.recv()
        os.wait()

    def _forked(self, session: pytest.Session, mutant: Mutant, seconds: int) -> bool:
        """Whether all tests pass with a mutant, in time."""
        pid = os.fork()
        if pid:
            return os.waitpid(pid, 0)[1] == 0
        signal.alarm(seconds)
        lines = set(statements(self.source)[mutant.line]) if mutant.source != self.source else set()
        try:
            replace_source(sys.modules[self._name], self.source, mutant.source)
            items = sorted(session.items, key=lambda item: self._rank(item, lines))
            for item, after in _pairs(items):
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
                if session.testsfailed:
                    break
        except BaseException:
            os._exit(1)
        os._exit(min(session.testsfailed, 1))

    def _rank(self, item: pytest.Item, lines: set[int]) -> tuple[bool, float]:
        seconds, run = self.seen[item.nodeid]
        return not run & lines, seconds

    @property
    def _name(self) -> str:
        return f"outweigh.{self.module.replace('/', '.')}"


def _pairs(items: list[pytest.Item]) -> Iterator[tuple[pytest.Item, pytest.Item | None]]:
    return zip(items, [*items[1:], None], strict=True)


def replace_source(module: ModuleType, before: str, after: str) -> None:
    """Give the functions of a module the code of another source, and its constants the values.

    Both sources have the same functions in the same order. Classes stay what they are.
    """
    file = str(module.__file__)
    old, new = (list(_codes(compile(text, file, "exec"))) for text in (before, after))
    place = {(code.co_qualname, code.co_firstlineno): i for i, code in enumerate(old)}
    functions, kept = _functions(file), dict(vars(module))
    exec(new[0], vars(module))
    number = {id(code): i for i, code in enumerate(new)}
    fresh = {number[id(f.__code__)]: f for f in _functions(file) if id(f.__code__) in number}
    for function in functions:
        i = place[function.__code__.co_qualname, function.__code__.co_firstlineno]
        function.__code__ = new[i]
        if i in fresh:
            function.__defaults__ = fresh[i].__defaults__
            function.__kwdefaults__ = fresh[i].__kwdefaults__
    # So do instances of its classes, which others know by identity.
    vars(module).update(
        {
            name: value
            for name, value in kept.items()
            if callable(value) or type(value).__module__ == module.__name__
        }
    )


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _codes(each)


def _functions(file: str) -> list[FunctionType]:
    every = (each for each in gc.get_objects() if isinstance(each, FunctionType))
    return [each for each in every if each.__code__.co_filename == file]


class Trial:
    """A copy of the library in which one module changes, and the tests that run on it."""

    def __init__(self, folder: Path, module: str, tests: list[Path]) -> None:
        shutil.copytree(SOURCE, folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
        self.file = folder / "src" / "outweigh" / f"{module}.py"
        compileall.compile_dir(folder / "src", quiet=1)
        # Two mutants may be of one size and second, which a cache would take for one.
        for cached in self.file.parent.glob(f"__pycache__/{self.file.stem}.*"):
            cached.unlink()
        self.arguments = _arguments(folder / "src", tests)
        # Each begins with these loaded, and with nothing of ours.
        self.processes = multiprocessing.get_context("forkserver")
        self.processes.set_forkserver_preload(
            ["pytest", "scipy.stats", "scipy.sparse.linalg", "sklearn.utils"]
        )

    def passes(self, source: str, seconds: float) -> bool:
        """Whether all tests pass with this source, in time."""
        self.file.write_text(source)
        process = self.processes.Process(target=_run_tests, args=(self.arguments,))
        process.start()
        process.join(seconds)
        if process.is_alive():
            process.kill()
            process.join()
        return process.exitcode == 0


def _arguments(source: Path, tests: list[Path]) -> list[str]:
    return [
        *("-x", "-q", "-p", "no:cacheprovider", "--rootdir", str(ROOT)),
        *("-o", f"pythonpath={source} {ROOT}", *map(str, tests)),
    ]


def _run_tests(arguments: list[str], *plugins: object) -> None:
    sys.dont_write_bytecode = True
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    with threadpool_limits(1):
        os._exit(pytest.main(arguments, plugins=list(plugins)))


def main(argv: list[str] | None = None) -> int:
    arguments = asked(
        __name__,
        __doc__,
        argv,
        "modules",
        modules={"nargs": "+", "metavar": "MODULE"},
        sample={"type": int, "help": "try so many of each, drawn at random"},
        seed=0,
        tests={"type": Path, "nargs": "+", "help": "instead of the module's own"},
    )
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    saved = RESULTS / "mutants.json"
    before = json.loads(saved.read_text()) if saved.exists() else []
    lines = {line["module"]: line for line in before}
    for given in arguments.modules:
        module = given.removesuffix(".py").replace(".", "/")
        line = study(module, arguments.tests, arguments.sample, arguments.seed)
        if line is None:
            return 2
        if not arguments.tests:
            lines[module] = line
            show("mutants", [lines[name] for name in sorted(lines)])
    return 0


def study(module: str, tests: list[Path] | None, sample: int | None, seed: int) -> Line | None:
    """Try the mutants of a module, print those that survive, and return its line of the table.

    None where the tests fail without any change.
    """
    tests = tests or own_tests(module)
    source = (SOURCE / "outweigh" / f"{module}.py").read_text()
    every = mutants(source)
    chosen = list(range(len(every)))
    if sample is not None and sample < len(every):
        chosen = sorted(random.Random(seed).sample(chosen, sample))
    content = "".join([source, *(path.read_text() for path in tests)])
    kept = KEPT / f"{hashlib.sha256(content.encode()).hexdigest()[:16]}.jsonl"
    KEPT.mkdir(exist_ok=True)
    known: dict[int, bool] = {}
    if kept.exists():
        known = dict(json.loads(line) for line in kept.read_text().splitlines())
    names = ", ".join(os.path.relpath(path, ROOT) for path in tests)
    print(f"{module}: {len(every)} mutants, {len(chosen)} tried, by {names}", flush=True)
    todo = {number: every[number] for number in chosen if number not in known}
    if todo:
        quick = multiprocessing.get_context("spawn").Process(
            target=_run_tests, args=(_arguments(SOURCE, tests), Quick(module, source, todo, kept))
        )
        quick.start()
        quick.join()
        if quick.exitcode:
            print("the tests fail without any change", file=sys.stderr)
            return None
    known = (
        dict(json.loads(line) for line in kept.read_text().splitlines()) if kept.exists() else {}
    )
    equivalent, left = 0, 0
    with tempfile.TemporaryDirectory() as folder:
        trial = Trial(Path(folder), module, tests)
        for number in chosen:
            mutant = every[number]
            if number not in known:
                known[number] = trial.passes(mutant.source, LONGEST)
                with kept.open("a") as file:
                    file.write(f"{json.dumps([number, known[number]])}\n")
            if known[number] and mutant.is_equivalent(module, source):
                equivalent += 1
            elif known[number]:
                left += 1
                print(f"\n{module}.py:{mutant.line} survives (mutant {number})")
                print(mutant.difference(source), flush=True)
    different = max(len(chosen) - equivalent, 1)
    print(f"\n{module}: {left} of {different} survive ({left / different:.0%})", flush=True)
    return {
        "module": module,
        "mutants": str(len(every)),
        "tried": str(len(chosen)),
        "equivalent": str(equivalent),
        "survive": f"{left} ({left / different:.1%})",
    }
