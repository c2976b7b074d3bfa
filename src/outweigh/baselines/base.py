"""What all baselines share: checking the data and the parameters, publishing a fit."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any, ClassVar, Self, dataclass_transform

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.preprocessing import normalize
from sklearn.utils.validation import check_array, validate_data

from outweigh.adversaries.sample import RANDOM_STATE, BoolArray
from outweigh.constraints import COUNT, POSITIVE, SHARE, Number
from outweigh.estimators.parameters import documented
from outweigh.fit.readers import fix_signs
from outweigh.norms.entrywise import hard_threshold, top_k_indices
from outweigh.protocols import Array

# Squares of larger values overflow when they are summed.
_LARGEST = 1e140

_PROBABILITY = Number(Real, 0.0, 1.0, closed="neither")


@dataclass(frozen=True, eq=False)
class Found:
    """What a baseline found: the estimate, and how, where that has a meaning.

    Attributes
    ----------
    estimate : ndarray of shape (n_features,) or (n_components, n_features)
        A mean, or components as rows of any length.
    mean : ndarray of shape (n_features,), optional
        What was subtracted before components were sought.
    inliers : ndarray of bool, shape (n_samples,), optional
        The rows that were kept.
    weights : ndarray of shape (n_samples,), optional
        The weights of the rows, which sum to one.
    n_iter : int, optional
    """

    estimate: Array
    mean: Array | None = None
    inliers: BoolArray | None = None
    weights: Array | None = None
    n_iter: int | None = None


@dataclass_transform(eq_default=False)
class Baseline(BaseEstimator):
    """Template of a baseline: a subclass says how to estimate, in ``_find``.

    Subclasses are dataclasses: their fields are the parameters that scikit-learn gets and sets, and
    what is the same in many of them is documented here and filled in (see `documented`).
    Nothing of an earlier fit changes unless a new one succeeds.

    Parameters
    ----------
    contamination : float, default=0.1
        The eps above.
    failure_probability : float, default=0.2
        The tau of :class:`~outweigh.baselines.NaivePruning`, and of what else is judged by tails.
    false_discovery_rate : float, default=0.1
        Share of genuine rows tolerated among the dropped.
    max_iter : int, default=100
        Largest number of rounds.

    Attributes
    ----------
    inliers_ : ndarray of bool, shape (n_samples,)
        The rows that were kept.
    weights_ : ndarray of shape (n_samples,)
    n_iter_ : int
        Number of rounds.
    """

    n_nonzero: int | None
    # Those of the kind that have a name, by it.
    named: ClassVar[dict[str, type[Any]]]
    # How many rows of X are needed at least.
    _min_samples: ClassVar[int] = 1
    # A parameter means the same in every baseline that has it.
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "contamination": SHARE,
        "failure_probability": [_PROBABILITY],
        "false_discovery_rate": [_PROBABILITY],
        "max_iter": [COUNT],
        "n_components": [COUNT],
        "n_nonzero": [COUNT, None],
        "n_trials": [COUNT],
        "random_state": [*RANDOM_STATE, "random_state"],
        "sharpness": [POSITIVE],
        "spike": [POSITIVE],
    }

    def __init_subclass__(cls, name: str = "") -> None:
        super().__init_subclass__()
        dataclass(eq=False, repr=False)(documented(cls))
        if name:
            cls.named[name] = cls

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Estimate from the rows of ``X``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self
        """
        return self._publish(X, self._found(self._check(X)))

    def _found(self, X: Array) -> Found:
        """Return what ``_find`` finds, or say that X is too small for so many components."""
        n_components, most = self.get_params().get("n_components", 1), min(X.shape)
        if n_components > most:
            raise ValueError(f"n_components={n_components} is more than min(X.shape)={most}")
        return self._find(X)

    def _find(self, X: Array) -> Found:
        """Estimate from checked rows; of the estimate the largest entries are kept later."""
        raise NotImplementedError

    def _named(self, estimate: Array) -> dict[str, Any]:
        """Return the estimate as fitted attributes, without their closing underscores."""
        raise NotImplementedError

    def _kept(self, n_features: int) -> int:
        """Return how many entries an estimate may have that are not zero."""
        return n_features if self.n_nonzero is None else min(int(self.n_nonzero), n_features)

    def _check(self, X: ArrayLike) -> Array:
        """Return the rows as finite float64, or say what is wrong."""
        self._validate_params()
        samples: Array = check_array(
            X,
            dtype=np.float64,
            ensure_min_samples=self._min_samples,
            estimator=self,
            input_name="X",
        )
        largest = float(np.abs(samples).max())
        if largest > _LARGEST:
            raise ValueError(f"X has values as large as {largest:.3g}; divide it by a constant")
        n_features = samples.shape[1]
        if self.n_nonzero is not None and self.n_nonzero > n_features:
            all_kept = f"n_nonzero={self.n_nonzero} is more than the {n_features} features of X"
            warnings.warn(f"{all_kept}; all are kept", stacklevel=3)
        return samples

    def _publish(self, X: ArrayLike, found: Found) -> Self:
        """Set the fitted attributes; whatever can fail comes before the first of them."""
        fitted = self._named(found.estimate)
        for name in ("mean", "inliers", "weights", "n_iter"):
            fitted[name] = getattr(found, name)
        validate_data(self, X, skip_check_array=True)
        for name, value in fitted.items():
            if value is not None:
                setattr(self, f"{name}_", value)
        return self


