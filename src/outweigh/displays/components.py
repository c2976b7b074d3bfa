"""Principal components: loadings, scores with loadings, the spectrum, and the outlier map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from outweigh.displays.canvas import (
    LINE,
    PLAIN,
    TRUSTED,
    Display,
    draw_rows,
    fitted_names,
    plain_text,
)
from outweigh.estimators.base import RobustEstimator
from outweigh.fit.readers import spectral_edges
from outweigh.protocols import Array

_NAMED = 20
# Of many features so many are named; so many eigenvalues, and arrows, are drawn.
_TICKS, _EIGENVALUES, _ARROWS = 8, 20, 10
# The least distance of the tips of two arrows, as a part of the picture.
_APART = 0.2
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
            along = _numbers(self.names)
            if along is None:
                along = np.arange(float(len(self.names)))
                some = np.linspace(0, len(self.names) - 1, _TICKS).astype(int)
                names = [plain_text(self.names[j]) for j in some.tolist()]
                ax.set_xticks(some, names, rotation=45, ha="right")
            for number, component in enumerate(self.components):
                ax.plot(along, component, linewidth=0.9, label=f"component {number + 1}")
            ax.set_xlabel("feature")
        ax.axhline(0.0, color=LINE, linewidth=0.6)
        ax.set_ylabel("loading")
        if len(self.components) > 1:
            ax.legend(loc="best")


@dataclass(eq=False)
class OutlierMapDisplay(Display):
    """Score distance inside the subspace against orthogonal distance from it, with cut-offs.

    Where rows are judged in all directions none is away from them, and the score distance is drawn
    against the number of the row. In white noise a group of outliers may overlap the trusted rows
    in both distances: rows flagged though they are within both cut-offs are ringed.

    Parameters
    ----------
    score_distances, orthogonal_distances : ndarray of shape (n,)
    score_cutoff, orthogonal_cutoff : float
        Rows of the fit beyond either are flagged.
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
        beside, label = self.orthogonal_distances, "orthogonal distance"
        if beside.any():
            ax.axhline(self.orthogonal_cutoff, color=PLAIN, linewidth=0.8, linestyle="--")
        else:
            # From all directions nothing is away: the rows, one above the other, are seen better.
            beside, label = np.arange(beside.size, dtype=np.float64), "row"
        draw_rows(ax, self.score_distances, beside, self.flagged)
        within = self.flagged & (self.score_distances <= self.score_cutoff)
        within &= self.orthogonal_distances <= self.orthogonal_cutoff
        if within.any():
            ax.plot(self.score_distances[within], beside[within], "o", markersize=7, color=LINE,
                    fillstyle="none", linewidth=0, markeredgewidth=0.6,
                    label=f"in an overlapping group ({within.sum()})")  # fmt: skip
        ax.axvline(self.score_cutoff, color=PLAIN, linewidth=0.8, linestyle="--")
        for axis, values in (("x", self.score_distances), ("y", self.orthogonal_distances)):
            typical = float(np.median(values))
            if typical > 0 and float(values.max()) > 50 * typical:
                getattr(ax, f"set_{axis}scale")("symlog", linthresh=2 * typical)
        ax.set_xlim(left=0)
        ax.set_ylim(bottom=0)
        ax.set(xlabel="score distance", ylabel=label)
        ax.legend(loc="best")


@dataclass(eq=False)
class ScreeDisplay(Display):
    """The variances of the trusted rows along their principal axes, with those of all rows.

    Eigenvalues above the edge of noise stand out: `n_components="auto"` counts those that do before
    the first that does not.

    Parameters
    ----------
    robust, plain : ndarray
        Eigenvalues of the covariance of the trusted rows, and of all rows, largest first.
    edges : ndarray
        What each of the first must exceed to stand out from white noise.

    Attributes
    ----------
    ax_, figure_
        After `plot`.
    """

    robust: Array
    plain: Array
    edges: Array

    @classmethod
    def from_estimator(cls, estimator: RobustEstimator, X: ArrayLike, ax: Any = None) -> Self:
        """Draw the spectra of some rows; those that `predict` does not flag are trusted.

        Parameters
        ----------
        estimator : RobustPCA or RobustSparsePCA
        X : array-like of shape (n_samples, n_features)
        ax : matplotlib Axes, optional

        Returns
        -------
        ScreeDisplay
        """
        fitted_names(estimator, "components_", _OTHER)
        pca: Any = estimator
        rows = np.asarray(X, dtype=np.float64) / pca._units
        trusted = rows[np.asarray(pca.predict(X) == 1)]
        robust, plain = _spectrum(trusted), _spectrum(rows)
        edges = spectral_edges(robust, float(len(trusted)), rows.shape[1])
        some = [edge for edge, _ in zip(edges, range(_EIGENVALUES), strict=False)]
        return cls(robust, plain, np.array(some)).plot(ax)

    def _draw(self, ax: Any) -> None:
        for values, colour, marker, name in (
            (self.plain, PLAIN, "x--", "all rows"),
            (self.robust, TRUSTED, "o-", "trusted rows"),
        ):
            shown = values[:_EIGENVALUES]
            ax.plot(np.arange(1, shown.size + 1), shown, marker, color=colour, label=name,
                    markersize=4, linewidth=0.9)  # fmt: skip
        places = np.arange(1, self.edges.size + 1)
        ax.plot(places, self.edges, ":", color=LINE, linewidth=1.0, label="edge of noise")
        positive = self.robust[:_EIGENVALUES]
        if positive.size and positive[0] > 100.0 * max(float(positive[-1]), 0.0) > 0.0:
            ax.set_yscale("log")
        else:
            ax.set_ylim(bottom=0)
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.set(xlabel="component", ylabel="variance")
        ax.legend(loc="best")


