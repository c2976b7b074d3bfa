"""The first look at chunked rows, which answers what will most likely be asked next.

Units and origin are known only once all rows were seen, and a second pass would find distances and
second moments in them. So both are guessed from a few rows, and distances and moments are found
about the guess. Moments can be moved to the right origin and units; distances bound the right ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from outweigh.protocols import Array, Indices
from outweigh.samples import kernels
from outweigh.samples.chunked import ChunkedSamples
from outweigh.samples.chunked_memory import MomentSums, RowMemory
from outweigh.samples.chunked_passes import Passes
from outweigh.samples.chunks import Chunks, Sums
from outweigh.samples.dense import kurtosis_spacing

__all__ = ["Early", "Expect", "Expected", "look_over"]

# The share of the budget that rows may take whose side of the radius is in doubt.
_ROOM_FOR_DOUBT = 0.25


@dataclass(frozen=True, slots=True, eq=False)
class Expected:
    """What will most likely be asked of all rows once they were looked over.

    Attributes
    ----------
    transform : callable
        From raw rows to rows in units of the noise.
    n_features : int
        Columns after the transform.
    centre : ndarray of shape (n_features,)
        In those units; squared distances are measured from it.
    radius_sq, weights : float and ndarray of shape (n,)
        Moments are wanted of the rows within this squared distance, at these weights.
    slack : float
        How much the right distances, about another centre and in other units, may differ.
    """

    transform: Callable[[NDArray[np.floating]], Array]
    n_features: int
    centre: Array
    radius_sq: float
    weights: Array
    slack: float


Expect = Callable[[Array, Indices], Expected | None]
"""From a few rows, and which they are, to what will be asked of all; None if that is not clear."""


@dataclass(frozen=True, slots=True, eq=False)
class Early:
    """The answers to what was expected, which is to be compared with what is asked.

    Attributes
    ----------
    expected : Expected
    squared_distances : ndarray of shape (n,)
        From the expected centre, in the expected units.
    chunks : Chunks
    keep : ndarray of bool, optional
        The rows that count; all by default.
    sums : MomentSums
        Of the rows within the radius, in the expected units.
    near, rows : ndarray of int, and ndarray of shape (len(near), n_columns)
        Raw rows whose side of the radius is in doubt, unless they are many.
    """

    expected: Expected
    squared_distances: Array
    chunks: Chunks
    keep: NDArray[np.bool_] | None
    sums: MomentSums
    near: Indices
    rows: Array

    def raw_rows(self, rows: Indices) -> Array | None:
        """Return some rows in the units of the user, if all of them were brought home."""
        if np.setdiff1d(rows, self.near).size:
            return None
        return np.asarray(self.rows[np.searchsorted(self.near, rows)])

    def samples(
        self, transform: Callable[[NDArray[np.floating]], Array], shift: Array, factor: Array
    ) -> ChunkedSamples:
        """Return all rows after another transform, with what is known of them.

        Parameters
        ----------
        transform : callable
        shift, factor : ndarray of shape (n_features,)
            What was z after the expected transform is (z + shift) / factor after this one.
        """
        expected = self.expected
        weights = np.where(self.squared_distances <= expected.radius_sq, expected.weights, 0.0)
        spacing = kurtosis_spacing(expected.n_features)
        sums = self.sums.shifted(shift, float(weights.sum()), spacing).divided(factor, spacing)
        held = RowMemory(self.near, kernels.Clipped(transform)(self.rows))
        samples = ChunkedSamples(self.chunks, expected.n_features, transform, self.keep, _rows=held)
        samples.learn(weights, sums)
        return samples


def look_over(
    chunks: Chunks,
    keep: NDArray[np.bool_] | None,
    first: Array,
    direction: Array,
    expected: Expected,
) -> tuple[NDArray[np.bool_], Array, Early]:
    """Make the first pass over raw rows; refuse values that are not finite, naming their place.

    Parameters
    ----------
    chunks : Chunks
    keep : ndarray of bool, optional
        The rows that count; all by default.
    first : ndarray of shape (n_columns,)
        A raw row: columns that differ from it vary.
    direction : ndarray of shape (n_columns,)
        That raw rows are projected on.
    expected : Expected

    Returns
    -------
    varies : ndarray of bool, shape (n_columns,)
    projected : ndarray of shape (n,)
    early : Early
    """
    d = expected.n_features
    none = np.empty(0, dtype=np.intp)
    passes = Passes(chunks, d, expected.transform, keep, none, RowMemory())
    most = int(_ROOM_FOR_DOUBT * chunks.budget) // (8 * first.size)
    pairs = 8 * d**2 <= chunks.budget
    shared = (
        first,
        direction,
        expected.transform,
        expected.centre,
        expected.radius_sq,
        kernels.Doubt(expected.slack, most),
        pairs,
        kurtosis_spacing(d),
    )
    purpose = "finite values, what varies, a projection, squared distances"
    starts, bounds = np.concatenate([[0], np.cumsum(chunks.sizes)]), passes.bounds()
    found = np.empty((passes.n_samples, 2))
    near: list[Indices] = []
    rows: list[Array] = []
    total: Sums = ()
    for i, said in passes.visit(
        kernels.overview_and_distances,
        shared,
        passes.own(expected.weights),
        purpose,
        16 + 8 * first.size * most // passes.n_samples,
    ):
        if i < 0:
            total = said
            continue
        told, places, part = kernels.refuse_bad(said, i, int(starts[i]))
        found[bounds[i] : bounds[i + 1]] = told
        if len(part) <= most:
            near.append(places + bounds[i])
            rows.append(part)
            most -= len(part)
    early = Early(
        expected,
        found[:, 1].copy(),
        chunks,
        keep,
        MomentSums(*total[1:]),
        np.concatenate([none, *near]),
        np.concatenate([np.empty((0, first.size)), *rows]),
    )
    return total[0] > 0, found[:, 0].copy(), early
