"""What weighing rows by groups adds: the sparse mean with and without it, against the oracle."""

from __future__ import annotations

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks import WHITE
from benchmarks.options import asked
from benchmarks.tables import medians, seeds, show
from outweigh import RobustSparseMean
from outweigh.adversaries import make
from outweigh.fit.tuning import tuned
from outweigh.norms.entrywise import hard_threshold

EPS = 0.1
# Adversary, n, d, k.
CASES = (
    ("hidden_at_zero", 3000, 300, 10),
    ("doubled_mean", 3000, 300, 10),
    ("wrong_support", 3000, 300, 10),
    ("linear_hiding", 5000, 300, 21),
)


SHARES = {"eps given": EPS, "auto": "auto"}
# Without groups a fit ends with its descent.
ENDS = {"descent": {"groups": 0}, "weighed": {}}


def run_seed(name: str, n: int, d: int, k: int, seed: int) -> dict[str, float]:
    """Return errors over the oracle's error on one sample."""
    sample = make(name, n, d, k, EPS, seed)

    def error(location: np.ndarray) -> float:
        return float(np.linalg.norm(location - sample.truth))

    oracle = error(hard_threshold(sample.X[sample.inliers].mean(axis=0), k))
    found = {}
    for given, share in SHARES.items():
        for end, numbers in ENDS.items():
            with tuned(**numbers):
                fitted = RobustSparseMean(k, contamination=share, **WHITE).fit(sample.X)
            found[f"{given}, {end}"] = error(fitted.location_) / oracle
    return found


def main(argv: list[str]) -> None:
    """Run the study and print its table."""
    arguments = asked(__name__, __doc__, argv, seeds=10)
    lines = []
    with threadpool_limits(1):
        for name, n, d, k in CASES:
            runs = [run_seed(name, n, d, k, seed) for seed in seeds(arguments.seeds)]
            lines.append({"adversary": name, "n, d, k": f"{n}, {d}, {k}", **medians(runs)})
    show("ablation", lines)
