"""Of more rows than weights are searched on: a random sample, and what it teaches of the rest."""

from __future__ import annotations

import logging
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.random import sample_without_replacement

from outweigh.estimators.input import sample_weights
from outweigh.protocols import Array, Indices
from outweigh.samples import Rows

logger = logging.getLogger("outweigh")

_DEVIATIONS = 4.0


def allowance(contamination: float, weight: Array) -> float:
    """Return how much more than a share of all rows may well be the share in a sample of them.

    Where a given share of all rows may be wrong, that of the sample exceeds it half of the
    time, and rows far out that could not be removed would be the end of the estimate. Four
    standard deviations, which sampling without replacement makes somewhat smaller yet.

    Parameters
    ----------
    contamination : float
    weight : ndarray of shape (m,)
        Sample weights of the rows of the sample, all positive.
    """
    n_effective = float(weight.sum() ** 2 / (weight @ weight))
    deviation = np.sqrt(contamination * (1.0 - contamination) / n_effective)
    return float(min(_DEVIATIONS * deviation, (0.5 - contamination) / 2.0))


def trusted(
    rows: NDArray[np.floating], score: Callable[[NDArray[np.float64]], Array], offset: float
) -> NDArray[np.bool_]:
    """Return whether the score of each row is not below the offset; it is sent to workers."""
    return np.asarray(score(np.asarray(rows, dtype=np.float64)) >= offset)


def subsample_of(
    rows: Rows,
    sample_weight: Array | None,
    size: int,
    random_state: int | np.random.RandomState | None,
) -> tuple[Indices, Rows, Array]:
    """Return `size` of the rows of positive weight, of which there are more.

    That is their places among all rows, increasing, the rows, and their sample weights.

    Parameters
    ----------
    rows : Rows
    sample_weight : ndarray of shape (n,), optional
        Nonnegative; one each by default.
    size : int
    random_state : int, RandomState or None
        None means 0, so that the default is reproducible.
    """
    counted = None if sample_weight is None else np.flatnonzero(sample_weight)
    n_counted = rows.shape[0] if counted is None else int(counted.size)
    logger.info(
        "X: weights are searched on a random sample of %d of %d rows (subsample)", size, n_counted
    )
    generator = check_random_state(0 if random_state is None else random_state)
    drawn = sample_without_replacement(n_counted, size, random_state=generator)
    indices = np.sort(drawn).astype(np.intp, copy=False)
    indices = indices if counted is None else counted[indices]
    weight = None if sample_weight is None else sample_weight[indices]
    # Relative weights count as rows by their own sizes: those of a sample may all be small.
    return indices, rows.part(indices), sample_weights(weight, size)
