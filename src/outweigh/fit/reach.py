"""How far the values of a column go that has too few of them to judge rows by their shape.

A column of 0 and 1, or of zeros mostly, has groups that are no outliers. But -999 in it is one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from outweigh.fit.columns import weighted_quantile
from outweigh.fit.tuning import Tuning
from outweigh.protocols import Array, Indices
from outweigh.samples.dense import INFINITE


@dataclass(frozen=True, slots=True, eq=False)
class Reach:
    """Beyond how far from its median a value of a column is none of it.

    Attributes
    ----------
    columns : ndarray of int
    middle, radius : ndarray of shape (columns.size,)
    """

    columns: Indices
    middle: Array
    radius: Array

    @classmethod
    def of(cls, X: Array, sample_weight: Array, columns: Indices, tuning: Tuning) -> Reach:
        """Return the reach of some columns: `far` times that of most values but the median.

        Most are all but the share that may be wrong. The median itself does not count: it may be
        nearly all of a column, and the others are no outliers for that.
        """
        found = np.zeros((2, columns.size))
        for j, column in enumerate(X[:, columns].T):
            middle = weighted_quantile(column, sample_weight, [0.5])[0]
            away = np.abs(column - middle)
            others = away > 0.0
            if others.any():
                most = [1.0 - tuning.loose_bound]
                reach = weighted_quantile(away[others], sample_weight[others], most)[0]
                found[:, j] = middle, tuning.far * reach
        # A column of one value says nothing of another.
        seen = found[1] > 0.0
        return cls(columns[seen], *found[:, seen])

    def parts(self, X: NDArray[np.floating]) -> Array:
        """Return how far each value of the columns is from the median, in units of the reach."""
        with np.errstate(over="ignore"):
            away = np.abs(X[:, self.columns] - self.middle) / self.radius
        return np.minimum(away, INFINITE)

    def exceeded(self, X: NDArray[np.floating]) -> Array:
        """Return the largest of these of each row; above 1: beyond."""
        return np.asarray(self.parts(X).max(axis=1, initial=0.0))

    def among(self, columns: Indices, scale: Array) -> Reach:
        """Return the same of rows `scale` times as large, with columns counted among more."""
        unit = scale[self.columns]
        return replace(
            self,
            columns=columns[self.columns],
            middle=self.middle * unit,
            radius=self.radius * unit,
        )
