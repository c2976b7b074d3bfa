"""The weight of each row, trusted and distrusted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from outweigh.displays.canvas import LINE, Display, draw_rows
from outweigh.estimators.base import RobustEstimator
from outweigh.protocols import Array


@dataclass(eq=False)
class WeightsDisplay(Display):
    """What each row counts, in units of an equal share.

    Parameters
    ----------
    weights : ndarray of shape (n,)
        In units of 1/n: one for a row that counts as in a plain mean.
    flagged : ndarray of bool, shape (n,)
    cap : float
        The largest weight allowed, in the same units.

    Attributes
    ----------
    ax_, figure_
        After `plot`.

    Examples
    --------
    >>> import numpy as np
    >>> from outweigh import RobustMean
    >>> from outweigh.displays import WeightsDisplay
    >>> X = np.random.default_rng(0).standard_normal((200, 5))
    >>> X[:10] += 5.0
    >>> est = RobustMean().fit(X)
    >>> display = WeightsDisplay.from_estimator(est, X)  # doctest: +SKIP
    """

    weights: Array
    flagged: NDArray[np.bool_]
    cap: float

    @classmethod
    def from_estimator(cls, estimator: RobustEstimator, X: ArrayLike, ax: Any = None) -> Self:
        """Draw the weights of a fitted estimator.

        Parameters
        ----------
        estimator : estimator
            Fitted on X.
        X : array-like of shape (n_samples, n_features)
        ax : matplotlib Axes, optional

        Returns
        -------
        WeightsDisplay
        """
        check_is_fitted(estimator)
        flagged = np.asarray(estimator.predict(X) == -1)
        # Lazy after a fit of Dask rows on a sample.
        weights = np.asarray(estimator.weights_)
        if flagged.size != weights.size:
            raise ValueError(f"X must hold the {weights.size} rows of the fit; got {flagged.size}")
        cap = 1.0 / (1.0 - float(estimator.contamination_bound_))
        return cls(weights * flagged.size, flagged, cap).plot(ax)

    def _draw(self, ax: Any) -> None:
        rows = np.arange(self.weights.size)
        draw_rows(ax, rows, self.weights, self.flagged)
        ax.axhline(self.cap, color=LINE, linewidth=0.7, linestyle=":", label="largest allowed")
        ax.set(xlabel="row", ylabel="weight (1: as in a plain mean)")
        ax.set_ylim(-0.05 * self.cap, 1.25 * self.cap)
        ax.legend(loc="upper center", ncols=3, handletextpad=0.3, columnspacing=1.0)
