"""The samples of the study on real tables: as they come, documented, planted, and Gaussian.

Each is drawn from a seed that is a hash of its name, so neither the order nor what else is run
changes it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks.real_tables import Collection, Table, half

CLASS_SHARES = (0.05, 0.1, 0.2)
ATTACK_SHARES = (0.1, 0.2)
# Of one class, so that the other can be planted in it at every share, and so many pairs of a table.
LEAST_OF_A_CLASS, MOST_PAIRS = 25, 6
# Deviations by which clusters are shifted and cells are wrong.
SHIFT, GROSS = 6.0, 10.0
# Rows for each column that Gaussian samples have at least; how many samples in each half, and how
# many of them are attacked.
ROWS_PER_COLUMN, MOST_GAUSSIAN, MOST_ATTACKED = 5, 30, 4
# Directions of less than this share of the largest variance, in units of the columns, are not seen.
RANK = 1e-10


@dataclass(frozen=True)
class Ellipsoid:
    """Where clean rows are: their mean, and what makes them white where they vary at all."""

    mean: np.ndarray
    whitening: np.ndarray

    @classmethod
    def of(cls, mean: np.ndarray, covariance: np.ndarray) -> Ellipsoid:
        """Return the ellipsoid of a mean and a covariance, which may be singular."""
        units, values, vectors = spectrum(covariance)
        return cls(mean, (vectors / np.sqrt(values)) / units[:, None])

    def distance(self, location: np.ndarray) -> float:
        """Return the Mahalanobis distance of a location from the mean."""
        return float(np.linalg.norm((location - self.mean) @ self.whitening))


@dataclass(frozen=True)
class Case:
    """A sample, which of its rows are wrong, and where its clean rows are, if that is known."""

    kind: str
    name: str
    table: str
    X: np.ndarray
    wrong: np.ndarray | None = None
    truth: Ellipsoid | None = None

    @property
    def half(self) -> str:
        """Return the half of the tables that this one's table is in."""
        return half(self.table)

    @property
    def key(self) -> str:
        """Return the name that results are kept under."""
        return f"{self.kind}: {self.name}"

    def fingerprint(self) -> str:
        """Return what differs where a package brings other numbers."""
        wrong = b"" if self.wrong is None else self.wrong.tobytes()
        return hashlib.sha256(np.ascontiguousarray(self.X).tobytes() + wrong).hexdigest()[:8]


def cases(tables: Collection) -> Iterator[Case]:
    """Yield all samples, those of one kind together."""
    for table in tables.ordinary:
        for name, X in parts(table):
            yield Case("ordinary", name, table.name, X)
    for table, wrong in tables.documented:
        yield _labelled("documented", table.name, table.name, table.X, wrong)
    for table in tables.ordinary:
        if table.labels is not None:
            yield from _other_class(table)
    gaussian = list(_gaussian(tables))
    for table in tables.ordinary:
        if table.labels is not None:
            name, clean = list(parts(table))[1]
            yield from _attacked(name, table.name, clean)
    for part in ("chosen", "apart"):
        for case in [case for case in gaussian if case.half == part][:MOST_ATTACKED]:
            yield from _attacked(f"Gaussian {case.name}", case.table, case.X)
    yield from gaussian


def parts(table: Table) -> Iterator[tuple[str, np.ndarray]]:
    """Yield a table, and each of its classes with the columns that vary there."""
    yield table.name, table.X
    for label, X in _classes(table).items():
        yield f"{table.name} {label}", X[:, np.ptp(X, axis=0) > 0]


def _classes(table: Table) -> dict[str, np.ndarray]:
    if table.labels is None:
        return {}
    groups = {str(label): table.X[table.labels == label] for label in np.unique(table.labels)}
    return {label: X for label, X in groups.items() if len(X) >= LEAST_OF_A_CLASS}


def _seeded(name: str) -> np.random.Generator:
    return np.random.default_rng(list(hashlib.sha256(name.encode()).digest()))


