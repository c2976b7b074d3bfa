"""Of more rows than weights are searched on: a random sample, and what it teaches of the rest."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from outweigh.protocols import Array, Indices
from outweigh.samples import Rows

__all__ = ["Subsample", "Trusts", "random_indices", "subsample_of"]

logger = logging.getLogger("outweigh")

_DEVIATIONS = 4.0


@dataclass(frozen=True, slots=True, eq=False)
class Subsample:
    """The rows that weights are searched on, where these are not all.

    Attributes
    ----------
    indices : ndarray of int, shape (m,)
        Their places among all rows, increasing.
    rows : Rows
    weight : ndarray of shape (m,)
        Their sample weights, all positive.
    """

    indices: Indices
    rows: Rows
    weight: Array

    def allowance(self, contamination: float) -> float:
        """Return how much more than a share of all rows may well be the share among these.

        Where a given share of all rows may be wrong, that of the sample exceeds it half of the
        time, and rows far out that could not be removed would be the end of the estimate. Four
        standard deviations, which sampling without replacement makes somewhat smaller yet.
        """
        n_effective = float(self.weight.sum() ** 2 / (self.weight @ self.weight))
        deviation = np.sqrt(contamination * (1.0 - contamination) / n_effective)
        return float(min(_DEVIATIONS * deviation, (0.5 - contamination) / 2.0))


@dataclass(frozen=True, slots=True, eq=False)
class Trusts:
    """Rows to whether each is trusted; small enough to be sent to workers."""

    score: Callable[[NDArray[np.float64]], Array]
    offset: float

    def __call__(self, rows: NDArray[np.floating]) -> NDArray[np.bool_]:
        """Return whether the score of each row is not below the offset."""
        return np.asarray(self.score(np.asarray(rows, dtype=np.float64)) >= self.offset)


def subsample_of(
    rows: Rows,
    sample_weight: Array | None,
    size: int | None,
    random_state: int | np.random.RandomState | None,
) -> Subsample | None:
    """Return `size` of the rows of positive weight, all of which are checked; None for few rows.

    Parameters
    ----------
    rows : Rows
    sample_weight : ndarray of shape (n,), optional
        Nonnegative; one each by default.
    size : int or None
        None: all rows are to be used.
    random_state : int, RandomState or None
        None means 0, so that the default is reproducible.
    """
    if size is None or rows.shape[0] <= size:
        return None
    counted = None
    if sample_weight is not None and sample_weight.min() == 0.0:
        counted = np.flatnonzero(sample_weight)
    n_counted = rows.shape[0] if counted is None else int(counted.size)
    if n_counted <= size:
        return None
    logger.info(
        "X: weights are searched on a random sample of %d of %d rows (subsample)", size, n_counted
    )
    generator = check_random_state(0 if random_state is None else random_state)
    indices = random_indices(n_counted, size, generator)
    indices = indices if counted is None else counted[indices]
    weight = np.ones(size) if sample_weight is None else sample_weight[indices]
    return Subsample(indices, rows.part(indices), weight)


def random_indices(n: int, size: int, generator: np.random.RandomState) -> Indices:
    """Return `size` of the numbers below n, none twice, in increasing order.

    Every set of so many is equally likely. Memory is a few times `size` numbers, however large n:
    `numpy.random.Generator.choice` holds all n unless `size` is a small part of them.

    Examples
    --------
    >>> import numpy as np
    >>> random_indices(10**15, 3, np.random.RandomState(0)).size
    3
    """
    if 2 * size > n:
        left_out = random_indices(n, n - size, generator)
        return np.delete(np.arange(n, dtype=np.intp), left_out)
    found = np.empty(0, dtype=np.intp)
    while found.size < size:
        # As many as are missing, never more: no choice among them could favour any.
        more = generator.randint(0, n, size - found.size, dtype=np.int64)
        found = np.union1d(found, more)
    return found.astype(np.intp, copy=False)
