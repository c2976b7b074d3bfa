"""What the house is like: its lines, what one fit walks through, its names and its switches.

python -m benchmarks house [--files]

- Lines of code hold a token that is neither a comment nor part of a docstring.
- A function of a fit is a code object under ``src/outweigh`` that was entered while ``fit`` ran:
  functions, methods, lambdas and comprehensions, each once. What ran while a module was imported
  does not count: a smaller sample is fitted first. Contamination is left at its default.
- A switch is a parameter of a function, or a field of a class, in the core, annotated ``bool`` or
  ``bool | None``. The core is every room but those of `AROUND_THE_CORE`.
- The tuned numbers of a fit are the fields of ``fit/tuning.py`` that it reads. At the end all of
  them are counted, and beside them the numbers that other modules of ``fit/`` keep for themselves:
  limits of rounding and of memory, steps and sizes of samples, and such as should be in the table.
"""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import io
import sys
import tokenize
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import outweigh
from benchmarks.options import asked
from benchmarks.tables import FIRST_SEED, format_lines
from outweigh import RobustMean, RobustPCA, RobustSparseMean, RobustSparsePCA
from outweigh.adversaries import make
from outweigh.fit.tuning import TUNING, Tuning

ROOT = Path(outweigh.__file__).parent
AROUND_THE_CORE = {"adversaries", "baselines", "cli", "displays", "experiments", "files", "report"}
# A sample on which a sparse fit chooses features, and of which a tenth is wrong.
N, D, K, SHARE = 3000, 300, 10, 0.1
NOT_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def sources() -> Iterator[tuple[Path, str]]:
    """Yield the path of every module, from the root of the library, and its text."""
    for path in sorted(ROOT.rglob("*.py")):
        yield path.relative_to(ROOT), path.read_text()


def room(path: Path) -> str:
    """Return the folder that a module is in, or its own name if it is in none."""
    return path.parts[0].removesuffix(".py")


# Lines


