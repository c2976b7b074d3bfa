"""Coordinates in the span of the samples, for fewer rows than columns."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from outweigh.protocols import Array, Samples
from outweigh.samples.dense import DenseSamples

__all__ = ["column_energy", "in_memory", "in_span"]

# Directions weaker than this share of the strongest are rounding.
_RANK_RTOL = 1e-10


def in_memory(samples: Samples) -> DenseSamples:
    """Return samples of few rows and many columns in memory, or say that they do not fit."""
    held = samples.at_hand()
    if isinstance(held, DenseSamples):
        return held
    raise ValueError(
        f"X: {samples.n_samples} rows of {samples.n_features} columns do not fit the memory that "
        "may be gathered, as fewer rows than columns must; raise outweigh.gathered-bytes in the "
        "configuration of Dask, or drop columns"
    )


def in_span(samples: DenseSamples, sample_weight: Array) -> tuple[DenseSamples, Array]:
    """Return the rows in an orthonormal basis of their span, and that basis.

    Exact: second moments in these coordinates have the same nonzero eigenvalues. Costs the n x n
    Gram matrix and no d x d array.

    Parameters
    ----------
    samples : DenseSamples
    sample_weight : ndarray of shape (n,)
        Where it is 0 the row does not count for the span.

    Returns
    -------
    coordinates : DenseSamples
        n rows of as many columns as the rank.
    basis : ndarray of shape (d, rank)

    Examples
    --------
    >>> import numpy as np
    >>> coordinates, basis = in_span(DenseSamples(np.array([[3.0, 0.0, 4.0]])), np.ones(1))
    >>> abs(coordinates.array), basis.shape
    (array([[5.]]), (3, 1))
    """
    rows = samples.array[sample_weight > 0]
    gram = rows @ rows.T
    values, vectors = scipy.linalg.eigh(gram)
    kept = values > _RANK_RTOL * max(float(values[-1]), np.finfo(float).tiny)
    values, vectors = values[kept][::-1], vectors[:, kept][:, ::-1]
    # Orthonormal up to the squared condition number; one QR step makes it exact.
    basis = np.linalg.qr(rows.T @ (vectors / np.sqrt(values)))[0]
    return DenseSamples(samples.array @ basis), basis


def column_energy(samples: DenseSamples, weights: Array) -> Array:
    """Return sum_l (S_w)_jl^2 for every column j, through the n x n Gram matrix."""
    root = np.sqrt(weights)[:, None] * (samples.array - samples.mean(weights))
    gram = root @ root.T
    return np.asarray(np.einsum("ij,ij->j", root, gram @ root))
