"""The four solvers: evaluations and time to the level of clean data, and the level reached."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone
from threadpoolctl import threadpool_limits

from benchmarks import WHITE
from benchmarks.options import asked
from benchmarks.tables import medians, seeds, show, timed
from outweigh import RobustMean, RobustSparseMean
from outweigh.adversaries import make
from outweigh.fit.tuning import tuned

EPS = 0.1
N, D, K = 2000, 200, 10
SOLVERS = ("polyak", "mirror", "backtracking", "paper")

SETTINGS = {
    "sparse": RobustSparseMean(K, contamination=EPS, **WHITE),
    "sparse, all features": RobustSparseMean(K, contamination=EPS, **WHITE),
    "dense": RobustMean(contamination=EPS, **WHITE),
}
# Attacks that pruning alone does not end.
ADVERSARIES = ("wrong_support", "hidden_at_zero", "linear_hiding")


def run_seed(setting: str, name: str, seed: int) -> dict[str, dict[str, float]]:
    """Return what each solver did on one sample; no groups are looked for."""
    X = make(name, N, D, K, EPS, seed).X
    found: dict[str, dict[str, float]] = {}
    for solver in SOLVERS:
        fit: Any = clone(SETTINGS[setting]).set_params(solver=solver)
        fitted, seconds = timed(lambda fit=fit: fit.fit(X))
        found[solver] = {
            "evaluations": float(fitted.n_iter_),
            "objective / clean median": fitted.certificate_.ratio,
            "reached": float(fitted.certificate_.clean),
            "seconds": seconds,
        }
    return found


def main(argv: list[str]) -> None:
    """Run the study and print its table."""
    arguments = asked(__name__, __doc__, argv, seeds=5)
    count = arguments.seeds
    lines = []
    for setting in SETTINGS:
        # Fits end with their descent.
        features = {"fewest_columns": D} if setting == "sparse, all features" else {}
        with threadpool_limits(1), tuned(groups=0, **features):
            # The first fit pays for noise floors that later ones find in a cache.
            run_seed(setting, ADVERSARIES[0], seeds(1)[0])
            for name in ADVERSARIES:
                runs = [run_seed(setting, name, seed) for seed in seeds(count)]
                for solver in SOLVERS:
                    middle = medians([run[solver] for run in runs])
                    ratios = [{"r": r[solver]["seconds"] / r["polyak"]["seconds"]} for r in runs]
                    lines.append(
                        {
                            "setting": setting,
                            "adversary": name,
                            "solver": solver,
                            "evaluations": middle["evaluations"],
                            "objective / clean median": middle["objective / clean median"],
                            "reached": f"{sum(r[solver]['reached'] for r in runs):.0f} of {count}",
                            "time / polyak": medians(ratios)["r"],
                        }
                    )
    show("solvers", lines)
