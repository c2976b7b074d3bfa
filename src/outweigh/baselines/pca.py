"""Principal components: of the genuine rows, of all rows, sparse ones, and by directions alone."""

from __future__ import annotations

import numpy as np
import scipy.linalg
from sklearn.decomposition import PCA, SparsePCA
from sklearn.preprocessing import normalize

from outweigh.baselines.base import CentredComponents, Found, Oracle, SeveralComponents
from outweigh.baselines.means import GeometricMedian
from outweigh.fit.readers import best_sparse, projected_out, top_eigenvectors
from outweigh.protocols import Array

# Of the identity in Tyler's matrix: it stays regular where rows lie in a subspace.
_LEAST_SHRINKAGE = 1e-6


class OraclePCA(Oracle, CentredComponents, SeveralComponents, name="oracle"):
    """The components of the genuine rows, for whoever knows which they are.

    With ``n_nonzero`` the components are sparse: truncated power iteration from several starts,
    one component after the other.

    Assumptions: the truth is known. Cost: O(n d^2 + d^3).

    Parameters
    ----------
    {{n_components ... n_nonzero}}
    assume_centered : bool, default=False
        Whether the rows have mean zero; if not, the mean of the genuine rows is subtracted.

    Attributes
    ----------
    {{components_ ... mean_}}
    inliers_ : ndarray of bool, shape (n_samples,)

    Examples
    --------
    >>> X = [[1.0, 0.0], [-1.0, 0.0], [0.0, 90.0]]
    >>> OraclePCA().fit(X, inliers=[True, True, False]).components_
    array([[1., 0.]])
    """

    def _centre(self, X: Array) -> Array:
        return np.asarray(X.mean(axis=0))

    def _find(self, Z: Array) -> Found:
        k = self._kept(Z.shape[1])
        return Found(leading_directions(Z.T @ Z / len(Z), self.n_components, k))


class EmpiricalPCA(SeveralComponents, name="empirical"):
    """scikit-learn's PCA of all rows, cut to its largest entries if asked.

    Assumptions: no outliers. Cost: O(n d min(n, d)).

    Parameters
    ----------
    n_components : int, default=1
    n_nonzero : int or None, default=None
        Number of largest entries of each component to keep; None keeps all.

    Attributes
    ----------
    {{components_ ... mean_}}

    Examples
    --------
    >>> EmpiricalPCA().fit([[1.0, 0.0], [-1.0, 0.0], [0.0, 0.1]]).components_.round(2)
    array([[1., 0.]])
    """

    def _find(self, X: Array) -> Found:
        # The exact solvers: the randomised one would draw from the global generator.
        solver = "covariance_eigh" if X.shape[1] <= X.shape[0] else "full"
        pca = PCA(n_components=self.n_components, svd_solver=solver).fit(X)
        return Found(pca.components_, pca.mean_)


class EmpiricalSparsePCA(SeveralComponents, name="empirical_sparse"):
    """scikit-learn's SparsePCA of all rows, cut to its largest entries if asked.

    Assumptions: no outliers. Cost: an alternation of lasso problems, far more than the others;
    no simple bound.

    Parameters
    ----------
    n_components : int, default=1
    n_nonzero : int or None, default=None
        Number of largest entries of each component to keep; None keeps what the penalty leaves.
    alpha : float, default=1.0
        Weight of the l1 penalty.
    max_iter : int, default=200
        Largest number of alternations.
    random_state : int or None, default=0
        Seed of scikit-learn's SparsePCA.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Unit rows, the entry of largest magnitude positive; a row that the penalty made zero
        stays zero.
    mean_ : ndarray of shape (n_features,)
    n_iter_ : int

    Examples
    --------
    >>> X = np.random.default_rng(0).standard_normal((60, 4)) * [5.0, 1.0, 1.0, 1.0]
    >>> EmpiricalSparsePCA(n_nonzero=1).fit(X).components_
    array([[1., 0., 0., 0.]])
    """

    alpha: float = 1.0
    max_iter: int = 200
    random_state: int | None = 0

    def _find(self, X: Array) -> Found:
        spca = SparsePCA(
            n_components=self.n_components,
            alpha=self.alpha,
            max_iter=self.max_iter,
            random_state=self.random_state,
        ).fit(X)
        return Found(spca.components_, spca.mean_, n_iter=int(spca.n_iter_))