@dataclass(eq=False)
class BiplotDisplay(Display):
    """Scores of the rows on two components, with the features that load most as arrows.

    Parameters
    ----------
    scores : ndarray of shape (n, 2)
    flagged : ndarray of bool, shape (n,)
    loadings : ndarray of shape (2, d)
    names : sequence of str
    numbers : tuple of int
        Which components, from 1 on.

    Attributes
    ----------
    ax_, figure_
        After `plot`.

    References
    ----------
    Gabriel, "The biplot graphic display of matrices", Biometrika 58 (1971).
    """

    scores: Array
    flagged: NDArray[np.bool_]
    loadings: Array
    names: Sequence[str]
    numbers: tuple[int, int] = (1, 2)

    @classmethod
    def from_estimator(
        cls,
        estimator: RobustEstimator,
        X: ArrayLike,
        ax: Any = None,
        *,
        numbers: tuple[int, int] = (1, 2),
    ) -> Self:
        """Draw the scores of some rows.

        Parameters
        ----------
        estimator : RobustPCA or RobustSparsePCA
            Of two components or more.
        X : array-like of shape (n_samples, n_features)
        ax : matplotlib Axes, optional
        numbers : tuple of int, default=(1, 2)
            Which components to draw, from 1 on.

        Returns
        -------
        BiplotDisplay
        """
        names = fitted_names(estimator, "components_", _OTHER)
        pca: Any = estimator
        if not all(1 <= number <= pca.n_components_ for number in numbers):
            raise ValueError(
                f"numbers={numbers} must be two of the {pca.n_components_} components of the "
                "estimator; fit more, or draw ComponentsDisplay"
            )
        two = [number - 1 for number in numbers]
        scores = np.asarray(pca.transform(X))[:, two]
        flagged = np.asarray(pca.predict(X) == -1)
        return cls(scores, flagged, pca.components_[two], names, numbers).plot(ax)

    def _draw(self, ax: Any) -> None:
        x, y = self.scores.T
        draw_rows(ax, x, y, self.flagged)
        length = np.linalg.norm(self.loadings, axis=0)
        longest = np.argsort(-length, kind="stable")
        # As long as the trusted rows reach; far ones would make a point of all others.
        trusted = self.scores[~self.flagged] if np.any(~self.flagged) else self.scores
        reach = float(np.abs(trusted).max(initial=1e-300))
        drawn: list[Array] = []
        for j in longest[length[longest] > 0.0].tolist():
            at = 0.9 * reach * self.loadings[:, j] / float(length.max())
            # Near copies, as in spectra, would have their names written over each other.
            if any(np.abs(at - other).max() < _APART * reach for other in drawn):
                continue
            if len(drawn) == _ARROWS:
                break
            drawn.append(at)
            ax.annotate(
                "", at, (0.0, 0.0), arrowprops={"arrowstyle": "->", "color": LINE, "lw": 0.8}
            )
            text = plain_text(self.names[j])
            ax.annotate(text, 1.05 * at, ha="center", va="center", fontsize=7)
        ax.set_xlim(-1.15 * reach, 1.15 * reach)
        ax.set_ylim(-1.15 * reach, 1.15 * reach)
        first, second = self.numbers
        ax.set(xlabel=f"component {first}", ylabel=f"component {second}")
        ax.legend(loc="best")


def _spectrum(rows: Array) -> Array:
    """Return the eigenvalues of the covariance that may be positive, largest first."""
    if len(rows) < 2:
        return np.zeros(0)
    away = rows - rows.mean(axis=0)
    return np.asarray(np.linalg.svd(away, compute_uv=False) ** 2 / (len(rows) - 1))


def _numbers(names: Sequence[str]) -> Array | None:
    """Return the names as numbers, as of wavelengths, where they are such and in order."""
    try:
        found = np.array([float(name) for name in names])
    except ValueError:
        return None
    steps = np.diff(found)
    return found if np.all(steps > 0.0) or np.all(steps < 0.0) else None
