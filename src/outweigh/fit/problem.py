"""What a search minimises, over which weights, and the only definition of clean."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from outweigh.fit.law import GAUSSIAN, Law
from outweigh.norms.floor import NoiseFloor, noise_floor
from outweigh.objectives import MomentObjective
from outweigh.optimise.capped_simplex import CappedSimplex
from outweigh.protocols import Array, Indices, Norm, Samples


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """Samples in units of the noise, the objective on them, and the level that clean rows reach.

    Attributes
    ----------
    objective : MomentObjective
        Over samples that hold zeros in the pruned rows.
    sample_weight : ndarray of shape (n,)
        Positive; a whole number counts as that many copies of the row.
    pruned : ndarray of int
        Rows too far out to be clean: no weights may use them.
    kurtosis : float
        Of a typical feature, for the level of clean rows.
    n_ambient : int
        The number of features whose noise there is: that of the data, where the samples are in
        coordinates of a span.
    law : callable
        From weights to the law of a typical feature under them.
    """

    objective: MomentObjective
    sample_weight: Array
    pruned: Indices
    kurtosis: float
    n_ambient: int
    law: Callable[[Array], Law] = lambda weights: GAUSSIAN

    @property
    def samples(self) -> Samples:
        """The rows in units of the noise, zeros in the pruned ones."""
        return self.objective.samples

    def domain(self, bound: float) -> CappedSimplex:
        """Return the weights that remove at most the share `bound`."""
        # The bound may equal the pruned share to the last digit; D must not be empty by rounding.
        bound = self.in_whole_rows(bound) + 1e-12 * (self.pruned.size > 0)
        return CappedSimplex.from_contamination(self.sample_weight, bound).pruned(self.pruned)

    def in_whole_rows(self, bound: float) -> float:
        """Return a bound, or the share of the pruned rows where that is more by a part of a row."""
        return max(bound, float(self.sample_weight[self.pruned].sum() / self.sample_weight.sum()))

    @property
    def untouched(self) -> Array:
        """The weights before any evidence: in proportion to the sample weights, pruned rows 0."""
        weights = self.sample_weight.copy()
        weights[self.pruned] = 0.0
        return np.asarray(weights / weights.sum())

    def n_effective(self, weights: Array) -> float:
        """Return 1 / sum(w_i^2 / s_i): how many rows of equal weight are as good as these."""
        return 1.0 / float(np.sum(weights**2 / self.sample_weight))

    def floor(
        self, weights: Array, norm: Norm | None = None, n_features: int | None = None
    ) -> NoiseFloor:
        """Return what clean rows score under a norm, for as many rows as `weights` amount to.

        By default under the norm of the objective, on all features.
        """
        norm = self.objective.norm if norm is None else norm
        d = self.n_ambient if n_features is None else n_features
        return noise_floor(norm, self.n_effective(weights), d, self.kurtosis)

    def is_clean(self, value: float, weights: Array) -> bool:
        """Tell whether a value of the objective on all features is one that clean rows have.

        Clean is what 99 in 100 samples of clean rows do not exceed, or 1.05 times their median:
        `NoiseFloor.clean`. The search ends there, and the certificate says so, by this alone.
        """
        return value <= self.floor(weights).clean

    def removed(self, weights: Array) -> float:
        """Return the share of the sample weight that `weights` remove; 0 but for rounding."""
        reference = self.sample_weight / self.sample_weight.sum()
        share = 0.5 * float(np.abs(weights - reference).sum())
        return share if share > 1e-12 else 0.0

    def least_bound(self, weights: Array) -> float:
        r"""Return the least share that could have been removed to reach `weights`.

        The :math:`\\epsilon` for which the largest :math:`w_i / s_i` is at its cap,
        :math:`1 / ((1 - \\epsilon) \\sum s)`.
        """
        largest = float(np.max(weights / self.sample_weight))
        return max(1.0 - 1.0 / (largest * float(self.sample_weight.sum())), 0.0)

    def with_objective(self, objective: MomentObjective) -> Problem:
        """Return the same rows under another objective."""
        return replace(self, objective=objective)


def typical_kurtosis(samples: Samples, weights: Array) -> float:
    """Return the kurtosis of a typical column in steps of a half, between 1.5 and 50.

    Finer differences are noise, and equal requests share one noise floor.
    """
    kurtosis = round(2.0 * samples.typical_kurtosis(weights)) / 2.0
    return float(np.clip(kurtosis, 1.5, 50.0))
