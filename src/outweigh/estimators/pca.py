"""Robust principal components, dense and sparse."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from outweigh.estimators.parameters import COMMON, N_COMPONENTS, N_NONZERO_EACH
from outweigh.estimators.pca_template import ComponentsEstimator

__all__ = ["RobustPCA", "RobustSparsePCA"]


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
    contamination : float in [0, 0.5) or "auto", default="auto"
        The largest share of rows that may be wrong. "auto" estimates it.
    scale : {"auto", "mad"}, array of shape (n_features,) or None, default=None
        None keeps the units of X and estimates one noise level for all features. "mad" divides
        each feature by its median absolute deviation, "auto" only where the features are not of
        unit noise, an array by its entries. Components are unit vectors in the units of X.
    covariance : array of shape (n_features, n_features), fitted estimator or None, default=None
        The covariance R of the *noise* alone, where it is known, as from blank measurements: an
        array, or an estimator with ``covariance_`` fitted on rows of noise. Clean rows then have
        the covariance :math:`\sigma^2 R + B`, and the components are the leading eigenvectors of
        B; a common factor of R does not matter. The default scale is the root of its diagonal;
        with another scale only its correlations are used. None takes R to be the identity.
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
        After a fit of Dask rows on a sample a dask array, chunked like them and not yet computed.
    subsample_ : ndarray of int or None
        The rows that weights were searched on; None for all of them. Where it is not None,
        everything but `weights_` and `contamination_` is of these rows alone.
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
    n_passes_ : int
        Passes made over data in chunks; only set for such data.
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
        covariance: object = None,
        assume_centered: bool = False,
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
        self.n_components = n_components
        self.contamination = contamination
        self.scale = scale
        self.covariance = covariance
        self.assume_centered = assume_centered
        self.solver = solver
        self.refit = refit
        self.stop_at_floor = stop_at_floor
        self.working_set = working_set
        self.max_iter = max_iter
        self.tol = tol
        self.subsample = subsample
        self.random_state = random_state
        self.verbose = verbose

    def _wanted_nonzero(self) -> None:
        return None


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
    contamination : float in [0, 0.5) or "auto", default="auto"
        The largest share of rows that may be wrong. "auto" estimates it.
    scale : {"auto", "mad"}, array of shape (n_features,) or None, default=None
        As in `RobustPCA`; the support is chosen in scaled units.
    covariance : array of shape (n_features, n_features), fitted estimator or None, default=None
        As in `RobustPCA`; the components beyond it are sparse in the features themselves.
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
    max_iter, tol, subsample, random_state, verbose
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
        After a fit of Dask rows on a sample a dask array, chunked like them and not yet computed.
    subsample_ : ndarray of int or None
        The rows that weights were searched on; None for all of them. Where it is not None,
        everything but `weights_` and `contamination_` is of these rows alone.
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
        covariance: object = None,
        assume_centered: bool = False,
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
        self.n_components = n_components
        self.n_nonzero = n_nonzero
        self.contamination = contamination
        self.scale = scale
        self.covariance = covariance
        self.assume_centered = assume_centered
        self.solver = solver
        self.refit = refit
        self.stop_at_floor = stop_at_floor
        self.working_set = working_set
        self.max_iter = max_iter
        self.tol = tol
        self.subsample = subsample
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
