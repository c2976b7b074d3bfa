"""Components that see only the directions of the rows from a centre, not their lengths."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from outweigh.baselines.base import ComponentsBaseline, Found
from outweigh.baselines.leading_directions import leading_directions
from outweigh.baselines.means import GeometricMedian
from outweigh.protocols import Array

# Of the identity in Tyler's matrix: it stays regular where rows lie in a subspace.
_LEAST_SHRINKAGE = 1e-6


class SphericalPCA(ComponentsBaseline, name="spherical"):
    """Spherical components: those of the rows projected to the unit sphere.

    The eigenvectors of the average of u u' with ``u = (x - m) / |x - m|``, m the geometric
    median. For elliptical rows they are those of the covariance, in the same order.

    Assumptions: elliptical rows. An outlier counts no more than any other row, so far ones do
    little harm, and many in one direction still do. Cost: O(n d^2 + d^3).

    Parameters
    ----------
    {{n_components ... n_nonzero}}
    assume_centered : bool, default=False
        Whether m is zero.

    Attributes
    ----------
    {{components_ ... mean_}}
        The centre m.

    References
    ----------
    .. [1] N. Locantore, J. Marron, D. Simpson, N. Tripoli, J. Zhang and K. Cohen, "Robust principal
       component analysis for functional data", Test 8 (1999).

    Examples
    --------
    >>> X = [[2.0, 0.1], [-2.0, 0.1], [1.0, -0.1], [-1.0, -0.1], [0.0, 900.0]]
    >>> SphericalPCA().fit(X).components_.round(1)
    array([[1., 0.]])
    """

    n_components: int = 1
    n_nonzero: int | None = None
    assume_centered: bool = False

    def _find(self, X: Array, n_nonzero: int) -> Found:
        centre, U = _directions(X, self.assume_centered)
        return Found(leading_directions(U.T @ U / len(X), self.n_components, n_nonzero), centre)


class TylerPCA(ComponentsBaseline, name="tyler"):
    """The components of Tyler's shape matrix.

    The shape V, of trace d, solves ``V = (1 - r) d / n sum x x' / (x' V^-1 x) + r I`` with the rows
    x about their geometric median, which is iterated from V = I. For r = 0 it is Tyler's, the most
    robust scatter of elliptical rows whatever their tails; it exists for n > d rows in general
    position, and with the shrinkage r for n > (1 - r) d.

    Assumptions: elliptical rows; fewer than a share 1/d of them in any line, and so on for
    subspaces. Cost: O(n d^2 + d^3) an iteration.

    Parameters
    ----------
    {{n_components ... n_nonzero}}
    assume_centered : bool, default=False
        Whether the centre is zero.
    max_iter : int, default=200
    tol : float, default=1e-8
        Stop when no entry of V changes by more.

    Attributes
    ----------
    {{components_ ... mean_}}
        The centre.
    n_iter_ : int

    Notes
    -----
    The shrinkage is 1 - n / (2d) where there are fewer than 2d rows, else a millionth, which keeps
    V regular where rows lie in a subspace.

    References
    ----------
    .. [1] D. Tyler, "A distribution-free M-estimator of multivariate scatter", Annals of
       Statistics 15 (1987).
    .. [2] Y. Chen, A. Wiesel and A. Hero, "Robust shrinkage estimation of high-dimensional
       covariance matrices", IEEE Transactions on Signal Processing 59 (2011).

    Examples
    --------
    >>> X = np.random.default_rng(0).standard_cauchy((400, 3)) * [9.0, 1.0, 1.0]
    >>> bool(TylerPCA().fit(X).components_[0, 0] > 0.95)
    True
    """

    n_components: int = 1
    n_nonzero: int | None = None
    assume_centered: bool = False
    max_iter: int = 200
    tol: float = 1e-8

    def _find(self, X: Array, n_nonzero: int) -> Found:
        centre, U = _directions(X, self.assume_centered)
        U = U[U.any(axis=1)]
        d, n_iter, V = X.shape[1], 0, np.eye(X.shape[1])
        shrinkage = max(1.0 - len(U) / (2.0 * d), _LEAST_SHRINKAGE)
        for n_iter in range(1, self.max_iter + 1):  # noqa: B007
            lengths = np.einsum("ij,ji->i", U, scipy.linalg.solve(V, U.T, assume_a="pos"))
            last, V = V, (U / lengths[:, None]).T @ U * (d / max(len(U), 1))
            V = (1.0 - shrinkage) * V + shrinkage * np.eye(d)
            V *= d / np.trace(V)
            if np.abs(V - last).max() <= self.tol:
                break
        return Found(leading_directions(V, self.n_components, n_nonzero), centre, n_iter=n_iter)


def _directions(X: Array, assume_centered: bool) -> tuple[Array, Array]:
    """Return the centre and the unit vectors from it to the rows; zero for a row that is there."""
    d = X.shape[1]
    centre = np.zeros(d) if assume_centered else GeometricMedian()._find(X, d).estimate
    Z = X - centre
    lengths = np.linalg.norm(Z, axis=1, keepdims=True)
    return centre, np.divide(Z, lengths, out=np.zeros_like(Z), where=lengths > 0.0)
