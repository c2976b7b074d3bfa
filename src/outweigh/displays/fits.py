"""How a fit went: what each row counts, the distrusted rows, the descent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from outweigh.displays.canvas import (
    DISTRUSTED,
    LINE,
    NOISE,
    TRUSTED,
    Display,
    draw_rows,
    plain_text,
)
from outweigh.estimators.explanation import Explanation
from outweigh.protocols import Array

# Beyond so many deviations the axis is logarithmic, else ordinary rows would be a line.
_FAR = 20.0


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
    def _of(cls, estimator: Any, X: Any) -> Self:
        flagged = np.asarray(estimator.predict(X) == -1)
        # Lazy after a fit of Dask rows on a sample.
        weights = np.asarray(estimator.weights_)
        if flagged.size != weights.size:
            raise ValueError(f"X must hold the {weights.size} rows of the fit; got {flagged.size}")
        cap = 1.0 / (1.0 - float(estimator.contamination_bound_))
        return cls(weights * flagged.size, flagged, cap)

    def _draw(self, ax: Any) -> None:
        rows = np.arange(self.weights.size)
        draw_rows(ax, rows, self.weights, self.flagged)
        ax.axhline(self.cap, color=LINE, linewidth=0.7, linestyle=":", label="largest allowed")
        ax.set(xlabel="row", ylabel="weight (1: as in a plain mean)")
        ax.set_ylim(-0.05 * self.cap, 1.25 * self.cap)
        ax.legend(loc="upper center", ncols=3, handletextpad=0.3, columnspacing=1.0)


@dataclass(eq=False)
class RowsDisplay(Display):
    """Distrusted rows, a line each, in the columns that count most against them.

    Every column is shown less the median of the trusted rows, in units of their spread (median
    absolute deviation, as a standard deviation). The bands hold 50, 90 and all of the trusted rows.
    The options `n_features` and `n_rows` are the largest numbers of columns, 10 by default, and of
    distrusted rows, 30.

    Parameters
    ----------
    trusted : ndarray of shape (n, d)
    distrusted : ndarray of shape (m, d)
        The least trusted row first.
    reasons : ndarray of shape (d,)
        How much each column counts against the distrusted rows.
    names : sequence of str

    Attributes
    ----------
    ax_, figure_
        After `plot`.
    """

    trusted: Array
    distrusted: Array
    reasons: Array
    names: Sequence[str]

    @classmethod
    def _of(cls, estimator: Any, X: Any) -> Self:
        return cls.from_explanation(np.asarray(X), estimator.explain(X))

    @classmethod
    def from_explanation(cls, X: Array, explanation: Explanation) -> Self:
        """Return the display of rows whose reasons are known."""
        reasons = np.zeros(X.shape[1])
        np.add.at(reasons, explanation.features, explanation.shares)
        names = [str(name) for name in explanation.feature_names]
        trusted = np.delete(X, explanation.rows, axis=0)
        return cls(trusted, X[explanation.rows], reasons, names)

    def _draw(self, ax: Any, n_features: int = 10, n_rows: int = 30) -> None:
        # The weightiest columns, in the order of the table; beside them a few to compare with.
        columns = np.argsort(-self.reasons, kind="stable")[:n_features]
        count_most = self.reasons[columns] > 0.01 * self.reasons.sum()
        columns = np.sort(columns[: max(4, int(count_most.sum()))])
        trusted = self.trusted[:, columns]
        centre = np.nanmedian(trusted, axis=0)
        spread = 1.4826 * np.nanmedian(np.abs(trusted - centre), axis=0)
        # Where most rows are equal.
        spread = np.where(spread > 0, spread, np.nanstd(trusted, axis=0))
        spread = np.where(spread > 0, spread, 1.0)
        places = np.arange(columns.size)
        ordinary = (trusted - centre) / spread
        for share, shade in (1.0, 0.15), (0.9, 0.3), (0.5, 0.45):
            ends = np.nanquantile(ordinary, (0.5 - share / 2, 0.5 + share / 2), axis=0)
            what = "trusted rows: all, 90 %, half" if share == 0.5 else None
            ax.fill_between(places, *ends, color=TRUSTED, alpha=shade, linewidth=0, label=what)
        rows = (self.distrusted[:n_rows, columns] - centre) / spread
        n = len(self.distrusted)
        count = f"{n}" if n <= n_rows else f"the first {n_rows} of {n}"
        for i, row in enumerate(rows):
            ax.plot(places, row, color=DISTRUSTED, marker="x", markersize=3, linewidth=0.6,
                    alpha=0.7, label=f"distrusted rows ({count})" if i == 0 else None)  # fmt: skip
        if np.abs(rows).max(initial=0.0) > _FAR:
            ax.set_yscale("symlog", linthresh=5.0)
        names = [plain_text(self.names[j]) for j in columns]
        ax.set_xticks(places, names, rotation=35, ha="right", rotation_mode="anchor")
        ax.set(ylabel="less the median, in spreads")
        ax.margins(x=0.03, y=0.05)
        ax.grid(axis="x", color=NOISE, linewidth=0.6)
        # Above the axes, where it hides no row.
        ax.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0))


@dataclass(eq=False)
class TraceDisplay(Display):
    """The objective at each evaluation, and where clean data lies.

    Parameters
    ----------
    values : ndarray of shape (n_iter,)
        On a working set of features these are values on that set.
    final : float
        The objective over all features at the weights found.
    median, upper : float
        The level that half, and 99 in 100, of clean samples stay below; 0 where none is known.

    Attributes
    ----------
    ax_, figure_
        After `plot`.
    """

    values: Array
    final: float
    median: float
    upper: float

    @classmethod
    def _of(cls, estimator: Any, X: Any) -> Self:
        floor = estimator.certificate_.noise_floor
        values = np.array([iterate.value for iterate in estimator.trace_], dtype=np.float64)
        return cls(values, float(estimator.objective_), floor.median, floor.upper)

    def _draw(self, ax: Any) -> None:
        steps = np.arange(1, self.values.size + 1)
        ax.plot(steps, self.values, "o-", color=TRUSTED, markersize=3, linewidth=1.0,
                label="during the descent")  # fmt: skip
        last = max(int(steps.size), 1) + 1
        ax.plot([last], [self.final], "D", color=LINE, markersize=5, label="result, all features")
        if self.upper > 0:
            ax.axhspan(self.median, self.upper, color=NOISE, zorder=0, label="clean data")
        positive = [v for v in (*self.values, self.final, self.median) if v > 0]
        if positive and max(positive) > 20 * min(positive):
            ax.set_yscale("log")
        else:
            ax.set_ylim(bottom=0)
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.set(xlabel="evaluation", ylabel="objective")
        ax.legend(loc="upper right")
