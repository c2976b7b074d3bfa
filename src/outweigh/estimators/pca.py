"""Robust principal components, dense and sparse."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted

from outweigh.estimators.base import RobustEstimator
from outweigh.estimators.input import each_row
from outweigh.estimators.parameters import COMMON, N_COMPONENTS, N_NONZERO_EACH, documented
from outweigh.fit.beyond import feature_variances
from outweigh.fit.distances import Distances, distances_for
from outweigh.fit.readers import fix_signs, orthonormal
from outweigh.fit.result import Fit
from outweigh.fit.task import Task
from outweigh.protocols import Array, Indices
from outweigh.samples import DenseSamples

__all__ = ["ComponentsEstimator", "RobustPCA", "RobustSparsePCA"]

# Squares of what lies beyond would overflow; such rows are outliers by any measure.
_LARGEST = 1e140
_ROWS_AT_A_TIME = 4096


class ComponentsEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, RobustEstimator):
    """The fit template and the methods of both."""

    n_components: int
    covariance: object
    assume_centered: bool
    components_: Array
    mean_: Array
    _distances: Distances

    @abstractmethod
    def _wanted_nonzero(self) -> tuple[int, ...] | None:
        """Return the entries of each component, () to find them, or None for all."""

    def _task(self, n_samples: int) -> Task:
        most = min(n_samples, self.n_features_in_)
        if self.n_components > most:
            raise ValueError(
                f"n_components={self.n_components} must be at most min(n_samples, n_features)="
                f"{most}; lower it or add samples"
            )
        return Task(int(self.n_components), self._wanted_nonzero(), not self.assume_centered)

    def _set_answer(self, found: Fit) -> None:
        self._set_components(found)
        noise = found.noise
        self._distances = distances_for(
            noise.rows.samples(_within_range, self.n_features_in_),
            found.weights,
            orthonormal(self.components_.T),
            not self.assume_centered,
        )
        self.score_cutoff_ = self._distances.score_cutoff
        self.orthogonal_cutoff_ = self._distances.orthogonal_cutoff

    def _set_components(self, found: Fit) -> None:
        """Set the components in the units of X, by decreasing variance, and what they explain."""
        standardizer, weights, samples = (
            found.noise.standardizer,
            found.weights,
            found.noise.samples,
        )
        centred, n_features = not self.assume_centered, self.n_features_in_
        centre = samples.mean(weights) if centred else np.zeros(samples.n_features)
        self.mean_ = np.zeros(n_features)
        self.mean_[standardizer.columns] = standardizer.restore(centre)
        constant = np.setdiff1d(np.arange(n_features), standardizer.columns)
        if centred:
            self.mean_[constant] = found.noise.first[constant]
        # Components are at right angles where rows are divided by the scale; beyond a known
        # covariance they are so in the units of X.
        count = min(self.n_components, standardizer.columns.size)
        rows = found.components.T[:count]
        if standardizer.whitener is None:
            rows = self._filled_up(rows, count)
        rows = _unit(rows * standardizer.scale)
        if standardizer.whitener is not None:
            rows = self._filled_up(rows, count)
        # The products of features with these are those of whitened rows with R^(1/2) times.
        directions = standardizer.to_features((rows * standardizer.scale).T)
        along = samples.project(directions) - centre @ directions
        # The unbiased variance for equal weights, as scikit-learn's PCA has it.
        n_effective = found.problem.n_effective(weights)
        unbiased = n_effective / max(n_effective - 1.0, 1.0) if centred else 1.0
        covariance = unbiased * (along * weights[:, None]).T @ along
        order, variances = _adjusted_variances(covariance)
        components = np.zeros((self.n_components, n_features))
        components[:count, standardizer.columns] = rows[order]
        # More components than columns that vary: axes of constant ones are left.
        components[np.arange(count, self.n_components), constant[: self.n_components - count]] = 1.0
        self.components_ = fix_signs(components)
        variances = np.append(variances, np.zeros(self.n_components - count))
        self.explained_variance_ = variances
        if standardizer.whitener is None:
            spread = samples.variances(weights)
        else:
            spread = feature_variances(samples, weights, standardizer.whitener)
        if not centred:
            # About zero; the origin is zero then.
            mean = standardizer.restore(samples.mean(weights)) / standardizer.scale
            spread = spread + mean**2
        total = unbiased * float(spread @ standardizer.scale**2)
        left = max(total - float(variances.sum()), 0.0)
        self.explained_variance_ratio_ = variances / total if total > 0 else variances
        self.noise_variance_ = 0.0
        if n_features > self.n_components:
            self.noise_variance_ = left / (n_features - self.n_components)
        self.scale_ = np.ones(n_features)
        given = not (self.covariance is None or isinstance(self.covariance, str))
        if self.scale is not None or given:
            self.scale_[standardizer.columns] = standardizer.scale

    def _filled_up(self, rows: Array, count: int) -> Array:
        """Return the components found and, up to `count`, others at right angles to them."""
        return _completed(rows, count)

    def transform(self, X: ArrayLike) -> NDArray[np.floating]:
        """Return the scores of the rows: their coordinates along the components.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            float32 for float32 rows; a dask array, not yet computed, for data of Dask.
        """
        check_is_fitted(self)
        scores: NDArray[np.floating] = each_row(
            self,
            X,
            Projection(self.mean_, self.components_),
            dtypes=[np.float64, np.float32],
            n_columns=self._n_features_out,
        )
        return scores

    def inverse_transform(self, X: ArrayLike) -> NDArray[np.floating]:
        """Return the rows nearest to the mean that have the given scores.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            float32 for float32 scores.
        """
        check_is_fitted(self)
        with np.errstate(over="ignore", invalid="ignore"):
            # As where rows are checked, a sum of all values may overflow.
            scores = check_array(X, dtype=[np.float64, np.float32], input_name="X")
        if scores.shape[1] != self.n_components:
            raise ValueError(
                f"X must have one column per component, {self.n_components}; got {scores.shape[1]}"
            )
        gram = self.components_ @ self.components_.T
        rows = scores @ np.linalg.pinv(gram) @ self.components_ + self.mean_
        limit = np.finfo(scores.dtype).max
        return np.asarray(np.clip(rows, -limit, limit).astype(scores.dtype, copy=False))

    def score_distances(self, X: ArrayLike) -> Array:
        """Return the Mahalanobis distance of each row inside the subspace; see `score_cutoff_`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        distances: Array = each_row(self, X, DistanceOf(self._distances, "score"))
        return distances

    def orthogonal_distances(self, X: ArrayLike) -> Array:
        """Return the distance of each row from the subspace; see `orthogonal_cutoff_`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        distances: Array = each_row(self, X, DistanceOf(self._distances, "orthogonal"))
        return distances

    @property
    def _origin(self) -> Array:
        return self.mean_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])


@dataclass(frozen=True, slots=True, eq=False)
class Projection:
    """Rows to their scores; small enough to be sent to workers."""

    mean: Array
    components: Array

    def __call__(self, rows: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return the scores, in the precision of the rows."""
        scores = np.empty((rows.shape[0], self.components.shape[0]), dtype=rows.dtype)
        limit = np.finfo(rows.dtype).max
        # In double precision, a part of the rows at a time: far from zero the difference from the
        # mean would lose its digits in single precision, and a copy of all rows may be too much.
        for start in range(0, rows.shape[0], _ROWS_AT_A_TIME):
            part = slice(start, start + _ROWS_AT_A_TIME)
            along = (rows[part] - self.mean) @ self.components.T
            scores[part] = np.clip(along, -limit, limit)
        return scores


