"""Robust means, dense and sparse."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from outweigh import objectives
from outweigh.directions import SPARE
from outweigh.estimators.counting import count_in, count_significant, first_count
from outweigh.estimators.mean_template import MeanEstimator
from outweigh.estimators.parameters import COMMON, N_NONZERO
from outweigh.estimators.preparation import Prepared, Standardizer
from outweigh.estimators.weighting import Found, find_weighting, seen_through
from outweigh.protocols import Array
from outweigh.samples import Rows
from outweigh.selection import top_k_indices

__all__ = ["RobustMean", "RobustSparseMean"]


class RobustMean(MeanEstimator):
    r"""Mean of data of which a fraction of the rows is arbitrarily wrong.

    Weights :math:`w` in the capped simplex are sought for which the weighted covariance
    :math:`S_w` has no direction of unexplained variance, by minimising the spectral norm
    :math:`\|S_w - I\|_2` in units of the noise; the estimate is the weighted mean. Any approximate
    stationary point is within :math:`O(\epsilon\sqrt{\log 1/\epsilon})` of the true mean, in any
    dimension, given :math:`n \gtrsim d / \epsilon^2` samples.

    Parameters
    ----------
    contamination : float in [0, 0.5) or "auto", default="auto"
        The largest share of rows that may be wrong. "auto" estimates it.
    scale : {"auto", "mad"}, array of shape (n_features,) or None, default="auto"
        The noise of each feature. "auto" leaves data of unit noise alone and else uses robust
        scales, estimated again with the weights found; "mad" always divides by the median absolute
        deviation; None never divides.
    covariance : array of shape (n_features, n_features), fitted estimator or None, default=None
        The covariance of clean rows, where it is known: an array, or an estimator with
        ``covariance_`` fitted on rows that you trust. None takes the features to be uncorrelated.
        The default scale is then its diagonal; with another scale only its correlations are used.
    solver : {"polyak", "backtracking", "constant", "mirror"}, default="polyak"
        "polyak" steps toward the level of clean data, "backtracking" halves steps that fail,
        "constant" is the step of the paper's theorem, "mirror" is entropic mirror descent.
    refit : bool, default=True
        After the descent, trim along the direction in which the removed rows differ.
    stop_at_floor : bool, default=True
        End the descent at the level of clean data instead of at a stationary point.
    working_set : bool, default=True
        With 64 features or more, descend along the leading directions of the covariance alone and
        verify on all features.
    max_iter : int, default=300
        Evaluations of the objective allowed.
    tol : float, default=1e-3
        Relative progress below which a descent has converged.
    subsample : int or None, default=1_000_000
        The most rows that weights are searched on. Of more, a random sample is fitted, all rows are
        scored with what it taught, and those that the search would have left their weight have
        equal weight, or one in proportion to `sample_weight`. A given `contamination` is then
        exceeded by as much as that of a sample may exceed that of all rows. None: all rows, always.
    random_state : int, RandomState or None, default=None
        Draws the sample of `subsample`, which is all that is random; None means 0.
    verbose : bool or int, default=False
        Log each evaluation at level INFO to the logger ``outweigh``.

    Attributes
    ----------
    location_ : ndarray of shape (n_features,)
        The estimate, in the units of X.
    weights_ : ndarray of shape (n_samples,)
        The weight of each row. After a fit of Dask rows on a sample a dask array, chunked like
        them and not yet computed.
    subsample_ : ndarray of int or None
        The rows that weights were searched on; None for all of them. Where it is not None,
        `location_` is the mean of all trusted rows, and `certificate_`, `objective_`,
        `noise_floor_` and `trace_` speak of these rows alone.
    contamination_ : float
        The share of the sample weight removed: total variation of `weights_` from uniform.
    contamination_bound_ : float
        The share that could have been removed.
    scale_ : ndarray of shape (n_features,)
        The noise that each feature was divided by.
    objective_, noise_floor_ : float
        The objective at the weights, and the median level of clean data.
    certificate_ : Certificate
        How good the weights are; ``str(est.certificate_)`` is a verdict for a person.
    n_iter_ : int
    n_passes_ : int
        Passes made over data in chunks; only set for such data.
    trace_ : tuple of Iterate
    offset_ : float
        ``predict`` flags rows whose score is below it.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)

    References
    ----------
    Cheng, Diakonikolas, Ge, Gupta, Kane, Soltanolkotabi, "Outlier-Robust Sparse Estimation via
    Non-Convex Optimization", NeurIPS 2022, Appendix D; Cheng, Diakonikolas, Ge, Soltanolkotabi,
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

    def __init__(
        self,
        *,
        contamination: float | str = "auto",
        scale: str | ArrayLike | None = "auto",
        covariance: object = None,
        solver: str = "polyak",
        refit: bool = True,
        stop_at_floor: bool = True,
        working_set: bool = True,
        max_iter: int = 300,
        tol: float = 1e-3,
        subsample: int | None = 1_000_000,
        random_state: int | np.random.RandomState | None = None,
        verbose: int | bool = False,
    ) -> None:
        self.contamination = contamination
        self.scale = scale
        self.covariance = covariance
        self.solver = solver
        self.refit = refit
        self.stop_at_floor = stop_at_floor
        self.working_set = working_set
        self.max_iter = max_iter
        self.tol = tol
        self.subsample = subsample
        self.random_state = random_state
        self.verbose = verbose

    def _find(
        self, prepared: Prepared, sample_weight: Array, earlier: Found | None, verify: bool
    ) -> Found:
        return find_weighting(
            prepared,
            sample_weight,
            objectives.mean,
            self._known_contamination(),
            replace(self._options(SPARE), verify=verify),
            separate_sparse=False if self.refit else None,
            callback=self._log,
            earlier=earlier,
        )

    def _read_out(self, mean: Array, standardizer: Standardizer, n_effective: float) -> Array:
        return mean


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
    contamination : float in [0, 0.5) or "auto", default="auto"
        The largest share of rows that may be wrong. "auto" estimates it.
    scale : {"auto", "mad"}, array of shape (n_features,) or None, default="auto"
        The noise of each feature. "auto" leaves data of unit noise alone and else uses robust
        scales, estimated again with the weights found; "mad" always divides by the median absolute
        deviation; None never divides. The support is chosen in units of the noise.
    covariance : array of shape (n_features, n_features), fitted estimator or None, default=None
        The covariance of clean rows, where it is known: an array, or an estimator with
        ``covariance_`` fitted on rows that you trust. None takes the features to be uncorrelated.
        The default scale is then its diagonal; with another scale only its correlations are used.
    solver : {"polyak", "backtracking", "constant", "mirror"}, default="polyak"
        "polyak" steps toward the level of clean data, "backtracking" halves steps that fail,
        "constant" is the step of the paper's theorem, "mirror" is entropic mirror descent.
    refit : bool, default=True
        After the descent, trim along the direction in which the removed rows differ.
    stop_at_floor : bool, default=True
        End the descent at the level of clean data instead of at a stationary point.
    working_set : bool, default=True
        Descend on the features that carry the evidence and verify on all.
    max_iter : int, default=300
        Evaluations of the objective allowed.
    tol : float, default=1e-3
        Relative progress below which a descent has converged.
    subsample : int or None, default=1_000_000
        The most rows that weights are searched on. Of more, a random sample is fitted, all rows are
        scored with what it taught, and those that the search would have left their weight have
        equal weight, or one in proportion to `sample_weight`. A given `contamination` is then
        exceeded by as much as that of a sample may exceed that of all rows. None: all rows, always.
    random_state : int, RandomState or None, default=None
        Draws the sample of `subsample`, which is all that is random; None means 0.
    verbose : bool or int, default=False
        Log each evaluation at level INFO to the logger ``outweigh``.

    Attributes
    ----------
    location_ : ndarray of shape (n_features,)
        The estimate, in the units of X: zero outside `support_`, except that a constant feature
        has its constant.
    support_ : ndarray of shape (k,)
        The features of the nonzero entries.
    n_nonzero_ : int
        The number of nonzero entries given or found.
    weights_ : ndarray of shape (n_samples,)
        The weight of each row. After a fit of Dask rows on a sample a dask array, chunked like
        them and not yet computed.
    subsample_ : ndarray of int or None
        The rows that weights were searched on; None for all of them. Where it is not None,
        `location_` is the mean of all trusted rows, and `certificate_`, `objective_`,
        `noise_floor_` and `trace_` speak of these rows alone.
    contamination_ : float
        The share of the sample weight removed: total variation of `weights_` from uniform.
    contamination_bound_ : float
        The share that could have been removed.
    scale_ : ndarray of shape (n_features,)
        The noise that each feature was divided by.
    objective_, noise_floor_ : float
        The objective at the weights, and the median level of clean data.
    certificate_ : Certificate
        How good the weights are; ``str(est.certificate_)`` is a verdict for a person.
    n_iter_ : int
    n_passes_ : int
        Passes made over data in chunks; only set for such data.
    trace_ : tuple of Iterate
    offset_ : float
        ``predict`` flags rows whose score is below it.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)

    Notes
    -----
    ``refit=False, solver="constant", stop_at_floor=False, working_set=False`` is the plain
    algorithm of the paper.

    References
    ----------
    Cheng, Diakonikolas, Ge, Gupta, Kane, Soltanolkotabi, "Outlier-Robust Sparse Estimation via
    Non-Convex Optimization", NeurIPS 2022, Algorithm 1.

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

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **COMMON,
        **N_NONZERO,
    }

    # How often the number of entries is counted again with better weights.
    _COUNTS = 3

    def __init__(
        self,
        n_nonzero: int | str = "auto",
        *,
        contamination: float | str = "auto",
        scale: str | ArrayLike | None = "auto",
        covariance: object = None,
        solver: str = "polyak",
        refit: bool = True,
        stop_at_floor: bool = True,
        working_set: bool = True,
        max_iter: int = 300,
        tol: float = 1e-3,
        subsample: int | None = 1_000_000,
        random_state: int | np.random.RandomState | None = None,
        verbose: int | bool = False,
    ) -> None:
        self.n_nonzero = n_nonzero
        self.contamination = contamination
        self.scale = scale
        self.covariance = covariance
        self.solver = solver
        self.refit = refit
        self.stop_at_floor = stop_at_floor
        self.working_set = working_set
        self.max_iter = max_iter
        self.tol = tol
        self.subsample = subsample
        self.random_state = random_state
        self.verbose = verbose

    def _find(
        self, prepared: Prepared, sample_weight: Array, earlier: Found | None, verify: bool
    ) -> Found:
        if self.n_nonzero != "auto":
            k = min(int(self.n_nonzero), prepared.samples.n_features)
            return self._find_with(prepared, sample_weight, k, earlier, verify)
        k = first_count(prepared, sample_weight, earlier)
        risen = False
        for _ in range(self._COUNTS):
            found = self._find_with(prepared, sample_weight, k, earlier, verify)
            counted = max(1, count_in(found))
            if not verify or abs(counted - k) <= 0.2 * k:
                break
            if risen and counted < k:
                # Outliers were counted that fewer entries do not show: no way back to those.
                break
            risen = counted > k
            k, earlier = counted, None
            if self.stop_at_floor:
                still_clean = seen_through(found, partial(objectives.sparse_mean, n_nonzero=k))
                if still_clean is not None:
                    return still_clean
        return found

    def _find_with(
        self,
        prepared: Prepared,
        sample_weight: Array,
        k: int,
        earlier: Found | None,
        verify: bool,
    ) -> Found:
        return find_weighting(
            prepared,
            sample_weight,
            partial(objectives.sparse_mean, n_nonzero=k),
            self._known_contamination(),
            replace(self._options(max(3 * k, 30)), verify=verify),
            separate_sparse=True if self.refit else None,
            callback=self._log,
            earlier=earlier,
        )

    def _validate_rows(
        self, X: ArrayLike, sample_weight: ArrayLike | None
    ) -> tuple[Rows, Array | None]:
        rows, weight = super()._validate_rows(X, sample_weight)
        d = rows.shape[1]
        if self.n_nonzero != "auto" and int(self.n_nonzero) > d:
            warnings.warn(
                f"n_nonzero={self.n_nonzero} is larger than the number of features {d}; {d} is "
                "used",
                UserWarning,
                stacklevel=3,
            )
        return rows, weight

    @property
    def _nonzero(self) -> NDArray[np.bool_]:
        return np.asarray(self.location_ != 0.0)

    def _read_out(self, mean: Array, standardizer: Standardizer, n_effective: float) -> Array:
        z = mean / standardizer.scale
        if self.n_nonzero == "auto":
            k = count_significant(z, n_effective)
        else:
            k = min(int(self.n_nonzero), z.size)
        chosen = top_k_indices(z, k)
        self.n_nonzero_ = int(chosen.size)
        self.support_ = standardizer.columns[chosen]
        location = np.zeros_like(mean)
        location[chosen] = mean[chosen]
        return location
