"""How much a row, seen in training or not, is to be trusted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from outweigh.estimators.preparation import Standardizer
from outweigh.forms import Form
from outweigh.protocols import Array, Result, Samples
from outweigh.samples import DenseSamples
from outweigh.separation import PULL, Cut, weighted_quantile

__all__ = ["RowScore", "row_score"]

# Steepness of the terms: negligible among clean rows, in command beyond the radius or once half of
# a row's weight is lost.
_DISTANCE_GAIN = 20.0
_LOSS_GAIN = 3.0
_HALF = 0.5
# A feature in which a row's squared deviation is below this share of its largest hardly counts.
_SMALL = 0.05
_ORDER_GAIN = 1e-3
_TINY = np.finfo(np.float64).tiny


@dataclass(frozen=True, slots=True, eq=False)
class RowScore:
    """A score for rows: minus the forces that would push the row's weight down.

    Two terms, each nonnegative and smooth. The first is the share of its weight that the row would
    have lost in the fit: by the force x'Fx - x'b that the descent accumulated, and by its excess
    beyond the separating cuts. The second is the squared distance beyond the pruning radius, from
    the anchor that pruning measures from. It grows without bound along every ray and the first is
    never negative, so no point gains by going far away, whatever directions the force is blind to.
    """

    standardizer: Standardizer
    centre: Array
    anchor: Array
    radius_sq: float
    force: Form
    drift: Array
    level: float
    total: float
    cuts: tuple[Cut, ...]

    def __call__(self, X: NDArray[np.floating]) -> Array:
        """Return the score of each row of X, at most 0; lower is less trusted."""
        return self.of_samples(DenseSamples(self.standardizer.apply(X)))

    def of_samples(
        self,
        samples: Samples,
        pushed: Array | None = None,
        squared: Array | None = None,
        beyond: Array | None = None,
    ) -> Array:
        """Return the score of rows already in units of the noise.

        Parameters
        ----------
        samples : Samples
        pushed : ndarray of shape (n,), optional
            The force x'Fx - x'b on each row where it is known.
        squared : ndarray of shape (n,), optional
            The squared distance of each row from the anchor where it is known.
        beyond : ndarray of shape (n,), optional
            How far each row is beyond the cuts, added up, where it is known.
        """
        by_loss, by_distance = self._terms(samples, pushed, squared, beyond)
        # The last term orders rows that nothing speaks against by their distance; else they would
        # be equal to the last digit, and no given share of them could be flagged.
        order = _ORDER_GAIN * np.log1p(np.maximum(by_distance / _DISTANCE_GAIN + 1.0, 0.0))
        return -(_softplus(by_loss) + _softplus(by_distance) + order)

    def contributions(self, X: NDArray[np.floating]) -> tuple[Array, Array]:
        """Return how much each feature lowers the score of each row, and how far out it is there.

        The force about the centre, y'Fy + y'((F + F')c - b), splits into one term a feature, as do
        a projection on a cut's direction and a squared distance. Each counts as much as the score
        would react to it; a feature that speaks for the row counts nothing.

        Returns
        -------
        contributions : ndarray of shape (n, d)
            Nonnegative, with a positive entry in each row; d counts the columns that vary.
        deviations : ndarray of shape (n, d)
            From the centre, in units of the noise.
        """
        samples = DenseSamples(self.standardizer.apply(X))
        by_loss, by_distance = self._terms(samples)
        white = samples.array - self.centre
        whitener = self.standardizer.whitener
        away = white
        if whitener is not None:
            away = np.asarray(np.linalg.solve(whitener, white.T).T, dtype=np.float64)

        def to_features(vectors: Array) -> Array:
            # Products z'v of whitened rows z = Wy are sums over the features of y times Wv.
            return vectors if whitener is None else whitener @ vectors

        squares = np.maximum(away * to_features(white.T).T - 1.0, 0.0)
        parts = (_DISTANCE_GAIN / self.radius_sq * expit(by_distance))[:, None] * squares
        lost = np.zeros_like(away)
        if self._has_force:
            slope = self.force.symmetric_product(self.centre) - self.drift
            pull = self.force.symmetric_product(white.T) / 2.0 + slope[:, None]
            lost += self.total * away * to_features(pull).T
        for cut in self.cuts:
            projected = samples.project(cut.direction)
            side = np.sign(projected - cut.centre)[:, None] * to_features(cut.direction) * away
            side = np.maximum(side, 0.0)
            excess = np.maximum(cut.excess(projected), 0.0)
            lost += PULL * (excess / np.maximum(side.sum(axis=1), _TINY))[:, None] * side
        # Half of a product of a large and a small deviation is no reason against the small one.
        own = away * away
        own /= own + _SMALL * own.max(axis=1, initial=_TINY, keepdims=True)
        parts += (_LOSS_GAIN * expit(by_loss))[:, None] * np.maximum(lost, 0.0) * own
        unexplained = parts.sum(axis=1) <= 0.0
        parts[unexplained] = np.square(away[unexplained]) + _TINY
        return parts, away

    def _terms(
        self,
        samples: Samples,
        pushed: Array | None = None,
        squared: Array | None = None,
        beyond: Array | None = None,
    ) -> tuple[Array, Array]:
        lost = np.zeros(samples.n_samples)
        if self._has_force:
            if pushed is None:
                pushed = samples.quadratic(self.force, self.drift)
            lost += self.total * (pushed - self.level)
        if beyond is None:
            beyond = np.zeros(samples.n_samples)
            for cut in self.cuts:
                beyond += np.maximum(cut.excess(samples.project(cut.direction)), 0.0)
        lost += PULL * beyond
        if squared is None:
            squared = samples.squared_distances(self.anchor)
        by_distance = _DISTANCE_GAIN * (squared / self.radius_sq - 1.0)
        return _LOSS_GAIN * (lost - _HALF), by_distance

    @property
    def _has_force(self) -> bool:
        return not self.force.is_zero


def row_score(
    standardizer: Standardizer,
    samples: Samples,
    weights: Array,
    radius_sq: float,
    result: Result,
    cuts: tuple[Cut, ...],
    total: float | None = None,
    distances: tuple[Array, Array] | None = None,
    pushed: Array | None = None,
    beyond: Array | None = None,
) -> tuple[RowScore, Array]:
    """Calibrate a score on the rows kept by `weights`; return it and the scores of all rows.

    Parameters
    ----------
    standardizer, samples, weights, radius_sq, result, cuts
        Of the fit.
    total : float, optional
        The sum of the sample weights; the number of rows that `weights` amount to by default.
    distances : pair of ndarrays, of shape (d,) and (n,), optional
        A rough centre, and the squared distance of each row from it where that is known; else
        distances are from the weighted mean.
    pushed : ndarray of shape (n,), optional
        The force on each row where the descent was on these samples and recorded it.
    beyond : ndarray of shape (n,), optional
        How far each row is beyond the cuts, added up, where that is known.
    """
    if pushed is None:
        pushed = samples.quadratic(result.force, result.drift)
    centre = samples.mean(weights)
    anchor, squared = (centre, None) if distances is None else distances
    score = RowScore(
        standardizer,
        centre,
        anchor,
        radius_sq,
        result.force,
        result.drift,
        float(weighted_quantile(pushed, weights, [0.5])[0]),
        total if total is not None else 1.0 / float(weights @ weights),
        cuts,
    )
    return score, score.of_samples(samples, pushed, squared, beyond)


def _softplus(values: Array) -> Array:
    """Return log(1 + exp(v)): positive, increasing, and close to max(v, 0)."""
    return np.logaddexp(0.0, values)