class MeanBaseline(Baseline):
    """A baseline for means.

    Parameters
    ----------
    n_nonzero : int or None, default=None
        Number of largest entries to keep; None keeps all.

    Attributes
    ----------
    location_ : ndarray of shape (n_features,)
    support_ : ndarray
        Indices of the entries kept.
    """

    n_nonzero: int | None = None
    named: ClassVar[dict[str, type[Any]]] = {}

    def _named(self, estimate: Array) -> dict[str, Any]:
        k = self._kept(estimate.size)
        return {"location": hard_threshold(estimate, k), "support": top_k_indices(estimate, k)}


class CentredMean(MeanBaseline):
    """A baseline for means that sees the rows less the median of each feature."""

    def _found(self, X: Array) -> Found:
        origin = np.median(X, axis=0)
        found = super()._found(X - origin)
        return replace(found, estimate=origin + found.estimate)


class ComponentsBaseline(Baseline):
    """A baseline for components.

    Parameters
    ----------
    n_components : int, default=1
    n_nonzero : int or None, default=None
        Number of nonzero entries of a component; None sets no limit.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Unit rows, the entry of largest magnitude positive.
    mean_ : ndarray of shape (n_features,)
        What was subtracted from the rows.
    """

    named: ClassVar[dict[str, type[Any]]] = {}
    _min_samples = 2  # one row has no variance

    def _named(self, estimate: Array) -> dict[str, Any]:
        k = self._kept(estimate.shape[1])
        rows = np.stack([hard_threshold(row, k) for row in estimate])
        # Rows that a penalty made zero stay zero.
        return {"components": fix_signs(normalize(rows))}


class CentredComponents(ComponentsBaseline):
    """A baseline for components that sees the rows less a centre.

    Parameters
    ----------
    assume_centered : bool, default=False
        Whether the centre of the rows is zero; if not, the median of each feature is subtracted.
    """

    assume_centered: bool = field(default=False, kw_only=True)

    def _centre(self, X: Array) -> Array:
        return np.median(X, axis=0)

    def _found(self, X: Array) -> Found:
        centre = np.zeros(X.shape[1]) if self.assume_centered else self._centre(X)
        return replace(super()._found(X - centre), mean=centre)


class SeveralComponents(ComponentsBaseline):
    """A baseline for components that finds as many as are asked for."""

    n_components: int = 1
    n_nonzero: int | None = None


class Oracle(Baseline):
    """A baseline that is told which rows are genuine, and sees no others."""

    _min_samples = 1

    def fit(  # type: ignore[override]  # what makes it an oracle is asked of nobody else
        self, X: ArrayLike, y: object = None, *, inliers: ArrayLike
    ) -> Self:
        """Estimate from the rows of ``X`` that ``inliers`` marks.

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
        samples = self._check(X)
        mask = np.asarray(inliers)
        if mask.dtype != np.bool_ or mask.shape != (len(samples),):
            got = f"{mask.dtype} of shape {mask.shape}"
            raise ValueError(
                f"inliers must be boolean, one for each of {len(samples)} rows; got {got}"
            )
        if not mask.any():
            raise ValueError("inliers must mark at least one row as True, got none")
        return self._publish(X, replace(self._found(samples[mask]), inliers=mask))
