"""Principal components: of the genuine rows, of all rows, and scikit-learn's sparse ones."""

from __future__ import annotations

import numpy as np
from sklearn.decomposition import PCA, SparsePCA

from outweigh.baselines.base import ComponentsBaseline, Found, Oracle
from outweigh.baselines.leading_directions import leading_directions
from outweigh.norms.entrywise import hard_threshold
from outweigh.protocols import Array


class OraclePCA(Oracle, ComponentsBaseline, name="oracle"):
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

    n_components: int = 1
    n_nonzero: int | None = None
    assume_centered: bool = False

    def _find(self, X: Array, n_nonzero: int) -> Found:
        centre = np.zeros(X.shape[1]) if self.assume_centered else X.mean(axis=0)
        Z = X - centre
        return Found(leading_directions(Z.T @ Z / len(Z), self.n_components, n_nonzero), centre)


class EmpiricalPCA(ComponentsBaseline, name="empirical"):
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

    n_components: int = 1
    n_nonzero: int | None = None

    def _find(self, X: Array, n_nonzero: int) -> Found:
        # The exact solvers: the randomised one would draw from the global generator.
        solver = "covariance_eigh" if X.shape[1] <= X.shape[0] else "full"
        pca = PCA(n_components=self.n_components, svd_solver=solver).fit(X)
        rows = np.stack([hard_threshold(row, n_nonzero) for row in pca.components_])
        return Found(rows, pca.mean_)


class EmpiricalSparsePCA(ComponentsBaseline, name="empirical_sparse"):
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

    n_components: int = 1
    n_nonzero: int | None = None
    alpha: float = 1.0
    max_iter: int = 200
    random_state: int | None = 0

    def _find(self, X: Array, n_nonzero: int) -> Found:
        spca = SparsePCA(
            n_components=self.n_components,
            alpha=self.alpha,
            max_iter=self.max_iter,
            random_state=self.random_state,
        ).fit(X)
        rows = np.stack([hard_threshold(row, n_nonzero) for row in spca.components_])
        return Found(rows, spca.mean_, n_iter=int(spca.n_iter_))
