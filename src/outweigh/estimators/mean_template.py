"""The fit that the robust means share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from outweigh.certificates import Certificate, moreau_gradient
from outweigh.estimators.base import RobustEstimator, warn_constant
from outweigh.estimators.input import each_block, open_rows
from outweigh.estimators.preparation import Prepared, Standardizer, prepare, rescale
from outweigh.estimators.reference import reference_covariance
from outweigh.estimators.scoring import RowScore
from outweigh.estimators.start import start_on
from outweigh.estimators.weighting import Found, problem_at, weighting_of
from outweigh.protocols import Array
from outweigh.samples import Rows
from outweigh.samples.rows import Accepted
from outweigh.scaling import scales_are_off

__all__ = ["MeanEstimator"]


# Scales are estimated again with better weights until they change by less than this, or this often.
_SCALE_TOLERANCE = 0.03
_SCALE_ROUNDS = 2
# Robust scales are too large where rows are wrong; a feature that varies this much more than its
# scale under the weights found has outliers left, or heavy tails.
_SPREAD_BEYOND = 1.25


class MeanEstimator(RobustEstimator):
    """The fit template of both means."""

    location_: Array
    covariance: object

    @abstractmethod
    def _find(
        self, prepared: Prepared, sample_weight: Array, earlier: Found | None, verify: bool
    ) -> Found:
        """Return weights for samples in units of the noise.

        Parameters
        ----------
        prepared : Prepared
        sample_weight : ndarray of shape (n,)
        earlier : Found or None
            What was found in somewhat other units.
        verify : bool
            False where weights are only needed to find better units.
        """

    @abstractmethod
    def _read_out(self, mean: Array, standardizer: Standardizer, n_effective: float) -> Array:
        """Return the estimate on the varying columns from the weighted mean there."""

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _fit_rows(self, X: Rows, sample_weight: Array) -> None:
        positive = sample_weight > 0
        rows = X.select(positive)
        weight = sample_weight[positive]
        scale = (
            self.scale
            if self.scale is None or isinstance(self.scale, str)
            else np.asarray(self.scale, dtype=np.float64)
        )
        known = reference_covariance(self.covariance, X.shape[1])
        if known is not None and (scale is None or (isinstance(scale, str) and scale == "auto")):
            scale = np.sqrt(np.diagonal(known))
        start = start_on(rows, weight, scale, known)
        warn_constant(start.varying, X.shape[1])
        prepared = prepare(rows, weight, start.standardizer, start.centre)
        refine = isinstance(scale, str) and scale == "auto"
        # Scales that were estimated without weights are to be estimated again.
        rough = refine and bool(np.any(start.standardizer.scale != 1.0))
        found = self._find(prepared, weight, None, not rough)
        if refine:
            found = self._refine_scale(rows, found, rough)
        standardizer = found.prepared.standardizer
        read = self._read_out(found.centre, standardizer, found.n_effective)
        self.location_ = start.first
        self.location_[standardizer.columns] = read
        self.scale_ = np.ones(X.shape[1])
        self.scale_[standardizer.columns] = standardizer.scale
        self._make_objective = found.make_objective
        self._centre = start.centre
        self._set_weighting(sample_weight, positive, weighting_of(found))

    def _refine_scale(self, rows: Rows, found: Found, rough: bool) -> Found:
        """Search again where the weights found show that the scales were wrong."""
        if not rough and self._unit_noise(found):
            return found
        weight = found.sample_weight
        factor = _scale_left(found)
        if rough and factor.max() > _SPREAD_BEYOND:
            # Outliers are left, which verified weights would not leave.
            found, rough = self._find(found.prepared, weight, found, True), False
            factor = _scale_left(found)
        for _ in range(_SCALE_ROUNDS):
            if not rough and np.all(np.abs(factor - 1.0) <= _SCALE_TOLERANCE):
                break
            prepared = rescale(found.prepared, rows, weight, factor)
            found, rough = self._find(prepared, weight, found, True), False
            factor = _scale_left(found)
        return found

    def _unit_noise(self, found: Found) -> bool:
        """Whether data taken to be of unit noise is so, as shows in a part of the columns."""
        kurtosis = found.samples.typical_kurtosis(found.weights)
        d = found.samples.n_features
        some = found.samples.variances(found.weights, np.arange(0, d, max(1, d // 256)))
        return not scales_are_off(some, found.n_effective, kurtosis)

    def certify(self, X: ArrayLike, sample_weight: ArrayLike | None = None) -> Certificate:
        """Return the certificate with the gradient of the Moreau envelope, which takes longer.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows the estimator was fitted on.
        sample_weight : array-like of shape (n_samples,), optional
            As in `fit`.

        Returns
        -------
        Certificate
        """
        check_is_fitted(self)
        rows = open_rows(self, X, reset=False)
        if rows.shape[0] != self._n_rows:
            raise ValueError(f"X must hold the {self._n_rows} rows of the fit; got {rows.shape[0]}")
        rows, weight = self._searched(rows, sample_weight)
        positive = weight > 0
        if rows.n_passes is not None:
            # Rows in chunks are checked as they are looked over.
            rows.overview(np.zeros(rows.shape[1]))
        prepared = prepare(
            rows.select(positive), weight[positive], self._score.standardizer, self._centre
        )
        domain, objective = problem_at(
            prepared, weight[positive], self._make_objective, self.contamination_bound_
        )
        weights = domain.project(self._searched_weights[positive])
        return replace(self.certificate_, moreau=moreau_gradient(objective, domain, weights))

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
        sums = TrustedSums(self._score, self.offset_, self.location_)
        parts = each_block(self, X, sums, self.location_.size + 1)
        total = parts.sum(axis=0)
        with np.errstate(invalid="ignore"):
            # Not a number where no row is trusted.
            mean: Array = self.location_ + total[:-1] / total[-1]
        return np.where(self._nonzero, mean, 0.0)

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

    @property
    def _scorer(self) -> Callable[[NDArray[np.float64]], Array]:
        return self._score


@dataclass(frozen=True, slots=True, eq=False)
class TrustedSums:
    """Rows to the sum and the number of those that are trusted; small enough for workers."""

    score: RowScore
    offset: float
    origin: Array

    def __call__(self, rows: NDArray[np.floating]) -> Array:
        """Return sums of x - origin, and the number of rows, as one row."""
        trusted = rows[self.score(rows) >= self.offset]
        return np.append((trusted - self.origin).sum(axis=0), float(len(trusted)))[None, :]


def _scale_left(found: Found) -> Array:
    """Return the deviation of each column under the weights found, in the present units.

    Six digits are more than a scale is known to; the rest is the order of summation, which must not
    decide what a long descent does.
    """
    variances = found.samples.variances(found.weights)
    return _six_digits(np.sqrt(np.where(variances > 0, variances, 1.0)))


def _six_digits(values: Array) -> Array:
    """Return positive values rounded to six significant digits."""
    unit = 10.0 ** (np.floor(np.log10(values)) - 5.0)
    return np.asarray(np.round(values / unit) * unit)
