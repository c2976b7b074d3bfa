"""The part of feature space that a descent runs in between two full passes.

A full pass over all pairs of features costs a covariance. The descent needs only the part of
feature space in which the weighted rows look unclean: the features that carry the evidence for an
entrywise norm (`Columns`), the directions that carry it for the spectral norm (`Basis`), or, where
that part is not small, all of it (`Everything`). Each has its ``part``, the ``objective`` on it
alone, whose norm may spread ties for the descent, and ``n_noise``, of how many features the noise
decides the level there. A `survey` is a full pass at some weights; `misses` says whether it shows
evidence outside the part; `widen` takes in what it names.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import gammainccinv

from outweigh.fit.noise import Noise
from outweigh.fit.problem import Problem
from outweigh.fit.task import Task
from outweigh.fit.tuning import TUNING
from outweigh.forms import Form
from outweigh.norms import KyFan
from outweigh.norms.spectral import largest_eigenpairs
from outweigh.objectives import MomentObjective
from outweigh.protocols import Array, Indices, MomentMatrix, Samples, Survey
from outweigh.samples.dense import DenseSamples, column_energy, in_memory, in_span

# Noise exceeds what counts as evidence in one sample of twenty.
_BY_CHANCE = 0.05
# Eigenpairs computed at first; more where more exceed the level.
_PAIRS = 32
# Rows projected on more directions than this take too much memory, and restricting saves too
# little.
_MOST_DIRECTIONS = 96
# Sparse components are sought among the columns of most energy when there are more than these.
_SCREEN_ABOVE, _SCREENED = 3000, 1500
_ENERGY_ROWS = 2000


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A part of a space of d dimensions: some of its axes, the span of a basis, or all of it.

    Attributes
    ----------
    n_features : int
        The d.
    columns : ndarray of int, optional
    basis : ndarray of shape (d, m), optional
        Orthonormal columns.
    """

    n_features: int
    columns: Indices | None = None
    basis: Array | None = None

    def lift(self, vectors: Array) -> Array:
        """Return vectors of the part, shape (m,) or (m, r), as vectors of the space."""
        if self.basis is not None:
            return np.asarray(self.basis @ vectors)
        if self.columns is None:
            return vectors
        lifted = np.zeros((self.n_features, *vectors.shape[1:]))
        lifted[self.columns] = vectors
        return lifted

    def lift_form(self, form: Form) -> Form:
        """Return a form on the part as one on the space."""
        if self.basis is not None:
            return Form.from_directions(self.basis @ form.directions, form.strengths)
        return form if self.columns is None else form.lift(self.columns, self.n_features)


