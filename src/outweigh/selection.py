"""Selection by magnitude: the only top-k and the only hard threshold in the library."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["hard_threshold", "top_k_indices", "top_k_per_row"]


def top_k_indices(values: NDArray[np.floating], k: int) -> NDArray[np.intp]:
    """Return the indices of the `k` entries of largest magnitude, in increasing order.

    Parameters
    ----------
    values : ndarray of shape (d,)
    k : int
        How many to keep; all of them when ``k >= d``, none when ``k <= 0``.

    Returns
    -------
    ndarray of shape (min(k, d),)

    Examples
    --------
    >>> import numpy as np
    >>> top_k_indices(np.array([1.0, -3.0, 2.0]), 2)
    array([1, 2])
    """
    size = values.shape[0]
    if k <= 0:
        return np.empty(0, dtype=np.intp)
    if k >= size:
        return np.arange(size)
    return np.sort(np.argpartition(np.abs(values), size - k)[size - k :])


def top_k_per_row(block: NDArray[np.floating], k: int) -> NDArray[np.intp]:
    """Return, for each row, the column indices of its `k` entries of largest magnitude.

    Parameters
    ----------
    block : ndarray of shape (m, d)
    k : int
        At least 1; clipped to ``d``.

    Returns
    -------
    ndarray of shape (m, min(k, d))
        Unordered within a row.
    """
    size = block.shape[1]
    if k >= size:
        return np.broadcast_to(np.arange(size), block.shape)
    return np.argpartition(np.abs(block), size - k, axis=1)[:, size - k :]


def hard_threshold(values: NDArray[np.floating], k: int) -> NDArray[np.float64]:
    """Keep the `k` entries of largest magnitude and set the others to zero.

    Examples
    --------
    >>> import numpy as np
    >>> hard_threshold(np.array([1.0, -3.0, 2.0]), 2)
    array([ 0., -3.,  2.])
    """
    kept = np.zeros(values.shape[0])
    indices = top_k_indices(values, k)
    kept[indices] = values[indices]
    return kept
