"""X as the descent sees it: in units of the noise, without the rows that are pruned."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from outweigh.protocols import Array, Samples
from outweigh.pruning import pruned_rows, pruning_radius_sq
from outweigh.samples import Rows
from outweigh.samples.dense import INFINITE
from outweigh.samples.rows import Affine

__all__ = [
    "Prepared",
    "Standardizer",
    "prepare",
    "refuse_huge",
    "rescale",
]

# In units of the noise. Beyond it, sums of fourth powers of what is left after pruning would
# overflow.
_TOO_LARGE = 1e70
# Scales that shrink by less than this factor, and grow by less than the other, prune the same rows:
# the radius is no sharper. Rows that smaller scales would prune too are left to the descent, but a
# row that larger ones would not must not stay pruned.
_SHRINK, _GROW = 2.0, 1.1


@dataclass(frozen=True, slots=True, eq=False)
class Standardizer:
    """The map from a row of X to the units of the noise: z = (x[columns] - origin) / scale.

    Where the correlations R of clean rows are known, further to R^(-1/2) z: uncorrelated, and as
    close to the features themselves as uncorrelated ones can be, so what is sparse stays so.
    """

    columns: NDArray[np.intp]
    origin: Array
    scale: Array
    whitener: Array | None = None

    def apply(self, X: NDArray[np.floating]) -> Array:
        """Return the standardised rows, shape (n, len(columns)), huge values clipped."""
        z = self._shifted(X)
        if z is X or z.base is X:
            return np.clip(z, -INFINITE, INFINITE)
        return np.asarray(np.clip(z, -INFINITE, INFINITE, out=z))

    def view(self, X: NDArray[np.floating]) -> Array:
        """Return the standardised rows, not clipped; X itself where nothing is to be done."""
        return self._shifted(X)

    def _shifted(self, X: NDArray[np.floating]) -> Array:
        return self.standardize(X if self.columns.size == X.shape[1] else X[:, self.columns])

    def standardize(self, part: NDArray[np.floating]) -> Array:
        """Return rows of the columns alone in the units of the noise."""
        with np.errstate(over="ignore"):
            if np.any(self.origin != 0.0):
                part = np.subtract(part, self.origin, dtype=np.float64)
            if np.any(self.scale != 1.0):
                # What was shifted is a copy, which can be written to.
                out = part if np.any(self.origin != 0.0) else None
                part = np.divide(part, self.scale, out=out, dtype=np.float64)
        if self.whitener is not None:
            part = np.clip(part, -INFINITE, INFINITE) @ self.whitener
        return np.asarray(part, dtype=np.float64)

    def restore(self, z: Array) -> Array:
        """Return a point in the units of the noise in those of X, on the columns."""
        if self.whitener is not None:
            z = np.asarray(np.linalg.solve(self.whitener, z), dtype=np.float64)
        return np.asarray(z * self.scale + self.origin)

    def rescaled(self, factor: Array) -> Standardizer:
        """Return the map with every scale multiplied by `factor`."""
        return replace(self, scale=self.scale * factor)


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """Samples in units of the noise, and the rows that are too far out to be among them.

    ``far`` holds squared distances from the centre. Where ``outdated`` they are those in the units
    of an earlier, similar scale: they tell which rows are beyond the radius, but not how far out a
    row is, so all of those beyond are to be pruned. (They are: a contamination that was estimated
    is at least the share that was pruned before.)
    """

    standardizer: Standardizer
    centre: Array
    samples: Samples
    radius_sq: float
    far: Array
    outdated: bool = False
    _without: list[tuple[NDArray[np.intp], Samples]] = field(
        default_factory=list, init=False, repr=False
    )

    @property
    def anchor(self) -> Array:
        """The centre in units of the noise, from which `far` is measured."""
        return np.asarray(self.standardizer.standardize(self.centre[None, :])[0])

    def pruned(self, sample_weight: Array, contamination: float) -> NDArray[np.intp]:
        """Return the rows to prune at a contamination: farthest first, never more than allowed."""
        return pruned_rows(self.far, self.radius_sq, sample_weight, contamination)

    def measured(self, far: Array) -> Prepared:
        """Return the same with squared distances in the present units."""
        return replace(self, far=_bounded(far), outdated=False)


def prepare(
    rows: Rows, sample_weight: Array, standardizer: Standardizer, centre: Array
) -> Prepared:
    """Return the samples in units of the noise, ready for a descent.

    Parameters
    ----------
    rows : Rows
    sample_weight : ndarray of shape (n,)
    standardizer : Standardizer
    centre : ndarray of shape (len(standardizer.columns),)
        In the units of X; rows far from it may be pruned, see `without_pruned`.
    """
    affine = None
    if standardizer.whitener is None:
        affine = Affine(standardizer.columns, standardizer.origin, standardizer.scale)
    samples = rows.samples(standardizer.view, standardizer.columns.size, affine)
    anchor = standardizer.standardize(centre[None, :])[0]
    radius_sq = pruning_radius_sq(float(sample_weight.sum()), max(samples.n_features, 1))
    far = samples.squared_distances(anchor, radius_sq, sample_weight)
    return Prepared(standardizer, centre, samples, radius_sq, _bounded(far))


def rescale(prepared: Prepared, rows: Rows, sample_weight: Array, factor: Array) -> Prepared:
    """Return the samples with every scale multiplied by `factor`.

    After a small change the same rows are pruned, which saves measuring all distances anew.
    """
    standardizer = prepared.standardizer.rescaled(factor)
    similar = factor.min() >= 1.0 / _SHRINK and factor.max() <= _GROW
    # A whitener stands between scales and samples.
    if not similar or standardizer.whitener is not None:
        return prepare(rows, sample_weight, standardizer, prepared.centre)
    return replace(
        prepared,
        standardizer=standardizer,
        samples=prepared.samples.rescaled(factor),
        outdated=True,
    )


def _bounded(squared: Array) -> Array:
    """Return squared distances that are finite.

    They are infinite where squares overflow; any number as large serves as well.
    """
    return np.asarray(np.minimum(squared, INFINITE**2, out=squared))


def without_pruned(prepared: Prepared, pruned: NDArray[np.intp]) -> Samples:
    """Return samples in which pruned rows, whose weight is zero, hold zeros and not 1e300."""
    if pruned.size == 0:
        refuse_huge(prepared.far)
        return prepared.samples
    known = prepared._without
    if not known or not np.array_equal(known[0][0], pruned):
        refuse_huge(np.delete(prepared.far, pruned))
        # The last is kept: the same rows are often pruned under several bounds.
        known[:] = [(pruned, prepared.samples.without(pruned))]
    return known[0][1]


def refuse_huge(squared_distances: Array) -> None:
    """Refuse rows that are still too far out, after pruning, for sums of their squares."""
    largest = float(np.sqrt(squared_distances.max(initial=0.0)))
    if largest > _TOO_LARGE:
        raise ValueError(
            f"X: rows as far as {largest:.1e} noise units out remain after pruning as many as "
            "contamination allows, too far for second moments in floating point; raise "
            "contamination, pass scale, or remove those rows"
        )
