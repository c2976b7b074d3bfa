"""Robust means, dense and sparse."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import pinvh
from sklearn.covariance import EmpiricalCovariance
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from outweigh.estimators.base import RobustEstimator, clipped
from outweigh.estimators.input import each_block, each_row
from outweigh.estimators.parameters import documented
from outweigh.fit.readers import count_entries
from outweigh.fit.result import Fit
from outweigh.fit.score import EllipticalScore, RowScore
from outweigh.fit.task import Task
from outweigh.protocols import Array, Indices
from outweigh.samples import Rows
from outweigh.samples.rows import Accepted

# A covariance of more features than this is not kept.
_MOST_FOR_COVARIANCE = 2000


class MeanEstimator(RobustEstimator):
    """What both means do with weights; not for direct use."""

    location_: Array
    _score: RowScore | EllipticalScore

    def _task(self, n_samples: int) -> Task:
        return Task()

    def _set_answer(self, found: Fit) -> None:
        standardizer = found.noise.standardizer
        mean = standardizer.restore(found.noise.samples.mean(found.weights))
        self.location_ = found.noise.first
        answer = self._read_out(mean, found)
        if found.noise.varying.size:
            # Else one constant column stands in for all, and its mean is rounded.
            self.location_[standardizer.columns] = answer
        self.scale_ = np.ones(self.location_.size)
        self.scale_[standardizer.columns] = standardizer.scale

    def _read_out(self, mean: Array, found: Fit) -> Array:
        """Return the estimate on the varying columns from the weighted mean there."""
        return mean

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def reweighted_mean(self, X: ArrayLike) -> Array:
        """Return the mean of the rows of X that are to be trusted, in one pass over them.

        With a fit on a sample it extends the estimate to any number of further rows. Entries that
        the estimator holds at zero stay there.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Any rows, seen in training or not.

        Returns
        -------
        ndarray of shape (n_features,)
            A dask array, not yet computed, for data of Dask; NaN where no row is trusted.

        Examples
        --------
        >>> import numpy as np
        >>> from outweigh import RobustMean
        >>> X = np.random.default_rng(0).standard_normal((20000, 5)) + 1.0
        >>> X[::10] += 10.0
        >>> est = RobustMean().fit(X[:2000])
        >>> est.reweighted_mean(X).round(1)
        array([1., 1., 1., 1., 1.])
        """
        check_is_fitted(self)
        sums = partial(_trusted_sums, score=self._score, offset=self.offset_, origin=self.location_)
        parts = each_block(self, X, sums, self.location_.size + 1)
        total = parts.sum(axis=0)
        with np.errstate(invalid="ignore"):
            # Not a number where no row is trusted.
            mean: Array = self.location_ + total[:-1] / total[-1]
        return np.where(self._nonzero, mean, 0.0)

    def score(self, X: ArrayLike, y: object = None) -> float:
        r"""Return the mean Gaussian log likelihood of the rows nearest to `location_`.

        As in `sklearn.covariance`, but without the farthest rows: the share `contamination_` of
        them, and three deviations of that number more. So wrong rows among those held out decide
        nothing, and `GridSearchCV` works.
        With r varying features of covariance S it is
        :math:`-(r \log 2\pi + \log\det S + D^2) / 2`, D the Mahalanobis distance.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : ignored
        """
        check_is_fitted(self)
        squared = np.sort(np.asarray(self._squared_distances(X)))
        n, share = squared.size, self.contamination_
        far = int(n * share + 3.0 * np.sqrt(n * share * (1.0 - share)))
        near = squared[: max(1, n - far)]
        rank, log_det = self._log_det()
        return -0.5 * float(rank * np.log(2.0 * np.pi) + log_det + near.mean())

    def _squared_distances(self, X: ArrayLike) -> Array:
        """Return the squared distance of each row from `location_`, in the units of the noise."""
        function = partial(_squared_distances, location=self.location_, precision=self._precision)
        return each_row(self, X, function)

    @property
    def _precision(self) -> Array:
        """The inverse of the covariance, or its diagonal."""
        precision = np.zeros(self.location_.size)
        columns = self._score.standardizer.columns
        precision[columns] = 1.0 / self.scale_[columns] ** 2
        return precision

    def _log_det(self) -> tuple[int, float]:
        """Return how many features vary, and the log determinant of their covariance."""
        scale = self._score.standardizer.scale
        return scale.size, 2.0 * float(np.log(scale).sum())

    @property
    def _nonzero(self) -> NDArray[np.bool_]:
        """Where the estimate may differ from zero."""
        return np.ones(self.location_.size, dtype=np.bool_)

    def _extend(self, X: Rows, sample_weight: Array | None) -> Accepted:
        found = super()._extend(X, sample_weight)
        if found.kept > 0.0:
            # Not where the sample is constant: no score looks there, so a row may hold anything.
            averaged = np.zeros(self.location_.size, dtype=np.bool_)
            averaged[self._score.standardizer.columns] = True
            averaged &= self._nonzero
            mean = self.location_ + found.shift / found.kept
            self.location_ = np.where(averaged, mean, self.location_)
        return found

    @property
    def _origin(self) -> Array:
        return self.location_


@documented
class RobustMean(MeanEstimator):
    r"""Mean of data of which a fraction of the rows is arbitrarily wrong.

    Weights :math:`w` in the capped simplex are sought for which the weighted covariance
    :math:`S_w` has no direction of unexplained variance, by minimising the spectral norm
    :math:`\|S_w - I\|_2` in units of the noise; the estimate is the weighted mean. Any approximate
    stationary point is within :math:`O(\epsilon\sqrt{\log 1/\epsilon})` of the true mean, in any
    dimension, given :math:`n \gtrsim d / \epsilon^2` samples.

    Parameters
    ----------
    {{contamination}}
    {{scale}}
    {{covariance}}
    {{missing ... verbose}}

    Attributes
    ----------
    location_ : ndarray of shape (n_features,)
        The estimate, in the units of X. After a fit on a sample the mean of all trusted rows;
        `certificate_`, `objective_`, `noise_floor_` and `trace_` then speak of the sample alone.
    covariance_ : ndarray of shape (n_features, n_features)
        Of the rows under their weights, as an estimate of that of clean rows: consistent for
        Gaussian ones. Not set for more than 2000 features, for data in chunks, or where a variance
        is beyond floating point.
    {{weights_ ... subsample_}}
    {{contamination_ ... feature_names_in_}}

    References
    ----------
    {{paper}}, Appendix D; Cheng, Diakonikolas, Ge, Soltanolkotabi,
    "High-Dimensional Robust Mean Estimation via Gradient Descent", ICML 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from outweigh import RobustMean
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((1000, 20))
    >>> X[:100] += 2.0
    >>> est = RobustMean().fit(X)
    >>> bool(np.linalg.norm(est.location_) < 0.5 * np.linalg.norm(X.mean(axis=0)))
    True
    """

    def _set_answer(self, found: Fit) -> None:
        super()._set_answer(found)
        self.__dict__.pop("covariance_", None)
        d = self.location_.size
        if d <= _MOST_FOR_COVARIANCE and found.noise.rows.n_passes is None:
            covariance = np.zeros((d, d))
            columns = found.noise.standardizer.columns
            covariance[np.ix_(columns, columns)] = found.covariance()
            if np.isfinite(covariance).all():
                self.covariance_ = covariance

    @property
    def precision_(self) -> Array:
        """The pseudo-inverse of `covariance_`."""
        check_is_fitted(self)
        return np.asarray(pinvh(self.covariance_, check_finite=False))

    def get_precision(self) -> Array:
        """Return `precision_`, as the estimators of scikit-learn do."""
        return self.precision_

    def mahalanobis(self, X: ArrayLike) -> Array:
        """Return the squared Mahalanobis distance of each row from `location_`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        return self._squared_distances(X)

    @property
    def _precision(self) -> Array:
        return self.precision_

    def _log_det(self) -> tuple[int, float]:
        values = np.linalg.eigvalsh(self.covariance_)
        values = values[values > values[-1] * values.size * np.finfo(np.float64).eps]
        return values.size, float(np.log(values).sum())

    # How far `covariance_` is from another matrix, for comparisons.
    error_norm = EmpiricalCovariance.error_norm


