"""An origin for the data, and the rows too far from it for any plausible centre.

Second moments do not depend on the origin; it only keeps numbers small. Pruning is for rows so far
out that they would drown everything else. What is merely suspicious is left to the descent.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from outweigh.protocols import Array
from outweigh.scaling import column_quantiles, sorted_columns

__all__ = ["midmean", "pruned_rows", "pruning_radius_sq"]

_FAILURE_PROBABILITY = 0.05
# A centre off by a fifth of the noise in every feature changes no squared distance by more.
_SLACK = 1.44


def midmean(rows: Array, sample_weight: Array, ranked: Array | None = None) -> Array:
    """Return the mean of the middle half of each column.

    As robust as the quartiles, and unlike a median close to the mean also for discrete features.

    Parameters
    ----------
    rows : ndarray of shape (n, d)
    sample_weight : ndarray of shape (n,)
    ranked : ndarray of shape (d, n), optional
        What `sorted_columns` says of the rows, if it is known; used where all weights are equal.

    Examples
    --------
    >>> import numpy as np
    >>> midmean(np.array([[0.0], [1.0], [3.0], [1e9]]), np.ones(4))
    array([2.])
    """
    if np.ptp(sample_weight) == 0:
        # Place i of n holds the ranks from i to i + 1; it counts by its share of the middle half.
        n = rows.shape[0]
        first = np.arange(n)
        share = np.minimum(first + 1.0, 0.75 * n) - np.maximum(first, 0.25 * n)
        share = np.maximum(share, 0.0)
        middle = share > 0
        # Extreme ranks do not count, and may be infinite.
        ranked = sorted_columns(rows) if ranked is None else ranked
        return np.asarray(ranked[:, middle] @ (share[middle] / share.sum()))
    low, high = column_quantiles(rows, [0.25, 0.75], sample_weight)
    inside = (rows >= low) & (rows <= high)
    # Rows tied with a quartile (discrete features) count by the share that belongs to the middle.
    weight = np.where(inside, sample_weight[:, None], 0.0)
    total = sample_weight.sum()
    for quantile, side in ((low, -1.0), (high, 1.0)):
        tied = rows == quantile
        beyond = np.where(side * (rows - quantile) > 0, sample_weight[:, None], 0.0).sum(axis=0)
        tie_weight = np.where(tied, sample_weight[:, None], 0.0).sum(axis=0)
        # Of the ties, what a quarter of all weight still has to cut on this side goes out.
        cut = np.clip(0.25 * total - beyond, 0.0, tie_weight)
        weight -= np.where(tied, sample_weight[:, None], 0.0) * (cut / tie_weight)
    return np.asarray((weight * np.where(inside, rows, 0.0)).sum(axis=0) / weight.sum(axis=0))


def pruning_radius_sq(n_samples: float, n_features: int) -> float:
    """Return a squared distance that no clean row exceeds, with probability 0.95.

    The chi-squared tail bound of Laurent and Massart (2000), with room for a rough centre.
    """
    log_term = float(np.log(n_samples / _FAILURE_PROBABILITY))
    spread = 2.0 * float(np.sqrt(n_features * log_term)) + 2.0 * log_term
    return _SLACK * (n_features + spread)


def pruned_rows(
    squared_distances: Array, radius_sq: float, sample_weight: Array, contamination: float
) -> NDArray[np.intp]:
    """Return the rows beyond the radius, farthest first, as many as the contamination allows.

    Parameters
    ----------
    squared_distances : ndarray of shape (n,)
        Infinite where they overflow.
    radius_sq : float
    sample_weight : ndarray of shape (n,)
    contamination : float
        At most this share of the sample weight is pruned.

    Examples
    --------
    >>> import numpy as np
    >>> pruned_rows(np.array([1.0, 50.0, 70.0, 2.0]), 10.0, np.ones(4), 0.25)
    array([2])
    """
    beyond = np.flatnonzero(squared_distances > radius_sq)
    order = beyond[np.argsort(-squared_distances[beyond], kind="stable")]
    # Half a unit in the last place of room: a share given as a decimal fraction is not exact.
    budget = contamination * sample_weight.sum() * (1.0 + 1e-9)
    allowed = np.cumsum(sample_weight[order]) <= budget
    # Equal rows go together or not at all, so that integer weights equal repeated rows.
    distances = squared_distances[order]
    split = distances[~allowed]
    return np.asarray(order[allowed & (distances > split.max(initial=-np.inf))])
