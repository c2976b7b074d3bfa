"""What all baselines share: checking the data, keeping the largest entries, publishing a fit."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, validate_data

from outweigh.selection import top_k_indices

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

# Squares of larger values overflow when they are summed.
_LARGEST = 1e140


@dataclass(frozen=True, eq=False)
class Located:
    """What a mean baseline found: the point, and how, where that has a meaning.

    Attributes
    ----------
    location : ndarray of shape (n_features,)
    inliers : ndarray of bool, shape (n_samples,), optional
        The rows that were kept.
    weights : ndarray of shape (n_samples,), optional
        The weights of the rows, which sum to one.
    n_iter : int, optional
    """

    location: FloatArray
    inliers: BoolArray | None = None
    weights: FloatArray | None = None
    n_iter: int | None = None


@dataclass(frozen=True, eq=False)
class Directions:
    """What a component baseline found.

    Attributes
    ----------
    directions : ndarray of shape (n_components, n_features)
        Rows of any length.
    centre : ndarray of shape (n_features,)
    inliers : ndarray of bool, shape (n_samples,), optional
        The rows that were kept.
    n_iter : int, optional
    """

    directions: FloatArray
    centre: FloatArray
    inliers: BoolArray | None = None
    n_iter: int | None = None


class PublishesLocation(BaseEstimator):
    """An estimator of a mean; nothing of an earlier fit changes unless a new one succeeds."""

    n_nonzero: int | None

    def _publish(self, X: npt.ArrayLike, found: Located, n_nonzero: int) -> Self:
        location, support = keep_largest(found.location, n_nonzero)
        validate_data(self, X, skip_check_array=True)
        self.location_ = location
        self.support_ = support
        for name in ("inliers", "weights", "n_iter"):
            value = getattr(found, name)
            if value is not None:
                setattr(self, f"{name}_", value)
        return self


class MeanBaseline(PublishesLocation):
    """Template of a baseline for means: a subclass says how, in ``_locate``."""

    def fit(self, X: npt.ArrayLike, y: object = None) -> Self:
        """Estimate the mean of the rows of ``X``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self
        """
        samples = check_samples(self, X)
        kept = check_n_nonzero(self.n_nonzero, samples.shape[1])
        return self._publish(X, self._locate(samples, kept), kept)

    def _locate(self, X: FloatArray, n_nonzero: int) -> Located:
        raise NotImplementedError


class PublishesComponents(BaseEstimator):
    """An estimator of components; nothing of an earlier fit changes unless a new one succeeds."""

    n_nonzero: int | None

    def _publish(self, X: npt.ArrayLike, found: Directions) -> Self:
        validate_data(self, X, skip_check_array=True)
        self.components_ = unit_rows(found.directions)
        self.mean_ = found.centre
        for name in ("inliers", "n_iter"):
            value = getattr(found, name)
            if value is not None:
                setattr(self, f"{name}_", value)
        return self


class ComponentsBaseline(PublishesComponents):
    """Template of a baseline for components: a subclass says how, in ``_directions``."""

    def fit(self, X: npt.ArrayLike, y: object = None) -> Self:
        """Estimate the leading components of the rows of ``X``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self
        """
        samples = check_samples(self, X, min_samples=2)
        kept = check_n_nonzero(self.n_nonzero, samples.shape[1])
        return self._publish(X, self._directions(samples, kept))

    def _directions(self, X: FloatArray, n_nonzero: int) -> Directions:
        raise NotImplementedError


def check_samples(estimator: object, X: npt.ArrayLike, *, min_samples: int = 1) -> FloatArray:
    """Return ``X`` as a finite two-dimensional float64 array, or say what is wrong with it."""
    samples: FloatArray = check_array(
        X, dtype=np.float64, ensure_min_samples=min_samples, estimator=estimator, input_name="X"
    )
    largest = float(np.abs(samples).max())
    if largest > _LARGEST:
        raise ValueError(
            f"X has values as large as {largest:.3g}, whose squares overflow; "
            f"divide X by a constant first"
        )
    return samples


def check_n_nonzero(n_nonzero: int | None, n_features: int) -> int:
    """Return how many entries to keep; None means all, more than there are means all, warned."""
    if n_nonzero is None:
        return n_features
    if isinstance(n_nonzero, bool) or not isinstance(n_nonzero, Integral):
        raise TypeError(
            f"n_nonzero must be a positive integer or None, got {type(n_nonzero).__name__}"
        )
    if n_nonzero < 1:
        raise ValueError(f"n_nonzero must be at least 1, got {n_nonzero}; None keeps all entries")
    if n_nonzero > n_features:
        warnings.warn(
            f"n_nonzero={n_nonzero} is more than the {n_features} features of X; all are kept",
            UserWarning,
            stacklevel=3,
        )
    return min(int(n_nonzero), n_features)


def check_contamination(contamination: float) -> float:
    """Return ``contamination`` as a float in [0, 0.5), or say that it must be one."""
    if isinstance(contamination, bool) or not isinstance(contamination, Real):
        raise TypeError(
            f"contamination must be a number in [0, 0.5), got {type(contamination).__name__}"
        )
    if not 0.0 <= contamination < 0.5:
        raise ValueError(
            f"contamination must be in [0, 0.5), got {contamination!r}; "
            f"pass the fraction of rows that may be wrong, such as 0.1"
        )
    return float(contamination)


def check_between(name: str, value: float, low: float, high: float) -> float:
    """Return ``value`` as a float strictly between ``low`` and ``high``, or say so."""
    if isinstance(value, bool) or not isinstance(value, Real) or not low < value < high:
        raise ValueError(f"{name} must be a number between {low} and {high}, got {value!r}")
    return float(value)


def check_count(name: str, value: int) -> int:
    """Return ``value`` as a positive integer, or say that it must be one."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise ValueError(f"{name} must be a positive integer, got {value!r}")
    return int(value)


