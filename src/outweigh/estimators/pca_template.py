"""The fit and the methods that the robust components share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted

from outweigh.estimators.base import RobustEstimator, warn_constant
from outweigh.estimators.components import fix_signs, orthonormal
from outweigh.estimators.input import each_row
from outweigh.estimators.pca_beyond import feature_variances
from outweigh.estimators.pca_distances import Distances, DistanceScore, distances_for
from outweigh.estimators.pca_fit import FittedPCA, PCASettings, fit_pca
from outweigh.estimators.reference import reference_covariance
from outweigh.estimators.scoring import RowScore
from outweigh.protocols import Array, Indices
from outweigh.samples import DenseSamples, Rows

__all__ = ["ComponentsEstimator"]

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
    _row_score: RowScore | DistanceScore
    _distances: Distances

    @abstractmethod
    def _wanted_nonzero(self) -> tuple[int, ...] | None:
        """Return the entries of each component, () to find them, or None for all."""

    def _fit_rows(self, X: Rows, sample_weight: Array) -> None:
        n, d = X.shape
        if self.n_components > min(n, d):
            raise ValueError(
                f"n_components={self.n_components} must be at most min(n_samples, n_features)="
                f"{min(n, d)}; lower it or add samples"
            )
        wanted = self._wanted_nonzero()
        positive = sample_weight > 0
        rows = X.select(positive)
        weight = sample_weight[positive]
        scale = (
            self.scale
            if self.scale is None or isinstance(self.scale, str)
            else np.asarray(self.scale, dtype=np.float64)
        )
        known = reference_covariance(self.covariance, d)
        if known is not None and (scale is None or (isinstance(scale, str) and scale == "auto")):
            scale = np.sqrt(np.diagonal(known))
        settings = PCASettings(
            n_components=int(self.n_components),
            n_nonzero=wanted,
            contamination=self._known_contamination(),
            scale=scale,
            centred=not self.assume_centered,
            refit=bool(self.refit),
            options=self._options(1),
            covariance=known,
        )
        found = fit_pca(rows, weight, settings, self._log)
        if not self.assume_centered:
            warn_constant(found.standardizer.columns, d)
        self._set_weights(rows, sample_weight, positive, found)
        self._set_components(found, weight, d)
        self._distances = distances_for(
            rows.samples(_within_range, d),
            found.weights,
            orthonormal(self.components_.T),
            not self.assume_centered,
        )
        self.score_cutoff_ = self._distances.score_cutoff
        self.orthogonal_cutoff_ = self._distances.orthogonal_cutoff

    def _set_weights(
        self,
        rows: Rows,
        sample_weight: Array,
        positive: NDArray[np.bool_],
        found: FittedPCA,
    ) -> None:
        """Set what follows from the weights."""
        self._set_certified(positive, found.weights, found.certificate)
        self.n_iter_ = found.n_iter
        self.trace_ = found.trace
        self._row_score = found.score
        scores = rows.map(self._row_score) if found.scores is None else found.scores
        self._set_offset(scores, sample_weight, positive)

    def _set_components(self, found: FittedPCA, sample_weight: Array, n_features: int) -> None:
        standardizer, weights = found.standardizer, found.weights
        centred = not self.assume_centered
        samples, whitener = found.samples, standardizer.whitener
        centre = samples.mean(weights) if centred else np.zeros(samples.n_features)
        self.mean_ = np.zeros(n_features)
        self.mean_[standardizer.columns] = standardizer.restore(centre)
        if centred:
            constant = np.setdiff1d(np.arange(n_features), standardizer.columns)
            self.mean_[constant] = found.first[constant]
        rows = found.components * standardizer.scale
        rows = _completed(rows / np.linalg.norm(rows, axis=1, keepdims=True), self.n_components)
        directions = (rows * standardizer.scale).T
        if whitener is not None:
            # The products of features with these are those of whitened rows with R^(1/2) times.
            directions = np.asarray(np.linalg.solve(whitener, directions), dtype=np.float64)
        along = samples.project(directions)
        along = along - centre @ directions
        # The unbiased variance for equal weights, as scikit-learn's PCA has it.
        n_effective = 1.0 / float(np.sum(weights**2 / sample_weight))
        unbiased = n_effective / max(n_effective - 1.0, 1.0) if centred else 1.0
        covariance = unbiased * (along * weights[:, None]).T @ along
        order, variances = _adjusted_variances(covariance)
        components = np.zeros((self.n_components, n_features))
        components[:, standardizer.columns] = rows[order]
        self.components_ = fix_signs(components)
        self.explained_variance_ = variances
        if whitener is None:
            spread = samples.variances(weights)
        else:
            spread = feature_variances(samples, weights, whitener)
        if not centred:
            # About zero; the origin is zero then.
            spread = (
                spread + (standardizer.restore(samples.mean(weights)) / standardizer.scale) ** 2
            )
        total = unbiased * float(spread @ standardizer.scale**2)
        left = max(total - float(variances.sum()), 0.0)
        self.explained_variance_ratio_ = variances / total if total > 0 else variances
        self.noise_variance_ = left / max(n_features - self.n_components, 1)
        if n_features == self.n_components:
            self.noise_variance_ = 0.0
        self.scale_ = np.ones(n_features)
        if self.scale is not None or self.covariance is not None:
            level = found.standardizer.scale
            self.scale_[standardizer.columns] = level

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

    @property
    def _scorer(self) -> Callable[[NDArray[np.float64]], Array]:
        return self._row_score

    def _contributions(self, X: NDArray[np.float64]) -> tuple[Array, Array, Indices]:
        parts, deviations = self._row_score.contributions(X)
        return parts, deviations, self._row_score.standardizer.columns

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
        # In double precision, a part of the rows at a time: far from zero the difference from the
        # mean would lose its digits in single precision, and a copy of all rows may be too much.
        for start in range(0, rows.shape[0], _ROWS_AT_A_TIME):
            part = slice(start, start + _ROWS_AT_A_TIME)
            scores[part] = (rows[part] - self.mean) @ self.components.T
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
