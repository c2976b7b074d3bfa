"""What happens to X before the descent: constant columns, scale, origin, pruning."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from outweigh.moments import DenseSamples
from outweigh.protocols import Array
from outweigh.pruning import midmean, pruned_rows, pruning_radius_sq
from outweigh.scaling import looks_unit_noise, robust_scales

__all__ = ["Prepared", "Standardizer", "prepare", "standardizer_for"]

# The origin, and whether the noise is of unit size, are read off this many rows; scales that are
# divided by, off all rows unless there are more values than the second number.
_ROWS_FOR_ORIGIN = 500
_VALUES_FOR_SCALE = 10_000_000
# In units of the noise. Beyond the first, values are as good as infinite; beyond the second, sums
# of fourth powers of what is left after pruning would overflow.
_INFINITE = 1e100
_TOO_LARGE = 1e70
# A centre within this many noise units of zero needs no shift of the origin.
_NEAR_ORIGIN = 10.0


@dataclass(frozen=True, slots=True, eq=False)
class Standardizer:
    """The map from a row of X to the units of the noise: z = (x[columns] - origin) / scale."""

    columns: NDArray[np.intp]
    origin: Array
    scale: Array

    def apply(self, X: NDArray[np.floating]) -> Array:
        """Return the standardised rows, shape (n, len(columns)), huge values clipped."""
        z = self._shifted(X)
        if z is X or z.base is X:
            return np.clip(z, -_INFINITE, _INFINITE)
        return np.asarray(np.clip(z, -_INFINITE, _INFINITE, out=z))

    def view(self, X: NDArray[np.float64]) -> Array:
        """Return the standardised rows, not clipped; X itself where nothing is to be done."""
        return self._shifted(X)

    def _shifted(self, X: NDArray[np.floating]) -> Array:
        part = X if self.columns.size == X.shape[1] else X[:, self.columns]
        with np.errstate(over="ignore"):
            if np.any(self.origin != 0.0):
                part = np.subtract(part, self.origin, dtype=np.float64)
            if np.any(self.scale != 1.0):
                part = np.divide(part, self.scale, dtype=np.float64)
        return np.asarray(part, dtype=np.float64)

    def rescaled(self, factor: Array) -> Standardizer:
        """Return the map with every scale multiplied by `factor`."""
        return Standardizer(self.columns, self.origin, self.scale * factor)


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """Samples in units of the noise, and the rows that are too far out to be among them."""

    standardizer: Standardizer
    centre: Array
    samples: DenseSamples
    radius_sq: float
    far: Array

    def pruned(self, sample_weight: Array, contamination: float) -> NDArray[np.intp]:
        """Return the rows to prune at a contamination: farthest first, never more than allowed."""
        return pruned_rows(self.far, self.radius_sq, sample_weight, contamination)


def standardizer_for(
    X: NDArray[np.float64],
    sample_weight: Array,
    scale: str | Array | None,
    random_state: int | np.random.RandomState | None,
) -> tuple[Standardizer, Array]:
    """Return the map to the units of the noise, before any weights are known, and a centre.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    sample_weight : ndarray of shape (n,)
        Positive.
    scale : {"auto", "mad"}, array of shape (d,) or None
    random_state : int, RandomState or None
        Chooses the rows that the origin is read off when there are very many.
    """
    columns = _varying(X)
    order = check_random_state(0 if random_state is None else random_state).permutation(X.shape[0])
    part, weight = _rows(X, sample_weight, order[:_ROWS_FOR_ORIGIN], columns)
    scales = np.ones(columns.size)
    if (
        isinstance(scale, str)
        and columns.size
        and (scale == "mad" or not looks_unit_noise(*robust_scales(part, weight)))
    ):
        n_rows = max(_ROWS_FOR_ORIGIN, _VALUES_FOR_SCALE // columns.size)
        more, more_weight = _rows(X, sample_weight, order[:n_rows], columns)
        scales = _positive(*robust_scales(more, more_weight), more)
    elif scale is not None and not isinstance(scale, str):
        scales = np.asarray(scale, dtype=np.float64)[columns]
    centre = midmean(part, weight) if columns.size else np.empty(0)
    # Second moments do not depend on the origin: a near one is not worth a copy of X.
    near = bool(np.all(np.abs(centre) <= _NEAR_ORIGIN * scales))
    return Standardizer(columns, np.zeros_like(centre) if near else centre, scales), centre


def prepare(
    X: NDArray[np.float64], sample_weight: Array, standardizer: Standardizer, centre: Array
) -> Prepared:
    """Return the samples in units of the noise, ready for a descent.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    sample_weight : ndarray of shape (n,)
    standardizer : Standardizer
    centre : ndarray of shape (len(standardizer.columns),)
        In the units of X; rows far from it may be pruned, see `without_pruned`.
    """
    samples = DenseSamples(standardizer.view(X))
    z = (centre - standardizer.origin) / standardizer.scale
    radius_sq = pruning_radius_sq(float(sample_weight.sum()), max(samples.n_features, 1))
    return Prepared(standardizer, centre, samples, radius_sq, samples.squared_distances(z))


def without_pruned(prepared: Prepared, pruned: NDArray[np.intp]) -> DenseSamples:
    """Return samples in which pruned rows, whose weight is zero, hold zeros and not 1e300."""
    if pruned.size == 0:
        _refuse_huge(prepared.far)
        return prepared.samples
    array = prepared.samples.array.copy()
    array[pruned] = 0.0
    _refuse_huge(np.delete(prepared.far, pruned))
    return DenseSamples(array)


def _refuse_huge(squared_distances: Array) -> None:
    largest = float(np.sqrt(squared_distances.max(initial=0.0)))
    if largest > _TOO_LARGE:
        raise ValueError(
            f"X: rows as far as {largest:.1e} noise units out remain after pruning as many as "
            "contamination allows, too far for second moments in floating point; raise "
            "contamination, pass scale, or remove those rows"
        )


def _varying(X: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the columns that are not constant, looking closely only where two rows agree."""
    varies = X[0] != X[-1]
    alike = np.flatnonzero(~varies)
    if alike.size:
        varies[alike] = X[:, alike].max(axis=0) != X[:, alike].min(axis=0)
    # Where nothing varies, one column stands in for all: its mean is its constant.
    return np.flatnonzero(varies) if varies.any() else np.zeros(1, dtype=np.intp)


def _rows(
    X: NDArray[np.float64], weight: Array, chosen: NDArray[np.intp], columns: NDArray[np.intp]
) -> tuple[Array, Array]:
    chosen = np.sort(chosen)
    part = X if chosen.size == X.shape[0] else X[chosen]
    part = part if columns.size == X.shape[1] else part[:, columns]
    return part, weight[chosen]


def _positive(by_deviation: Array, by_deciles: Array, part: Array) -> Array:
    """Return the first positive scale of each column: deviations, deciles, or the spread."""
    with np.errstate(over="ignore"):
        fallback = np.where(by_deciles > 0, by_deciles, part.max(axis=0) - part.min(axis=0))
    return np.where(by_deviation > 0, by_deviation, np.minimum(fallback, np.finfo(float).max))
