"""What was estimated: a mean beside the plain one; components, scores, spectrum, outlier map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from outweigh.displays.canvas import (
    DISTRUSTED,
    LINE,
    PLAIN,
    TRUSTED,
    Display,
    draw_rows,
    plain_text,
)
from outweigh.estimators.input import each_block
from outweigh.fit.readers import spectral_edges
from outweigh.protocols import Array, Indices

# So few loadings are drawn by name.
_NAMED = 20
# Of many features so many are named; so many eigenvalues, and arrows, are drawn.
_TICKS, _EIGENVALUES, _ARROWS = 8, 20, 10
# The least distance of the tips of two arrows, as a part of the picture.
_APART = 0.2


@dataclass(eq=False)
class LocationDisplay(Display):
    """The nonzero entries of a sparse mean, or those of a mean that outliers moved most.

    The option `n_features` is the largest number of them, 15 by default.

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

    robust: Array
    plain: Array
    support: Indices | None
    names: Sequence[str]

    _needs: ClassVar[tuple[str, str]] = (
        "location_",
        "ComponentsDisplay is for principal components",
    )

    @classmethod
    def _of(cls, estimator: Any, X: Any) -> Self:
        robust, scale = estimator.location_, estimator.scale_
        *total, count = np.asarray(each_block(estimator, X, _sums, robust.size + 1).sum(axis=0))
        support = getattr(estimator, "support_", None)
        return cls(robust / scale, total / count / scale, support, estimator._feature_names)

    def _draw(self, ax: Any, n_features: int = 15) -> None:
        entries = telling_entries(self.robust, self.plain, sparse=self.support is not None)
        shown = entries[:n_features]
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


def telling_entries(robust: Array, plain: Array, *, sparse: bool) -> Indices:
    """Return the features of a mean in the order in which they are worth a look.

    Parameters
    ----------
    robust, plain : ndarray of shape (d,)
        In units of each feature's noise.
    sparse : bool
        Whether entries that are not zero come first; then those that the weights moved most.
    """
    size = np.abs(robust - plain)
    if sparse:
        entries = np.abs(robust)
        size = np.where(entries > 0.0, entries + size.max(initial=0.0), size)
    return np.asarray(np.argsort(-size, kind="stable"), dtype=np.intp)


def _sums(rows: Array) -> Array:
    """Return the sum of some rows, and their number."""
    return np.append(rows.sum(axis=0, dtype=np.float64), len(rows))[None, :]


class _OfComponents(Display):
    """A display of principal components."""

    _needs: ClassVar[tuple[str, str]] = ("components_", "LocationDisplay is for means")


@dataclass(eq=False)
class ComponentsDisplay(_OfComponents):
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
    def _of(cls, estimator: Any, X: Any) -> Self:
        return cls(estimator.components_, estimator._feature_names)

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
class OutlierMapDisplay(_OfComponents):
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
    def _of(cls, estimator: Any, X: Any) -> Self:
        return cls(
            np.asarray(estimator.score_distances(X)),
            np.asarray(estimator.orthogonal_distances(X)),
            estimator.score_cutoff_,
            estimator.orthogonal_cutoff_,
            np.asarray(estimator.predict(X) == -1),
        )

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
class ScreeDisplay(_OfComponents):
    """The variances of the trusted rows along their principal axes, with those of all rows.

    Eigenvalues above the edge of noise stand out: `n_components="auto"` counts those that do before
    the first that does not.

    Parameters
    ----------
    robust, plain : ndarray
        Eigenvalues of the covariance of the rows that `predict` trusts, and of all, largest first.
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
    def _of(cls, estimator: Any, X: Any) -> Self:
        rows = np.asarray(X, dtype=np.float64) / estimator._units
        trusted = rows[np.asarray(estimator.predict(X) == 1)]
        robust, plain = _spectrum(trusted), _spectrum(rows)
        edges = spectral_edges(robust, float(len(trusted)), rows.shape[1])
        return cls(robust, plain, np.array([*islice(edges, _EIGENVALUES)]))

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
class BiplotDisplay(_OfComponents):
    """Scores of the rows on two components, with the features that load most as arrows.

    The option `numbers` tells which two, from 1 on; (1, 2) by default.

    Parameters
    ----------
    scores : ndarray of shape (n, n_components)
        Of two components or more.
    flagged : ndarray of bool, shape (n,)
    loadings : ndarray of shape (n_components, d)
    names : sequence of str

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

    @classmethod
    def _of(cls, estimator: Any, X: Any) -> Self:
        flagged = np.asarray(estimator.predict(X) == -1)
        scores = np.asarray(estimator.transform(X))
        return cls(scores, flagged, estimator.components_, estimator._feature_names)

    def _draw(self, ax: Any, numbers: tuple[int, int] = (1, 2)) -> None:
        if not all(1 <= number <= len(self.loadings) for number in numbers):
            raise ValueError(
                f"numbers={numbers} must be two of the {len(self.loadings)} components of the "
                "estimator; fit more, or draw ComponentsDisplay"
            )
        first, second = numbers
        two = [first - 1, second - 1]
        scores, loadings = self.scores[:, two], self.loadings[two]
        draw_rows(ax, scores[:, 0], scores[:, 1], self.flagged)
        length = np.linalg.norm(loadings, axis=0)
        longest = np.argsort(-length, kind="stable")
        # As long as the trusted rows reach; far ones would make a point of all others.
        trusted = scores[~self.flagged] if np.any(~self.flagged) else scores
        reach = float(np.abs(trusted).max(initial=1e-300))
        drawn: list[Array] = []
        for j in longest[length[longest] > 0.0].tolist():
            at = 0.9 * reach * loadings[:, j] / float(length.max())
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
