"""The estimated mean beside the plain one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from outweigh.displays.canvas import DISTRUSTED, LINE, PLAIN, TRUSTED, axes_for, plain_text
from outweigh.estimators.base import RobustEstimator
from outweigh.protocols import Array, Indices
from outweigh.samples.chunked_rows import is_dask

__all__ = ["LocationDisplay"]


class LocationDisplay:
    """The nonzero entries of a sparse mean, or those of a mean that outliers moved most.

    A sparse mean is drawn as it is, and one that is not relative to itself: where it lies says
    nothing about outliers, how far the plain mean is from it does.

    Parameters
    ----------
    robust, plain : ndarray of shape (d,)
        In units of each feature's noise, so that features can be compared.
    support : ndarray of int or None
        The nonzero entries of a sparse estimate.
    names : sequence of str

    Attributes
    ----------
    ax_, figure_
        After `plot`.
    """

    def __init__(
        self, robust: Array, plain: Array, support: Indices | None, names: Sequence[str]
    ) -> None:
        self.robust = robust
        self.plain = plain
        self.support = support
        self.names = names

    @classmethod
    def from_estimator(
        cls, estimator: RobustEstimator, X: ArrayLike, ax: Any = None, *, n_features: int = 15
    ) -> Self:
        """Draw the location of a fitted estimator of a mean.

        Parameters
        ----------
        estimator : RobustMean or RobustSparseMean
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows of the fit, for their plain mean.
        ax : matplotlib Axes, optional
        n_features : int, default=15
            The largest number of features to show.

        Returns
        -------
        LocationDisplay
        """
        check_is_fitted(estimator)
        if not hasattr(estimator, "location_"):
            raise TypeError(
                f"estimator: {type(estimator).__name__} has no location_; "
                "ComponentsDisplay is for principal components"
            )
        names = getattr(estimator, "feature_names_in_", None)
        if names is None:
            names = [f"x{j}" for j in range(estimator.location_.size)]
        scale = estimator.scale_
        display = cls(
            estimator.location_ / scale,
            _plain_mean(X) / scale,
            getattr(estimator, "support_", None),
            [str(name) for name in names],
        )
        display.plot(ax, n_features=n_features)
        return display

    def plot(self, ax: Any = None, *, n_features: int = 15) -> Self:
        """Draw on `ax`, or on new axes."""
        ax = axes_for(ax)
        shown = self._shown(n_features)
        places = np.arange(shown.size)[::-1]
        robust, plain = self.robust[shown], self.plain[shown]
        if self.support is None:
            robust, plain = robust - robust, plain - robust
        ax.hlines(places, robust, plain, color=PLAIN, linewidth=0.8)
        ax.plot(plain, places, "o", markerfacecolor="white", color=PLAIN, markersize=5,
                label="plain mean")  # fmt: skip
        inside = np.ones(shown.size, dtype=bool)
        if self.support is not None:
            inside = np.isin(shown, self.support)
        ax.plot(robust[inside], places[inside], "o", color=TRUSTED, markersize=5,
                label="robust" if self.support is None else "robust, in the support")  # fmt: skip
        if not inside.all():
            ax.plot(robust[~inside], places[~inside], "x", color=DISTRUSTED, markersize=5,
                    label="set to zero")  # fmt: skip
        ax.axvline(0.0, color=LINE, linewidth=0.6)
        ax.set_yticks(places, [plain_text(self.names[j]) for j in shown])
        what = "mean less the robust one" if self.support is None else "mean"
        ax.set(xlabel=f"{what}, in units of the noise")
        ax.margins(y=0.06)
        ax.legend(loc="best")
        self.ax_ = ax
        self.figure_ = ax.figure
        return self

    def _shown(self, n_features: int) -> Indices:
        size = np.abs(self.robust - self.plain)
        if self.support is not None:
            # The estimate itself comes first, then what it would have been without the weights.
            entries = np.abs(self.robust)
            size = np.where(entries > 0.0, entries + size.max(initial=0.0), size)
        chosen = np.argsort(-size, kind="stable")[:n_features]
        return np.asarray(chosen, dtype=np.intp)


def _plain_mean(X: Any) -> Array:
    """Return the mean of the rows; those of Dask or on disk are not brought into memory."""
    if is_dask(X):
        return np.asarray(X.astype(np.float64).mean(axis=0))
    if sp.issparse(X):
        # Of float32 scipy sums in float32, whatever dtype is asked of the mean.
        entries: Any = X
        return np.asarray(entries.astype(np.float64).mean(axis=0)).ravel()
    rows = X if isinstance(X, np.ndarray) else np.asarray(X, dtype=np.float64)
    return np.asarray(rows.mean(axis=0, dtype=np.float64))
