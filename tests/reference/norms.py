"""The norms by trying every support, and by singular values."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def vector_largest(v: Array, k: int) -> float:
    """Return the largest l2 norm of k entries of v, over all choices of them."""
    k = min(k, v.size)
    return max(
        float(np.sqrt(sum(v[i] ** 2 for i in chosen)))
        for chosen in itertools.combinations(range(v.size), k)
    )


def rowwise_largest(A: Array, k: int) -> float:
    """Return the largest Frobenius norm of k entries in each of k rows, over all choices."""
    k = min(k, len(A))
    energy = [vector_largest(row, k) ** 2 for row in A]
    return max(
        float(np.sqrt(sum(energy[i] for i in rows)))
        for rows in itertools.combinations(range(len(A)), k)
    )


def largest_entries(A: Array, m: int) -> float:
    """Return the largest Frobenius norm of m entries, over all choices of them."""
    return vector_largest(A.ravel(), min(m, A.size))


def ky_fan(A: Array, rank: int) -> float:
    """Return the sum of the largest singular values."""
    return float(np.linalg.svd(A, compute_uv=False)[:rank].sum())


def rowwise_largest_sorted(A: Array, k: int) -> float:
    """Return the same as `rowwise_largest` by sorting, for matrices too large to enumerate."""
    squares = np.sort(A * A, axis=1)[:, ::-1][:, :k].sum(axis=1)
    return float(np.sqrt(np.sort(squares)[::-1][:k].sum()))


def largest_entries_sorted(A: Array, m: int) -> float:
    """Return the same as `largest_entries` by sorting, for matrices too large to enumerate."""
    return float(np.sqrt(np.sort((A * A).ravel())[::-1][:m].sum()))
