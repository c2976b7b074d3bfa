"""The grammar of the library on one page.

Samples give moment matrices; a norm reads a moment matrix and answers with the form that attains
it; an objective turns that form into a value and a subgradient over the sample weights; a solver
takes steps in a set of weights and returns a result. Each room of the library implements one of
these and imports none of the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from outweigh.forms import Form

__all__ = [
    "Array",
    "Evaluation",
    "Indices",
    "Maximum",
    "MomentMatrix",
    "Norm",
    "Objective",
    "Samples",
    "Status",
    "StepRule",
    "Survey",
    "Update",
]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]


class Status(Enum):
    """How a descent ended."""

    REACHED = "clean level reached"
    STATIONARY = "stationary"
    STALLED = "stalled above the clean level"
    EXHAUSTED = "budget exhausted"


class MomentMatrix(Protocol):
    """A symmetric d x d matrix that may never exist as an array.

    It is read twice: as a whole, in `blocks`, which may be rounded, to find what matters; and what
    matters by `rows`, `restrict` and `product`, which are exact.
    """

    @property
    def n_features(self) -> int:
        """Its dimension d."""
        ...

    @property
    def rounding(self) -> float:
        """By how much an entry of `blocks` may be off; 0 where they are exact."""
        ...

    def blocks(self) -> Iterator[tuple[int, int, NDArray[np.floating]]]:
        """Yield (first row, first column, block) until every entry was seen.

        Either blocks of full rows, or tiles on and above the diagonal. A block that begins to the
        right of the diagonal stands for its mirror image too.
        """
        ...

    def rows(self, indices: Indices) -> Array:
        """Return the named full rows, shape (len(indices), d)."""
        ...

    def product(self, vectors: Array) -> Array:
        """Return A V for V of shape (d,) or (d, m)."""
        ...

    def restrict(self, indices: Indices) -> Array:
        """Return the block on the named coordinates, a new array."""
        ...

    def factor(self) -> tuple[Array, float] | None:
        """Return (Y, c) with A = Y'Y - c I and fewer rows in Y than features, if known."""
        ...


class Samples(Protocol):
    """The rows of X, seen only through reductions over them."""

    @property
    def n_samples(self) -> int:
        """Number of rows n."""
        ...

    @property
    def n_features(self) -> int:
        """Number of columns d."""
        ...

    def mean(self, weights: Array) -> Array:
        """Return mu_w = X'w, for one or several weights in shape (n,) or (m, n)."""
        ...

    def moment(self, weights: Array, *, centred: bool, reference: float = 0.0) -> MomentMatrix:
        """Return S_w - r I (centred) or M_w - r I, for weights of sum one."""
        ...

    def moment_rows(self, weights: Array, indices: Indices) -> Array:
        """Return the named rows of X'diag(w)X, a new array."""
        ...

    def moment_block(self, weights: Array, indices: Indices) -> Array:
        """Return the block of X'diag(w)X on the named coordinates, a new array."""
        ...

    def moment_product(self, weights: Array, vectors: Array) -> Array:
        """Return X'diag(w)X V."""
        ...

    def quadratic(self, form: Form, drift: Array | None = None) -> Array:
        """Return x_i'Zx_i - x_i'b for every row, shape (n,); b is zero unless given."""
        ...

    def project(self, vectors: Array) -> Array:
        """Return X V for V of shape (d,) or (d, m)."""
        ...

    def columns(self, indices: Indices) -> Samples:
        """Return the same rows seen on the named columns only."""
        ...

    def at_hand(self) -> Samples:
        """Return the same samples in memory if they fit, for a descent that reads them often."""
        ...

    def without(self, rows: Indices) -> Samples:
        """Return the samples with zeros in some rows, whose weights are zero from now on."""
        ...

    def squared_distances(self, centre: Array, near: tuple[float, Array] | None = None) -> Array:
        """Return |x_i - centre|^2 for every row.

        With a squared radius and weights in `near`, rows that are read in passes find in the same
        one the moments at these weights of the rows within that radius, so that asking for them
        next costs nothing. Those of rows in memory can wait.
        """
        ...

    def rescaled(self, factor: Array) -> Samples:
        """Return the same rows with every column divided by its factor."""
        ...

    def variances(self, weights: Array) -> Array:
        """Return the weighted variance of each column."""
        ...

    def typical_kurtosis(self, weights: Array) -> float:
        """Return the median over columns of the weighted kurtosis; 3 for Gaussian features."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Maximum:
    """A norm's value N(A) and a form Z of its dual ball that (nearly) attains it.

    ``attained`` is <Z, A>: equal to ``value`` for an exact maximiser, below it where a norm spreads
    Z over several nearly equal directions.
    """

    value: float
    form: Form
    attained: float


class Norm(Protocol):
    """A norm on symmetric matrices, as a support function N(A) = max <Z, A>."""

    def maximize(self, matrix: MomentMatrix) -> Maximum:
        """Return the value and a maximising form."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """An objective at one weight vector.

    The subgradient is x_i'Zx_i - x_i'b with Z the ``form`` and b the ``drift`` (zero when the
    second moments are not centred); ``attained`` is <Z, A>, see `Maximum`.
    """

    value: float
    subgradient: Array
    attained: float
    form: Form
    drift: Array


@dataclass(frozen=True, slots=True, eq=False)
class Survey:
    """A full pass over all pairs of features: the value, and where the evidence lies.

    ``coordinates`` are the features that carry it; None where it is not read off features.
    ``energy`` is the sum of squares that each feature has in ``n_rows`` rows of the matrix, off the
    diagonal, and ``own`` the square on it. None where the norm does not tell.
    """

    value: float
    coordinates: Indices | None = None
    energy: Array | None = None
    own: Array | None = None
    n_rows: int = 0


class Objective(Protocol):
    """A function of the sample weights."""

    def evaluate(self, weights: Array) -> Evaluation:
        """Return value, subgradient and the form behind it."""
        ...


class StepRule(Protocol):
    """Decides, after each evaluation, whether to accept it and how far to step next."""

    def decide(self, evaluation: Evaluation, gradient_norm_sq: float) -> tuple[float, bool]:
        """Return (step, accept): `accept` the point evaluated, or retry from the last one."""
        ...

    @property
    def finished(self) -> Status | None:
        """A status once the rule knows that no further step will help, else None."""
        ...


class Update(Protocol):
    """Moves a weight vector against a subgradient and back into the set."""

    def direction(self, weights: Array, subgradient: Array) -> tuple[Array, float]:
        """Return the direction of descent, and the squared length that steps are measured in."""
        ...

    def move(self, weights: Array, direction: Array, step: float) -> Array:
        """Return the next weights."""
        ...
