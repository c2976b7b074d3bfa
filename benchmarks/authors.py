"""The authors' public programs on the same data, where a checkout of them is at hand.

Nothing of theirs is kept here: ``python -m benchmarks authors PATH`` imports ``robustlib`` from a
checkout of guptashvm/Sparse-GD, lends it the keyword that SciPy has since renamed, and silences its
output.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.linalg
from threadpoolctl import threadpool_limits

from benchmarks import WHITE
from benchmarks.options import asked
from benchmarks.pairing import FIRST_SEED, Row, format_table, paired_ratio, save
from outweigh import RobustSparseMean
from outweigh.adversaries import ADVERSARIES
from outweigh.baselines import FilterSparseMean, NaivePruning, RansacMean

# Rows quick enough to repeat: adversary, n, d, k.
ROWS = (
    ("linear_hiding", 2000, 1000, 40),
    ("linear_hiding", 5000, 300, 21),
    ("linear_hiding", 5000, 300, 61),
    ("constant_bias", 330, 300, 10),
    ("constant_bias", 5000, 300, 1),
    ("constant_bias", 5000, 300, 11),
    ("tail_flipping", 5000, 10, 1),
)
CONTAMINATION = 0.1


def load_authors(path: str) -> dict[str, Callable[[np.ndarray, int, float], Any]]:
    """Return the authors' programs by name, as functions of rows, sparsity and contamination."""
    program = _program(path)
    return {
        name: lambda X, k, eps, name=name: _run(program, name, X, k, eps)
        for name in ("RME_sp", "GDAlgs")
    }


def _program(path: str) -> types.ModuleType:
    folder = Path(path)
    if not (folder / "robustlib.py").is_file():
        raise SystemExit(f"{path}: no robustlib.py there; give a checkout of Sparse-GD")
    # A plotting helper of theirs that is not needed to estimate anything.
    sys.modules.setdefault("mpld3", types.ModuleType("mpld3"))
    sys.path.insert(0, str(folder))
    program = importlib.import_module("robustlib")
    current = scipy.linalg.eigh

    def eigh(a: np.ndarray, eigvals: tuple[int, int] | None = None, **options: Any) -> Any:
        return current(a, subset_by_index=eigvals, **options)

    program.scipy = types.SimpleNamespace(linalg=types.SimpleNamespace(eigh=eigh))
    return program


def _run(program: types.ModuleType, name: str, X: np.ndarray, k: int, eps: float) -> np.ndarray:
    n, d = X.shape
    parameters = program.Params(d=d, m=n, eps=eps, k=k, tau=0.2)
    np.random.seed(0)  # noqa: NPY002  (theirs draws from the global generator)
    with contextlib.redirect_stdout(io.StringIO()), np.errstate(all="ignore"):
        return np.asarray(getattr(program, name)(parameters).alg(X.copy(), np.ones(n)))


def main(argv: list[str]) -> None:
    """Compare our baselines and our estimator with the authors' programs, sample by sample."""
    arguments = asked(
        __name__,
        __doc__,
        argv,
        "path",
        path={"help": "a checkout of the authors' Sparse-GD repository"},
        seeds=10,
    )
    program = _program(arguments.path)
    rows: list[Row] = []
    for adversary, n, d, k in ROWS:
        case = f"{adversary} n={n} d={d} k={k}"
        errors: dict[str, list[float]] = {}
        for seed in range(FIRST_SEED, FIRST_SEED + arguments.seeds):
            sample = ADVERSARIES[adversary](n, d, k, CONTAMINATION, seed)
            with threadpool_limits(1):
                found = {
                    "ours": RobustSparseMean(k, contamination=CONTAMINATION, **WHITE),
                    "filter": FilterSparseMean(k, contamination=CONTAMINATION),
                    "pruning": NaivePruning(k),
                    "ransac": RansacMean(k, random_state=0),
                }
                for name, model in found.items():
                    location = model.fit(sample.X).location_
                    errors.setdefault(name, []).append(
                        float(np.linalg.norm(location - sample.truth))
                    )
                for name in ("GDAlgs", "RME_sp", "NP_sp", "ransacGaussianMean"):
                    location = _run(program, name, sample.X, k, CONTAMINATION)
                    errors.setdefault(name, []).append(
                        float(np.linalg.norm(location - sample.truth))
                    )
        pairs = (
            ("ours", "GDAlgs"),
            ("filter", "RME_sp"),
            ("pruning", "NP_sp"),
            ("ransac", "ransacGaussianMean"),
        )
        found_rows = [
            paired_ratio(case, f"{a} / authors' {b}", errors[a], errors[b], None) for a, b in pairs
        ]
        print(format_table(found_rows).split("\n", 2)[2], flush=True)
        rows += found_rows
    print(f"saved {save('authors', rows)}")
