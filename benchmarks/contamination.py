"""An unknown contamination: "auto" and the binary search against the true value."""

from __future__ import annotations

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks import WHITE
from benchmarks.options import asked
from benchmarks.tables import medians, seeds, show, timed
from outweigh import ContaminationSearch, RobustSparseMean
from outweigh.adversaries import make

N, D, K = 2000, 200, 10
ADVERSARIES = ("constant_bias", "wrong_support", "hidden_at_zero", "linear_hiding")
LEVELS = (0.0, 0.05, 0.1, 0.2)


def run_seed(name: str, eps: float, seed: int) -> dict[str, float]:
    """Return errors and times relative to those with the true value, and the estimates."""
    sample = make(name, N, D, K, eps, seed)
    X = sample.X

    def error(location: np.ndarray) -> float:
        return float(np.linalg.norm(location - sample.truth))

    known, known_time = timed(lambda: RobustSparseMean(K, contamination=eps, **WHITE).fit(X))
    auto, auto_time = timed(lambda: RobustSparseMean(K, **WHITE).fit(X))
    search, search_time = timed(lambda: ContaminationSearch(RobustSparseMean(K, **WHITE)).fit(X))
    least = error(known.location_)
    return {
        "auto: contamination_": auto.contamination_,
        "search: contamination_": search.contamination_,
        "auto: error / known": error(auto.location_) / least,
        "search: error / known": error(search.estimator_.location_) / least,
        "auto: time / known": auto_time / known_time,
        "search: time / known": search_time / known_time,
        "search: fits": float(len(search.trials_)),
    }


def main(argv: list[str]) -> None:
    """Run the study and print its table."""
    arguments = asked(__name__, __doc__, argv, seeds=5)
    lines = []
    with threadpool_limits(1):
        # The first fit pays for noise floors that later ones find in a cache.
        run_seed(ADVERSARIES[0], LEVELS[-1], seeds(1)[0])
        for name in ADVERSARIES:
            for eps in LEVELS:
                runs = [run_seed(name, eps, seed) for seed in seeds(arguments.seeds)]
                middle = medians(runs)
                fits = f"{middle.pop('search: fits'):.0f}"
                lines.append({"adversary": name, "eps": eps, **middle, "search: fits": fits})
    show("contamination", lines)