class _AboutGeometricMedian(CentredComponents, SeveralComponents):
    """A baseline for components about the geometric median."""

    def _centre(self, X: Array) -> Array:
        return GeometricMedian()._find(X).estimate


class SphericalPCA(_AboutGeometricMedian, name="spherical"):
    """Spherical components: those of the rows projected to the unit sphere.

    The eigenvectors of the average of u u' with ``u = (x - m) / |x - m|``, m the geometric
    median. For elliptical rows they are those of the covariance, in the same order.

    Assumptions: elliptical rows. An outlier counts no more than any other row, so far ones do
    little harm, and many in one direction still do. Cost: O(n d^2 + d^3).

    Parameters
    ----------
    {{n_components ... n_nonzero}}
    assume_centered : bool, default=False
        Whether the centre of the rows is zero; if not, their geometric median is subtracted.

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

    def _find(self, Z: Array) -> Found:
        U, k = normalize(Z), self._kept(Z.shape[1])
        return Found(leading_directions(U.T @ U / len(Z), self.n_components, k))


class TylerPCA(_AboutGeometricMedian, name="tyler"):
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
        Whether the centre of the rows is zero; if not, their geometric median is subtracted.
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

    max_iter: int = 200
    tol: float = 1e-8

    def _find(self, Z: Array) -> Found:
        # A row at the centre has no direction.
        U = normalize(Z[Z.any(axis=1)])
        d, n_iter, V = Z.shape[1], 0, np.eye(Z.shape[1])
        shrinkage = max(1.0 - len(U) / (2.0 * d), _LEAST_SHRINKAGE)
        for n_iter in range(1, self.max_iter + 1):  # noqa: B007
            lengths = np.einsum("ij,ji->i", U, scipy.linalg.solve(V, U.T, assume_a="pos"))
            last, V = V, (U / lengths[:, None]).T @ U * (d / max(len(U), 1))
            V = (1.0 - shrinkage) * V + shrinkage * np.eye(d)
            V *= d / np.trace(V)
            if np.abs(V - last).max() <= self.tol:
                break
        return Found(leading_directions(V, self.n_components, self._kept(d)), n_iter=n_iter)


def leading_directions(covariance: Array, n_components: int, n_nonzero: int) -> Array:
    """Return the leading directions of a covariance as unit rows with few nonzero entries.

    Without sparsity they are eigenvectors. With it each is found by truncated power iteration
    from several starts, the best kept, and projected out before the next.

    Parameters
    ----------
    covariance : ndarray of shape (d, d)
        Positive semidefinite.
    n_components : int
    n_nonzero : int
        Largest number of nonzero entries in a row; d or more means no limit.

    References
    ----------
    .. [1] X.-T. Yuan and T. Zhang, "Truncated power method for sparse eigenvalue problems",
       JMLR 14 (2013).

    Examples
    --------
    >>> abs(leading_directions(np.diag([1.0, 3.0, 2.0]), 2, 1))
    array([[0., 1., 0.],
           [0., 0., 1.]])
    """
    n_features = len(covariance)
    if n_nonzero >= n_features:
        return top_eigenvectors(covariance, n_components).T
    left, found = covariance, np.zeros((n_components, n_features))
    for direction in found:
        noise = np.median(np.diag(left)) * np.eye(n_features)
        direction[:] = best_sparse(left - noise, n_nonzero)
        left = projected_out(left, direction[:, None])
    return found
