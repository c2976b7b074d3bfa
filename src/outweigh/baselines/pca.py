"""Principal components: of the genuine rows, of all rows, and scikit-learn's sparse ones."""

from __future__ import annotations

from typing import Self

import numpy as np
import numpy.typing as npt
from sklearn.decomposition import PCA, SparsePCA

from outweigh.baselines.base import (
    ComponentsBaseline,
    Directions,
    FloatArray,
    PublishesComponents,
    check_mask,
    check_n_components,
    check_n_nonzero,
    check_samples,
    keep_largest,
)
from outweigh.baselines.leading_directions import leading_directions


class OraclePCA(PublishesComponents):
    """The components of the genuine rows, for whoever knows which they are.

    With ``n_nonzero`` the components are sparse: truncated power iteration from several starts,
    one component after the other.

    Assumptions: the truth is known. Cost: O(n d^2 + d^3).

    Parameters
    ----------
    n_components : int, default=1
    n_nonzero : int or None, default=None
        Number of nonzero entries of a component; None sets no limit.
    assume_centered : bool, default=False
        Whether the rows have mean zero; if not, the mean of the genuine rows is subtracted.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Unit rows, the entry of largest magnitude positive.
    mean_ : ndarray of shape (n_features,)
    inliers_ : ndarray of bool, shape (n_samples,)

    Examples
    --------
    >>> X = [[1.0, 0.0], [-1.0, 0.0], [0.0, 90.0]]
    >>> OraclePCA().fit(X, inliers=[True, True, False]).components_
    array([[1., 0.]])
    """

    def __init__(
        self,
        n_components: int = 1,
        n_nonzero: int | None = None,
        assume_centered: bool = False,
    ) -> None:
        self.n_components = n_components
        self.n_nonzero = n_nonzero
        self.assume_centered = assume_centered

    def fit(self, X: npt.ArrayLike, y: object = None, *, inliers: npt.ArrayLike) -> Self:
        """Estimate the components of the rows of ``X`` that ``inliers`` marks.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : ignored
        inliers : array-like of bool, shape (n_samples,)
            True for the genuine rows.

        Returns
        -------
        self
        """
        samples = check_samples(self, X)
        kept = check_n_nonzero(self.n_nonzero, samples.shape[1])
        mask = check_mask(inliers, samples.shape[0])
        n_components = check_n_components(self.n_components, samples.shape)
        genuine = samples[mask]
        centre = np.zeros(samples.shape[1]) if self.assume_centered else genuine.mean(axis=0)
        genuine = genuine - centre
        rows = leading_directions(genuine.T @ genuine / len(genuine), n_components, kept)
        return self._publish(X, Directions(rows, centre, inliers=mask))


class EmpiricalPCA(ComponentsBaseline):
    """scikit-learn's PCA of all rows, cut to its largest entries if asked.

    Assumptions: no outliers. Cost: O(n d min(n, d)).

    Parameters
    ----------
    n_components : int, default=1
    n_nonzero : int or None, default=None
        Number of largest entries of each component to keep; None keeps all.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Unit rows, the entry of largest magnitude positive.
    mean_ : ndarray of shape (n_features,)

    Examples
    --------
    >>> EmpiricalPCA().fit([[1.0, 0.0], [-1.0, 0.0], [0.0, 0.1]]).components_.round(2)
    array([[1., 0.]])
    """

    def __init__(self, n_components: int = 1, n_nonzero: int | None = None) -> None:
        self.n_components = n_components
        self.n_nonzero = n_nonzero

    def _directions(self, X: FloatArray, n_nonzero: int) -> Directions:
        n_components = check_n_components(self.n_components, X.shape)
        # The exact solvers: the randomised one would draw from the global generator.
        solver = "covariance_eigh" if X.shape[1] <= X.shape[0] else "full"
        pca = PCA(n_components=n_components, svd_solver=solver).fit(X)
        rows = np.stack([keep_largest(row, n_nonzero)[0] for row in pca.components_])
        return Directions(rows, pca.mean_)


class EmpiricalSparsePCA(ComponentsBaseline):
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

    def __init__(
        self,
        n_components: int = 1,
        n_nonzero: int | None = None,
        alpha: float = 1.0,
        max_iter: int = 200,
        random_state: int | None = 0,
    ) -> None:
        self.n_components = n_components
        self.n_nonzero = n_nonzero
        self.alpha = alpha
        self.max_iter = max_iter
        self.random_state = random_state

    def _directions(self, X: FloatArray, n_nonzero: int) -> Directions:
        spca = SparsePCA(
            n_components=check_n_components(self.n_components, X.shape),
            alpha=self.alpha,
            max_iter=self.max_iter,
            random_state=self.random_state,
        ).fit(X)
        rows = np.stack([keep_largest(row, n_nonzero)[0] for row in spca.components_])
        return Directions(rows, spca.mean_, n_iter=int(spca.n_iter_))
