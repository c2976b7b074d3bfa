"""Accuracy of the robust means against the oracle and the plain Algorithm 1."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from benchmarks import WHITE
from benchmarks.options import asked
from benchmarks.pairing import FIRST_SEED, Row, format_table, paired_ratio, save
from outweigh import RobustMean, RobustSparseMean
from outweigh.adversaries import ADVERSARIES
from outweigh.baselines.plain import SparseGradientDescent
from outweigh.norms.entrywise import hard_threshold

ATTACKS = (
    "tight_cluster",
    "far_outliers",
    "duplicates",
    "multi_direction",
    "wrong_support",
)
HIDDEN = ("hidden_at_zero", "doubled_mean")


@dataclass(frozen=True)
class Case:
    """One model of data and what is asked of the estimate on it."""

    adversary: str
    n: int
    d: int
    k: int
    eps: float
    to_oracle: float | None = None
    to_plain: float | None = None
    auto_to_known: float | None = None
    dense: bool = False
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        extra = "".join(f" {key}={value}" for key, value in self.options.items())
        kind = "dense " if self.dense else ""
        return f"{kind}{self.adversary} n={self.n} d={self.d} k={self.k} eps={self.eps}{extra}"


def paper_rows() -> Iterator[Case]:
    """Yield the rows of the paper's mean experiments."""
    for n in (1000, 2000, 4000, 6000, 8000, 12000):
        yield Case("linear_hiding", n, 1000, 40, 0.1, 1.05, 1.05)
    for k in (1, 21, 61, 121, 181):
        yield Case("linear_hiding", 5000, 300, k, 0.1, 1.05 if k >= 10 else None, 1.05)
    for n in (30, 105, 330):
        yield Case("constant_bias", n, 300, 10, 0.1, None, 1.05)
    for k in (1, 11, 61, 96):
        yield Case("constant_bias", 5000, 300, k, 0.1, 1.05 if k >= 10 else None, 1.05)
    for n in (102, 11902):
        yield Case("tail_flipping", n, 10, 1, 0.1, None, 1.05)
    for eps in (0.01, 0.1, 0.2, 0.35):
        yield Case("tail_flipping", 5000, 10, 1, eps, None, 1.05)


def attack_rows() -> Iterator[Case]:
    """Yield the attacks of the foundation, sparse and dense."""
    for name in ATTACKS:
        yield Case(name, 3000, 300, 10, 0.1, 1.15, None, 1.1)
    for name in HIDDEN:
        yield Case(name, 3000, 300, 10, 0.1, 1.7, None, 1.1)
    for name in (*ATTACKS, *HIDDEN):
        yield Case(name, 4000, 400, 400, 0.1, 1.1, None, 1.1, dense=True)
    for inliers in ("laplace", "uniform", "rademacher", "t5"):
        yield Case("wrong_support", 3000, 300, 10, 0.1, 1.3, options={"inliers": inliers})


def auto_rows() -> Iterator[Case]:
    """Yield the study of an unknown contamination."""
    for name in ("constant_bias", "linear_hiding", "wrong_support"):
        for eps in (0.0, 0.02, 0.1, 0.2, 0.3):
            yield Case(name, 4000, 300, 20, eps, None, None, 1.1)


STUDIES = {"paper": paper_rows, "attacks": attack_rows, "auto": auto_rows}


def run_seed(case: Case, seed: int) -> dict[str, float]:
    """Return errors on one sample, by name."""
    sample = ADVERSARIES[case.adversary](case.n, case.d, case.k, case.eps, seed, **case.options)

    def error(location: np.ndarray) -> float:
        return float(np.linalg.norm(location - sample.truth))

    def ours(contamination: float | str) -> Any:
        if case.dense:
            return RobustMean(contamination=contamination, **WHITE).fit(sample.X)
        return RobustSparseMean(case.k, contamination=contamination, **WHITE).fit(sample.X)

    with threadpool_limits(1):
        found = {"ours": error(ours(case.eps).location_)}
        oracle = sample.X[sample.inliers].mean(axis=0)
        found["oracle"] = error(oracle if case.dense else hard_threshold(oracle, case.k))
        if case.to_plain is not None:
            plain = SparseGradientDescent(case.k, contamination=case.eps).fit(sample.X)
            found["plain"] = error(plain.location_)
        if case.auto_to_known is not None:
            auto = ours("auto")
            found["auto"] = error(auto.location_)
            found["contamination"] = auto.contamination_
    return found


def run_case(case: Case, n_seeds: int, jobs: int) -> list[Row]:
    """Return the rows of one case over many seeds."""
    seeds = range(FIRST_SEED, FIRST_SEED + n_seeds)
    runs = Parallel(n_jobs=jobs)(delayed(run_seed)(case, seed) for seed in seeds)
    column = {key: [run[key] for run in runs] for key in runs[0]}
    rows = [
        paired_ratio(case.name, "ours / oracle", column["ours"], column["oracle"], case.to_oracle)
    ]
    if case.to_plain is not None:
        rows.append(
            paired_ratio(case.name, "ours / plain", column["ours"], column["plain"], case.to_plain)
        )
    if case.auto_to_known is not None:
        rows.append(
            paired_ratio(
                case.name, "auto / ours", column["auto"], column["ours"], case.auto_to_known
            )
        )
        most = 1.3 * case.eps + 0.03
        rows.append(
            paired_ratio(
                case.name,
                "contamination_ / allowed",
                column["contamination"],
                [most] * n_seeds,
                1.0,
            )
        )
    return rows


def clean_rows(n_seeds: int) -> list[Row]:
    """Return how often clean Gaussian data keeps uniform weights; 0.05 may move."""
    rows = []
    for n, k in ((200, 1), (200, 3), (200, 10), (200, 60), (2000, 10)):
        moved = []
        for seed in range(FIRST_SEED, FIRST_SEED + n_seeds):
            X = np.random.default_rng(seed).standard_normal((n, 300))
            with threadpool_limits(1):
                moved.append(float(RobustSparseMean(k, **WHITE).fit(X).contamination_ > 0))
        share = float(np.mean(moved))
        rows.append(
            Row(f"clean n={n} d=300 k={k}", "share moved", share, share, share, 0.05, n_seeds)
        )
    return rows


def main(argv: list[str]) -> None:
    """Run studies and print their tables."""
    arguments = asked(
        __name__,
        __doc__,
        argv,
        "study",
        study={"nargs": "*", "help": "paper, attacks, auto, clean; all when none given"},
        seeds=50,
        jobs=2,
        no_plain=(False, "leave out the plain algorithm, which takes minutes"),
    )
    for study in arguments.study or [*STUDIES, "clean"]:
        rows: list[Row] = []
        if study == "clean":
            rows = clean_rows(2 * arguments.seeds)
        else:
            for case in STUDIES[study]():
                case = replace(case, to_plain=None) if arguments.no_plain else case
                seeds = arguments.seeds if case.d < 1000 else max(1, 2 * arguments.seeds // 5)
                found = run_case(case, seeds, arguments.jobs)
                rows += found
                print(format_table(found).split("\n", 2)[2], flush=True)
        print(f"\n{study}\n{format_table(rows)}\nsaved {save(f'means-{study}', rows)}")
