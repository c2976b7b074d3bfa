"""How a weight vector moves against a subgradient: Euclidean or entropic geometry."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from outweigh.protocols import Array, WeightSet

__all__ = ["EntropicMirror", "ProjectedSubgradient"]


@dataclass(frozen=True, slots=True, eq=False)
class ProjectedSubgradient:
    """The Euclidean update w <- P(w - step g) of the paper's Lemma on projected descent.

    A row that stands for s samples moves s times as far, so that integer sample weights equal
    repeated rows.
    """

    domain: WeightSet

    def __call__(self, weights: Array, subgradient: Array, step: float) -> Array:
        """Return the next weights."""
        return self.domain.project(weights - step * self.domain.metric * subgradient)

    def gradient_norm_sq(self, weights: Array, subgradient: Array) -> float:
        """Return |g|^2 with its mean removed: a constant shift does not move the weights."""
        metric = self.domain.metric
        centred = subgradient - metric @ subgradient / metric.sum()
        return float(metric @ (centred * centred))


@dataclass(frozen=True, slots=True, eq=False)
class EntropicMirror:
    """The multiplicative update w <- argmin KL(. | w exp(-step g)), exact for capped weights."""

    domain: WeightSet

    def __call__(self, weights: Array, subgradient: Array, step: float) -> Array:
        """Return the next weights."""
        with np.errstate(divide="ignore"):
            return self.domain.project_kl(np.log(weights) - step * subgradient)

    def gradient_norm_sq(self, weights: Array, subgradient: Array) -> float:
        """Return the variance of g under the weights: the dual norm of the local geometry."""
        centred = subgradient - weights @ subgradient
        return float(weights @ (centred * centred))
