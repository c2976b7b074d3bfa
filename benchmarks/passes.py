"""How many passes a chunked fit makes: over attacks, what is known, and the budget."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import dask
import dask.array as da
import numpy as np

from benchmarks import WHITE
from benchmarks.options import asked
from benchmarks.pairing import RESULTS
from benchmarks.tables import FIRST_SEED, Line, show
from outweigh import RobustMean, RobustPCA, RobustSparseMean, RobustSparsePCA
from outweigh.adversaries import MEAN_ADVERSARIES, make

N, D, K, CHUNKS = 20_000, 400, 10, 10
SHARE = 0.1
SEEDS = range(FIRST_SEED, FIRST_SEED + 3)
# The rows take 64 MB: room for a working set of half the columns, and for next to nothing.
COLUMNS, SMALL = 30 * 2**20, 4 * 2**20


def attacked(name: str) -> list[np.ndarray]:
    """Return samples with a sparse mean of which a tenth of the rows is wrong, one a seed."""
    return [make(name, N, D, K, SHARE, random_state=seed).X for seed in SEEDS]


def few_features() -> np.ndarray:
    """Return rows with so few features that a mean descends on all of them: 40 MB."""
    return make("wrong_support", 5 * N, D // 8, K, SHARE, random_state=FIRST_SEED).X


def spike() -> np.ndarray:
    """Return rows with one sparse component of which a tenth has another."""
    rng = np.random.default_rng(FIRST_SEED)
    X = rng.standard_normal((N, D))
    X[:, :K] += rng.standard_normal((N, 1))
    X[: int(SHARE * N), 3 * K : 4 * K] += 2.0 * rng.standard_normal((int(SHARE * N), 1))
    return X


def passes(make_estimator: Any, X: np.ndarray, budget: int, **options: Any) -> int:
    """Return the passes of one fit."""
    chunked = da.from_array(X, chunks=(len(X) // CHUNKS, -1))
    with dask.config.set({"outweigh.gathered-bytes": budget}):
        return int(make_estimator(**options).fit(chunked).n_passes_)


def line(name: str, make_estimator: Any, samples: list[np.ndarray], **options: Any) -> Line:
    """Return the most passes with the share known and unknown, and with other budgets."""
    known = {**options, "contamination": SHARE}
    X = samples[0]
    return {
        "fit": name,
        "known": max(passes(make_estimator, X, COLUMNS, **known) for X in samples),
        "auto": max(passes(make_estimator, X, COLUMNS, **options) for X in samples),
        "known, all fits": passes(make_estimator, X, 4 * X.nbytes, **known),
        "known, 4 MB": passes(make_estimator, X, SMALL, **known),
    }


def cases() -> dict[str, Callable[[], Line]]:
    """Return what makes each line of the table, by its name."""
    means = {
        "sparse mean": partial(RobustSparseMean, n_nonzero=K, **WHITE),
        "mean": partial(RobustMean, **WHITE),
    }
    units = np.logspace(0, 2, D)

    def scaled() -> list[np.ndarray]:
        return [X * units for X in attacked("wrong_support")]

    fits: dict[str, tuple[Any, Callable[[], list[np.ndarray]], dict[str, Any]]] = {
        f"{fit}, {name}": (make_estimator, partial(attacked, name), {})
        for fit, make_estimator in means.items()
        for name in MEAN_ADVERSARIES
    }
    fits["sparse mean, scales unknown"] = (means["sparse mean"], scaled, {"scale": "auto"})
    fits["sparse mean, scales given"] = (means["sparse mean"], scaled, {"scale": units})
    fits["mean, scales unknown"] = (means["mean"], scaled, {"scale": "auto"})
    for name in ("wrong_support", "linear_hiding", "tail_flipping", "duplicates"):
        fit = f"sparse mean, n_nonzero unknown, {name}"
        fits[fit] = (RobustSparseMean, partial(attacked, name), dict(WHITE))
    fits["mean, 50 features"] = (means["mean"], lambda: [few_features()], {})
    fits["one component"] = (RobustPCA, lambda: [spike()], {})
    fits["one sparse component"] = (RobustSparsePCA, lambda: [spike()], {"n_nonzero": K})
    return {
        name: lambda name=name, fit=fit: line(name, fit[0], fit[1](), **fit[2])
        for name, fit in fits.items()
    }


def main(argv: list[str]) -> None:
    """Count, print and save; lines that are not asked for stay as they are."""
    known = cases()
    wanted = asked(
        __name__,
        __doc__,
        argv,
        "fit",
        fit={"nargs": "*", "help": "lines of the table; all when none given"},
    ).fit or list(known)
    path = RESULTS / "passes.json"
    saved = json.loads(path.read_text()) if path.exists() else []
    lines = {row["fit"]: row for row in saved}
    with dask.config.set(scheduler="synchronous"):
        lines |= {name: known[name]() for name in wanted}
    show("passes", [lines[name] for name in known if name in lines])
