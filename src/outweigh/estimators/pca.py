"""Robust principal components, dense and sparse."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Sequence
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from outweigh.estimators.base import RobustEstimator, warn_constant
from outweigh.estimators.components import fix_signs, orthonormal
from outweigh.estimators.parameters import COMMON, N_COMPONENTS, N_NONZERO_EACH
from outweigh.estimators.pca_distances import Distances, distances_for
from outweigh.estimators.pca_fit import DistanceScore, FittedPCA, PCASettings, fit_pca
from outweigh.estimators.scoring import RowScore
from outweigh.moments import DenseSamples
from outweigh.protocols import Array, Indices

__all__ = ["RobustPCA", "RobustSparsePCA"]

# Squares of what lies beyond would overflow; such rows are outliers by any measure.
_LARGEST = 1e140


class _RobustPCABase(ClassNamePrefixFeaturesOutMixin, TransformerMixin, RobustEstimator):
    """The fit template and the methods of both."""

    n_components: int
    assume_centered: bool
    components_: Array
    mean_: Array
    _row_score: RowScore | DistanceScore
    _distances: Distances

    @abstractmethod
    def _wanted_nonzero(self) -> tuple[int, ...] | None:
        """Return the entries of each component, () to find them, or None for all."""

    def _fit_rows(self, X: NDArray[np.float64], sample_weight: Array) -> None:
        n, d = X.shape
        if self.n_components > min(n, d):
            raise ValueError(
                f"n_components={self.n_components} must be at most min(n_samples, n_features)="
                f"{min(n, d)}; lower it or add samples"
            )
        wanted = self._wanted_nonzero()
        positive = sample_weight > 0
        rows = X if positive.all() else X[positive]
        weight = sample_weight[positive]
        scale = (
            self.scale
            if self.scale is None or isinstance(self.scale, str)
            else np.asarray(self.scale, dtype=np.float64)
        )
        settings = PCASettings(
            n_components=int(self.n_components),
            n_nonzero=wanted,
            contamination=None if self.contamination == "auto" else float(self.contamination),
            scale=scale,
            centred=not self.assume_centered,
            refit=bool(self.refit),
            options=self._options(1),
        )
        found = fit_pca(rows, weight, settings, self._log)
        if not self.assume_centered:
            warn_constant(found.standardizer.columns, d)
        self._set_weights(X, sample_weight, positive, found)
        self._set_components(found, weight, d)
        self._distances = distances_for(
            _samples(rows),
            found.weights,
            orthonormal(self.components_.T),
            not self.assume_centered,
        )
        self.score_cutoff_ = self._distances.score_cutoff
        self.orthogonal_cutoff_ = self._distances.orthogonal_cutoff

    def _set_weights(
        self,
        X: NDArray[np.float64],
        sample_weight: Array,
        positive: NDArray[np.bool_],
        found: FittedPCA,
    ) -> None:
        weights = np.zeros(positive.size)
        weights[positive] = found.weights
        self.weights_ = weights
        self.certificate_ = found.certificate
        self.contamination_ = found.certificate.removed
        self.contamination_bound_ = found.certificate.contamination_bound
        self.objective_ = found.certificate.objective
        self.noise_floor_ = found.certificate.noise_floor.median
        self.n_iter_ = found.n_iter
        self.trace_ = found.trace
        self._row_score = found.score
        scores = self._score_rows(X[positive])
        self._set_offset(scores, sample_weight[positive], self._share(sample_weight))

    def _set_components(self, found: FittedPCA, sample_weight: Array, n_features: int) -> None:
        standardizer, weights = found.standardizer, found.weights
        centred = not self.assume_centered
        centre = found.samples.mean(weights) if centred else np.zeros(found.samples.n_features)
        self.mean_ = np.zeros(n_features)
        self.mean_[standardizer.columns] = standardizer.origin + standardizer.scale * centre
        if centred:
            constant = np.setdiff1d(np.arange(n_features), standardizer.columns)
            self.mean_[constant] = self._constants[constant]
        rows = found.components * standardizer.scale
        rows = _completed(rows / np.linalg.norm(rows, axis=1, keepdims=True), self.n_components)
        along = found.samples.project((rows * standardizer.scale).T)
        along = along - centre @ (rows * standardizer.scale).T
        # The unbiased variance for equal weights, as scikit-learn's PCA has it.
        n_effective = 1.0 / float(np.sum(weights**2 / sample_weight))
        unbiased = n_effective / max(n_effective - 1.0, 1.0) if centred else 1.0
        covariance = unbiased * (along * weights[:, None]).T @ along
        order, variances = _adjusted_variances(covariance)
        components = np.zeros((self.n_components, n_features))
        components[:, standardizer.columns] = rows[order]
        self.components_ = fix_signs(components)
        self.explained_variance_ = variances
        spread = found.samples.variances(weights)
        if not centred:
            spread = spread + found.samples.mean(weights) ** 2
        total = unbiased * float(spread @ standardizer.scale**2)
        left = max(total - float(variances.sum()), 0.0)
        self.explained_variance_ratio_ = variances / total if total > 0 else variances
        self.noise_variance_ = left / max(n_features - self.n_components, 1)
        if n_features == self.n_components:
            self.noise_variance_ = 0.0
        self.scale_ = np.ones(n_features)
        if self.scale is not None:
            level = found.standardizer.scale
            self.scale_[standardizer.columns] = level

    def _validate_rows(
        self, X: ArrayLike, sample_weight: ArrayLike | None
    ) -> tuple[NDArray[np.float64], Array]:
        rows, weight = super()._validate_rows(X, sample_weight)
        self._constants = rows[0].copy()
        return rows, weight

    def transform(self, X: ArrayLike) -> NDArray[np.floating]:
        """Return the scores of the rows: their coordinates along the components.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            float32 for float32 rows.
        """
        check_is_fitted(self)
        rows = validate_data(self, X, reset=False, dtype=[np.float64, np.float32])
        scores = (rows - self.mean_) @ self.components_.T
        return np.asarray(scores.astype(rows.dtype, copy=False))

    def inverse_transform(self, X: ArrayLike) -> NDArray[np.floating]:
        """Return the rows nearest to the mean that have the given scores.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        scores = check_array(X, dtype=[np.float64, np.float32], input_name="X")
        if scores.shape[1] != self.n_components:
            raise ValueError(
                f"X must have one column per component, {self.n_components}; got {scores.shape[1]}"
            )
        gram = self.components_ @ self.components_.T
        rows = scores @ np.linalg.pinv(gram) @ self.components_ + self.mean_
        return np.asarray(rows.astype(scores.dtype, copy=False))

    def score_distances(self, X: ArrayLike) -> Array:
        """Return the Mahalanobis distance of each row inside the subspace; see `score_cutoff_`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        samples = self._checked(X)
        return self._distances.score(samples)

    def orthogonal_distances(self, X: ArrayLike) -> Array:
        """Return the distance of each row from the subspace; see `orthogonal_cutoff_`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        samples = self._checked(X)
        return self._distances.orthogonal(samples)

    def _checked(self, X: ArrayLike) -> DenseSamples:
        check_is_fitted(self)
        return _samples(validate_data(self, X, reset=False, dtype=np.float64))

    def _score_rows(self, X: NDArray[np.float64]) -> Array:
        return self._row_score(X)

    def _contributions(self, X: NDArray[np.float64]) -> tuple[Array, Array, Indices]:
        parts, deviations = self._row_score.contributions(X)
        return parts, deviations, self._row_score.standardizer.columns

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])


