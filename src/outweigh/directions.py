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
import scipy.linalg

from outweigh.forms import Form
from outweigh.norms.spectral import largest_eigenpairs
from outweigh.objectives import MomentObjective
from outweigh.protocols import Array, MomentMatrix, Objective, Result, Span, Survey

__all__ = ["SPARE", "DirectionSet", "leading_directions", "rescaled_span"]

SPARE = 8
"""Directions below the level that are taken along: they may come to exceed it on the way."""

# Eigenpairs computed at first; more where more exceed the level.
_PAIRS = 32
# One pass may name d/3 directions, and all of them together d/2: restricting to more saves too
# little. The rows projected on more than so many take too much memory.
_SHARE = 3
_MOST = 96
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
    look_first : bool, default=False
        A pass over all features comes before the first descent on known directions; it adds none
        unless they miss evidence.
    """

    def __init__(
        self,
        objective: MomentObjective,
        level: Callable[[Array], float],
        span: Span | None = None,
        look_first: bool = False,
    ) -> None:
        self._objective = objective
        self._level = level
        d, n = objective.n_features, objective.samples.n_samples
        none = Span(np.empty((d, 0)), np.empty((n, 0)), np.empty(0))
        self._span = none if span is None else span
        self._known_suffice = span is not None and look_first
        self._everything = False
        self._seen: tuple[MomentMatrix, float] | None = None
        self._new: tuple[Array, Array] | None = None

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

    def add(self, direction: Array) -> None:
        """Take in one direction, orthogonal to the span, in place of what the last pass names."""
        self._seen = None
        self._new = direction[:, None], np.zeros(1)

    def widen(self, survey: Survey, weights: Array) -> bool:
        """Take in the leading eigenvectors of the last pass; return whether any was missed."""
        del survey, weights
        if self._new is not None:
            return True
        if self._everything or self._seen is None:
            return False
        (matrix, level), self._seen = self._seen, None
        basis = self._span.basis
        found = leading_directions(matrix, level, min(self.n_features // _SHARE, _MOST))
        if found is None:
            self._everything = True
            return True
        values, vectors, n_above = found
        # Projected only where a descent follows: that costs a pass.
        if basis.shape[1] == 0:
            self._new = vectors, _held(values, level)
            return True
        missed = bool(np.any(_outside(basis, vectors[:, :n_above])[1] > _NEW))
        known_suffice, self._known_suffice = self._known_suffice and not missed, False
        if known_suffice:
            return False
        outside, lengths = _outside(basis, vectors)
        outside = outside[:, lengths > _BEYOND]
        if basis.shape[1] + outside.shape[1] > min(self.n_features // 2, 2 * _MOST):
            self._everything = True
            return True
        self._new = outside, np.zeros(outside.shape[1])
        return missed

    def restricted(self) -> Objective:
        """Return the objective on the span alone."""
        if self._everything:
            return self._objective
        if self._new is not None and self._new[1].size:
            directions, held = self._new
            self._span = Span(
                np.hstack([self._span.basis, directions]),
                np.hstack([self._span.projected, self._objective.samples.project(directions)]),
                np.concatenate([self._span.held, held]),
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


def rescaled_span(span: Span, factor: Array) -> Span:
    """Return the span in which the rows, each feature divided by a factor, project as before.

    No row is read for it: x'v is the product of x / f with f v. What each direction holds is taken
    to be as before, though directions are mixed a little where factors differ.
    """
    basis, triangle = np.linalg.qr(factor[:, None] * span.basis)
    projected = scipy.linalg.solve_triangular(triangle, span.projected.T, trans="T").T
    return Span(basis, np.ascontiguousarray(projected), span.held)


def leading_directions(
    matrix: MomentMatrix, level: float, most: int
) -> tuple[Array, Array, int] | None:
    """Return the eigenpairs that exceed a level in magnitude, and some of the next.

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
    values : ndarray of shape (r,)
    vectors : ndarray of shape (d, r)
    n_above : int
        How many of them exceed the level; None in place of all where more than `most` were needed.
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
    r = first + int(np.argmax(gaps))
    return values[:r], vectors[:, :r], n_above


def _held(values: Array, level: float) -> Array:
    r"""Return the squared cosine between each eigenvector and the true direction behind it.

    With :math:`\gamma = d/n`, a direction in which clean rows gain the variance l shows as the
    eigenvalue :math:`\lambda = l + \gamma + \gamma/l`, and its eigenvector holds
    :math:`(1 - \gamma/l^2) / (1 + \gamma/l)` of it (Paul, "Asymptotics of sample eigenstructure
    for a large dimensional spiked covariance model", 2007). The level of clean data tells
    :math:`\gamma`.
    """
    ratio = (np.sqrt(1.0 + level) - 1.0) ** 2
    centred = values - ratio
    spread = np.maximum(centred**2 - 4.0 * ratio, 0.0)
    gained = np.where(centred > 0.0, (centred + np.sqrt(spread)) / 2.0, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        held = (1.0 - ratio / gained**2) / (1.0 + ratio / gained)
    return np.where(gained**2 > ratio, held, 0.0)


def _outside(basis: Array, vectors: Array) -> tuple[Array, Array]:
    """Return orthonormal directions of what lies outside a span, and the lengths it has there."""
    left = vectors - basis @ (basis.T @ vectors)
    # Once more: what is left of a vector close to the span is mostly rounding along it.
    left -= basis @ (basis.T @ left)
    directions, lengths, _ = np.linalg.svd(left, full_matrices=False)
    return directions, lengths
