"""Robust principal components, dense and sparse."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted

from outweigh.estimators.base import RobustEstimator, clipped
from outweigh.estimators.input import each_row
from outweigh.estimators.parameters import PCA, SPARSE_PCA, ComponentsParameters, documented
from outweigh.fit.beyond import feature_variances
from outweigh.fit.distances import Distances, DistanceScore
from outweigh.fit.readers import fix_signs, orthonormal
from outweigh.fit.result import Fit
from outweigh.fit.task import Task
from outweigh.objectives import MomentObjective
from outweigh.protocols import Array, Indices, Samples
from outweigh.samples import DenseSamples

# Squares of what lies beyond would overflow; such rows are outliers by any measure.
_LARGEST = 1e140
_ROWS_AT_A_TIME = 4096


class ComponentsEstimator(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, ComponentsParameters, RobustEstimator
):
    """The fit template and the methods of both.

    Parameters
    ----------
    assume_centered : bool, default=False
        Whether the clean rows have mean zero: M_w instead of S_w, and no mean is subtracted.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
        The weighted mean; zero with `assume_centered`.
    score_cutoff_, orthogonal_cutoff_ : float
        See `score_distances`, `orthogonal_distances`. Rows of the fit
        beyond either are flagged. Within both are all others, and flagged rows that trusted ones
        overlap: groups of outliers in white noise, rows beside the long tail of a skewed column.
    """

    n_components: int | float | str | None
    components_: Array
    explained_variance_: Array
    explained_variance_ratio_: Array
    singular_values_: Array
    noise_variance_: float
    score_cutoff_: float
    orthogonal_cutoff_: float
    mean_: Array
    n_components_: int
    _units: Array
    _distances: Distances
    _aside: Array

    @abstractmethod
    def _wanted_nonzero(self, n_components: int) -> tuple[int, ...] | None:
        """Return the entries of each component, () to find them, or None for all."""

    def _task(self, n_samples: int) -> Task:
        most = min(n_samples, self.n_features_in_)
        wanted = self.n_components
        if isinstance(wanted, (int, Integral)) and wanted > most:
            raise ValueError(
                f"n_components={wanted} must be at most min(n_samples, n_features)="
                f"{most}; lower it or add samples"
            )
        if wanted is None:
            return self._task_of(most)
        # How many are to be counted is known once there are weights: one, for the time being.
        return self._task_of(int(wanted) if isinstance(wanted, (int, Integral)) else 1)

    def _task_of(self, count: int) -> Task:
        self.n_components_ = count
        return Task(count, self._wanted_nonzero(count), not self.assume_centered)

    def _better_task(self, task: Task, found: Fit) -> Task:
        if self.n_components is None or isinstance(self.n_components, (int, Integral)):
            return task
        variances = found.spectrum()
        if isinstance(self.n_components, str):
            count = found.n_factors()
        else:
            if found.noise.standardizer.whitener is not None:
                raise ValueError(
                    f"n_components={self.n_components}: a share of the variance has no meaning "
                    "beyond a known covariance of the noise; pass a number, or 'auto'"
                )
            shares = np.cumsum(variances) / max(float(variances.sum()), np.finfo(float).tiny)
            count = int(np.searchsorted(shares, self.n_components, side="right")) + 1
        return self._task_of(int(np.clip(count, 1, len(variances))))

    def _set_answer(self, found: Fit) -> None:
        self._set_components(found)
        self._set_distances(found)
        self._aside = found.aside

    def _searched_for(self, samples: Samples) -> MomentObjective:
        aside = self._aside if self._aside.size else None
        return MomentObjective(samples, self._norm, not self.assume_centered, removed=aside)

    def _set_distances(self, found: Fit) -> None:
        """Set the distances of rows, with cut-offs beyond which `predict` flags them.

        Rows that were judged by their distances keep those, others are told by how they look beside
        the components. Cut-offs are no less than trusted rows are far.
        """
        noise, trusted = found.noise, found.scores >= self.offset_
        least, unit = 1.0, 1.0
        if self._judged is not None:
            samples = noise.rows.samples(self._judged.standardizer.apply, noise.samples.n_features)
            self._distances, least, unit = self._judged.distances, -self.offset_, self._level
        else:
            samples = noise.rows.samples(partial(_in_units, self._units), self.n_features_in_)
            basis = orthonormal(self.components_.T)
            centre = _in_units(self._units, self.mean_)
            distances = Distances.of(samples, found.weights, basis, centre)
            self._distances = distances.calibrated(samples, found.weights)
        both = (self._distances.score(samples), self._distances.orthogonal(samples))
        farthest = [distances[trusted].max(initial=0.0) for distances in both]
        cutoffs = np.maximum(least * self._distances.cutoffs, farthest) * [1.0, unit]
        self.score_cutoff_, self.orthogonal_cutoff_ = cutoffs.tolist()

    def _set_components(self, found: Fit) -> None:
        """Set the components by decreasing variance, and what they explain.

        In the units of X, or with a `scale` in units of that.
        """
        noise, weights = found.noise, found.weights
        standardizer, samples = noise.standardizer, noise.samples
        centred, n_features = not self.assume_centered, self.n_features_in_
        wanted = self.n_components_
        centre = samples.mean(weights) if centred else np.zeros(samples.n_features)
        self.mean_ = np.zeros(n_features)
        self.mean_[standardizer.columns] = standardizer.restore(centre)
        constant = np.setdiff1d(np.arange(n_features), standardizer.columns)
        if centred:
            self.mean_[constant] = noise.first[constant]
        count = min(wanted, standardizer.columns.size)
        rows = found.components.T[:count]
        self.scale_, self._units = np.ones(n_features), np.ones(n_features)
        if standardizer.whitener is None:
            # At right angles where rows are divided by the scale.
            rows = directions = self._filled_up(rows, count)
            directions = directions.T * noise.level
            spread = samples.variances(weights) * noise.level**2
            if self.scale is not None:
                self._units[standardizer.columns] = standardizer.scale / noise.level
                self.scale_ = self._units
        else:
            # Beyond a known covariance they are at right angles in the units of X. The products of
            # features with these are those of whitened rows with R^(1/2) times.
            rows = self._filled_up(_unit(rows * standardizer.scale), count)
            directions = standardizer.to_features((rows * standardizer.scale).T)
            spread = feature_variances(samples, weights, standardizer.whitener)
            spread = spread * standardizer.scale**2
            self.scale_[standardizer.columns] = standardizer.scale
        along = samples.project(directions) - centre @ directions
        # The unbiased variance for equal weights, as scikit-learn's PCA has it.
        unbiased = found.unbiased if centred else 1.0
        covariance = unbiased * (along * weights[:, None]).T @ along
        order, variances = _adjusted_variances(covariance)
        components = np.zeros((wanted, n_features))
        components[:count, standardizer.columns] = rows[order]
        # More components than columns that vary: axes of constant ones are left.
        components[np.arange(count, wanted), constant[: wanted - count]] = 1.0
        self.components_ = fix_signs(components)
        variances = np.append(variances, np.zeros(wanted - count))
        self.explained_variance_ = variances
        self.singular_values_ = np.sqrt(variances * found.n_rows / unbiased)
        if not centred:
            # About zero; the origin is zero then.
            mean = standardizer.restore(samples.mean(weights)) / self._units[standardizer.columns]
            spread = spread + mean**2
        total = unbiased * float(spread.sum())
        left = max(total - float(variances.sum()), 0.0)
        self.explained_variance_ratio_ = variances / total if total > 0 else variances
        # As in scikit-learn the mean of the eigenvalues left, no more than there are rows.
        n_rows = round(found.copies * float(noise.sample_weight.sum()))
        others = min(n_rows, n_features) - wanted
        self.noise_variance_ = left / others if others > 0 else 0.0

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
            partial(_projected, mean=self.mean_, components=self._directions),
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
        if scores.shape[1] != self.n_components_:
            raise ValueError(
                f"X must have one column per component, {self.n_components_}; got {scores.shape[1]}"
            )
        # Of largest variance explained, and the same for orthonormal components.
        back = np.linalg.pinv(self._directions * self._units).T * self._units
        rows = scores @ back + self.mean_
        limit = np.finfo(scores.dtype).max
        return np.asarray(np.clip(rows, -limit, limit).astype(scores.dtype, copy=False))

    def score_distances(self, X: ArrayLike) -> Array:
        """Return the Mahalanobis distance of each row inside the subspace; see `score_cutoff_`.

        That of the components; where the noise is not white, that of all leading directions that
        rows were judged in.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._each_distance(X, Distances.score)

    def orthogonal_distances(self, X: ArrayLike) -> Array:
        """Return the distance of each row from the subspace; see `orthogonal_cutoff_`.

        The same subspace as in `score_distances`; in the units of X, or of `scale_`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        distances = self._each_distance(X, Distances.orthogonal)
        return distances if self._judged is None else distances * self._level

    def _each_distance(
        self, X: ArrayLike, measured: Callable[[Distances, DenseSamples], Array]
    ) -> Array:
        check_is_fitted(self)
        judged = self._judged
        in_units = judged.standardizer.apply if judged else partial(_in_units, self._units)
        function = partial(_distance, measured, self._distances, in_units)
        distances: Array = each_row(self, X, function)
        return distances

    @property
    def _judged(self) -> DistanceScore | None:
        """What rows were judged by where that are their distances, in the units of X."""
        if isinstance(self._score, DistanceScore) and self._score.standardizer.whitener is None:
            return self._score
        return None

    @property
    def _level(self) -> float:
        """The level of the noise, in the units of X or of `scale_`."""
        standardizer = self._score.standardizer
        return float(standardizer.scale[0] / self._units[standardizer.columns[0]])

    @property
    def _directions(self) -> Array:
        """What the score of a row is its product with, less that of the mean: D^-1 u in rows."""
        return np.asarray(self.components_ / self._units)

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


# Functions of rows that are sent to workers, with small arguments.


def _projected(rows: NDArray[np.floating], mean: Array, components: Array) -> NDArray[np.floating]:
    """Return the scores of rows, in their precision."""
    scores = np.empty((rows.shape[0], components.shape[0]), dtype=rows.dtype)
    # Sums of products with the components stay within floating point, rounded ones too.
    longest = max(float(np.abs(components).sum(axis=1).max()), 1.0)
    limit = (1.0 - 1e-6) * float(np.finfo(rows.dtype).max) / longest
    # In double precision, a part of the rows at a time: far from zero the difference from the
    # mean would lose its digits in single precision, and a copy of all rows may be too much.
    for start in range(0, rows.shape[0], _ROWS_AT_A_TIME):
        part = slice(start, start + _ROWS_AT_A_TIME)
        scores[part] = np.clip(rows[part] - mean, -limit, limit) @ components.T
    return scores


def _distance(
    measured: Callable[[Distances, DenseSamples], Array],
    distances: Distances,
    in_units: Callable[[NDArray[np.floating]], Array],
    rows: NDArray[np.floating],
) -> Array:
    """Return one of the two distances of each row."""
    return measured(distances, DenseSamples(in_units(rows)))


def _in_units(scale: Array, rows: NDArray[np.floating]) -> Array:
    """Return rows divided by the scale of each column, huge values clipped."""
    with np.errstate(over="ignore"):
        values = np.asarray(rows if np.all(scale == 1.0) else rows / scale, dtype=np.float64)
    # Looking is quicker than a copy.
    if values.min(initial=0.0) >= -_LARGEST and values.max(initial=0.0) <= _LARGEST:
        return values
    return np.clip(values, -_LARGEST, _LARGEST)


def _unit(rows: Array) -> Array:
    # Squares of what is far from one may be beyond floating point.
    rows = rows / np.abs(rows).max(axis=1, keepdims=True)
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
            # Divided first: no entry is larger than the largest on the diagonal.
            left = left - np.outer(left[:, best], left[best] / variance)
    return np.asarray(order, dtype=np.intp), np.asarray(variances)


@documented
@dataclass(eq=False, repr=False)
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
    n_components : int, float in (0, 1), "auto" or None, default=1
        A number, at most min(n_samples, n_features); None is that. A share: as many as explain more
        than this of the variance. "auto": as many as stand out from white noise under the weights
        found, at least one; the k-th eigenvalue stands out where it exceeds the mean of those from
        it on by more than the largest eigenvalue of noise does (0.99 quantile of Tracy and Widom).
        Shares and "auto" fit twice.
    {{contamination}}
    scale : {"auto", "mad"}, array of shape (n_features,) or None, default=None
        None keeps the units of X and estimates one noise level for all features. "mad" and "auto"
        divide each feature by its median absolute deviation, an array by its entries: the
        components are then those of the correlation matrix, unit vectors u at right angles in these
        units, and a score is :math:`x'D^{-1}u`.
    covariance : "auto", array of shape (n_features, n_features), fitted estimator or None
        The covariance R of the *noise* alone, where it is known, as from blank measurements: an
        array, or an estimator with ``covariance_`` fitted on rows of noise. Clean rows then have
        the covariance :math:`\sigma^2 R + B`, and the components are the leading eigenvectors of
        B; a common factor of R does not matter. The default scale is the root of its diagonal;
        with another scale only its correlations are used. "auto", the default, tests whether R
        could be the identity; where it could not, rows are weighed by the volume they span. None
        takes it to be the identity.
    {{assume_centered}}
    whiten : bool, default=False
        Whether scores are divided by their deviations, as in scikit-learn.
    {{missing ... verbose}}

    Attributes
    ----------
    n_components_ : int
    components_ : ndarray of shape (n_components, n_features)
        Unit rows, the entry of largest magnitude positive, by decreasing variance.
    explained_variance_ : ndarray of shape (n_components,)
        Weighted variance along each component, in the units of X, or of `scale_`, squared.
    explained_variance_ratio_ : ndarray of shape (n_components,)
    singular_values_ : ndarray of shape (n_components,)
        Roots of the variances times the effective number of rows less one.
    noise_variance_ : float
        Mean variance of the directions left, as in scikit-learn.
    {{mean_}}
    {{weights_ ... subsample_}}
        After a fit on a sample everything else is of these rows alone.
    {{score_cutoff_}}
    {{contamination_ ... feature_names_in_}}

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

    n_components: int | float | str | None = 1
    _: KW_ONLY
    whiten: bool = False

    _parameter_constraints: ClassVar[dict[str, Any]] = PCA

    def _wanted_nonzero(self, n_components: int) -> None:
        return None

    def _set_answer(self, found: Fit) -> None:
        super()._set_answer(found)
        self.certificate_ = replace(self.certificate_, factors=found.n_factors())

    @property
    def _directions(self) -> Array:
        directions = super()._directions
        if not self.whiten:
            return directions
        # A component of no variance has scores of zero, whatever they are divided by.
        deviations = np.sqrt(self.explained_variance_)
        return directions / np.maximum(deviations, np.finfo(np.float64).eps)[:, None]

    def get_covariance(self) -> Array:
        """Return the covariance of clean rows: that of the components, and equal noise beside them.

        As in scikit-learn, :math:`U' (L - s I)^+ U + s I`, s the noise variance and L those of the
        components, in units of X.

        Returns
        -------
        ndarray of shape (n_features, n_features)
        """
        check_is_fitted(self)
        excess = np.maximum(self.explained_variance_ - self.noise_variance_, 0.0)
        covariance = (self.components_.T * excess) @ self.components_
        covariance[np.diag_indices_from(covariance)] += self.noise_variance_
        return np.asarray(covariance * np.outer(self._units, self._units))

    def get_precision(self) -> Array:
        """Return the inverse of `get_covariance`, or its pseudo-inverse where there is none.

        Returns
        -------
        ndarray of shape (n_features, n_features)
        """
        return np.asarray(scipy.linalg.pinvh(self.get_covariance()))


@documented
@dataclass(eq=False, repr=False)
class RobustSparsePCA(ComponentsEstimator):
    r"""Sparse principal components of data of which a fraction of the rows is arbitrarily wrong.

    Algorithm 2 of the paper, changed where it trims the clean spike: weights are sought under which
    the :math:`2k^2` largest entries of what the components leave of :math:`S_w - \sigma^2 I` are at
    the level of clean data; candidates are found by truncated power iteration and chosen by the
    variance of the bulk of the rows along them.

    Parameters
    ----------
    n_components : int or "auto", default=1
        At most min(n_samples, n_features). Found one after the other by deflation. "auto" as in
        `RobustPCA`.
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
    {{assume_centered}}
    {{missing ... verbose}}

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Unit rows, the entry of largest magnitude positive, by decreasing adjusted variance.
    n_components_ : int
    n_nonzero_ : ndarray of shape (n_components,)
        Nonzero entries of each row.
    explained_variance_ : ndarray of shape (n_components,)
        Adjusted as by Zou, Hastie and Tibshirani (2006): components that overlap have correlated
        scores, so each counts only the weighted variance that those before it leave.
    explained_variance_ratio_ : ndarray of shape (n_components,)
    noise_variance_ : float
        Mean variance of the directions left.
    {{mean_}}
    {{weights_ ... subsample_}}
        After a fit on a sample everything else is of these rows alone.
    {{score_cutoff_}}
    {{contamination_ ... feature_names_in_}}

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

    n_components: int | str = 1
    n_nonzero: int | Sequence[int] | str = "auto"

    _parameter_constraints: ClassVar[dict[str, Any]] = SPARSE_PCA

    @property
    def n_nonzero_(self) -> NDArray[np.intp]:
        """Nonzero entries of each component."""
        check_is_fitted(self)
        return np.asarray(np.count_nonzero(self.components_, axis=1))

    def _filled_up(self, rows: Array, count: int) -> Array:
        # Axes as they are, sparse, in place of those at right angles.
        added = np.argmax(np.abs(_completed(rows, count)[len(rows) :]), axis=1)
        axes = np.zeros((len(added), rows.shape[1]))
        axes[np.arange(len(added)), added] = 1.0
        return np.vstack([rows, axes])

    def _wanted_nonzero(self, n_components: int) -> tuple[int, ...]:
        if isinstance(self.n_nonzero, str):
            return ()
        if isinstance(self.n_nonzero, (int, Integral)):
            wanted = (self.n_nonzero,) * n_components
        else:
            wanted = tuple(self.n_nonzero)
            if len(wanted) != n_components:
                raise ValueError(
                    f"n_nonzero must hold one number per component, {n_components}; "
                    f"got {len(wanted)}"
                )
            if not all(isinstance(k, Integral) and k >= 1 for k in wanted):
                raise ValueError(
                    f"n_nonzero must hold whole numbers of at least 1; got {self.n_nonzero!r}"
                )
        most = clipped(max(wanted), self.n_features_in_)
        return tuple(min(int(k), most) for k in wanted)
