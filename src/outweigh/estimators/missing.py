"""Missing values of rows in memory: what is put in their place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from outweigh.fit.columns import weighted_quantile
from outweigh.protocols import Array


def column_medians(X: Array, sample_weight: Array, names: Sequence[object]) -> Array:
    """Return the median of what is known of each column.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        NaN where a value is missing.
    sample_weight : ndarray of shape (n,)
        A whole number counts as that many copies of the row; a row of weight 0 does not count.
    names : sequence of length d
        What the columns are called in an error.

    Raises
    ------
    ValueError
        If a column holds no value at all.

    Examples
    --------
    >>> import numpy as np
    >>> column_medians(np.array([[1.0], [np.nan], [4.0], [2.0], [9.0]]), np.ones(5), ["mass"])
    array([3.])
    """
    medians = np.empty(X.shape[1])
    for j, column in enumerate(X.T):
        known = ~np.isnan(column) & (sample_weight > 0)
        if not known.any():
            raise ValueError(f"X: column {names[j]!r} holds no value at all; leave it out")
        values, weight = column[known], sample_weight[known]
        low, high = (weighted_quantile(side, weight, [0.5])[0] for side in (values, -values))
        # Between the two in the middle, each halved first: their difference may overflow.
        medians[j] = low / 2.0 - high / 2.0
    return medians


def filled(X: NDArray[Any], medians: Array | None) -> NDArray[Any]:
    """Return rows with the medians where values are missing; without medians, as they are."""
    if medians is None or not np.isnan(X).any():
        return X
    return np.where(np.isnan(X), medians.astype(X.dtype), X)
