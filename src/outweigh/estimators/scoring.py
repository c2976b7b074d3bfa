"""How much a row, seen in training or not, is to be trusted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from outweigh.estimators.preparation import Standardizer
from outweigh.forms import Form
from outweigh.moments import DenseSamples
from outweigh.protocols import Array, Result, Samples
from outweigh.separation import Cut, weighted_quantile

__all__ = ["RowScore", "row_score"]

# Steepness of the distance term: negligible among clean rows, in command beyond the radius.
_DISTANCE_GAIN = 20.0
_CUT_GAIN = 4.0
_QUARTILES_TO_SD = 1.0 / 1.349


@dataclass(frozen=True, slots=True, eq=False)
class RowScore:
    """A score for rows: minus the forces that would push the row's weight down.

    Three of them, each nonnegative and smooth: the quadratic force x'Fx - x'b that the descent
    accumulated, in units of its spread over the kept rows; the excess beyond the separating cuts;
    and the squared distance from the centre beyond the pruning radius. The last grows without bound
    along every ray and the others are never negative, so no point gains by going far away, whatever
    directions the force is blind to.
    """

    standardizer: Standardizer
    centre: Array
    radius_sq: float
    force: Form
    drift: Array
    level: float
    spread: float
    cuts: tuple[Cut, ...]

    def __call__(self, X: NDArray[np.floating]) -> Array:
        """Return the score of each row of X, at most 0; lower is less trusted."""
        return self.of_samples(DenseSamples(self.standardizer.apply(X)))

    def of_samples(self, samples: Samples, pushed: Array | None = None) -> Array:
        """Return the score of rows already in units of the noise.

        Parameters
        ----------
        samples : Samples
        pushed : ndarray of shape (n,), optional
            The force x'Fx - x'b on each row where it is known.
        """
        distances = samples.squared_distances(self.centre)
        badness = _softplus(_DISTANCE_GAIN * (distances / self.radius_sq - 1.0))
        if self.spread > 0:
            if pushed is None:
                pushed = samples.quadratic(self.force) - samples.project(self.drift)
            badness += _softplus((pushed - self.level) / self.spread - 2.0)
        for cut in self.cuts:
            badness += _softplus(_CUT_GAIN * cut.excess(samples.project(cut.direction)))
        return -badness


def row_score(
    standardizer: Standardizer,
    samples: Samples,
    weights: Array,
    radius_sq: float,
    result: Result,
    cuts: tuple[Cut, ...],
) -> tuple[RowScore, Array]:
    """Calibrate a score on the rows kept by `weights`; return it and the scores of all rows."""
    pushed = samples.quadratic(result.force) - samples.project(result.drift)
    low, level, high = weighted_quantile(pushed, weights, [0.25, 0.5, 0.75])
    score = RowScore(
        standardizer,
        samples.mean(weights),
        radius_sq,
        result.force,
        result.drift,
        float(level),
        float(high - low) * _QUARTILES_TO_SD,
        cuts,
    )
    return score, score.of_samples(samples, pushed)


def _softplus(values: Array) -> Array:
    """Return log(1 + exp(v)): positive, increasing, and close to max(v, 0)."""
    return np.logaddexp(0.0, values)
