"""How a weight vector moves against a subgradient: Euclidean or entropic geometry."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from outweigh.optimise.capped_simplex import CappedSimplex
from outweigh.protocols import Array

__all__ = ["EntropicMirror", "ProjectedSubgradient", "Subgradient"]


@dataclass(frozen=True, slots=True, eq=False)
class ProjectedSubgradient:
    """The Euclidean update w <- P(w + step p), p the part of -g that does not leave the set.

    With p = -g it is the update of the paper's lemma on projected descent; taking out what the
    projection would undo leaves the same guarantee and allows a longer step. A row that stands for
    s samples moves s times as far, so that integer sample weights equal repeated rows.
    """

    domain: CappedSimplex

    def direction(self, weights: Array, subgradient: Array) -> tuple[Array, float]:
        """Return the feasible descent direction and its squared length."""
        metric = self.domain.metric
        moved = self.domain.project_tangent(weights, -metric * subgradient)
        counted = metric > 0
        return moved, float(np.sum(moved[counted] ** 2 / metric[counted]))

    def move(self, weights: Array, direction: Array, step: float) -> Array:
        """Return the next weights."""
        return self.domain.project(weights + step * direction)


@dataclass(frozen=True, slots=True, eq=False)
class Subgradient:
    """The update of the paper's lemma on projected descent, w <- P(w - step g), to the letter."""

    domain: CappedSimplex

    def direction(self, weights: Array, subgradient: Array) -> tuple[Array, float]:
        """Return -g, a row of weight s moving s times as far, and its squared length."""
        metric = self.domain.metric
        return -metric * subgradient, float(metric @ subgradient**2)

    def move(self, weights: Array, direction: Array, step: float) -> Array:
        """Return the next weights."""
        return self.domain.project(weights + step * direction)


@dataclass(frozen=True, slots=True, eq=False)
class EntropicMirror:
    """The multiplicative update w <- argmin KL(. | w exp(-step g)), exact for capped weights."""

    domain: CappedSimplex

    def direction(self, weights: Array, subgradient: Array) -> tuple[Array, float]:
        """Return the centred -g and its variance under the weights: the local dual norm."""
        centred = weights @ subgradient - subgradient
        return centred, float(weights @ (centred * centred))

    def move(self, weights: Array, direction: Array, step: float) -> Array:
        """Return the next weights."""
        with np.errstate(divide="ignore"):
            return self.domain.project_kl(np.log(weights) + step * direction)