def count_lines(text: str) -> int:
    """Return the lines of code, without docstrings, comments and blank lines."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in NOT_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            docstring = node.body[0]
            lines.difference_update(range(docstring.lineno, (docstring.end_lineno or 0) + 1))
    return len(lines)


def lines_by_room(counts: dict[Path, int]) -> list[dict[str, str]]:
    """Return a line for each room, the largest first, and one for all."""
    rooms: dict[str, list[int]] = {}
    for path, count in counts.items():
        rooms.setdefault(room(path), []).append(count)
    ordered = sorted(rooms.items(), key=lambda item: -sum(item[1]))
    return [
        {"room": name, "lines": f"{sum(found):,}", "files": str(len(found))}
        for name, found in [*ordered, ("all", list(counts.values()))]
    ]


# Fits


def entered(estimator: Any, X: Any) -> set[CodeType]:
    """Return the code objects of the library that a fit enters."""
    found: set[CodeType] = set()

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            found.add(frame.f_code)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Put back what was there: a debugger or a measurement of coverage may be listening.
        earlier = sys.getprofile()
        sys.setprofile(note)
        try:
            estimator.fit(X)
        finally:
            sys.setprofile(earlier)
    return {
        code
        for code in found
        if Path(code.co_filename).is_relative_to(ROOT) and code.co_name != "<module>"
    }


@contextlib.contextmanager
def listening() -> Iterator[set[str]]:
    """Hand out the names of the numbers that are read while the context lasts."""
    names: set[str] = set()

    class Heard(Tuning):
        __slots__ = ()

        def __getattribute__(self, name: str) -> Any:
            names.add(name)
            return super().__getattribute__(name)

    object.__setattr__(TUNING, "__class__", Heard)
    try:
        yield names
    finally:
        object.__setattr__(TUNING, "__class__", Tuning)


def fits(n: int = N, d: int = D, k: int = K) -> list[dict[str, str]]:
    """Return how many files and functions each kind of fit enters."""
    cases = {
        "sparse mean": (RobustSparseMean(k), "wrong_support"),
        "mean": (RobustMean(), "wrong_support"),
        "sparse PCA": (RobustSparsePCA(1, k), "spiked_mixture"),
        "PCA": (RobustPCA(1), "spiked_mixture"),
        "sparse mean, Dask": (RobustSparseMean(k), "wrong_support"),
    }
    if importlib.util.find_spec("dask") is None:
        del cases["sparse mean, Dask"]
    table = []
    for number, (name, (estimator, attack)) in enumerate(cases.items()):
        # Each sample of a shape of its own: what is remembered by shape would not be entered.
        small, X = (
            make(attack, size + 10 * number, d, k, SHARE, random_state=FIRST_SEED).X
            for size in (n // 2, n)
        )
        with chunks() if "Dask" in name else contextlib.nullcontext(lambda rows: rows) as given:
            entered(estimator, given(small))
            codes = entered(estimator, given(X))
            with listening() as numbers:
                estimator.fit(given(X))
        paths = [Path(code.co_filename).relative_to(ROOT) for code in codes]
        rooms: dict[str, list[Path]] = {}
        for path in paths:
            rooms.setdefault(room(path), []).append(path)
        ordered = sorted(rooms.items(), key=lambda item: -len(item[1]))
        each = ", ".join(f"{name} {len(set(found))}/{len(found)}" for name, found in ordered)
        counts = {
            "files": str(len(set(paths))),
            "functions": str(len(paths)),
            "tuned numbers": str(len(numbers)),
        }
        table.append({"fit": name, **counts, "by room": each})
    return table


@contextlib.contextmanager
def chunks() -> Iterator[Any]:
    """Hand out what makes rows a Dask array, computed in this thread: the one listened to."""
    import dask
    import dask.array as da

    with dask.config.set(scheduler="synchronous"):
        yield lambda rows: da.from_array(rows, chunks=(len(rows) // 5, -1))


# Names and switches


def count_protocol_names() -> str:
    """Return how many names ``protocols.py`` offers."""
    for path, text in sources():
        if path.name == "protocols.py":
            for node in ast.parse(text).body:
                if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                    return str(len(ast.literal_eval(node.value)))
    return "-"


def switches(text: str) -> tuple[int, int]:
    """Return how many parameters and fields of a module are yes or no."""
    parameters = fields = 0
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.arguments):
            named = (*node.posonlyargs, *node.args, *node.kwonlyargs)
            parameters += sum(is_bool(argument.annotation) for argument in named)
        elif isinstance(node, ast.ClassDef):
            fields += sum(
                is_bool(statement.annotation)
                for statement in node.body
                if isinstance(statement, ast.AnnAssign)
            )
    return parameters, fields


def is_bool(annotation: ast.expr | None) -> bool:
    return annotation is not None and ast.unparse(annotation) in ("bool", "bool | None")


def count_tuned_numbers() -> str:
    """Return the number of fields of the dataclasses in ``fit/tuning.py``."""
    path = ROOT / "fit" / "tuning.py"
    if not path.exists():
        return "-"
    classes = (node for node in ast.parse(path.read_text()).body if isinstance(node, ast.ClassDef))
    return str(
        sum(
            isinstance(statement, ast.AnnAssign)
            for found in classes
            if any("dataclass" in ast.unparse(decorator) for decorator in found.decorator_list)
            for statement in found.body
        )
    )


def count_other_numbers() -> int:
    """Return how many numbers the modules of ``fit/`` but ``tuning.py`` assign to names."""
    return sum(
        sum(isinstance(part, ast.Name) for part in ast.walk(statement.targets[0]))
        for path, text in sources()
        if room(path) == "fit" and path.name != "tuning.py"
        for statement in ast.parse(text).body
        if isinstance(statement, ast.Assign) and is_number(statement.value)
    )


def is_number(value: ast.expr) -> bool:
    """Tell numbers, tuples of them, and what is computed from them alone."""
    if isinstance(value, ast.Constant):
        return isinstance(value.value, int | float)
    parts = [part for part in ast.iter_child_nodes(value) if isinstance(part, ast.expr)]
    kinds = ast.Tuple | ast.UnaryOp | ast.BinOp
    return isinstance(value, kinds) and all(map(is_number, parts))


def main(argv: list[str]) -> None:
    """Print the tables."""
    arguments = asked(__name__, __doc__, argv, files=(False, "also the lines of every file"))
    counts = {path: count_lines(text) for path, text in sources()}
    core = [switches(text) for path, text in sources() if room(path) not in AROUND_THE_CORE]
    parameters, fields = (sum(column) for column in zip(*core, strict=True))
    if arguments.files:
        rows = [{"file": str(path), "lines": str(count)} for path, count in counts.items()]
        print(format_lines(rows), end="\n\n")
    print(format_lines(lines_by_room(counts)), end="\n\n")
    print(format_lines(fits()), end="\n\n")
    print(f"names in the protocols: {count_protocol_names()}")
    print(f"switches in the core: {parameters + fields} ({parameters} parameters, {fields} fields)")
    print(f"tuned numbers: {count_tuned_numbers()}; others in fit: {count_other_numbers()}")
