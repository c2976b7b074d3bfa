"""Means of rows of unknown covariance: whether rows are such, and the fit to them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from outweigh.fit.certificate import Certificate
from outweigh.fit.elliptical import judge_rows
from outweigh.fit.noise import Noise, refuse_huge
from outweigh.fit.problem import Problem
from outweigh.fit.result import Fit
from outweigh.fit.score import EllipticalScore
from outweigh.fit.search import Found, Weights
from outweigh.fit.standing_out import judge_on_features
from outweigh.fit.task import Settings, Task
from outweigh.fit.tuning import TUNING
from outweigh.fit.whiteness import MOST_ROWS, bulk_excess, some_columns
from outweigh.norms.floor import NoiseFloor
from outweigh.objectives import MomentObjective
from outweigh.optimise.descent import Iterate
from outweigh.protocols import Status

# Rows of unknown covariance are judged on a sample of no more values than this.
_VALUES_TO_JUDGE = 20_000_000


def looks_correlated(noise: Noise) -> bool:
    """Tell by some rows and columns whether rows are correlated.

    So they are taken to be where they are so few that errors of a variance hide the excess.
    """
    rows, weight = noise.some_rows(MOST_ROWS)
    columns = noise.standardizer.columns
    rows = rows[:, columns[some_columns(columns.size)]]
    few = TUNING.white_deviations * np.sqrt(2.0 / weight.sum()) > TUNING.correlated - 1.0
    return bool(few or bulk_excess(rows, weight) > 1.0)


def fit_elliptical(noise: Noise, task: Task, settings: Settings) -> Fit:
    """Fit a mean to rows of unknown covariance."""
    n, columns = len(noise.sample_weight), noise.standardizer.columns
    d = columns.size
    rows, weight = noise.some_rows(max(MOST_ROWS, _VALUES_TO_JUDGE // columns.size))
    rows, unit = rows[:, columns], np.ones(d)
    if task.is_sparse and d > TUNING.fewest_columns:
        # Judged in units of the noise; scores are of rows in those of the user.
        unit = noise.standardizer.scale
        count = task.n_nonzero[0] if task.n_nonzero else None
        some, judged = judge_on_features(rows / unit, weight, count, settings.bound)
        columns, unit = columns[some], unit[some]
    else:
        judged = judge_rows(rows, weight, settings.bound)
    score = EllipticalScore(noise.standardizer, judged.cloud.among(columns, unit))
    clean, scores = judged.clean, -judged.severity
    if len(weight) < n:
        clean = noise.rows.map(score.clean)
    if len(weight) < n or judged.spared > 0.0 or settings.contamination is not None:
        # A share that was asked for, or some that are spared, is told by rank, and as new rows,
        # which `predict` sees, those judged by all others rank otherwise.
        scores = noise.rows.map(score)
    values = noise.sample_weight * clean
    kept = float(values.sum() / noise.sample_weight.sum())
    values /= values.sum()
    back = noise.pruned[values[noise.pruned] > 0.0]
    if back.size:
        # Others than those pruned at the first look may be left.
        refuse_huge(np.square(noise.rows_at(back, slice(None))).sum(axis=1))
    noise = noise.without(np.flatnonzero(values == 0.0))
    objective = MomentObjective(noise.samples, task.norm(1), True)
    problem = Problem(objective, noise.sample_weight, noise.pruned, 3.0, d)
    weights = Weights.untouched(values, d)
    farthest = judged.farthest
    found = Found(weights, farthest, Status.REACHED, (Iterate(0, farthest, 0.0, True),))
    removed = problem.removed(values)
    certificate = Certificate(
        farthest,
        NoiseFloor(1.0, 1.0),
        removed,
        # No weight exceeds what this bound allows it, also where some are removed in part.
        max(removed, 1.0 - kept, settings.contamination or 0.0),
        Status.REACHED,
        n_effective=problem.n_effective(values),
        noise="elliptical" if judged.seen > 0.0 else "other",
        expected=settings.expected,
        far=judged.far,
        apart=judged.apart,
        spared=judged.spared,
        divided=judged.divided,
        doubtful=judged.doubtful,
        doubt=judged.doubt,
        seen=judged.seen,
        unlike_clean="columns have too few values to tell groups of rows from outliers",
    )
    if not certificate.clean:
        found = replace(found, status=Status.STATIONARY)
        certificate = replace(certificate, status=Status.STATIONARY)
    none = np.empty((d, 0))
    return Fit(noise, problem, found, certificate, score, scores, none, none)
