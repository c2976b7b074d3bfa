"""Time and memory of a fit, in units of one float64 product X'X on the same data and of peers."""

from __future__ import annotations

import argparse
import json
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.authors import load_authors
from benchmarks.pairing import FIRST_SEED, RESULTS, best_of
from outweigh import RobustMean, RobustSparseMean
from outweigh.adversaries import ADVERSARIES
from outweigh.baselines import FilterSparseMean
from outweigh.baselines.plain import SparseGradientDescent
from outweigh.selection import hard_threshold

CONTAMINATION = 0.1
# Above this many features a float64 product is timed in blocks of columns, as no one would hold it.
BLOCKED_ABOVE = 6000


@dataclass(frozen=True)
class Case:
    """Data, an estimator, and the ratios asked of it."""

    name: str
    model: str
    n: int
    d: int
    k: int
    to_product: float | None = None
    to_filter: float | None = None
    to_authors: float | None = None
    to_memory: float | None = None
    dense: bool = False
    plain: bool = False


CASES = (
    Case("large", "linear_hiding", 12000, 1000, 40, 2.0, 1 / 4, 1 / 30, plain=True),
    Case("medium", "linear_hiding", 2000, 1000, 40, 3.0, 1 / 2, plain=True),
    *(
        Case(f"k={k}", "linear_hiding", 5000, 300, k, None, 1.5 if k <= 100 else 3.0)
        for k in (1, 21, 61, 121, 181)
    ),
    Case("wide", "shifted", 3000, 5000, 20, 2.0, to_memory=2.0),
    Case("very wide", "shifted", 2000, 20000, 20, 2.0, to_memory=2.0),
    Case("tiny", "tail_flipping", 5000, 10, 1),
    Case("dense mean", "dense", 5000, 1000, 1000, 10.0, dense=True),
)


def make_data(model: str, n: int, d: int, k: int, seed: int) -> tuple[np.ndarray, ...]:
    """Return rows, the mask of the clean ones and the true mean."""
    if model in ADVERSARIES:
        sample = ADVERSARIES[model](n, d, k, CONTAMINATION, seed)
        return sample.X, sample.inliers, sample.truth
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    inliers = np.ones(n, dtype=bool)
    inliers[rng.permutation(n)[: round(CONTAMINATION * n)]] = False
    shifted = rng.permutation(d)[: min(k, 20)] if model == "shifted" else np.arange(d)
    X[np.ix_(~inliers, shifted)] += 2.0 if model == "shifted" else 0.3
    return X, inliers, np.zeros(d)


def product_time(X: np.ndarray, repeats: int) -> float:
    """Return the time of one float64 X'X."""
    d = X.shape[1]
    if d <= BLOCKED_ABOVE:
        return best_of(repeats, lambda: X.T @ X)

    def blocked() -> None:
        for start in range(0, d, 512):
            X[:, start : start + 512].T @ X

    return best_of(1, blocked)


def peak_memory(call: Callable[[], object]) -> int:
    """Return the most bytes allocated at once during a call, beyond what was there before."""
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak - before


def estimator(case: Case, contamination: float | str = CONTAMINATION) -> Any:
    """Return a fresh estimator for a case."""
    if case.dense:
        return RobustMean(contamination=contamination)
    return RobustSparseMean(case.k, contamination=contamination)


def run_case(case: Case, repeats: int, authors: Callable[..., Any] | None) -> dict[str, Any]:
    """Return what was measured on one case."""
    X, inliers, truth = make_data(case.model, case.n, case.d, case.k, FIRST_SEED)
    product = product_time(X, repeats)
    repeats = repeats if case.d <= BLOCKED_ABOVE else 1
    ours = best_of(repeats, lambda: estimator(case).fit(X))
    fitted = estimator(case).fit(X)
    oracle = X[inliers].mean(axis=0)
    oracle = oracle if case.dense else hard_threshold(oracle, case.k)
    row: dict[str, Any] = {
        "case": case.name,
        "n": case.n,
        "d": case.d,
        "k": case.k,
        "seconds": ours,
        "ours / product": ours / product,
        "auto / known": best_of(repeats, lambda: estimator(case, "auto").fit(X)) / ours,
        "error / oracle": float(
            np.linalg.norm(fitted.location_ - truth) / np.linalg.norm(oracle - truth)
        ),
        "memory / X": peak_memory(lambda: estimator(case).fit(X)) / X.nbytes,
        "evaluations": fitted.n_iter_,
    }
    if case.to_filter is not None:
        peer = FilterSparseMean(case.k, contamination=CONTAMINATION)
        row["ours / filter"] = ours / best_of(repeats, lambda: peer.fit(X))
    if case.plain:
        plain = SparseGradientDescent(case.k, contamination=CONTAMINATION)
        row["ours / plain"] = ours / best_of(1, lambda: plain.fit(X))
    if case.to_authors is not None and authors is not None:
        row["ours / authors"] = ours / best_of(1, lambda: authors(X, case.k, CONTAMINATION))
    row["targets"] = {
        "ours / product": case.to_product,
        "ours / filter": case.to_filter,
        "ours / authors": case.to_authors,
        "memory / X": case.to_memory,
        "auto / known": 2.0,
    }
    return row


def growth(repeats: int) -> list[dict[str, Any]]:
    """Return the exponents with which the time grows in n, d and k."""
    series = {
        "n": ([2000, 4000, 8000], lambda v: (v, 1000, 20), 1.1),
        "d": ([2000, 3000, 4500], lambda v: (2000, v, 20), 2.1),
        "k": ([10, 20, 40], lambda v: (2000, 2000, v), 1.2),
    }
    rows = []
    for name, (values, shape, target) in series.items():
        times = []
        for value in values:
            n, d, k = shape(value)
            X = make_data("shifted", n, d, k, FIRST_SEED)[0]
            model = RobustSparseMean(k, contamination=CONTAMINATION)
            times.append(best_of(repeats, lambda model=model, X=X: model.fit(X)))
        slope = float(np.polyfit(np.log(values), np.log(times), 1)[0])
        rows.append({"growth in": name, "exponent": slope, "target": target})
    return rows


def main(argv: list[str]) -> None:
    """Time the cases and print their ratios."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks speed", description=__doc__)
    names = ", ".join(case.name for case in CASES)
    parser.add_argument("case", nargs="*", help=f"any of {names}, growth; all when none given")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--authors", help="path to a checkout of the authors' Sparse-GD repository")
    arguments = parser.parse_args(argv)
    authors = load_authors(arguments.authors) if arguments.authors else None
    rows: list[dict[str, Any]] = []
    with threadpool_limits(1):
        for case in CASES:
            if not arguments.case or case.name in arguments.case:
                rows.append(run_case(case, arguments.repeats, authors))
                show(rows[-1])
        if not arguments.case or "growth" in arguments.case:
            found = growth(arguments.repeats)
            rows += found
            for row in found:
                show(row)
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / "speed.json"
    path.write_text(json.dumps(rows, indent=1) + "\n")
    print(f"saved {path}")


def show(row: dict[str, Any]) -> None:
    """Print one case on one line, each ratio with its target."""
    targets = row.get("targets", {})
    parts = []
    for key, value in row.items():
        if key == "targets":
            continue
        text = f"{value:.3g}" if isinstance(value, float) else str(value)
        bound = targets.get(key)
        parts.append(f"{key} {text}" + (f" (<= {bound:.3g})" if bound is not None else ""))
    print("; ".join(parts), flush=True)