def workspace_for(problem: Problem, n_entries: int) -> Workspace:
    """Return an empty workspace for a problem.

    Parameters
    ----------
    problem : Problem
    n_entries : int
        The number of nonzero entries of a sparse answer; 0 where it is dense.
    """
    d = problem.objective.n_features
    if d < TUNING.fewest_for_parts and (n_entries or problem.objective.removed is None):
        return Everything(problem)
    if n_entries:
        # With more than half the features in it a part saves little.
        return Columns(problem, min(max(n_entries, TUNING.fewest_columns), (d + 1) // 2))
    return Basis(problem)


class Everything:
    """All of the features of a problem.

    Parameters
    ----------
    problem : Problem
    part : Part, optional
        Where these lie among more; by default they are all there are.
    """

    def __init__(self, problem: Problem, part: Part | None = None) -> None:
        objective = problem.objective
        self.part = Part(objective.n_features) if part is None else part
        self._objective = replace(objective, samples=objective.samples.at_hand())
        self.objective = _spreading(self._objective, problem)
        self.n_noise = problem.n_ambient

    def survey(self, weights: Array) -> Survey:
        """Return the value at some weights."""
        return Survey(self._objective.verify(weights))

    def misses(self, weights: Array) -> bool:
        """Return False: there is nothing outside."""
        return False

    def widen(self, weights: Array) -> None:
        """Do nothing."""


class Columns:
    r"""The features that carry the evidence of an entrywise norm.

    Those of the norm's maximiser, those with most energy in its rows, and every feature whose
    energy there exceeds what noise gives to any of the d features once in twenty samples. For m
    rows that is 1/n times the quantile of :math:`\chi^2_m` at 1 - 0.05/d; a square on the diagonal
    has kurtosis - 1 times the variance of one off it, and counts so much less.

    Parameters
    ----------
    problem : Problem
    asked : int
        Features that a first survey names, besides the rows of the maximiser.
    """

    def __init__(self, problem: Problem, asked: int) -> None:
        self.coordinates: Indices = np.empty(0, dtype=np.intp)
        self._problem = problem
        self._asked = asked
        self._survey: Survey | None = None

    @property
    def n_noise(self) -> int:
        """The number of features in it."""
        return int(self.coordinates.size)

    def survey(self, weights: Array) -> Survey:
        """Return the value over all features, and the features that carry it."""
        self._survey = self._problem.objective.survey(weights, self._asked)
        return self._survey

    def misses(self, weights: Array) -> bool:
        """Tell whether a feature outside shows clear evidence."""
        clear = self._evident(weights, TUNING.clear_evidence)
        return not np.isin(clear, self.coordinates).all()

    def widen(self, weights: Array) -> None:
        """Take in what the last survey named, and every feature that shows evidence."""
        assert self._survey is not None
        assert self._survey.coordinates is not None
        d = self._problem.objective.n_features
        self.coordinates = np.union1d(self.coordinates, self._survey.coordinates)
        evident = self._evident(weights, 1.0)
        if 2 * evident.size <= d:
            self.coordinates = np.union1d(self.coordinates, evident)
        else:
            # Where most features show evidence, any few of them will do, and then more and more.
            self._asked = min(2 * self._asked, d)
        self.part = Part(d, columns=self.coordinates)
        self.objective = self._problem.objective.restrict(self.coordinates)

    def _evident(self, weights: Array, factor: float) -> Indices:
        """Return the features of more energy than `factor` times what noise explains."""
        survey, problem = self._survey, self._problem
        assert survey is not None
        assert survey.energy is not None
        assert survey.own is not None
        energy = survey.energy + survey.own / (problem.kurtosis - 1.0)
        rare = _BY_CHANCE / energy.size
        explained = 2.0 * float(gammainccinv(survey.n_rows / 2.0, rare))
        return np.flatnonzero(energy > factor * explained / problem.n_effective(weights))


class Basis:
    """The directions in which the weighted rows vary more, or less, than clean ones do.

    The span of the leading eigenvectors of every survey so far. Eigenvectors are defined up to
    signs and, in ties, rotations; nothing here depends on more than the space they span, and that
    ends where eigenvalues have a gap. It was chosen where noise, too, is largest, so the level on
    it is that of all features. Directions that the objective takes out come first. Where evidence
    is in too many directions, it is all of the space.
    """

    def __init__(self, problem: Problem) -> None:
        self._objective = problem.objective
        self._problem = problem
        removed = problem.objective.removed
        self._removed = np.empty((problem.objective.n_features, 0)) if removed is None else removed
        self._basis: Array | None = self._removed
        self._projected = np.empty((problem.samples.n_samples, 0))
        self._matrix: MomentMatrix | None = None
        self.n_noise = problem.n_ambient

    def survey(self, weights: Array) -> Survey:
        """Return the value over all features, and remember its matrix."""
        self._matrix = self._objective.moment(weights)
        return Survey(self._objective.norm.maximize(self._matrix).value)

    def misses(self, weights: Array) -> bool:
        """Tell whether an eigenvector beyond the level lies more outside the span than in it."""
        if self._basis is None:
            return False
        found = self._leading(weights)
        if found is None:
            return True
        vectors, n_above = found
        lengths = _outside(self._basis, vectors[:, :n_above])[1]
        return bool(np.any(lengths**2 > 0.5))

    def widen(self, weights: Array) -> None:
        """Take in the leading eigenvectors of the last survey."""
        if self._basis is not None:
            found = self._leading(weights)
            if found is None:
                self._basis = None
            else:
                outside, lengths = _outside(self._basis, found[0])
                new = outside[:, lengths > TUNING.new_length]
                self._basis = np.hstack([self._basis, new])
                new = self._basis[:, self._projected.shape[1] :]
                self._projected = np.hstack([self._projected, self._objective.samples.project(new)])
                if self._basis.shape[1] > min(
                    self._objective.n_features // 2, 2 * _MOST_DIRECTIONS
                ):
                    self._basis = None
        restricted = self._objective
        self.part = Part(restricted.n_features, basis=self._basis)
        if self._basis is None:
            restricted = replace(restricted, samples=restricted.samples.at_hand())
        else:
            taken_out = np.eye(self._basis.shape[1])[:, : self._removed.shape[1]]
            restricted = replace(
                restricted,
                samples=DenseSamples(self._projected),
                removed=taken_out if taken_out.size else None,
            )
        self.objective = _spreading(restricted, self._problem)

    def _leading(self, weights: Array) -> tuple[Array, int] | None:
        """Return the leading eigenvectors of the last survey, and how many exceed the level.

        Beside those the next, or two, up to the wider gap; None where they would be too many.
        """
        assert self._matrix is not None
        level = self._problem.floor(weights).median
        most = min(self._objective.n_features // 3, _MOST_DIRECTIONS)
        count = min(most + 1, _PAIRS)
        while True:
            values, vectors = largest_eigenpairs(self._matrix, count, tol=0.0)
            sizes = np.abs(values)
            n_above = int(np.count_nonzero(sizes > level))
            if n_above + 2 < count or count > most:
                break
            count = min(2 * count, most + 1)
        # What is next to components decides how they turn: all that was computed stays low.
        kept = n_above if self._objective.removed is None else max(n_above, count - 3)
        first, last = kept + 1, min(kept + 2, count - 1)
        if first > last:
            return None
        gaps = sizes[first - 1 : last] - sizes[first : last + 1]
        return vectors[:, : first + int(np.argmax(gaps))], n_above


Workspace = Everything | Columns | Basis


def _spreading(objective: MomentObjective, problem: Problem) -> MomentObjective:
    """Let a spectral norm spread its subgradient over all directions above the clean level.

    A descent then does not zigzag between near ties.
    """
    if not isinstance(objective.norm, KyFan) or objective.norm.rank > 1:
        return objective
    return replace(objective, norm=KyFan(1, level=problem.floor(problem.untouched).median))


def _outside(basis: Array, vectors: Array) -> tuple[Array, Array]:
    """Return orthonormal directions of what lies outside a span, and the lengths it has there."""
    left = vectors - basis @ (basis.T @ vectors)
    # Once more: what is left of a vector close to the span is mostly rounding along it.
    left -= basis @ (basis.T @ left)
    directions, lengths, _ = np.linalg.svd(left, full_matrices=False)
    return directions, lengths


def coordinates(noise: Noise, task: Task) -> tuple[Part, Samples]:
    """Return coordinates for the problem that are no more than it needs.

    For dense components a basis of the span of the rows, where they are fewer than the columns; for
    sparse ones the columns of most energy, where there are too many for a matrix over all pairs.
    """
    samples, d = noise.samples, noise.samples.n_features
    if task.n_components and not task.is_sparse and d > samples.n_samples:
        held, basis = in_span(in_memory(samples), noise.sample_weight)
        return Part(d, basis=basis), held
    if task.n_components and task.is_sparse and d > _SCREEN_ABOVE:
        weights = noise.untouched
        if samples.n_samples <= _ENERGY_ROWS:
            energy = column_energy(in_memory(samples), weights)
        else:
            energy = samples.variances(weights)
        columns = np.sort(np.argsort(-energy, kind="stable")[:_SCREENED])
        return Part(d, columns=columns), samples.columns(columns)
    return Part(d), samples.at_hand() if task.n_components else samples