@dataclass(frozen=True, slots=True, eq=False)
class DistanceOf:
    """Rows to one of their two distances; small enough to be sent to workers."""

    distances: Distances
    kind: str

    def __call__(self, rows: NDArray[np.floating]) -> Array:
        """Return the distance of each row."""
        samples = DenseSamples(_within_range(rows))
        along = self.kind == "score"
        return self.distances.score(samples) if along else self.distances.orthogonal(samples)


def _within_range(rows: NDArray[np.floating]) -> Array:
    values = np.asarray(rows, dtype=np.float64)
    # Looking is quicker than a copy.
    if values.min(initial=0.0) >= -_LARGEST and values.max(initial=0.0) <= _LARGEST:
        return values
    return np.clip(values, -_LARGEST, _LARGEST)


def _unit(rows: Array) -> Array:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def _completed(rows: Array, count: int) -> Array:
    """Return unit rows, filled up to `count` with axes orthogonal to them: of no variance."""
    while rows.shape[0] < count:
        basis = orthonormal(rows.T)
        axis = int(np.argmin(np.square(basis).sum(axis=1)))
        row = -basis @ basis[axis]
        row[axis] += 1.0
        # Where the axis is orthogonal to them already, so that it stays as sparse as it is.
        row[np.abs(row) < 1e-12] = 0.0
        rows = np.vstack([rows, _unit(row[None, :])])
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


