"""What a fit on a sample loses, and which mean of all rows follows best from it.

Errors in units of that of the mean of all clean rows: of a fit on all rows, of the mean of all
rows that a fit on a tenth of them trusts (``location_``), of the weighted mean of the sample
corrected by the difference of the trusted means of all rows and of the sample, and of the weighted
mean of the sample alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks import WHITE
from benchmarks.options import asked
from benchmarks.tables import Line, medians, seeds, show
from outweigh import RobustMean, RobustSparseMean
from outweigh.adversaries import make
from outweigh.norms.entrywise import hard_threshold

N, SIZE, D, K, SHARE = 200_000, 20_000, 50, 5, 0.1
DENSE = ("tight_cluster", "far_outliers", "wrong_support", "linear_hiding")
SPARSE = ("constant_bias", "wrong_support", "multi_direction")


def fits(sparse: bool, **options: Any) -> Any:
    """Return an estimator that knows the share of outliers."""
    known = {"contamination": SHARE, **WHITE, **options}
    return RobustSparseMean(K, **known) if sparse else RobustMean(**known)


def one(attack: str, share: float, sparse: bool, seed: int) -> dict[str, float]:
    """Return the errors on one data set, in units of the oracle's."""
    sample = make(attack, N, D, K, share, random_state=seed)
    X = sample.X
    oracle = X[sample.inliers].mean(axis=0)
    oracle = hard_threshold(oracle, K) if sparse else oracle
    everything = fits(sparse, subsample=None).fit(X)
    extended = fits(sparse, subsample=SIZE, random_state=seed).fit(X)
    drawn = X[extended.subsample_]
    # The same weights as inside of `extended`, which allows the sample its own share of outliers.
    alone = fits(sparse, subsample=None, contamination=extended.contamination_bound_).fit(drawn)
    corrected = alone.location_ + extended.location_ - alone.reweighted_mean(drawn)
    of_oracle = float(np.linalg.norm(oracle - sample.truth))
    found = {
        "all rows": everything.location_,
        "trusted rows": extended.location_,
        "corrected": np.where(extended.location_ != 0.0, corrected, 0.0),
        "sample": alone.location_,
    }
    return {
        name: float(np.linalg.norm(mean - sample.truth)) / of_oracle for name, mean in found.items()
    }


def main(argv: list[str]) -> None:
    """Measure, print and save."""
    count = asked(__name__, __doc__, argv, seeds=20).seeds
    cases = [(f"mean, {attack}", attack, SHARE, False) for attack in DENSE]
    # No row is wrong, and a tenth is said to be.
    cases += [("mean, clean rows", "tight_cluster", 0.0, False)]
    cases += [(f"sparse mean, {attack}", attack, SHARE, True) for attack in SPARSE]
    lines: list[Line] = []
    for name, attack, share, sparse in cases:
        runs = [one(attack, share, sparse, seed) for seed in seeds(count)]
        lines.append({"fit": name, **medians(runs)})
    show("subsample", lines)
