"""Principal components: their loadings, and the outlier map of the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from outweigh.displays.canvas import LINE, PLAIN, Display, draw_rows, fitted_names, plain_text
from outweigh.estimators.base import RobustEstimator
from outweigh.protocols import Array

__all__ = ["ComponentsDisplay", "OutlierMapDisplay"]

_NAMED = 20
_OTHER = "LocationDisplay is for means"


@dataclass(eq=False)
class ComponentsDisplay(Display):
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

    components: Array
    names: Sequence[str]

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
        names = fitted_names(estimator, "components_", _OTHER)
        return cls(estimator.components_, names).plot(ax)

    def _draw(self, ax: Any) -> None:
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


@dataclass(eq=False)
class OutlierMapDisplay(Display):
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

    score_distances: Array
    orthogonal_distances: Array
    score_cutoff: float
    orthogonal_cutoff: float
    flagged: NDArray[np.bool_]

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
        fitted_names(estimator, "components_", _OTHER)
        pca: Any = estimator
        return cls(
            np.asarray(pca.score_distances(X)),
            np.asarray(pca.orthogonal_distances(X)),
            pca.score_cutoff_,
            pca.orthogonal_cutoff_,
            np.asarray(pca.predict(X) == -1),
        ).plot(ax)

    def _draw(self, ax: Any) -> None:
        draw_rows(ax, self.score_distances, self.orthogonal_distances, self.flagged)
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
