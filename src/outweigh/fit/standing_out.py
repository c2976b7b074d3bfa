"""The few features on which rows of a sparse mean are judged in correlated noise.

Of thousands of features most are noise about zero, and say nothing of which rows are wrong. Those
that stand out do: where the mean is, or an outlier moved it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.special import expit, ndtri

from outweigh.fit.columns import column_quantiles, largest_of
from outweigh.fit.elliptical import Judgement, judge_rows
from outweigh.fit.law import GAUSSIAN
from outweigh.fit.mixture import Group
from outweigh.fit.tuning import TUNING
from outweigh.protocols import Array, Indices

# Features are chosen anew with the weights found, at most so often.
_ROUNDS = 4
# Columns of noise that show how asymmetric rows are.
_NOISE_COLUMNS = 200
_ONCE_IN_A_THOUSAND = float(ndtri(0.999))
# Steps of an iteration whose end nothing depends on.
_STEPS = 500
_TINY = 1e-300
# The deviation of a Gaussian column's median over that of its mean.
_MEDIAN_ERROR = float(np.sqrt(np.pi / 2.0))


def judge_on_features(
    Z: Array, sample_weight: Array, n_nonzero: int | None, bound: float
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
    most = max(1, int(n / (4.0 * TUNING.rows_per_feature)))
    if n_nonzero is not None:
        most = max(n_nonzero, min(most, 2 * n_nonzero))
    seen: list[Array] = []
    last: Array | None = None
    for _ in range(_ROUNDS):
        chosen = [_standing_out(z_scores, most) for z_scores in (*lasting, *seen)]
        features = np.unique(np.concatenate(chosen))
        judged = judge_rows(Z[:, features], sample_weight, bound)
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
    return features, _without_mean(Z, sample_weight, features, judged, n_nonzero, bound)


def _without_mean(
    Z: Array,
    sample_weight: Array,
    features: Indices,
    judged: Judgement,
    n_nonzero: int | None,
    bound: float,
) -> Judgement:
    r"""Judge rows also by whether they have the mean at all: outliers may be about the origin.

    Along all directions they hide in the clean rows, but :math:`v = S^{-1} m` needs no search: the
    covariance :math:`\Sigma + p (1 - p) \mu \mu'` of all rows has the same one as that of the
    clean rows. Along it a share p of the rows is about the origin and the others about m, both with
    the deviation of the noise. So rows are asymmetric toward the origin; columns that have no part
    in the mean show how asymmetric rows are without that.
    """
    cloud, total = judged.cloud, float(sample_weight.sum())
    among = features[cloud.columns]
    no_room = bound <= 0.0 or max(judged.spared, judged.divided) > 0.0
    if no_room or cloud.basis is not None or features.size == Z.shape[1]:
        return judged
    share = sample_weight * judged.clean
    kept = float(share.sum())
    share = share / kept
    means = np.sqrt(kept) * (share @ Z)
    support = _standing_out(means, Z.shape[1] if n_nonzero is None else n_nonzero)
    support = np.flatnonzero(np.isin(among, support))
    if support.size == 0:
        return judged
    z, origin = cloud.marginals.apply(Z[:, among]), cloud.marginals.apply(np.zeros((1, among.size)))
    away = (z - origin)[:, support]
    mean = share @ away
    direction = np.zeros(among.size)
    spread = (away * share[:, None]).T @ away - np.outer(mean, mean)
    direction[support] = np.linalg.lstsq(spread, mean, rcond=None)[0]
    y = (z - origin) @ direction
    others = np.setdiff1d(np.arange(Z.shape[1]), features)
    others = others[:: max(1, others.size // _NOISE_COLUMNS)]
    usual = float(np.sqrt(np.mean(_asymmetry(Z[:, others], share) ** 2)))
    # One direction, of which chance makes more once in a thousand tables.
    if -_asymmetry(y[:, None], share)[0] <= _ONCE_IN_A_THOUSAND * usual:
        return judged
    group = _origin_and_mean(y, share)
    if not 0.0 < group.shares[0] < 0.5:
        return judged
    wrong = np.asarray(judged.clean * group.wrong(y))
    room = bound * total - float(sample_weight @ (1.0 - judged.clean))
    part = min(1.0, max(room, 0.0) / max(float(sample_weight @ wrong), room, 1.0))
    clean, severity = judged.clean - part * wrong, np.maximum(judged.severity, 2.0 * group.wrong(y))
    found = sample_weight * (wrong >= 0.5)
    return replace(
        judged,
        cloud=replace(
            cloud,
            groups=(*cloud.groups, group.moved(direction, float((origin @ direction)[0]))),
        ),
        clean=clean,
        severity=severity,
        apart=judged.apart + float(found.sum()) / total,
        spared=judged.spared + float(found[clean >= 0.5].sum()) / total,
    )


def _origin_and_mean(y: Array, share: Array) -> Group:
    """Fit two Gaussians of one deviation, one of them about 0, by expectation maximisation."""
    wrong = expit(-y / max(float(share @ y), _TINY))
    part = 0.0
    for _ in range(_STEPS):
        last, part = part, float(share @ wrong)
        clean = share * (1.0 - wrong)
        mean = float(clean @ y) / (1.0 - part)
        variance = max(float(clean @ (y - mean) ** 2 + (share * wrong) @ y**2), _TINY)
        wrong = expit(np.log(part / (1.0 - part)) - mean / variance * (y - mean / 2.0))
        if abs(part - last) <= 1e-6:
            break
    deviation = float(np.sqrt(variance))
    return Group(
        np.empty(0), mean, deviation, GAUSSIAN, np.zeros(1), np.array([deviation]), np.array([part])
    )


def _asymmetry(columns: Array, share: Array) -> Array:
    """Return the third moments of columns in units of their deviations, far rows drawn in."""
    for _ in range(2):
        columns = columns - share @ columns
        # First in units of the largest, whose square may be beyond floating point.
        columns = columns / np.maximum(np.abs(columns).max(axis=0), _TINY)
        columns = columns / np.maximum(np.sqrt(share @ columns**2), _TINY)
        columns = np.clip(columns, -TUNING.drawn_in, TUNING.drawn_in)
    return np.asarray(share @ columns**3)


def _standing_out(z_scores: Array, most: int) -> Indices:
    """Return the features that exceed what the largest of as many Gaussians does, most at first."""
    order = np.argsort(-np.abs(z_scores), kind="stable")[:most]
    beyond = np.abs(z_scores[order]) > largest_of(z_scores.size)
    # At least two: rows are judged by something.
    beyond[:2] = True
    return order[beyond]