@documented
@dataclass(eq=False, repr=False)
class RobustSparseMean(MeanEstimator):
    r"""Sparse mean of data of which a fraction of the rows is arbitrarily wrong.

    Algorithm 1 of the paper: weights are sought that minimise :math:`\|S_w - I\|_{F,k,k}`, the
    Frobenius norm of the k largest entries in each of k rows; the estimate keeps the k largest
    entries of the weighted mean. It needs about :math:`k^2 \log d` samples instead of d.

    The mean is sparse about zero: subtract a known baseline first.

    Parameters
    ----------
    n_nonzero : int or "auto", default="auto"
        The number k of nonzero entries of the mean. "auto" counts the entries of the weighted mean
        that exceed, in units of their noise, the largest of n_features Gaussians at level 0.05;
        it may find none. An integer above n_features is clipped with a warning.
    {{contamination}}
    {{scale}}
        The support is chosen in units of the noise.
    {{covariance}}
    {{missing ... verbose}}

    Attributes
    ----------
    location_ : ndarray of shape (n_features,)
        The estimate, in the units of X: zero outside `support_`, except that a constant feature
        has its constant. After a fit on a sample the mean of all trusted rows; `certificate_`,
        `objective_`, `noise_floor_` and `trace_` then speak of the sample alone.
    support_ : ndarray of shape (k,)
        The features of the nonzero entries.
    n_nonzero_ : int
        The number of nonzero entries given or found.
    {{weights_ ... subsample_}}
    {{contamination_ ... feature_names_in_}}

    References
    ----------
    {{paper}}, Algorithm 1.

    Examples
    --------
    >>> import numpy as np
    >>> from outweigh import RobustSparseMean
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((2000, 100))
    >>> X[:, :5] += 1.0
    >>> X[:200] -= 2.0
    >>> est = RobustSparseMean(n_nonzero=5).fit(X)
    >>> est.support_
    array([0, 1, 2, 3, 4])
    >>> round(est.contamination_, 2)
    0.1
    """

    n_nonzero: int | str = "auto"

    support_: Indices = field(init=False)
    n_nonzero_: int = field(init=False)

    def _task(self, n_samples: int) -> Task:
        if self.n_nonzero == "auto":
            return Task(n_nonzero=())
        return Task(n_nonzero=(clipped(int(self.n_nonzero), self.n_features_in_),))

    @property
    def _nonzero(self) -> NDArray[np.bool_]:
        return np.asarray(self.location_ != 0.0)

    def _read_out(self, mean: Array, found: Fit) -> Array:
        standardizer = found.noise.standardizer
        z = mean / standardizer.scale
        if self.n_nonzero == "auto":
            k = count_entries(z, found.problem.n_effective(found.weights))
        else:
            k = min(int(self.n_nonzero), z.size)
        # Of entries that are equal but for rounding the first.
        size = np.abs(z) / max(float(np.abs(z).max()), np.finfo(float).tiny)
        chosen = np.sort(np.argsort(-np.round(size, 9), kind="stable")[:k])
        self.n_nonzero_ = int(chosen.size)
        self.support_ = standardizer.columns[chosen]
        location = np.zeros_like(mean)
        location[chosen] = mean[chosen]
        return location


# Functions of rows that are sent to workers, with small arguments.


def _trusted_sums(
    rows: NDArray[np.floating], score: RowScore | EllipticalScore, offset: float, origin: Array
) -> Array:
    """Return the sum of x - origin over the rows that are trusted, and their number, as one row."""
    trusted = rows[score(rows) >= offset]
    return np.append((trusted - origin).sum(axis=0), float(len(trusted)))[None, :]


def _squared_distances(rows: NDArray[np.floating], location: Array, precision: Array) -> Array:
    """Return the squared Mahalanobis distances; the precision is a matrix, or its diagonal."""
    away = rows - location
    pulled = away * precision if precision.ndim == 1 else away @ precision
    return np.asarray(np.einsum("ij,ij->i", pulled, away))
