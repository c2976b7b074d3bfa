"""Means from weights that make a function of the weighted sample small, by projected descent."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from outweigh.baselines.base import CentredMean, Found
from outweigh.optimise.capped_simplex import CappedSimplex
from outweigh.protocols import Array

Objective = Callable[[Array], tuple[float, Array]]
"""Takes weights to a value and its gradient."""


class WeightDescent(CentredMean):
    """Template: the mean under the weights at which ``_objective`` is small.

    The weights sum to one and are at most 1 / ((1 - contamination) n).
    """

    contamination: float = 0.1
    max_iter: int = 100
    tol: float = 1e-3

    def _objective(self, Z: Array, n_nonzero: int) -> Objective:
        """Return the function to lower; ``Z`` holds the rows less the median of each feature."""
        raise NotImplementedError

    def _find(self, Z: Array, n_nonzero: int) -> Found:
        weights, n_iter = descend(
            self._objective(Z, n_nonzero),
            CappedSimplex.from_contamination(len(Z), self.contamination),
            np.full(len(Z), 1.0 / len(Z)),
            max_iter=self.max_iter,
            tol=self.tol,
        )
        return Found(weights @ Z, weights=weights, n_iter=n_iter)


def descend(
    objective: Objective,
    domain: CappedSimplex,
    weights: Array,
    *,
    max_iter: int,
    tol: float,
) -> tuple[Array, int]:
    """Lower a function of weights by projected steps of adaptive length.

    Steps go along the normalised negative gradient; the length doubles after a success and
    falls to a quarter after a failure. Ends after ``max_iter`` evaluations, when three successes
    in a row gain less than ``tol`` of the value, or when steps have become negligible.

    Parameters
    ----------
    objective : callable
        Takes weights to a value and its gradient.
    domain : CappedSimplex
    weights : ndarray of shape (n,)
        Where to begin.
    max_iter : int
    tol : float

    Returns
    -------
    weights : ndarray of shape (n,)
    n_evaluations : int

    Examples
    --------
    >>> domain = CappedSimplex.from_contamination(4, 0.25)
    >>> cost = np.array([0.0, 0.0, 0.0, 1.0])
    >>> descend(lambda w: (cost @ w, cost), domain, np.full(4, 0.25), max_iter=20, tol=0.01)[0][3]
    np.float64(0.0)
    """
    value, gradient = objective(weights)
    length = shortest = 1.0 / np.sqrt(weights.size)
    shortest *= 1e-4
    small_gains = 0
    n_evaluations = 1
    while n_evaluations < max_iter and small_gains < 3 and length > shortest:
        centred = gradient - gradient.mean()
        size = np.linalg.norm(centred)
        if size == 0.0:
            break
        candidate = domain.project(weights - (length / size) * centred)
        new_value, new_gradient = objective(candidate)
        n_evaluations += 1
        if new_value < value:
            small_gains = small_gains + 1 if value - new_value < tol * value else 0
            weights, value, gradient = candidate, new_value, new_gradient
            length *= 2.0
        else:
            length *= 0.25
    return weights, n_evaluations
