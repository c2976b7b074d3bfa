"""The working set of directions: those in which the weighted data looks unclean.

The spectral norm looks for its evidence along directions instead of features. A full pass gives
S_w - R, and its leading eigenvectors span the part of the space in which a descent then runs, on
the projections of the rows alone. Eigenvectors are defined up to signs and, in ties, rotations;
nothing here depends on more than the space they span, and that ends where eigenvalues have a gap.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from outweigh.forms import Form
from outweigh.norms.spectral import largest_eigenpairs
from outweigh.objectives import MomentObjective
from outweigh.protocols import Array, MomentMatrix, Objective, Result, Span, Survey

__all__ = ["SPARE", "DirectionSet", "leading_directions"]

SPARE = 8
"""Directions below the level that are taken along: they may come to exceed it on the way."""

# Eigenpairs computed at first; more where more exceed the level.
_PAIRS = 32
# With more than a d/3 of the directions in the working set, restricting to it saves too little.
_SHARE = 3
# A direction that lies in the span but for this length adds nothing but rounding.
_BEYOND = 0.03
# New evidence lies to this length, at least, outside the span.
_NEW = 0.3


class DirectionSet:
    """Directions as a workspace: the span of the leading eigenvectors of every pass so far.

    Where evidence is in too many directions, all of the space.

    Parameters
    ----------
    objective : MomentObjective
        A spectral norm.
    level : callable
        From weights to the level that the eigenvalues of clean data reach.
    span : Span, optional
        Directions known to carry evidence.
    """

    def __init__(
        self,
        objective: MomentObjective,
        level: Callable[[Array], float],
        span: Span | None = None,
    ) -> None:
        # Directions must not depend on how sums were rounded.
        self._objective = replace(objective, full_precision=True)
        self._level = level
        d, n = objective.n_features, objective.samples.n_samples
        self._span = Span(np.empty((d, 0)), np.empty((n, 0))) if span is None else span
        self._everything = False
        self._seen: tuple[MomentMatrix, float] | None = None
        self._new: Array | None = None

    @property
    def n_features(self) -> int:
        """Number of features d of the whole space."""
        return self._objective.n_features

    @property
    def span(self) -> Span | None:
        """The directions and the rows in them; None for all of the space."""
        return None if self._everything else self._span

    def survey(self, weights: Array) -> Survey:
        """Return the value over all features, by a full pass."""
        matrix = self._objective.moment(weights)
        found = self._objective.norm.maximize(matrix)
        self._seen = matrix, self._level(weights)
        return Survey(found.value, found.form)

    def widen(self, survey: Survey) -> bool:
        """Take in the leading eigenvectors of the last pass; return whether any was missed."""
        del survey
        if self._everything or self._seen is None:
            return False
        (matrix, level), self._seen = self._seen, None
        basis = self._span.basis
        most = self.n_features // _SHARE - basis.shape[1]
        found = leading_directions(matrix, level, most) if most > SPARE else None
        if found is None:
            self._everything = True
            return True
        vectors, n_above = found
        outside, lengths = _outside(basis, vectors)
        new = outside[:, lengths > _BEYOND]
        missed = _outside(basis, vectors[:, :n_above])[1]
        # Projected only where a descent follows: that costs a pass.
        self._new = new
        return bool(np.any(missed > _NEW))

    def restricted(self) -> Objective:
        """Return the objective on the span alone."""
        if self._everything:
            return self._objective
        if self._new is not None and self._new.shape[1]:
            self._span = Span(
                np.hstack([self._span.basis, self._new]),
                np.hstack([self._span.projected, self._objective.samples.project(self._new)]),
            )
        self._new = None
        return self._objective.restrict_to(self._span)

    def lift(self, vector: Array) -> Array:
        """Return a vector of the span as one of all features."""
        return vector if self._everything else np.asarray(self._span.basis @ vector)

    def lift_form(self, form: Form) -> Form:
        """Return a form on the span as one on all features."""
        if self._everything:
            return form
        return Form.from_directions(self._span.basis @ form.directions, form.strengths)

    def recorded(self, result: Result) -> Result:
        """Return a result that says in which directions it was found."""
        return replace(result, span=self.span)


def leading_directions(matrix: MomentMatrix, level: float, most: int) -> tuple[Array, int] | None:
    """Return the eigenvectors that exceed a level in magnitude, and some of the next.

    Their number is chosen where eigenvalues have their widest gap, so that the span does not depend
    on the last digits of the matrix.

    Parameters
    ----------
    matrix : MomentMatrix
    level : float
    most : int
        Directions allowed.

    Returns
    -------
    vectors : ndarray of shape (d, r)
    n_above : int
        How many of them exceed the level; None in place of both where more than `most` were needed.
    """
    most = min(most, matrix.n_features - 1)
    count = min(most + 1, _PAIRS)
    while True:
        values, vectors = largest_eigenpairs(matrix, count, tol=0.0)
        sizes = np.abs(values)
        n_above = int(np.count_nonzero(sizes > level))
        if n_above + 2 * SPARE < count or count > most:
            break
        count = min(2 * count, most + 1)
    first, last = n_above + SPARE, min(n_above + 2 * SPARE, count - 1)
    if first > last:
        return None
    gaps = sizes[first - 1 : last] - sizes[first : last + 1]
    return vectors[:, : first + int(np.argmax(gaps))], n_above


def _outside(basis: Array, vectors: Array) -> tuple[Array, Array]:
    """Return orthonormal directions of what lies outside a span, and the lengths it has there."""
    left = vectors - basis @ (basis.T @ vectors)
    # Once more: what is left of a vector close to the span is mostly rounding along it.
    left -= basis @ (basis.T @ left)
    directions, lengths, _ = np.linalg.svd(left, full_matrices=False)
    return directions, lengths