class RobustPCA(_RobustPCABase):
    r"""Principal components of data of which a fraction of the rows is arbitrarily wrong.

    Weights :math:`w` in the capped simplex are sought under which, beside the components, the
    second moments look like noise: the largest eigenvalue of what the components leave of
    :math:`S_w - \sigma^2 I` is brought to the level of clean data. Which directions are components
    is decided by the variance of the bulk of the rows. Where the noise is not white there is no
    such level; the weights then minimise the volume of the bulk in the leading directions, and the
    certificate says so.

    Parameters
    ----------
    n_components : int, default=1
        At most min(n_samples, n_features).
    contamination : float in [0, 0.5) or "auto", default="auto"
        The largest share of rows that may be wrong. "auto" estimates it.
    scale : {"auto", "mad"}, array of shape (n_features,) or None, default=None
        None keeps the units of X and estimates one noise level for all features. "mad" divides
        each feature by its median absolute deviation, "auto" only where the features are not of
        unit noise, an array by its entries. Components are unit vectors in the units of X.
    assume_centered : bool, default=False
        Whether the clean rows have mean zero: M_w instead of S_w, and no mean is subtracted.
    solver : {"polyak", "backtracking", "constant", "mirror"}, default="polyak"
        "polyak" steps toward the level of clean data, "backtracking" halves steps that fail,
        "constant" is the step of the paper's theorem, "mirror" is entropic mirror descent.
    refit : bool, default=True
        False minimises the paper's objective, the Ky Fan norm of :math:`S_w - \sigma^2 I` with one
        singular value more than components, and reads the top eigenvectors off.
    stop_at_floor : bool, default=True
        End the descent at the level of clean data; without `refit`, at the theorem's threshold
        :math:`\rho + O(\delta)`. False descends to a stationary point.
    working_set : bool, default=True
        Has no effect here; it is shared with the sparse estimators.
    max_iter : int, default=300
        Evaluations of the objective allowed in each descent.
    tol : float, default=1e-3
        Relative progress below which a descent has converged.
    random_state : int, RandomState or None, default=None
        Has no effect: nothing is drawn. Kept for the common interface.
    verbose : bool or int, default=False
        Log each evaluation at level INFO to the logger ``outweigh``.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Unit rows, the entry of largest magnitude positive, by decreasing variance.
    explained_variance_ : ndarray of shape (n_components,)
        Weighted variance along each component, in the units of X squared, of what the components
        before it leave (they overlap only with `scale` or sparsity).
    explained_variance_ratio_ : ndarray of shape (n_components,)
    noise_variance_ : float
        Mean variance of the directions left.
    mean_ : ndarray of shape (n_features,)
        The weighted mean; zero with `assume_centered`.
    weights_ : ndarray of shape (n_samples,)
    contamination_, contamination_bound_ : float
        The share of the sample weight removed, and the share that could have been.
    certificate_ : PCACertificate
        How good the weights are; ``str(est.certificate_)`` is a verdict for a person.
    objective_, noise_floor_ : float
        The norm of what the components leave, and its median for clean data; 0 where the noise is
        not white, and `objective_` is then the sum of the leading variances.
    score_cutoff_, orthogonal_cutoff_ : float
        What 0.975 of clean rows do not exceed; see `score_distances`, `orthogonal_distances`.
    scale_ : ndarray of shape (n_features,)
        What each feature was divided by; ones if `scale` is None.
    n_iter_ : int
    trace_ : tuple of Iterate
    offset_ : float
        ``predict`` flags rows whose score is below it.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)

    Notes
    -----
    ``refit=False, solver="constant", stop_at_floor=False`` is the plain algorithm of the paper,
    ``solver="backtracking"`` the one its authors ran.

    References
    ----------
    Cheng, Diakonikolas, Ge, Gupta, Kane, Soltanolkotabi, "Outlier-Robust Sparse Estimation via
    Non-Convex Optimization", NeurIPS 2022, Appendix E.

    Examples
    --------
    >>> import numpy as np
    >>> from outweigh.adversaries import dense_spike
    >>> from outweigh.estimators.pca import RobustPCA
    >>> sample = dense_spike(2000, 20, 20, 0.1, random_state=0, spike=3.0)
    >>> est = RobustPCA().fit(sample.X)
    >>> bool(abs(est.components_[0] @ sample.truth[0]) > 0.99)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {**COMMON, **N_COMPONENTS}

    def __init__(
        self,
        n_components: int = 1,
        *,
        contamination: float | str = "auto",
        scale: str | ArrayLike | None = None,
        assume_centered: bool = False,
        solver: str = "polyak",
        refit: bool = True,
        stop_at_floor: bool = True,
        working_set: bool = True,
        max_iter: int = 300,
        tol: float = 1e-3,
        random_state: int | np.random.RandomState | None = None,
        verbose: int | bool = False,
    ) -> None:
        self.n_components = n_components
        self.contamination = contamination
        self.scale = scale
        self.assume_centered = assume_centered
        self.solver = solver
        self.refit = refit
        self.stop_at_floor = stop_at_floor
        self.working_set = working_set
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose

    def _wanted_nonzero(self) -> None:
        return None


class RobustSparsePCA(_RobustPCABase):
    r"""Sparse principal components of data of which a fraction of the rows is arbitrarily wrong.

    Algorithm 2 of the paper, changed where it trims the clean spike: weights are sought under which
    the :math:`2k^2` largest entries of what the components leave of :math:`S_w - \sigma^2 I` are at
    the level of clean data; candidates are found by truncated power iteration and chosen by the
    variance of the bulk of the rows along them.

    Parameters
    ----------
    n_components : int, default=1
        At most min(n_samples, n_features). Found one after the other by deflation.
    n_nonzero : int, sequence of int or "auto", default="auto"
        The number k of nonzero entries, of all components or of each. "auto" counts the entries
        that exceed the largest of n_features Gaussians of their noise; where the noise is not
        white, it takes the effective number of entries :math:`1 / \sum_j u_j^4` of the dense
        component. An integer above n_features is clipped with a warning.
    contamination : float in [0, 0.5) or "auto", default="auto"
        The largest share of rows that may be wrong. "auto" estimates it.
    scale : {"auto", "mad"}, array of shape (n_features,) or None, default=None
        As in `RobustPCA`; the support is chosen in scaled units.
    assume_centered : bool, default=False
        Whether the clean rows have mean zero: M_w instead of S_w, and no mean is subtracted.
    solver : {"polyak", "backtracking", "constant", "mirror"}, default="polyak"
    refit : bool, default=True
        False minimises the paper's objective :math:`\|S_w - \sigma^2 I\|_{F,2k^2}` and reads the
        component off its :math:`k^2` largest entries; for several components the norm has
        :math:`\sum_j k_j^2 + \max_j k_j^2` entries.
    stop_at_floor : bool, default=True
        End the descent at the level of clean data; without `refit`, at the theorem's threshold
        :math:`\rho + O(\delta)`. False descends to a stationary point.
    working_set : bool, default=True
        Descend on the features that carry the evidence and verify on all.
    max_iter, tol, random_state, verbose
        As in `RobustPCA`.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Unit rows, the entry of largest magnitude positive, by decreasing adjusted variance.
    n_nonzero_ : ndarray of shape (n_components,)
        Nonzero entries of each row.
    explained_variance_ : ndarray of shape (n_components,)
        Adjusted as by Zou, Hastie and Tibshirani (2006): components that overlap have correlated
        scores, so each counts only the weighted variance that those before it leave.
    explained_variance_ratio_ : ndarray of shape (n_components,)
    noise_variance_ : float
        Mean variance of the directions left.
    mean_ : ndarray of shape (n_features,)
        The weighted mean; zero with `assume_centered`.
    weights_ : ndarray of shape (n_samples,)
    contamination_, contamination_bound_ : float
        The share of the sample weight removed, and the share that could have been.
    certificate_ : PCACertificate
        How good the weights are; ``str(est.certificate_)`` is a verdict for a person.
    objective_, noise_floor_ : float
        As in `RobustPCA`.
    score_cutoff_, orthogonal_cutoff_ : float
        What 0.975 of clean rows do not exceed.
    scale_ : ndarray of shape (n_features,)
        What each feature was divided by; ones if `scale` is None.
    n_iter_ : int
    trace_ : tuple of Iterate
    offset_ : float
        ``predict`` flags rows whose score is below it.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)

    Notes
    -----
    ``refit=False, solver="constant", stop_at_floor=False, working_set=False`` is the plain
    algorithm of the paper, ``solver="backtracking"`` the one its authors ran. With more than 3000
    features components are sought among the 1500 of most covariance energy.

    References
    ----------
    Cheng, Diakonikolas, Ge, Gupta, Kane, Soltanolkotabi, "Outlier-Robust Sparse Estimation via
    Non-Convex Optimization", NeurIPS 2022, Algorithm 2; Zou, Hastie and Tibshirani, "Sparse
    principal component analysis", Journal of Computational and Graphical Statistics 15 (2006).

    Examples
    --------
    >>> import numpy as np
    >>> from outweigh.adversaries import spiked_mixture
    >>> from outweigh.estimators.pca import RobustSparsePCA
    >>> sample = spiked_mixture(2000, 50, 4, 0.1, random_state=0)
    >>> est = RobustSparsePCA(n_nonzero=4).fit(sample.X)
    >>> np.array_equal(np.flatnonzero(est.components_[0]), sample.support)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **COMMON,
        **N_COMPONENTS,
        **N_NONZERO_EACH,
    }

    def __init__(
        self,
        n_components: int = 1,
        n_nonzero: int | Sequence[int] | str = "auto",
        *,
        contamination: float | str = "auto",
        scale: str | ArrayLike | None = None,
        assume_centered: bool = False,
        solver: str = "polyak",
        refit: bool = True,
        stop_at_floor: bool = True,
        working_set: bool = True,
        max_iter: int = 300,
        tol: float = 1e-3,
        random_state: int | np.random.RandomState | None = None,
        verbose: int | bool = False,
    ) -> None:
        self.n_components = n_components
        self.n_nonzero = n_nonzero
        self.contamination = contamination
        self.scale = scale
        self.assume_centered = assume_centered
        self.solver = solver
        self.refit = refit
        self.stop_at_floor = stop_at_floor
        self.working_set = working_set
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose

    @property
    def n_nonzero_(self) -> NDArray[np.intp]:
        """Nonzero entries of each component."""
        check_is_fitted(self)
        return np.asarray(np.count_nonzero(self.components_, axis=1))

    def _wanted_nonzero(self) -> tuple[int, ...]:
        if isinstance(self.n_nonzero, str):
            return ()
        if isinstance(self.n_nonzero, (int, Integral)):
            wanted = (int(self.n_nonzero),) * self.n_components
        else:
            wanted = tuple(self.n_nonzero)
            if len(wanted) != self.n_components:
                raise ValueError(
                    f"n_nonzero must hold one number per component, {self.n_components}; "
                    f"got {len(wanted)}"
                )
            if not all(isinstance(k, Integral) and k >= 1 for k in wanted):
                raise ValueError(
                    f"n_nonzero must hold whole numbers of at least 1; got {self.n_nonzero!r}"
                )
        d = self.n_features_in_
        if max(wanted) > d:
            warnings.warn(
                f"n_nonzero={max(wanted)} is larger than the number of features {d}; {d} is used",
                UserWarning,
                stacklevel=4,
            )
        return tuple(min(int(k), d) for k in wanted)


def _samples(rows: NDArray[np.float64]) -> DenseSamples:
    return DenseSamples(np.clip(rows, -_LARGEST, _LARGEST))


def _completed(rows: Array, count: int) -> Array:
    """Return unit rows, filled up to `count` with axes orthogonal to them: of no variance."""
    while rows.shape[0] < count:
        basis = orthonormal(rows.T)
        axis = int(np.argmin(np.square(basis).sum(axis=1)))
        row = -basis @ basis[axis]
        row[axis] += 1.0
        rows = np.vstack([rows, row / np.linalg.norm(row)])
    return rows


def _adjusted_variances(covariance: Array) -> tuple[Indices, Array]:
    """Order correlated scores greedily by the variance that those before them leave."""
    left = covariance.copy()
    order: list[int] = []
    variances: list[float] = []
    for _ in range(left.shape[0]):
        diagonal = np.diagonal(left).copy()
        diagonal[order] = -np.inf
        best = int(np.argmax(diagonal))
        order.append(best)
        variance = max(float(diagonal[best]), 0.0)
        variances.append(variance)
        if variance > 0.0:
            left = left - np.outer(left[:, best], left[best]) / variance
    return np.asarray(order, dtype=np.intp), np.asarray(variances)