def check_mask(inliers: npt.ArrayLike, n_samples: int) -> BoolArray:
    """Return ``inliers`` as a boolean mask of the rows with at least one True, or say so."""
    mask: npt.NDArray[Any] = np.asarray(inliers)
    if mask.dtype != np.bool_ or mask.shape != (n_samples,):
        raise ValueError(
            f"inliers must be a boolean array of shape ({n_samples},), one entry for each row "
            f"of X; got dtype {mask.dtype} and shape {mask.shape}"
        )
    if not mask.any():
        raise ValueError("inliers must mark at least one row as True, got none")
    return mask


def check_n_components(n_components: int, shape: tuple[int, ...]) -> int:
    """Return ``n_components`` as an integer between 1 and the smaller side of X, or say so."""
    largest = min(shape)
    if isinstance(n_components, bool) or not isinstance(n_components, Integral):
        raise TypeError(f"n_components must be an integer, got {type(n_components).__name__}")
    if not 1 <= n_components <= largest:
        raise ValueError(
            f"n_components must be between 1 and min(n_samples, n_features)={largest}, "
            f"got {n_components}"
        )
    return int(n_components)


def keep_largest(x: FloatArray, n_nonzero: int) -> tuple[FloatArray, npt.NDArray[np.intp]]:
    """Set all but the ``n_nonzero`` entries of largest magnitude to zero; return where they are.

    Examples
    --------
    >>> keep_largest(np.array([1.0, -3.0, 2.0]), 2)
    (array([ 0., -3.,  2.]), array([1, 2]))
    """
    support = np.sort(top_k_indices(x, n_nonzero))
    kept = np.zeros_like(x)
    kept[support] = x[support]
    return kept, support


def unit_rows(directions: FloatArray) -> FloatArray:
    """Scale rows to length one, the entry of largest magnitude positive; zero rows stay zero.

    Examples
    --------
    >>> unit_rows(np.array([[3.0, -4.0], [0.0, 0.0]]))
    array([[-0.6,  0.8],
           [ 0. ,  0. ]])
    """
    lengths = np.linalg.norm(directions, axis=1)
    largest = np.argmax(np.abs(directions), axis=1)
    lengths = lengths * np.where(directions[np.arange(len(directions)), largest] < 0, -1.0, 1.0)
    lengths[lengths == 0.0] = 1.0
    return np.asarray(directions / lengths[:, None] + 0.0, dtype=np.float64)
