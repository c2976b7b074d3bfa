"""``outweigh demo``: contaminated data, many estimates of its mean, a table and a figure."""

from __future__ import annotations

import argparse
import sys
import time
from textwrap import indent
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from outweigh.adversaries import Sample, make
from outweigh.cli.arguments import OK
from outweigh.experiments.algorithms import ALGORITHMS
from outweigh.experiments.figures import DemoRow, demonstration
from outweigh.experiments.measure import estimate_of, flagged_rows
from outweigh.experiments.metrics import l2
from outweigh.files import write_file
from outweigh.libraries import MissingLibrary

N_SAMPLES, N_FEATURES, N_NONZERO, CONTAMINATION = 2000, 300, 10, 0.1
FIGURE = "outweigh-demo.png"
OURS = "outweigh_auto"
NAMES = (
    "oracle",
    OURS,
    "filter_sparse",
    "filter",
    "multiplicative_weights",
    "gradient_descent",
    "median",
    "trimmed_thresholding",
    "geometric_median",
    "ransac",
    "naive_pruning",
    "empirical",
)

_STORY = f"""\
{N_SAMPLES} rows, {N_FEATURES} features. The true mean is nonzero on {N_NONZERO} of them, but a
tenth of the rows do not have it: they are pure noise around zero, and each one looks like any
other row. The rivals are told how many rows are wrong; outweigh has to find out.
"""

_NEXT = """\
Try next (.venv/bin/outweigh where the shell does not find outweigh):
  outweigh fit mean FILE.csv --report page.html    your own file: which rows not to trust, and why

  from outweigh import RobustSparseMean
  est = RobustSparseMean(n_nonzero=10).fit(X)      # your data; rows are samples
  est.location_, est.weights_, print(est.certificate_)

  outweigh demo --seed 1                           another sample
  outweigh reproduce --quick --report              other attacks, also those where a rival wins
  outweigh list                                    all of them, and all algorithms"""


def demo(arguments: argparse.Namespace) -> int:
    """Print the comparison and save its figure in the current directory."""
    print(_STORY)
    sample = make(
        "hidden_at_zero",
        N_SAMPLES,
        N_FEATURES,
        N_NONZERO,
        CONTAMINATION,
        random_state=arguments.seed,
    )
    rows, estimators = [], {}
    with threadpool_limits(limits=1):
        for name in NAMES:
            row, estimators[name] = _fit(name, sample)
            rows.append(row)
    _print_table(rows, sample)
    ours = estimators[OURS]
    print(f"\nWhat outweigh says of its own answer:\n{indent(str(ours.certificate_), '  ')}\n")
    _save_figure(rows, ours, sample)
    print(_NEXT)
    return OK


def _fit(name: str, sample: Sample) -> tuple[DemoRow, Any]:
    algorithm = ALGORITHMS[name]
    estimator = algorithm.build(N_NONZERO, CONTAMINATION, 0)
    truth = {"inliers": sample.inliers} if algorithm.needs_inliers else {}
    start = time.perf_counter()
    estimator.fit(sample.X, **truth)
    seconds = time.perf_counter() - start
    error = l2(estimate_of(algorithm, estimator), sample.truth)
    flagged = flagged_rows(estimator, sample.X)
    n_flagged = None if flagged is None else int(flagged.sum())
    n_right = None if flagged is None else int((flagged & ~sample.inliers).sum())
    return DemoRow(algorithm, error, seconds, n_flagged, n_right), estimator


def _print_table(rows: list[DemoRow], sample: Sample) -> None:
    oracle = next(row.error for row in rows if row.algorithm.needs_inliers)
    print(f"{'':<24}{'error':>8}{'/ oracle':>10}{'time':>9}   rows flagged")
    for row in sorted(rows, key=lambda row: (not row.algorithm.needs_inliers, row.error)):
        flagged = (
            "-" if row.n_flagged is None else f"{row.n_flagged}, {row.n_right} of them rightly"
        )
        print(
            f"{row.algorithm.label:<24}{row.error:>8.3f}{row.error / oracle:>10.2f}"
            f"{row.seconds:>7.2f} s   {flagged}"
        )
    print(
        f"\nError: distance to the true mean, whose length is {np.linalg.norm(sample.truth):.2f}. "
        f"Wrong rows: {sample.n_outliers}.\nThe oracle averages the right rows; "
        "nobody can count on doing better."
    )


def _save_figure(rows: list[DemoRow], ours: Any, sample: Sample) -> None:
    title = f"A tenth of {N_SAMPLES} rows are noise around zero: who still finds the mean?"
    try:
        image = demonstration(rows, ours.weights_, sample.inliers, title)
    except MissingLibrary as error:
        print(f"outweigh: no figure: {error}\n", file=sys.stderr)
        return
    print(f"Figure: {write_file(FIGURE, image)}\n")
