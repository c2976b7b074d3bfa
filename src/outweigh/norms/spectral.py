r"""Norms that read the eigenvalues of largest magnitude: spectral and Ky Fan r."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

from outweigh.forms import Form
from outweigh.protocols import Array, Maximum, MomentMatrix

# Below this dimension a full symmetric eigendecomposition is as quick as Lanczos.
_DENSE_LIMIT = 200
# Lanczos needs a dozen restarts or less where eigenvalues differ. Where it needs more, a full
# decomposition is quicker, unless there are so many features that it would take minutes.
_RESTARTS, _RESTARTS_BELOW = 20, 5000
# Directions weaker than this share of the strongest are rounding.
_RANK_RTOL = 1e-10
# How many tied directions a spread maximiser looks at.
_MAX_TIES = 24


@dataclass(frozen=True, slots=True)
class KyFan:
    r"""The Ky Fan norm: the sum of the r largest singular values; r = 1 is the spectral norm.

    Robust mean estimation minimises it with r = 1 (Appendix D of the paper) and robust PCA with
    r = 2 (Appendix E).

    Parameters
    ----------
    rank : int, default=1
        The r of the definition.
    level : float or None, default=None
        With ``rank=1``, spread the maximiser over all eigenvectors whose eigenvalue exceeds this
        level in magnitude, in proportion to the excess. The form stays in the dual ball, so it is
        still a lower model of the norm, and a descent does not zigzag between near ties.

    Examples
    --------
    >>> import numpy as np
    >>> from outweigh.samples import ArrayMoment
    >>> KyFan(2).maximize(ArrayMoment(np.diag([3.0, -4.0, 1.0]))).value
    7.0
    """

    rank: int = 1
    level: float | None = None

    def maximize(self, matrix: MomentMatrix) -> Maximum:
        r"""Return the value and the form :math:`\sum_j \mathrm{sign}(\lambda_j) v_j v_j^\top`."""
        rank = min(self.rank, matrix.n_features)
        spread = self.rank == 1 and self.level is not None
        values, vectors = largest_eigenpairs(matrix, _MAX_TIES if spread else rank)
        value = float(np.abs(values[:rank]).sum())
        if spread and self.level is not None and value > self.level:
            excess = np.maximum(np.abs(values) - self.level, 0.0)
            strengths = np.sign(values) * excess / excess.sum()
        else:
            values, vectors = values[:rank], vectors[:, :rank]
            strengths = np.sign(values)
        kept = strengths != 0
        form = Form.from_directions(vectors[:, kept], strengths[kept])
        return Maximum(value, form, float(strengths @ values))


def largest_eigenpairs(matrix: MomentMatrix, count: int, tol: float = 1e-9) -> tuple[Array, Array]:
    """Return the `count` eigenpairs of largest magnitude, by decreasing magnitude.

    Parameters
    ----------
    matrix : MomentMatrix
    count : int
        Clipped to the dimension.
    tol : float, default=1e-9
        Relative accuracy of the values where they are found by iteration; 0 for all digits.

    Returns
    -------
    values : ndarray of shape (count,)
    vectors : ndarray of shape (d, count)
    """
    d = matrix.n_features
    count = min(count, d)
    factor = matrix.factor() if count < d else None
    if factor is not None:
        values, vectors = _of_factor(*factor, count)
    elif d <= _DENSE_LIMIT or 4 * count >= d:
        values, vectors = scipy.linalg.eigh(matrix.restrict(np.arange(d)))
    else:
        operator = LinearOperator((d, d), matvec=matrix.product, dtype=np.float64)
        # A fixed start: the same matrix always gives the same vectors.
        start = np.random.default_rng(d).standard_normal(d)
        restarts = _RESTARTS if d <= _RESTARTS_BELOW else None
        try:
            values, vectors = eigsh(
                operator, k=count, which="LM", v0=start, tol=tol, maxiter=restarts
            )
        except ArpackError:
            # Many equal eigenvalues, as rows of low rank have: Lanczos finds them one by one, if
            # at all.
            values, vectors = scipy.linalg.eigh(matrix.restrict(np.arange(d)))
    order = np.argsort(-np.abs(values), kind="stable")[:count]
    return values[order], vectors[:, order]


def _of_factor(rows: Array, shift: float, count: int) -> tuple[Array, Array]:
    """Return eigenpairs of Y'Y - c I, given n rows Y of d > n columns, and c.

    They are those of the n x n matrix YY', and -c in the d - n or more directions that are
    orthogonal to all rows. Among what is returned are the `count` of largest magnitude.
    """
    n, d = rows.shape
    # Where there are enough directions of value -c, no value between -c and c is needed.
    enough = d - n >= count
    lowest = max(n - count, 0) if enough else 0
    values, vectors = scipy.linalg.eigh(rows @ rows.T, subset_by_index=[lowest, n - 1])
    told = values > _RANK_RTOL * max(float(values[-1]), np.finfo(float).tiny)
    values, vectors = values[told][::-1], vectors[:, told][:, ::-1]
    # Orthonormal up to the squared condition number; one step more makes it exact.
    found = _orthonormal(rows.T @ (vectors / np.sqrt(values)))
    values = values - shift
    if np.count_nonzero(np.abs(values) >= abs(shift)) >= count:
        return values, found
    others = np.random.default_rng(d).standard_normal((d, count if enough else d - values.size))
    span = _orthonormal(rows.T) if enough else found
    for _ in range(2):
        # Twice: what the first time leaves along the rows is rounding.
        others -= span @ (span.T @ others)
    return np.append(values, np.full(others.shape[1], -shift)), np.hstack(
        [found, _orthonormal(others)]
    )


def _orthonormal(vectors: Array) -> Array:
    return np.asarray(np.linalg.qr(vectors)[0], dtype=np.float64)
