"""What happens to X before a PCA fit: units, origin, far rows, and coordinates small enough."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from outweigh.estimators.components import top_eigenvectors
from outweigh.estimators.preparation import Standardizer, refuse_huge
from outweigh.estimators.reference import whitener_on
from outweigh.estimators.start import look_over, rows_for_scale, spread_rows
from outweigh.forms import Form
from outweigh.protocols import Array, Indices, Samples
from outweigh.pruning import midmean, pruned_rows
from outweigh.samples import Rows
from outweigh.samples.dense import INFINITE, column_energy, in_memory, in_span
from outweigh.scaling import looks_unit_noise, robust_scales, sorted_columns
from outweigh.separation import Cut, weighted_quantile

__all__ = ["Coordinates", "PCASpace", "is_white", "prepare_pca", "screened", "spanned"]

# Rows this many deviations of the distances beyond their median are as good as infinite.
_FAR = 10.0
# Spreads whose squares, and sums of products of squares, are well within floating point.
_SMALLEST_LEVEL, _LARGEST_LEVEL = 1e-70, 1e70
_MAD_TO_SD = 1.4826
# Sparse components are sought among the columns of most energy when there are more than these.
_SCREEN_ABOVE, _SCREENED = 3000, 1500
_ENERGY_ROWS = 2000
# Below these sizes a level of white noise cannot be told from the spikes.
_MIN_ROWS, _MIN_FEATURES = 30, 8
_SPIKES_SET_ASIDE = 4


@dataclass(frozen=True, slots=True, eq=False)
class PCASpace:
    """Rows in units of the noise level, on the columns that vary."""

    rows: Rows
    standardizer: Standardizer
    samples: Samples
    pruned: Indices

    def rescaled(self, factor: float) -> PCASpace:
        """Return the same rows in units `factor` times as large."""
        standardizer = self.standardizer.rescaled(np.asarray(factor))
        samples = self.rows.samples(standardizer.apply, standardizer.columns.size)
        return replace(self, standardizer=standardizer, samples=_without(samples, self.pruned))


@dataclass(frozen=True, slots=True, eq=False)
class Coordinates:
    """Rows in fewer coordinates: a basis of their span, or some of the columns."""

    samples: Samples
    basis: Array | None = None
    columns: Indices | None = None
    n_features: int = 0

    def lift(self, vectors: Array) -> Array:
        """Return vectors, shape (d',) or (d', m), in the original coordinates."""
        if self.basis is not None:
            return np.asarray(self.basis @ vectors)
        if self.columns is None:
            return vectors
        lifted = np.zeros((self.n_features, *vectors.shape[1:]))
        lifted[self.columns] = vectors
        return lifted

    def lift_form(self, form: Form) -> Form:
        """Return a form in the original coordinates."""
        if self.basis is not None:
            return Form.from_directions(self.basis @ form.directions, form.strengths)
        if self.columns is None:
            return form
        return form.lift(self.columns, self.n_features)

    def lift_cut(self, cut: Cut) -> Cut:
        """Return a cut in the original coordinates."""
        return Cut(self.lift(cut.direction), cut.centre, cut.spread, cut.limit)


def prepare_pca(
    rows: Rows,
    sample_weight: Array,
    scale: str | Array | None,
    contamination: float,
    centred: bool,
    covariance: Array | None = None,
) -> tuple[PCASpace, Array]:
    """Bring rows to the units of their noise level and zero those that are absurdly far out.

    Parameters
    ----------
    rows : Rows
        n rows of d columns.
    sample_weight : ndarray of shape (n,)
        Positive.
    scale : {"auto", "mad"}, array of shape (d,) or None
        Beside it, one common level is always divided out.
    contamination : float
        At most this share of the sample weight is pruned.
    centred : bool
        Whether the origin is free; else it is zero.
    covariance : ndarray of shape (d, d), optional
        Of the noise; the rows are whitened by its correlations.

    Returns
    -------
    space : PCASpace
    first : ndarray of shape (d,)
        The first row, which holds the constants.
    """
    given = np.ones(rows.shape[1])
    if scale is not None and not isinstance(scale, str):
        given = np.asarray(scale, dtype=np.float64)
    seen = look_over(rows, given)
    if not seen.varies.any():
        raise ValueError(
            "X: all rows are equal, so there is no direction of variance; "
            "principal components need at least two different rows"
        )
    # About a given origin a constant varies too, unless it is zero.
    columns = np.flatnonzero(seen.varies if centred else seen.varies | (seen.first != 0.0))
    part, weight = spread_rows(rows, sample_weight, seen.keys, rows_for_scale(columns.size))
    part = part if columns.size == part.shape[1] else part[:, columns]
    # Sorting is most of the work here: the scales and the origin share one.
    ranked = sorted_columns(part) if np.ptp(weight) == 0 else None
    scales = robust_scales(part, weight, ranked)
    standardizer = _standardizer(part, weight, scale, centred, columns, scales, ranked)
    del ranked
    if covariance is not None:
        standardizer = replace(standardizer, whitener=whitener_on(covariance, columns))
        part = np.clip(standardizer.standardize(part), -INFINITE, INFINITE)
        scales = robust_scales(part, weight)
    else:
        scales = scales[0] / standardizer.scale, scales[1] / standardizer.scale
    level = _noise_level(*scales, part, standardizer)
    if not _SMALLEST_LEVEL < float(np.max(level * standardizer.scale)) < _LARGEST_LEVEL:
        raise ValueError(
            f"X: its typical spread is {float(np.max(level * standardizer.scale)):.1e}, whose "
            "square is beyond floating point; rescale X"
        )
    standardizer = standardizer.rescaled(np.asarray(level))
    samples = rows.samples(standardizer.apply, columns.size)
    distances = samples.squared_distances(np.zeros(samples.n_features))
    pruned = _far_rows(distances, sample_weight, contamination)
    refuse_huge(np.delete(distances, pruned))
    return PCASpace(rows, standardizer, _without(samples, pruned), pruned), seen.first


def _without(samples: Samples, pruned: Indices) -> Samples:
    return samples.without(pruned) if pruned.size else samples


def spanned(space: PCASpace, sample_weight: Array) -> Coordinates:
    """Return coordinates in the span of the rows where they are fewer than the columns."""
    samples = space.samples
    if samples.n_features <= samples.n_samples:
        return Coordinates(samples)
    samples = in_memory(samples)
    coordinates, basis = in_span(samples, sample_weight)
    return Coordinates(coordinates, basis=basis, n_features=samples.n_features)


def screened(space: PCASpace, weights: Array) -> Coordinates:
    """Return the columns of most energy where there are too many for a matrix over all pairs."""
    samples = space.samples
    if samples.n_features <= _SCREEN_ABOVE:
        return Coordinates(samples)
    if samples.n_samples <= _ENERGY_ROWS:
        energy = column_energy(in_memory(samples), weights)
    else:
        energy = samples.variances(weights)
    columns = np.sort(np.argsort(-energy, kind="stable")[:_SCREENED])
    return Coordinates(samples.columns(columns), columns=columns, n_features=samples.n_features)


def is_white(moment: Array, n_samples: float, n_features: int, n_components: int) -> bool:
    """Tell whether a covariance, some spikes set aside, could be that of white noise.

    For white noise the mean square of the eigenvalues is 1 + d/n times their squared mean. The
    test allows for twice the second term, as heavy tails and outliers add to it.

    Parameters
    ----------
    moment : ndarray of shape (d', d')
        In units of the noise level of a typical column and in an orthonormal basis of the span of
        the rows; other eigenvalues are zero.
    n_samples : float
    n_features : int
        The number d of features, at least d'.
    n_components : int

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(500, 50))
    >>> uneven = X * 0.9 ** np.arange(50)
    >>> is_white(X.T @ X / 500, 500, 50, 1), is_white(uneven.T @ uneven / 500, 500, 50, 1)
    (True, False)
    """
    aside = n_components + _SPIKES_SET_ASIDE
    if n_samples < _MIN_ROWS or n_features < _MIN_FEATURES + aside or moment.shape[0] <= aside:
        return False
    vectors = top_eigenvectors(moment, aside, rough=True)
    spikes = np.einsum("ij,ij->j", vectors, moment @ vectors)
    total = float(np.trace(moment) - spikes.sum())
    squares = float(np.vdot(moment, moment) - np.square(spikes).sum())
    if total <= 0.0:
        return False
    # In units of the noise level; strong components common to all columns raise that far above.
    level = total / (n_features - aside)
    ratio = squares / (n_features - aside) / level**2
    return 0.5 <= level <= 2.0 and ratio <= 1.1 + 2.0 * n_features / n_samples


def _standardizer(
    part: Array,
    sample_weight: Array,
    scale: str | Array | None,
    centred: bool,
    columns: Indices,
    robust: tuple[Array, Array],
    ranked: Array | None,
) -> Standardizer:
    """Return the map to scaled columns about a robust centre, or about zero."""
    scales = np.ones(columns.size)
    if isinstance(scale, str):
        by_deviation, by_deciles = robust
        if scale == "mad" or not looks_unit_noise(by_deviation, by_deciles):
            fallback = np.where(by_deciles > 0, by_deciles, 1.0)
            scales = np.where(by_deviation > 0, by_deviation, fallback)
    elif scale is not None:
        scales = np.asarray(scale, dtype=np.float64)[columns]
    origin = midmean(part, sample_weight, ranked) if centred else np.zeros(columns.size)
    return Standardizer(columns, origin, scales)


def _noise_level(
    by_deviation: Array, by_deciles: Array, part: Array, standardizer: Standardizer
) -> float:
    """Return the typical deviation of a column in the units of the standardizer."""
    for scales in (by_deviation, by_deciles):
        if np.count_nonzero(scales) > part.shape[1] // 2:
            return float(np.median(scales[scales > 0]))
    rows = part
    if standardizer.whitener is None:
        rows = np.clip(standardizer.standardize(part), -INFINITE, INFINITE)
    spread = rows.max(axis=0) - rows.min(axis=0)
    positive = np.concatenate([by_deciles[by_deciles > 0], spread[spread > 0]])
    return float(min(np.median(positive), 1e100)) if positive.size else 1.0


def _far_rows(squared: Array, sample_weight: Array, contamination: float) -> Indices:
    distances = np.sqrt(squared)
    share = sample_weight / sample_weight.sum()
    middle = float(weighted_quantile(distances, share, [0.5])[0])
    spread = float(weighted_quantile(np.abs(distances - middle), share, [0.5])[0])
    if spread <= 0.0:
        return np.empty(0, dtype=np.intp)
    radius = middle + _FAR * _MAD_TO_SD * spread
    return pruned_rows(squared, radius**2, sample_weight, contamination)
