"""Means of rows of unknown covariance, made up: errors over the oracle's, and clean rows flagged.

    python -m benchmarks correlated cells [--seeds N] [--columns D ...]
                                                          covariances x sizes x shares x attacks
    python -m benchmarks correlated tails                 heavy and skewed columns
    python -m benchmarks correlated sparse                sparse means in series and factors
    python -m benchmarks correlated wide                  fewer rows than columns
    python -m benchmarks correlated time                  of the processor, over that of MinCovDet

With --columns only cells of so many are measured again; the others stay as they are stored.
All estimators are at their defaults. The oracle is the mean of the clean rows (its k largest
entries for a sparse mean), and errors are Mahalanobis distances from the truth; in the sparse part,
where the covariance is as wide as the table, they are plain.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr
from sklearn.covariance import MinCovDet
from threadpoolctl import threadpool_limits

from benchmarks.options import asked
from benchmarks.pairing import RESULTS
from benchmarks.tables import Line, medians, seeds, show
from outweigh import RobustMean, RobustSparseMean
from outweigh.norms.entrywise import hard_threshold

Array = NDArray[np.float64]

SHARES = (0.05, 0.1, 0.2, 0.3)
SIZES = ((300, 10), (1000, 20), (2000, 50), (5000, 100))
FAR_OFF, MANY = 1.3, 0.03


def series(d: int, correlation: float) -> Array:
    """Return the covariance of a stationary series."""
    return np.asarray(correlation ** np.abs(np.subtract.outer(range(d), range(d))))


def blocks(d: int) -> Array:
    """Return four blocks of correlation 0.7."""
    block = np.arange(d) * 4 // d
    return np.where(block[:, None] == block, 0.7, 0.0) + 0.3 * np.eye(d)


def factors(d: int) -> Array:
    """Return three factors and unit noise."""
    loadings = np.random.default_rng(5).standard_normal((d, 3))
    return np.asarray(loadings @ loadings.T + np.eye(d))


def conditioned(d: int) -> Array:
    """Return variances from 1 to 1000 along random axes."""
    axes = np.linalg.qr(np.random.default_rng(5).standard_normal((d, d)))[0]
    return np.asarray((axes * np.logspace(0, 3, d)) @ axes.T)


COVARIANCES: dict[str, Callable[[int], Array]] = {
    "series .6": lambda d: series(d, 0.6),
    "series .9": lambda d: series(d, 0.9),
    "blocks": blocks,
    "factors": factors,
    "condition 1000": conditioned,
}


@dataclass(frozen=True)
class Ellipsoid:
    """A covariance with its axes: values ascending, and square roots."""

    values: Array
    axes: Array
    root: Array

    @classmethod
    @cache
    def of(cls, name: str, d: int) -> Ellipsoid:
        covariance = COVARIANCES[name](d)
        return cls(*np.linalg.eigh(covariance), np.linalg.cholesky(covariance))

    def along(self, place: int) -> Array:
        """Return one deviation along an axis."""
        return np.asarray(np.sqrt(self.values[place]) * self.axes[:, place])

    def length(self, away: Array) -> float:
        return float(np.linalg.norm((away @ self.axes) / np.sqrt(self.values)))


def attacked(
    X: Array, wrong: slice, attack: str, shape: Ellipsoid, rng: np.random.Generator
) -> None:
    """Replace the wrong rows of X."""
    d, part = X.shape[1], X[wrong]
    if attack == "least variable":
        part += 6.0 * shape.along(0)
    elif attack == "most variable":
        part += 6.0 * shape.along(d - 1)
    elif attack == "one point":
        part[:] = 6.0 * shape.along(d // 2)
    elif attack == "three times as far":
        part *= 3.0
    elif attack == "all directions":
        part += 6.0 / np.sqrt(d) * sum(shape.along(j) for j in range(d))
    elif attack == "gross":
        places = rng.integers(0, d, len(part))
        part[np.arange(len(part)), places] += 50.0 * np.sqrt(shape.values[-1])


ATTACKS = (
    "clean",
    "least variable",
    "most variable",
    "one point",
    "three times as far",
    "all directions",
    "gross",
)


def one_cell(name: str, n: int, d: int, share: float, attack: str, seed: int) -> dict[str, float]:
    """Return error over the oracle's and the share of clean rows flagged, of one fit."""
    rng, shape = np.random.default_rng(seed), Ellipsoid.of(name, d)
    X = rng.standard_normal((n, d)) @ shape.root.T
    wrong = 0 if attack == "clean" else int(share * n)
    attacked(X, slice(wrong), attack, shape, rng)
    found = RobustMean().fit(X)
    ratio = shape.length(found.location_) / shape.length(X[wrong:].mean(axis=0))
    return {"ratio": ratio, "flagged": float(np.mean(found.predict(X[wrong:]) < 0))}


