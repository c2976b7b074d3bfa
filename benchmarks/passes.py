"""How many passes a chunked fit makes: over attacks, what is known, and the budget."""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any

import dask
import dask.array as da
import numpy as np

from benchmarks import WHITE
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


def main(argv: list[str]) -> None:
    """Count, print and save."""
    argparse.ArgumentParser(prog="python -m benchmarks passes", description=__doc__).parse_args(
        argv
    )
    units = np.logspace(0, 2, D)
    means = {
        "sparse mean": partial(RobustSparseMean, n_nonzero=K, **WHITE),
        "mean": partial(RobustMean, **WHITE),
    }
    with dask.config.set(scheduler="synchronous"):
        rows = [
            line(f"{fit}, {name}", make_estimator, attacked(name))
            for fit, make_estimator in means.items()
            for name in MEAN_ADVERSARIES
        ]
        plain = attacked("wrong_support")
        scaled = [X * units for X in plain]
        rows += [
            line("sparse mean, scales unknown", means["sparse mean"], scaled, scale="auto"),
            line("sparse mean, scales given", means["sparse mean"], scaled, scale=units),
            line("mean, scales unknown", means["mean"], scaled, scale="auto"),
        ]
        rows += [
            line(
                f"sparse mean, n_nonzero unknown, {name}", RobustSparseMean, attacked(name), **WHITE
            )
            for name in ("wrong_support", "linear_hiding", "tail_flipping", "duplicates")
        ]
        rows += [
            line("mean, 50 features", means["mean"], [few_features()]),
            line("one component", RobustPCA, [spike()]),
            line("one sparse component", RobustSparsePCA, [spike()], n_nonzero=K),
        ]
    show("passes", rows)
