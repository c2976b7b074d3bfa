"""The few features on which rows of a sparse mean are judged in correlated noise.

Of thousands of features most are noise about zero, and say nothing of which rows are wrong. Those
that stand out do: where the mean is, or an outlier moved it.
"""

from __future__ import annotations

import numpy as np

from outweigh.fit.columns import column_quantiles, largest_of
from outweigh.fit.elliptical import Judgement, judge_rows
from outweigh.fit.tuning import Tuning
from outweigh.protocols import Array, Indices

__all__ = ["judge_on_features"]

# Features are chosen anew with the weights found, at most so often.
_ROUNDS = 4
# The deviation of a Gaussian column's median over that of its mean.
_MEDIAN_ERROR = float(np.sqrt(np.pi / 2.0))


def judge_on_features(
    Z: Array, sample_weight: Array, n_nonzero: int | None, bound: float, tuning: Tuning
) -> tuple[Indices, Judgement]:
    """Judge rows by the features that stand out, found again with the weights that this gives.

    Parameters
    ----------
    Z : ndarray of shape (n, d)
        Rows in units of their noise, about the point that a sparse mean is sparse about.
    sample_weight : ndarray of shape (n,)
    n_nonzero : int or None
        The entries of the mean, where they are known: outliers then matter on as many more.
    bound : float
    tuning : Tuning

    Returns
    -------
    features : ndarray of int
    judged : Judgement
        The columns of its cloud count among the features.
    """
    n = float(sample_weight.sum())
    everything = sample_weight / n
    middle = column_quantiles(Z, sample_weight, [0.5])[0]
    mean = everything @ Z
    root = np.sqrt(n)
    # What a mean, or outliers on one side, do to a column before any row is judged.
    lasting = [root * mean, root * middle / _MEDIAN_ERROR, root * (mean - middle)]
    # Four such lists leave enough rows for each feature.
    most = max(1, int(n / (4.0 * tuning.rows_per_feature)))
    if n_nonzero is not None:
        most = max(n_nonzero, min(most, 2 * n_nonzero))
    seen: list[Array] = []
    last: Array | None = None
    for _ in range(_ROUNDS):
        chosen = [_standing_out(z_scores, most) for z_scores in (*lasting, *seen)]
        features = np.unique(np.concatenate(chosen))
        judged = judge_rows(Z[:, features], sample_weight, bound, tuning)
        if last is not None and np.array_equal(judged.clean >= 0.5, last >= 0.5):
            break
        last = judged.clean
        kept = sample_weight * last
        removed = sample_weight - kept
        size = float(removed.sum())
        now = kept @ Z / kept.sum()
        seen = [np.sqrt(kept.sum()) * now]
        if size >= 1.0:
            # Of few rows removed, the difference from the kept ones is mostly noise.
            seen.append((removed @ Z / size - now) * np.sqrt(size))
    return features, judged


def _standing_out(z_scores: Array, most: int) -> Indices:
    """Return the features that exceed what the largest of as many Gaussians does, most at first."""
    order = np.argsort(-np.abs(z_scores), kind="stable")[:most]
    beyond = np.abs(z_scores[order]) > largest_of(z_scores.size)
    # At least two: rows are judged by something.
    beyond[:2] = True
    return order[beyond]