@documented
class RobustPCA(ComponentsEstimator):
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
    {{contamination}}
    scale : {"auto", "mad"}, array of shape (n_features,) or None, default=None
        None keeps the units of X and estimates one noise level for all features. "mad" and "auto"
        divide each feature by its median absolute deviation, an array by its entries. Components
        are unit vectors in the units of X.
    covariance : "auto", array of shape (n_features, n_features), fitted estimator or None
        The covariance R of the *noise* alone, where it is known, as from blank measurements: an
        array, or an estimator with ``covariance_`` fitted on rows of noise. Clean rows then have
        the covariance :math:`\sigma^2 R + B`, and the components are the leading eigenvectors of
        B; a common factor of R does not matter. The default scale is the root of its diagonal;
        with another scale only its correlations are used. "auto", the default, tests whether R
        could be the identity; where it could not, rows are weighed by the volume they span. None
        takes it to be the identity.
    assume_centered : bool, default=False
        Whether the clean rows have mean zero: M_w instead of S_w, and no mean is subtracted.
    {{search_parameters}}

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
    {{weights}}
        After a fit on a sample everything else is of these rows alone.
    score_cutoff_, orthogonal_cutoff_ : float
        What 0.975 of clean rows do not exceed; see `score_distances`, `orthogonal_distances`.
    {{fitted}}

    References
    ----------
    {{paper}}, Appendix E.

    Examples
    --------
    >>> import numpy as np
    >>> from outweigh.adversaries import dense_spike
    >>> from outweigh import RobustPCA
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
        covariance: object = "auto",
        assume_centered: bool = False,
        missing: str | None = None,
        solver: str = "polyak",
        max_iter: int = 300,
        subsample: int | None = 1_000_000,
        random_state: int | np.random.RandomState | None = None,
        verbose: int | bool = False,
    ) -> None:
        self.n_components = n_components
        self.contamination = contamination
        self.scale = scale
        self.covariance = covariance
        self.assume_centered = assume_centered
        self.missing = missing
        self.solver = solver
        self.max_iter = max_iter
        self.subsample = subsample
        self.random_state = random_state
        self.verbose = verbose

    def _wanted_nonzero(self) -> None:
        return None


@documented
class RobustSparsePCA(ComponentsEstimator):
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
    {{contamination}}
    scale : {"auto", "mad"}, array of shape (n_features,) or None, default=None
        As in `RobustPCA`; the support is chosen in scaled units.
    covariance : "auto", array of shape (n_features, n_features), fitted estimator or None
        As in `RobustPCA`; the components beyond it are sparse in the features themselves.
    assume_centered : bool, default=False
        Whether the clean rows have mean zero: M_w instead of S_w, and no mean is subtracted.
    {{search_parameters}}

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
    {{weights}}
        After a fit on a sample everything else is of these rows alone.
    score_cutoff_, orthogonal_cutoff_ : float
        What 0.975 of clean rows do not exceed; see `score_distances`, `orthogonal_distances`.
    {{fitted}}

    References
    ----------
    {{paper}}, Algorithm 2; Zou, Hastie and Tibshirani, "Sparse
    principal component analysis", Journal of Computational and Graphical Statistics 15 (2006).

    Examples
    --------
    >>> import numpy as np
    >>> from outweigh.adversaries import spiked_mixture
    >>> from outweigh import RobustSparsePCA
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
        covariance: object = "auto",
        assume_centered: bool = False,
        missing: str | None = None,
        solver: str = "polyak",
        max_iter: int = 300,
        subsample: int | None = 1_000_000,
        random_state: int | np.random.RandomState | None = None,
        verbose: int | bool = False,
    ) -> None:
        self.n_components = n_components
        self.n_nonzero = n_nonzero
        self.contamination = contamination
        self.scale = scale
        self.covariance = covariance
        self.assume_centered = assume_centered
        self.missing = missing
        self.solver = solver
        self.max_iter = max_iter
        self.subsample = subsample
        self.random_state = random_state
        self.verbose = verbose

    @property
    def n_nonzero_(self) -> NDArray[np.intp]:
        """Nonzero entries of each component."""
        check_is_fitted(self)
        return np.asarray(np.count_nonzero(self.components_, axis=1))

    def _filled_up(self, rows: Array, count: int) -> Array:
        # Axes as they are, sparse, in place of those at right angles.
        added = np.argmax(np.abs(_completed(rows, count)[len(rows) :]), axis=1)
        return np.vstack([rows, np.eye(rows.shape[1])[added]])

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
