"""Small changes to a module, one at a time: which of them does its own test file not notice?

A mutant is the module with one comparison, sign, number, `and`, `not` or returned value changed.
It is *killed* when a test fails, or takes far longer than before; else it *survives*, and either a
test is missing or the change makes no difference (the mutant is *equivalent*). Nothing is written
into the source: tests run on a copy of it.

python -m benchmarks mutants MODULE [--sample N] [--seed S] [--tests PATH ...]

MODULE is a path below src/outweigh, such as norms/floor; its tests are tests/norms/test_floor.py,
others of that name, and laws of that name. Results are kept in .mutants, so that a run that was
interrupted goes on; another source or test file begins anew.
"""

from __future__ import annotations

import ast
import compileall
import copy
import difflib
import hashlib
import json
import multiprocessing
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.options import asked

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src"
KEPT = ROOT / ".mutants"

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


class Trial:
    """A copy of the library in which one module changes, and the tests that run on it."""

    def __init__(self, folder: Path, module: str, tests: list[Path]) -> None:
        shutil.copytree(SOURCE, folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
        self.file = folder / "src" / "outweigh" / f"{module}.py"
        compileall.compile_dir(folder / "src", quiet=1)
        # Two mutants may be of one size and second, which a cache would take for one.
        for cached in self.file.parent.glob(f"__pycache__/{self.file.stem}.*"):
            cached.unlink()
        self.arguments = [
            *("-x", "-q", "-p", "no:cacheprovider", "--rootdir", str(ROOT)),
            *("-o", f"pythonpath={folder / 'src'} {ROOT}", *map(str, tests)),
        ]
        # Each begins with these loaded, and with nothing of ours.
        self.processes = multiprocessing.get_context("forkserver")
        self.processes.set_forkserver_preload(["pytest", "scipy.stats", "sklearn.utils"])

    def passes(self, source: str, seconds: float | None = None) -> bool:
        """Whether all tests pass with this source, in time."""
        self.file.write_text(source)
        process = self.processes.Process(target=_run_tests, args=(self.arguments,))
        process.start()
        process.join(seconds)
        if process.is_alive():
            process.kill()
            process.join()
        return process.exitcode == 0


def _run_tests(arguments: list[str]) -> None:
    import pytest

    sys.dont_write_bytecode = True
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    os._exit(pytest.main(arguments))


def main(argv: list[str] | None = None) -> int:
    arguments = asked(
        __name__,
        __doc__,
        argv,
        "module",
        module={},
        sample={"type": int, "help": "try so many, drawn at random"},
        seed=0,
        tests={"type": Path, "nargs": "+", "help": "instead of the module's own"},
    )
    module = arguments.module.removesuffix(".py").replace(".", "/")
    tests = arguments.tests or own_tests(module)
    source = (SOURCE / "outweigh" / f"{module}.py").read_text()
    every = mutants(source)
    chosen = list(range(len(every)))
    if arguments.sample is not None and arguments.sample < len(every):
        chosen = sorted(random.Random(arguments.seed).sample(chosen, arguments.sample))
    content = "".join([source, *(path.read_text() for path in tests)])
    kept = KEPT / f"{hashlib.sha256(content.encode()).hexdigest()[:16]}.jsonl"
    KEPT.mkdir(exist_ok=True)
    known: dict[int, bool] = {}
    if kept.exists():
        known = dict(json.loads(line) for line in kept.read_text().splitlines())
    names = ", ".join(os.path.relpath(path, ROOT) for path in tests)
    print(f"{module}: {len(every)} mutants, {len(chosen)} tried, by {names}", flush=True)
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory() as folder:
        trial = Trial(Path(folder), module, tests)
        started = time.monotonic()
        if not trial.passes(source):
            print("the tests fail without any change", file=sys.stderr)
            return 2
        limit = 20.0 + 5.0 * (time.monotonic() - started)
        for number in chosen:
            if number not in known:
                known[number] = trial.passes(every[number].source, limit)
                with kept.open("a") as file:
                    file.write(f"{json.dumps([number, known[number]])}\n")
            if known[number]:
                print(f"\n{module}.py:{every[number].line} survives (mutant {number})")
                print(every[number].difference(source), flush=True)
    survived = sum(known[number] for number in chosen)
    print(f"\n{module}: {survived} of {len(chosen)} survive ({survived / max(len(chosen), 1):.0%})")
    return 0
