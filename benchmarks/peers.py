"""The sparse mean against what one would use instead, on five attacks."""

from __future__ import annotations

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks import WHITE
from benchmarks.options import asked
from benchmarks.tables import medians, seeds, show
from outweigh import RobustSparseMean
from outweigh.adversaries import make
from outweigh.baselines import MEAN_BASELINES

N, D, K, EPS = 3000, 300, 10, 0.1
ADVERSARIES = ("constant_bias", "wrong_support", "hidden_at_zero", "linear_hiding", "tail_flipping")
# Of these only the filter is told the contamination.
ESTIMATORS = {
    "**outweigh**": lambda: RobustSparseMean(K, **WHITE),
    "iterative filter": lambda: MEAN_BASELINES["filter_sparse"](K, contamination=EPS),
    "coordinatewise median": lambda: MEAN_BASELINES["median"](K),
    "geometric median": lambda: MEAN_BASELINES["geometric_median"](K),
    "RANSAC": lambda: MEAN_BASELINES["ransac"](K, random_state=0),
    "naive pruning": lambda: MEAN_BASELINES["naive_pruning"](K),
    "plain mean": lambda: MEAN_BASELINES["empirical"](K),
}


def run_seed(name: str, seed: int) -> dict[str, float]:
    """Return errors over the oracle's error on one sample."""
    sample = make(name, N, D, K, EPS, seed)

    def error(location: np.ndarray) -> float:
        return float(np.linalg.norm(location - sample.truth))

    oracle = MEAN_BASELINES["oracle"](K).fit(sample.X, inliers=sample.inliers)
    least = error(oracle.location_)
    return {
        estimator: error(build().fit(sample.X).location_) / least
        for estimator, build in ESTIMATORS.items()
    }


def main(argv: list[str]) -> None:
    """Run the study and print its table."""
    arguments = asked(__name__, __doc__, argv, seeds=10)
    with threadpool_limits(1):
        found = {
            name: medians([run_seed(name, seed) for seed in seeds(arguments.seeds)])
            for name in ADVERSARIES
        }
    show(
        "peers",
        [
            {"estimator": estimator, **{name: found[name][estimator] for name in ADVERSARIES}}
            for estimator in ESTIMATORS
        ],
    )
