"""Principal components: their loadings, and the outlier map of the rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from outweigh.displays.canvas import DISTRUSTED, LINE, PLAIN, TRUSTED, axes_for, plain_text
from outweigh.estimators.base import RobustEstimator
from outweigh.protocols import Array

__all__ = ["ComponentsDisplay", "OutlierMapDisplay"]

_NAMED = 20


class ComponentsDisplay:
    """The loadings of the components: by name where they are few, else along the features.

    Parameters
    ----------
    components : ndarray of shape (n_components, d)
    names : sequence of str

    Attributes
    ----------
    ax_, figure_
        After `plot`.
    """

    def __init__(self, components: Array, names: Sequence[str]) -> None:
        self.components = components
        self.names = names

    @classmethod
    def from_estimator(
        cls, estimator: RobustEstimator, X: ArrayLike | None = None, ax: Any = None
    ) -> Self:
        """Draw the components of a fitted estimator; X is not needed.

        Parameters
        ----------
        estimator : RobustPCA or RobustSparsePCA
        X : ignored
        ax : matplotlib Axes, optional

        Returns
        -------
        ComponentsDisplay
        """
        check_is_fitted(estimator)
        _refuse_means(estimator)
        components = estimator.components_
        names = getattr(estimator, "feature_names_in_", None)
        if names is None:
            names = [f"x{j}" for j in range(components.shape[1])]
        display = cls(components, [str(name) for name in names])
        display.plot(ax)
        return display

    def plot(self, ax: Any = None) -> Self:
        """Draw on `ax`, or on new axes."""
        ax = axes_for(ax)
        loaded = np.flatnonzero(np.any(self.components != 0.0, axis=0))
        if loaded.size <= _NAMED:
            places = np.arange(loaded.size)
            width = 0.8 / len(self.components)
            for number, component in enumerate(self.components):
                ax.bar(places + number * width, component[loaded], width=width,
                       label=f"component {number + 1}")  # fmt: skip
            names = [plain_text(self.names[j]) for j in loaded.tolist()]
            ax.set_xticks(places + 0.4 - width / 2, names, rotation=45, ha="right")
        else:
            for number, component in enumerate(self.components):
                ax.plot(np.arange(1, component.size + 1), component, linewidth=0.9,
                        label=f"component {number + 1}")  # fmt: skip
            ax.set_xlabel("feature")
        ax.axhline(0.0, color=LINE, linewidth=0.6)
        ax.set_ylabel("loading")
        if len(self.components) > 1:
            ax.legend(loc="best")
        self.ax_ = ax
        self.figure_ = ax.figure
        return self


class OutlierMapDisplay:
    """Score distance inside the subspace against orthogonal distance from it, with cut-offs.

    Parameters
    ----------
    score_distances, orthogonal_distances : ndarray of shape (n,)
    score_cutoff, orthogonal_cutoff : float
        What 0.975 of clean rows do not exceed.
    flagged : ndarray of bool, shape (n,)

    Attributes
    ----------
    ax_, figure_
        After `plot`.

    References
    ----------
    Hubert, Rousseeuw and Vanden Branden, "ROBPCA: a new approach to robust principal component
    analysis", Technometrics 47 (2005).
    """

    def __init__(
        self,
        score_distances: Array,
        orthogonal_distances: Array,
        score_cutoff: float,
        orthogonal_cutoff: float,
        flagged: NDArray[np.bool_],
    ) -> None:
        self.score_distances = score_distances
        self.orthogonal_distances = orthogonal_distances
        self.score_cutoff = score_cutoff
        self.orthogonal_cutoff = orthogonal_cutoff
        self.flagged = flagged

    @classmethod
    def from_estimator(cls, estimator: RobustEstimator, X: ArrayLike, ax: Any = None) -> Self:
        """Draw the map of some rows.

        Parameters
        ----------
        estimator : RobustPCA or RobustSparsePCA
        X : array-like of shape (n_samples, n_features)
        ax : matplotlib Axes, optional

        Returns
        -------
        OutlierMapDisplay
        """
        check_is_fitted(estimator)
        _refuse_means(estimator)
        pca: Any = estimator
        display = cls(
            np.asarray(pca.score_distances(X)),
            np.asarray(pca.orthogonal_distances(X)),
            pca.score_cutoff_,
            pca.orthogonal_cutoff_,
            np.asarray(pca.predict(X) == -1),
        )
        display.plot(ax)
        return display

    def plot(self, ax: Any = None) -> Self:
        """Draw on `ax`, or on new axes."""
        ax = axes_for(ax)
        for chosen, colour, marker, name in (
            (~self.flagged, TRUSTED, ".", "trusted"),
            (self.flagged, DISTRUSTED, "x", "distrusted"),
        ):
            if chosen.any():
                ax.plot(self.score_distances[chosen], self.orthogonal_distances[chosen], marker,
                        color=colour, markersize=4, rasterized=True,
                        label=f"{name} ({chosen.sum()})")  # fmt: skip
        ax.axvline(self.score_cutoff, color=PLAIN, linewidth=0.8, linestyle="--")
        ax.axhline(self.orthogonal_cutoff, color=PLAIN, linewidth=0.8, linestyle="--")
        for axis, values in (("x", self.score_distances), ("y", self.orthogonal_distances)):
            typical = float(np.median(values))
            if typical > 0 and float(values.max()) > 50 * typical:
                getattr(ax, f"set_{axis}scale")("symlog", linthresh=2 * typical)
        ax.set_xlim(left=0)
        ax.set_ylim(bottom=0)
        ax.set(xlabel="score distance", ylabel="orthogonal distance")
        ax.legend(loc="best")
        self.ax_ = ax
        self.figure_ = ax.figure
        return self


def _refuse_means(estimator: RobustEstimator) -> None:
    if not hasattr(estimator, "components_"):
        raise TypeError(
            f"estimator: {type(estimator).__name__} has no components_; "
            "LocationDisplay is for means"
        )