def spectrum(covariance: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the deviations of the columns, and the spectrum of their correlations above zero.

    Directions are found among correlations, so that they do not depend on the units of the columns.
    """
    units = np.sqrt(np.diag(covariance))
    units = np.where(units > 0, units, 1.0)
    values, vectors = np.linalg.eigh(covariance / np.outer(units, units))
    seen = values > RANK * values[-1]
    return units, values[seen], vectors[:, seen]


# Wrong rows


def _labelled(kind: str, name: str, table: str, X: np.ndarray, wrong: np.ndarray) -> Case:
    clean = X[~wrong]
    truth = Ellipsoid.of(clean.mean(axis=0), np.cov(clean, rowvar=False))
    return Case(kind, name, table, X, wrong, truth)


def _mixed(kind: str, name: str, table: str, clean: np.ndarray, wrong: np.ndarray) -> Case:
    """Return a case of clean rows and wrong ones in a random order, with the columns that vary."""
    X = np.vstack([clean, wrong])
    marked = np.arange(len(X)) >= len(clean)
    order = _seeded(f"order of {kind}: {name}").permutation(len(X))
    X = X[:, np.ptp(clean, axis=0) > 0]
    return _labelled(kind, name, table, X[order], marked[order])


def _other_class(table: Table) -> Iterator[Case]:
    """Yield each class with rows of the next one planted in it."""
    groups = _classes(table)
    names = list(groups)
    for number, genuine in enumerate(names[:MOST_PAIRS]):
        other = names[(number + 1) % len(names)]
        for share in CLASS_SHARES:
            name = f"{table.name} {other} in {genuine}"
            rng = _seeded(f"class {share}: {name}")
            count = min(round(share / (1.0 - share) * len(groups[genuine])), len(groups[other]))
            kept = min(round((1.0 - share) / share * count), len(groups[genuine]))
            clean = groups[genuine][rng.permutation(len(groups[genuine]))[:kept]]
            wrong = groups[other][rng.permutation(len(groups[other]))[:count]]
            yield _mixed(f"class {share:g}", name, table.name, clean, wrong)


def _attacked(name: str, table: str, clean: np.ndarray) -> Iterator[Case]:
    """Yield clean rows together with rows that were made wrong, in several ways."""
    for share in ATTACK_SHARES:
        count = round(share / (1.0 - share) * len(clean))
        for attack, make in ATTACKS.items():
            kind = f"{attack} {share:g}"
            rng = _seeded(f"{kind}: {name}")
            yield _mixed(kind, name, table, clean, make(clean, count, rng))


def _shifted(clean: np.ndarray, count: int, rng: np.random.Generator, axis: int) -> np.ndarray:
    """Return clean rows, drawn again, moved along the least (0) or the most (-1) variable axis."""
    units, values, vectors = spectrum(np.cov(clean, rowvar=False))
    step = SHIFT * np.sqrt(values[axis]) * vectors[:, axis] * units
    return clean[rng.integers(len(clean), size=count)] + step


def low(clean: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return a cluster along the direction in which clean rows vary least."""
    return _shifted(clean, count, rng, 0)


def high(clean: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return a cluster along the direction in which clean rows vary most."""
    return _shifted(clean, count, rng, -1)


def point(clean: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return one point `count` times, a few deviations beyond where most clean rows are."""
    units, values, vectors = spectrum(np.cov(clean, rowvar=False))
    direction = rng.standard_normal(len(values))
    radius = np.sqrt(len(values)) + SHIFT
    white = radius * direction / np.linalg.norm(direction)
    place = clean.mean(axis=0) + (vectors @ (np.sqrt(values) * white)) * units
    return np.tile(place, (count, 1))


def cells(clean: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return clean rows, drawn again, with a fifth of their values grossly wrong."""
    wrong = clean[rng.integers(len(clean), size=count)]
    d = clean.shape[1]
    for row in wrong:
        hit = rng.permutation(d)[: -(-d // 5)]
        row[hit] += GROSS * clean.std(axis=0)[hit] * rng.choice([-1.0, 1.0], size=len(hit))
    return wrong


ATTACKS = {"low": low, "high": high, "point": point, "cells": cells}


# Nothing wrong


def _gaussian(tables: Collection) -> Iterator[Case]:
    """Yield Gaussian rows with the mean and the covariance of a table, as many as it has."""
    taken = {"chosen": 0, "apart": 0}
    # By a hash, so that the samples are of tables from all packages.
    ordered = sorted(
        tables.ordinary, key=lambda table: hashlib.sha256(table.name.encode()).digest()
    )
    for table in ordered:
        n, d = table.X.shape
        covariance = np.cov(table.X, rowvar=False)
        full = len(spectrum(covariance)[1]) == d
        if n < ROWS_PER_COLUMN * d or not full or taken[half(table.name)] == MOST_GAUSSIAN:
            continue
        taken[half(table.name)] += 1
        mean = table.X.mean(axis=0)
        units, values, vectors = spectrum(covariance)
        white = _seeded(f"gaussian: {table.name}").standard_normal((n, d))
        X = mean + (white * np.sqrt(values)) @ vectors.T * units
        truth = Ellipsoid.of(mean, covariance)
        yield Case("gaussian", table.name, table.name, X, np.zeros(n, dtype=bool), truth)
