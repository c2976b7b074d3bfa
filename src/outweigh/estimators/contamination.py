"""The paper's own way to an unknown contamination: a binary search on it."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import check_is_fitted

from outweigh.constraints import POSITIVE, SHARE, HasMethods
from outweigh.estimators.base import JudgesRows, RobustEstimator
from outweigh.protocols import Array


class ContaminationSearch(JudgesRows, MetaEstimatorMixin, BaseEstimator):
    """The smallest contamination at which an estimator reaches the level of clean data.

    If the guess is too small, the weights found score much more than clean data does (footnote to
    Algorithm 1 of the paper), so a binary search finds the least that suffices. It costs one fit a
    guess, where ``contamination="auto"`` costs two in all.

    Parameters
    ----------
    estimator : estimator
        One of this library, with a parameter ``contamination``.
    upper : float, default=0.4
        The largest contamination considered.
    tol : float, default=0.01
        The width to which the answer is narrowed.

    Attributes
    ----------
    contamination_ : float
        The smallest contamination found to suffice; where none did, the last one tried.
    estimator_ : estimator
        Fitted with ``contamination="auto"`` where that reaches the level, else with the largest
        share that was tried: at the smallest one that suffices the estimate is at its worst.
    feasible_ : bool
        Whether the level of clean data was reached at all.
    trials_ : list of tuple (contamination, objective, clean)
        In the order tried.
    offset_ : float
        That of `estimator_`: ``predict`` flags rows whose score is below it.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Where the features of X have names.

    Examples
    --------
    >>> import numpy as np
    >>> from outweigh import ContaminationSearch, RobustSparseMean
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((1000, 50))
    >>> X[:100] += 3.0
    >>> search = ContaminationSearch(RobustSparseMean(n_nonzero=5)).fit(X)
    >>> bool(abs(search.contamination_ - 0.1) < 0.03)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": [HasMethods(["fit", "set_params"])],
        "upper": SHARE[:1],
        "tol": [POSITIVE],
    }

    def __init__(
        self, estimator: RobustEstimator, *, upper: float = 0.4, tol: float = 0.01
    ) -> None:
        self.estimator = estimator
        self.upper = upper
        self.tol = tol

    def fit(self, X: ArrayLike, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Search for the smallest sufficient contamination.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : ignored
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        self
        """
        self._validate_params()
        if not isinstance(self.estimator, RobustEstimator):
            got = type(self.estimator).__name__
            raise TypeError(f"estimator must be one of this library, as RobustMean(); got {got}")
        trials: list[tuple[float, float, bool]] = []

        def fitted(contamination: float | str) -> RobustEstimator:
            found: RobustEstimator = clone(self.estimator).set_params(contamination=contamination)
            with warnings.catch_warnings():
                # That too small a share does not suffice is what the search is about.
                warnings.simplefilter("ignore", ConvergenceWarning)
                return found.fit(X, sample_weight=sample_weight)

        def tried(contamination: float) -> RobustEstimator:
            found = fitted(contamination)
            clean = bool(found.certificate_.clean)
            trials.append((contamination, float(found.objective_), clean))
            return found

        best = tried(0.0)
        low, high, feasible = 0.0, 0.0, trials[-1][2]
        if not feasible:
            # At the least share that suffices clean rows and outliers that overlap compete for it;
            # the estimate is one with room for both.
            best = fitted("auto")
            # A loose bound takes clean rows too; a share that is found on the way may do better.
            for high in (self.upper, min(float(best.contamination_bound_), self.upper)):
                at_bound = tried(high)
                feasible = trials[-1][2]
                if feasible:
                    break
            if not best.certificate_.clean:
                best = at_bound
        while feasible and high - low > self.tol:
            middle = (low + high) / 2.0
            found = tried(middle)
            if not trials[-1][2]:
                low = middle
                continue
            high = middle
            best = best if best.certificate_.clean else found
        if not feasible:
            none = f"no contamination up to upper={self.upper} reaches the level of clean data"
            warnings.warn(f"{none}; see certificate_ of estimator_", stacklevel=2)
        self.contamination_ = high
        self.estimator_ = best
        self.offset_ = best.offset_
        self.feasible_ = feasible
        self.trials_ = trials
        return self

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        if isinstance(self.estimator, RobustEstimator):
            tags.input_tags = get_tags(self.estimator).input_tags
        return tags

    @property
    def n_features_in_(self) -> int:
        """How many features the rows have."""
        # An AttributeError before fit, as scikit-learn asks of this name.
        return int(self.estimator_.n_features_in_)

    @property
    def feature_names_in_(self) -> NDArray[np.object_]:
        """The names of the features."""
        return np.asarray(self.estimator_.feature_names_in_, dtype=object)

    def score_samples(self, X: ArrayLike) -> Array:
        """Return the scores of `estimator_`: lower is less trusted."""
        check_is_fitted(self)
        return self.estimator_.score_samples(X)
