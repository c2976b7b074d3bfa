"""The descent: the objective of each evaluation against the level of clean data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from outweigh.displays.canvas import LINE, NOISE, TRUSTED, Display
from outweigh.protocols import Array


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
