"""How much a row, seen in training or not, is to be trusted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from outweigh.fit.columns import weighted_quantile
from outweigh.fit.elliptical import Cloud
from outweigh.fit.mixture import Groups, chance_of
from outweigh.fit.noise import Noise, Standardizer
from outweigh.fit.search import Weights
from outweigh.fit.tuning import TUNING
from outweigh.forms import Form
from outweigh.protocols import Array, Samples
from outweigh.samples import DenseSamples

_HALF = 0.5
# The score of a row that would lose half of its weight, where nothing else speaks against it.
HALF_LOST = -float(np.log(2.0))
_TINY = np.finfo(np.float64).tiny


@dataclass(frozen=True, slots=True, eq=False)
class RowScore:
    """A score for rows: minus the forces that would push the row's weight down.

    Two terms, each nonnegative and smooth. The first is the share of its weight that the row would
    have lost in the fit: how likely it is to be in a group of outliers or, where no group was
    found, by the force x'Fx - x'b that the descent accumulated. The second is the squared distance
    beyond the pruning radius, from the anchor that pruning measures from. It grows without bound
    along every ray and the first is never negative, so no point gains by going far away, whatever
    directions the force is blind to.

    Attributes
    ----------
    standardizer : Standardizer
    centre : ndarray of shape (d,)
        The weighted mean in units of the noise, from which deviations are told.
    anchor, radius_sq : ndarray of shape (d,) and float
        What pruning measures from, and how far.
    force, drift : Form and ndarray of shape (d,)
        F and b.
    level : float
        The force on a typical row that is kept.
    total : float
        The sum of the sample weights: a force of 1/total takes a row all of its weight.
    groups : tuple of Group
    """

    standardizer: Standardizer
    centre: Array
    anchor: Array
    radius_sq: float
    force: Form
    drift: Array
    level: float
    total: float
    groups: Groups

    def __call__(self, X: NDArray[np.floating]) -> Array:
        """Return the score of each row of X, at most 0; lower is less trusted."""
        return self.of_samples(DenseSamples(self.standardizer.apply(X)))

    def of_samples(
        self, samples: Samples, found: Weights | None = None, far: Array | None = None
    ) -> Array:
        """Return the score of rows already in units of the noise.

        Parameters
        ----------
        samples : Samples
        found : Weights, optional
            The weights of these very rows, which know the force on each and how likely it is to
            be in one of the groups.
        far : ndarray of shape (n,), optional
            The squared distance of each row from the anchor, where it is known.
        """
        by_loss, by_distance = self._terms(samples, found, far)
        # The last term orders rows that nothing speaks against by their distance; else they would
        # be equal to the last digit, and no given share of them could be flagged.
        order = TUNING.order_gain * np.log1p(
            np.maximum(by_distance / TUNING.distance_gain + 1.0, 0.0)
        )
        return -(np.logaddexp(0.0, by_loss) + np.logaddexp(0.0, by_distance) + order)

    def contributions(self, X: NDArray[np.floating]) -> tuple[Array, Array]:
        """Return how much each feature lowers the score of each row, and how far out it is there.

        The force about the centre, y'Fy + y'((F + F')c - b), splits into one term a feature, as do
        a projection on a group's direction and a squared distance. Each counts as much as the score
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
        away = self.standardizer.to_features(white.T).T

        def to_features(vectors: Array) -> Array:
            # Products z'v of whitened rows z = Wy are sums over the features of y times Wv.
            return vectors if whitener is None else whitener @ vectors

        parts = np.maximum(away * to_features(white.T).T - 1.0, 0.0)
        parts *= (TUNING.distance_gain / self.radius_sq * expit(by_distance))[:, None]
        slope = self.force.symmetric_product(self.centre) - self.drift
        force = self.force.symmetric_product(white.T) / 2.0 + slope[:, None]
        lost = self.total * away * to_features(force).T
        for group in self.groups:
            projected = samples.project(group.direction)
            side = np.sign(projected - group.centre)[:, None]
            along = away * to_features(group.direction)
            along *= side
            np.maximum(along, 0.0, out=along)
            # By how much it speaks against the row, in nats: probabilities are all close to one.
            seen = group.seen(samples)
            odds = np.logaddexp(0.0, group.log_odds(seen))
            total = along.sum(axis=1)
            # A row at the centre along the direction has no feature that speaks against it.
            share = np.divide(odds, total, out=np.zeros_like(odds), where=total > 1e-12)
            along *= share[:, None]
            lost += along
        # Half of a product of a large and a small deviation is no reason against the small one.
        own = away * away
        own /= own + TUNING.small_deviation * own.max(axis=1, initial=_TINY, keepdims=True)
        own *= np.maximum(lost, 0.0, out=lost)
        own *= (TUNING.loss_gain * expit(by_loss))[:, None]
        parts += own
        unexplained = parts.sum(axis=1) <= 0.0
        parts[unexplained] = np.square(away[unexplained]) + _TINY
        return parts, away

    def _terms(
        self, samples: Samples, found: Weights | None = None, far: Array | None = None
    ) -> tuple[Array, Array]:
        """Return the exponents of the two terms of each row."""
        if found is not None:
            pushed, wrong = found.pushed, found.wrong
        else:
            pushed = samples.quadratic(self.force, self.drift)
            wrong = chance_of(self.groups, samples)
        lost = wrong + self.total * (pushed - self.level)
        far = samples.squared_distances(self.anchor) if far is None else far
        by_distance = TUNING.distance_gain * (far / self.radius_sq - 1.0)
        return TUNING.loss_gain * (lost - _HALF), by_distance


@dataclass(frozen=True, slots=True, eq=False)
class EllipticalScore:
    """A score for rows of unknown covariance: minus what speaks most against the row.

    Its squared distance in units of the limit, or twice its chance to be of a group that stands
    apart, or its chance to be of one that may be genuine, or a value in units of its column's
    reach; below -1 a row is distrusted.

    Attributes
    ----------
    standardizer : Standardizer
        The columns that vary, and their scales.
    cloud : Cloud
    """

    standardizer: Standardizer
    cloud: Cloud

    def __call__(self, X: NDArray[np.floating]) -> Array:
        """Return the score of each row of X, at most 0; lower is less trusted."""
        cloud, (z, outside) = self.cloud, self.cloud.coordinates(X)
        squared = np.square(cloud.scatter.white(z)).sum(axis=1) + outside / cloud.scatter.outside
        far = np.maximum(squared / cloud.limit, cloud.reach.exceeded(X))
        apart, maybe = cloud.apart(z)
        return np.asarray(-np.maximum.reduce([far, 2.0 * apart, maybe]))

    def clean(self, X: NDArray[np.floating]) -> Array:
        """Return the chance of each row to be clean; 0 beyond the limit."""
        scores = self(X)
        apart, _ = self.cloud.apart(self.cloud.coordinates(X)[0])
        return np.where((scores < -1.0) & (apart < 0.5), 0.0, 1.0 - apart)

    def contributions(self, X: NDArray[np.floating]) -> tuple[Array, Array]:
        """Return how much each column counts against each row, and how far out it is there.

        A squared distance y'Py is a sum over the features of y times Py. A feature that the others
        foretell counts by how far it is from what they foretell.
        """
        cloud, scatter = self.cloud, self.cloud.scatter
        z, _ = cloud.coordinates(X)
        away, pulled = z - scatter.mean, scatter.white(z) @ scatter.whitener.T
        for group in cloud.groups:
            # What speaks for a group is the projection on its direction.
            toward = np.sign(group.centres[0] - group.centre) * group.direction
            of_group = group.wrong(z @ group.direction) > 0.5
            pulled = np.where(of_group[:, None], toward, pulled)
        if cloud.basis is not None:
            away, pulled = away @ cloud.basis, pulled @ cloud.basis
        parts = self._spread(np.maximum(away * pulled, 0.0) + _TINY, 0.0)
        away, reach = self._spread(away, 0.0), cloud.reach
        # Units of the limit, as of the other terms; within its reach a value says nothing.
        beyond, places = reach.parts(X), np.searchsorted(self.standardizer.columns, reach.columns)
        parts[:, places] = np.where(beyond > 1.0, cloud.limit * beyond, 0.0)
        away[:, places] = np.sign(X[:, reach.columns] - reach.middle) * TUNING.far * beyond
        # A row of a given share may be flagged though nothing speaks against it.
        silent = parts.sum(axis=1) <= 0.0
        parts[silent] = np.square(away[silent]) + _TINY
        return parts, away

    def foretold(self, X: NDArray[np.floating]) -> Array:
        """Return what the other columns of each row foretell of each; NaN of those not judged."""
        return self._spread(self.cloud.foretold(X), np.nan)

    def _spread(self, judged: Array, other: float) -> Array:
        """Return values of the columns judged among all that vary."""
        values = np.full((len(judged), self.standardizer.columns.size), other)
        values[:, np.searchsorted(self.standardizer.columns, self.cloud.columns)] = judged
        return values


def score_rows(noise: Noise, weights: Weights) -> tuple[RowScore, Array]:
    """Calibrate a score on the rows kept by `weights`; return it and the scores of all rows.

    Parameters
    ----------
    noise : Noise
    weights : Weights
        With forces and groups in the coordinates of `noise.samples`.
    """
    score = RowScore(
        noise.standardizer,
        noise.samples.mean(weights.values),
        noise.anchor,
        noise.radius_sq,
        weights.force,
        weights.drift,
        float(weighted_quantile(weights.pushed, weights.values, [0.5])[0]),
        float(noise.sample_weight.sum()),
        weights.groups,
    )
    scores = score.of_samples(noise.samples, weights, noise.far)
    if noise.pruned.size:
        # They hold zeros in the samples of the descent; they are scored as new rows would be.
        scores[noise.pruned] = score(noise.rows.take(noise.pruned))
    return score, scores