def stored(study: str) -> list[Line]:
    return list(json.loads((RESULTS / f"{study}.json").read_text()))


def run_cells(count: int, columns: list[int] | None) -> None:
    """Show the cells by size and share, and name the bad ones."""
    lines, bad = [], []
    for n, d in SIZES:
        if columns is not None and d not in columns:
            size = f"{n}x{d}"
            lines += [line for line in stored("correlated-cells") if size in line.values()]
            bad += [line for line in stored("correlated-bad") if size in str(line["cell"])]
            continue
        for share in SHARES:
            cells = []
            for name in COVARIANCES:
                for attack in ATTACKS if share == SHARES[0] else ATTACKS[1:]:
                    runs = [one_cell(name, n, d, share, attack, seed) for seed in seeds(count)]
                    cells.append(medians(runs))
                    if cells[-1]["ratio"] > FAR_OFF or cells[-1]["flagged"] > MANY:
                        bad.append({"cell": f"{name}, {attack}, {n}x{d}, {share}", **cells[-1]})
            ratios = [cell["ratio"] for cell in cells]
            line: Line = {
                "rows x columns": f"{n}x{d}",
                "share": f"{share}",
                "cells": len(cells),
                "median ratio": float(np.median(ratios)),
                "above 1.3": sum(ratio > FAR_OFF for ratio in ratios),
                "more than 3 % of clean rows flagged": sum(c["flagged"] > MANY for c in cells),
            }
            lines.append(line)
    show("correlated-cells", lines)
    show("correlated-bad", bad or [{"cell": "none"}])


LAWS: dict[str, Callable[[Array, np.random.Generator], Array]] = {
    "Gaussian": lambda Z, rng: Z,
    "t5": lambda Z, rng: Z / np.sqrt(rng.chisquare(5, (len(Z), 1)) / 5),
    "t3": lambda Z, rng: Z / np.sqrt(rng.chisquare(3, (len(Z), 1)) / 3),
    "lognormal": lambda Z, rng: np.exp(0.5 * Z),
    "exponential": lambda Z, rng: np.asarray(-log_ndtr(-Z)),
}


@cache
def moments(law: str, d: int) -> tuple[Array, Array]:
    """Return means and deviations of the columns, from very many rows."""
    rng = np.random.default_rng(0)
    X = LAWS[law](rng.standard_normal((200_000, d)) @ Ellipsoid.of("series .6", d).root.T, rng)
    return X.mean(axis=0), X.std(axis=0)


def one_of_law(law: str, n: int, d: int, share: float, seed: int) -> dict[str, float]:
    """Return what is flagged, found, and the error, of series whose columns follow a law."""
    rng, shape = np.random.default_rng(seed), Ellipsoid.of("series .6", d)
    X = LAWS[law](rng.standard_normal((n, d)) @ shape.root.T, rng)
    wrong = int(share * n)
    clean = X[wrong:]
    deviation = 1.4826 * np.median(np.abs(clean - np.median(clean, axis=0)), axis=0)
    direction = rng.standard_normal(d)
    X[:wrong] += 8.0 * deviation * direction / np.linalg.norm(direction)
    centre, spread = moments(law, d)
    found = RobustMean().fit(X)
    flags = found.predict(X) < 0

    def error(mean: Array) -> float:
        return float(np.linalg.norm((mean - centre) / spread))

    return {
        "ratio": error(found.location_) / error(clean.mean(axis=0)),
        "clean rows flagged": float(flags[wrong:].mean()),
        "found": float(flags[:wrong].mean()) if wrong else 1.0,
    }


def run_tails(count: int) -> None:
    """Show heavy and skewed laws, clean and with a tenth at eight robust deviations."""
    lines = []
    for law in LAWS:
        for n, d in ((1000, 20), (2000, 50)):
            for share in (0.0, 0.1):
                runs = [one_of_law(law, n, d, share, seed) for seed in seeds(count)]
                name = "a cluster of .1" if share else "clean"
                lines.append(
                    {"law": law, "rows x columns": f"{n}x{d}", "rows": name, **medians(runs)}
                )
    show("correlated-tails", lines)


SPARSE_ATTACKS = (
    "clean",
    "constant bias",
    "wrong support",
    "hidden at zero",
    "hidden at zero, neighbours",
    "linear hiding",
)


