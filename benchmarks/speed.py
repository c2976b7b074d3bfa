"""Time and memory of a fit, in units of one float64 product X'X on the same data and of peers.

python -m benchmarks speed [CASE ...] [--repeats N] [--authors PATH]

Processor time on one thread, the least of several calls, and that of the first, with white noise
declared; a column has the defaults, which look at units and correlations besides. Cases that are
run replace their lines in the saved tables; the others stay, as do ratios to programs of the
authors where these are not given.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks import WHITE
from benchmarks.authors import load_authors
from benchmarks.options import asked
from benchmarks.pairing import FIRST_SEED, RESULTS, best_of
from benchmarks.tables import format_lines
from outweigh import RobustMean, RobustPCA, RobustSparseMean, RobustSparsePCA
from outweigh.adversaries import ADVERSARIES
from outweigh.baselines import FilterSparseMean
from outweigh.baselines.plain import SparseGradientDescent
from outweigh.norms.entrywise import hard_threshold

CONTAMINATION = 0.1
# Above this many features a float64 product is timed in blocks of columns, as no one would hold it.
BLOCKED_ABOVE = 6000

ESTIMATORS: Mapping[str, Callable[..., Any]] = {
    "sparse mean": lambda k, eps: RobustSparseMean(k, contamination=eps, **WHITE),
    "dense mean": lambda k, eps: RobustMean(contamination=eps, **WHITE),
    "sparse PCA": lambda k, eps: RobustSparsePCA(n_nonzero=k, contamination=eps),
    "dense PCA": lambda k, eps: RobustPCA(contamination=eps),
}
DEFAULTS: Mapping[str, Callable[..., Any]] = {
    **ESTIMATORS,
    "sparse mean": lambda k, eps: RobustSparseMean(k, contamination=eps),
    "dense mean": lambda k, eps: RobustMean(contamination=eps),
}


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
    kind: str = "sparse mean"
    plain: bool = False

    def estimator(self, contamination: float | str = CONTAMINATION) -> Any:
        """Return a fresh estimator."""
        return ESTIMATORS[self.kind](self.k, contamination)


CASES = (
    Case("large", "linear_hiding", 12000, 1000, 40, 1.0, 1 / 4, plain=True),
    Case("medium", "linear_hiding", 2000, 1000, 40, 1.5, 1 / 2, plain=True),
    *(Case(f"k={k}", "linear_hiding", 5000, 300, k, None, 1.0) for k in (1, 21, 61, 121, 181)),
    Case("wide", "shifted", 3000, 5000, 20, 0.6),
    Case("very wide", "shifted", 2000, 20000, 20, 0.55),
    Case("tiny", "tail_flipping", 5000, 10, 1, None, 2.0),
    Case("dense mean", "dense", 5000, 1000, 1000, 2.0, kind="dense mean"),
    Case("sparse PCA", "spiked_mixture", 4000, 1000, 20, 5.0, kind="sparse PCA"),
    Case("dense PCA", "dense_spike", 300, 20000, 20000, kind="dense PCA"),
)


def make_data(model: str, n: int, d: int, k: int, seed: int) -> tuple[np.ndarray, ...]:
    """Return rows, the mask of the clean ones and the true mean or component."""
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


def run_case(
    case: Case, repeats: int, authors: Mapping[str, Callable[..., Any]]
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Return what was measured on one case: against the product, and against peers."""
    X, inliers, truth = make_data(case.model, case.n, case.d, case.k, FIRST_SEED)
    repeats = repeats if case.d <= BLOCKED_ABOVE else 1
    first = best_of(1, lambda: case.estimator().fit(X))
    product = product_time(X, repeats)
    ours = best_of(repeats, lambda: case.estimator().fit(X))
    fitted = case.estimator().fit(X)
    row = {
        "case": case.name,
        "n": str(case.n),
        "d": str(case.d),
        "k": str(case.k),
        "seconds": ours,
        "ours / X'X": ours / product,
        "target": _target(case.to_product),
        "first call / X'X": first / product,
        "auto / known": best_of(repeats, lambda: case.estimator("auto").fit(X)) / ours,
        "defaults / X'X": best_of(
            repeats, lambda: DEFAULTS[case.kind](case.k, CONTAMINATION).fit(X)
        )
        / product,
        "memory / X": peak_memory(lambda: case.estimator().fit(X)) / X.nbytes,
        "evaluations": str(fitted.n_iter_),
        "error / oracle": _relative_error(case, fitted, X[inliers], truth),
    }
    if case.kind != "sparse mean" or case.d > 1000:
        return row, None
    peers: dict[str, Callable[[], object]] = {
        "filter": lambda: FilterSparseMean(case.k, contamination=CONTAMINATION).fit(X)
    }
    if case.plain:
        plain = SparseGradientDescent(case.k, contamination=CONTAMINATION)
        peers["paper's algorithm"] = lambda: plain.fit(X)
    if case.to_filter is not None and authors:
        peers["authors' RME_sp"] = lambda: authors["RME_sp"](X, case.k, CONTAMINATION)
        peers["authors' GD"] = lambda: authors["GDAlgs"](X, case.k, CONTAMINATION)
    slow = ("paper's algorithm", "authors' GD")
    against: dict[str, Any] = {"case": case.name, "target, filter": _target(case.to_filter)}
    for name in ("filter", "authors' RME_sp", "authors' GD", "paper's algorithm"):
        found = ""
        if name in peers:
            found = ours / best_of(1 if name in slow else repeats, peers[name])
        against[f"ours / {name}"] = found
    return row, against


