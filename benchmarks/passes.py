"""How many passes a chunked fit makes: over attacks, what is known, and the budget."""

from __future__ import annotations

import argparse
from typing import Any

import dask
import dask.array as da
import numpy as np

from benchmarks.tables import FIRST_SEED, Line, show
from outweigh import RobustMean, RobustPCA, RobustSparseMean, RobustSparsePCA
from outweigh.adversaries import make

N, D, K, CHUNKS = 20_000, 400, 10, 10
SHARE = 0.1
# The rows take 64 MB: room for a working set of half the columns, and for next to nothing.
COLUMNS, SMALL = 30 * 2**20, 4 * 2**20


def means() -> dict[str, np.ndarray]:
    """Return rows with a sparse mean of which a tenth is wrong."""
    attacks = (
        "wrong_support",
        "hidden_at_zero",
        "linear_hiding",
        "constant_bias",
        "duplicates",
        "multi_direction",
        "heavy_tailed",
    )
    return {name: make(name, N, D, K, SHARE, random_state=FIRST_SEED).X for name in attacks}


def spike() -> np.ndarray:
    """Return rows with one sparse component of which a tenth has another."""
    rng = np.random.default_rng(FIRST_SEED)
    X = rng.standard_normal((N, D))
    X[:, :K] += rng.standard_normal((N, 1))
    X[: int(SHARE * N), 3 * K : 4 * K] += 2.0 * rng.standard_normal((int(SHARE * N), 1))
    return X


def passes(make_estimator: Any, X: np.ndarray, budget: int, **options: Any) -> int:
    """Return the passes of one fit."""
    chunked = da.from_array(X, chunks=(N // CHUNKS, -1))
    with dask.config.set({"outweigh.gathered-bytes": budget}):
        return int(make_estimator(**options).fit(chunked).n_passes_)


def line(name: str, make_estimator: Any, X: np.ndarray, **options: Any) -> Line:
    """Return the passes with the share known and unknown, and with other budgets."""
    known = {**options, "contamination": SHARE}
    return {
        "fit": name,
        "known": passes(make_estimator, X, COLUMNS, **known),
        "auto": passes(make_estimator, X, COLUMNS, **options),
        "known, all fits": passes(make_estimator, X, 4 * X.nbytes, **known),
        "known, 4 MB": passes(make_estimator, X, SMALL, **known),
    }


def main(argv: list[str]) -> None:
    """Count, print and save."""
    argparse.ArgumentParser(prog="python -m benchmarks passes", description=__doc__).parse_args(
        argv
    )
    units = np.logspace(0, 2, D)
    with dask.config.set(scheduler="synchronous"):
        data = means()
        X = data["wrong_support"]
        rows = [
            line(f"sparse mean, {name}", RobustSparseMean, X, n_nonzero=K)
            for name, X in data.items()
        ]
        rows += [
            line("sparse mean, n_nonzero unknown", RobustSparseMean, X),
            line("sparse mean, scales unknown", RobustSparseMean, X * units, n_nonzero=K),
            line(
                "sparse mean, scales given", RobustSparseMean, X * units, n_nonzero=K, scale=units
            ),
        ]
        rows += [line(f"mean, {name}", RobustMean, X) for name, X in data.items()]
        rows += [
            line("mean, scales unknown", RobustMean, data["wrong_support"] * units),
            line("one component", RobustPCA, spike()),
            line("one sparse component", RobustSparsePCA, spike(), n_nonzero=K),
        ]
    show("passes", rows)