def sparse_attack(part: Array, truth: Array, other: Array, attack: str) -> None:
    """Replace clean rows by outliers: the library's attacks on sparse means, in units of noise.

    `other` is a mean of the same size on other features.
    """
    if attack == "constant bias":
        part -= 2.0
    elif attack == "wrong support":
        part += other - truth
    elif attack.startswith("hidden at zero"):
        part -= truth
    elif attack == "linear hiding":
        shifted, widened = np.array_split(part, 2)
        shifted += other
        widened[:] = truth + (widened - truth) * np.where(other != 0.0, 1.0, np.sqrt(2.0))


def one_sparse(name: str, n: int, d: int, attack: str, seed: int) -> dict[str, float]:
    """Return the error of a sparse mean over the oracle's, and the clean rows flagged."""
    k, rng, shape = 10, np.random.default_rng(seed), Ellipsoid.of(name, d)
    unit = np.sqrt(np.diagonal(shape.root @ shape.root.T))
    features = np.arange(d) if attack.endswith("neighbours") else rng.permutation(d)
    truth, other = np.zeros((2, d))
    truth[features[:k]], other[features[k : 2 * k]] = unit[features[:k]], unit[features[k : 2 * k]]
    X = rng.standard_normal((n, d)) @ shape.root.T + truth
    wrong = 0 if attack == "clean" else n // 10
    sparse_attack(X[:wrong], truth, other, attack)
    found = RobustSparseMean(k).fit(X)
    oracle = hard_threshold(X[wrong:].mean(axis=0) / unit, k) * unit
    ratio = np.linalg.norm(found.location_ - truth) / np.linalg.norm(oracle - truth)
    return {"ratio": float(ratio), "flagged": float(np.mean(found.predict(X[wrong:]) < 0))}


def run_sparse(count: int) -> None:
    """Show sparse means in series and factors."""
    lines = []
    for n, d in ((3000, 300), (500, 1000)):
        for name in ("series .6", "factors"):
            for attack in SPARSE_ATTACKS:
                runs = [one_sparse(name, n, d, attack, seed) for seed in seeds(count)]
                lines.append(
                    {"noise": name, "rows x columns": f"{n}x{d}", "attack": attack, **medians(runs)}
                )
    show("correlated-sparse", lines)


def one_wide(name: str, attack: str, seed: int) -> dict[str, float]:
    """Return the error over the oracle's with fewer rows than columns, and what is flagged."""
    n, d, wrong = 200, 500, 20
    rng, shape = np.random.default_rng(seed), Ellipsoid.of(name, d)
    X = rng.standard_normal((n, d)) @ shape.root.T
    attacked(X, slice(wrong), attack, shape, rng)
    found = RobustMean().fit(X)
    ratio = np.linalg.norm(found.location_) / np.linalg.norm(X[wrong:].mean(axis=0))
    flags = found.predict(X) < 0
    return {
        "ratio": float(ratio),
        "clean rows flagged": float(flags[wrong:].mean()),
        "found": float(flags[:wrong].mean()),
    }


def run_wide(count: int) -> None:
    """Show 200 rows of 500 columns."""
    lines = []
    for name in ("series .6", "factors"):
        for attack in ("most variable", "all directions", "gross", "three times as far"):
            runs = [one_wide(name, attack, seed) for seed in seeds(count)]
            lines.append({"noise": name, "attack": attack, **medians(runs)})
    show("correlated-wide", lines)


def run_time(count: int) -> None:
    """Show the time of a fit to 5000 rows of 50 columns, over that of MinCovDet to the same."""
    shape, lines = Ellipsoid.of("series .6", 50), []
    cases = [("Gaussian", attack) for attack in ATTACKS] + [(law, "clean") for law in LAWS][1:]
    with threadpool_limits(1):
        for law, attack in cases:
            runs = []
            for seed in seeds(count):
                rng = np.random.default_rng(seed)
                X = LAWS[law](rng.standard_normal((5000, 50)) @ shape.root.T, rng)
                attacked(X, slice(500), attack, shape, rng)
                start = time.process_time()
                RobustMean().fit(X)
                middle = time.process_time()
                MinCovDet(random_state=seed).fit(X)
                runs.append({"time": (middle - start) / (time.process_time() - middle)})
            lines.append({"law": law, "rows": attack, **medians(runs)})
    show("correlated-time", lines)


PARTS = {"tails": run_tails, "sparse": run_sparse, "wide": run_wide, "time": run_time}


def main(argv: list[str]) -> None:
    """Measure, print and save."""
    names = ["cells", *PARTS]
    arguments = asked(
        __name__,
        __doc__,
        argv,
        "part",
        part={"nargs": "*", "choices": [*names, []], "help": "all when none is given"},
        seeds=3,
        columns={"type": int, "nargs": "+", "metavar": "D", "help": "only these cells"},
    )
    for part in arguments.part or names:
        if part == "cells":
            run_cells(arguments.seeds, arguments.columns)
        else:
            PARTS[part](arguments.seeds)