def _target(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"


def _relative_error(case: Case, fitted: Any, clean: np.ndarray, truth: np.ndarray) -> float | str:
    """Return the error of a mean in units of the oracle's; components have studies of their own."""
    if not case.kind.endswith("mean"):
        return ""
    oracle = clean.mean(axis=0)
    oracle = oracle if case.kind == "dense mean" else hard_threshold(oracle, case.k)
    return float(np.linalg.norm(fitted.location_ - truth) / np.linalg.norm(oracle - truth))


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
            model = RobustSparseMean(k, contamination=CONTAMINATION, **WHITE)
            model.fit(X)
            times.append(best_of(repeats, lambda model=model, X=X: model.fit(X)))
        slope = float(np.polyfit(np.log(values), np.log(times), 1)[0])
        rows.append({"growth in": name, "exponent": slope, "target": target})
    return rows


def fixed_costs(repeats: int) -> list[dict[str, Any]]:
    """Return what does not depend on the size of the data: the import, and a fit of few values."""
    both = "import time, sklearn.base, sklearn.utils.validation as v; s = time.perf_counter()"
    code = f"{both}; import outweigh; print(time.perf_counter() - s)"
    imports = [
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout)
        for _ in range(max(repeats, 5))
    ]
    X = make_data("tail_flipping", 50, 10, 1, FIRST_SEED)[0]

    def fit(max_iter: int) -> Any:
        # Of the paper's steps all are taken, whatever they reach.
        model = RobustSparseMean(1, contamination=CONTAMINATION, solver="paper", **WHITE)
        return model.set_params(max_iter=max_iter).fit(X)

    short = best_of(20 * repeats, lambda: fit(1))
    more = best_of(20 * repeats, lambda: fit(20)) - short
    return [
        {"what": "import outweigh after scikit-learn", "ms": 1e3 * min(imports), "target": "200"},
        {"what": "a fit of 50 x 10 values, one evaluation", "ms": 1e3 * short, "target": "1"},
        {
            "what": "each further evaluation",
            "ms": 1e3 * more / (fit(20).n_iter_ - 1),
            "target": "",
        },
    ]


def main(argv: list[str]) -> None:
    """Time the cases, print their ratios and save them."""
    names = ", ".join(case.name for case in CASES)
    known = f"any of {names}, growth, fixed; all when none given"
    arguments = asked(
        __name__,
        __doc__,
        argv,
        "case",
        case={"nargs": "*", "help": known},
        repeats=3,
        authors={"help": "path to a checkout of the authors' Sparse-GD repository"},
    )
    authors = load_authors(arguments.authors) if arguments.authors else {}
    wanted = arguments.case or [*(case.name for case in CASES), "growth", "fixed"]
    began = time.perf_counter()
    with threadpool_limits(1):
        for case in CASES:
            if case.name in wanted:
                row, against = run_case(case, arguments.repeats, authors)
                keep("speed", "case", [row])
                if against is not None:
                    keep("speed-peers", "case", [against])
        if "growth" in wanted:
            keep("speed-growth", "growth in", growth(arguments.repeats))
        if "fixed" in wanted:
            keep("speed-fixed", "what", fixed_costs(arguments.repeats))
    print(f"\n{time.perf_counter() - began:.0f} s")


def keep(name: str, key: str, rows: list[dict[str, Any]]) -> None:
    """Print rows, and write them to a saved table in place of those of the same name."""
    print(f"\n{format_lines(rows)}", flush=True)
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{name}.json"
    saved = json.loads(path.read_text()) if path.exists() else []
    fresh = {row[key]: row for row in rows}
    lines = []
    for row in saved:
        if list(row) == list(rows[0]):
            new = fresh.pop(row[key], row)
            # A blank is a peer that was not run, not one that is gone.
            lines.append({name: row[name] if value == "" else value for name, value in new.items()})
    lines += fresh.values()
    order = {case.name: place for place, case in enumerate(CASES)}
    lines.sort(key=lambda row: order.get(row[key], 0))
    path.write_text(json.dumps(lines, indent=1) + "\n")
