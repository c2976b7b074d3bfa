"""How many entries of a mean stand out from their noise."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from outweigh.estimators.preparation import Prepared
from outweigh.estimators.start import ROWS_FOR_ORIGIN
from outweigh.estimators.weighting import Found
from outweigh.protocols import Array

__all__ = ["count_in", "count_significant", "first_count"]


def first_count(prepared: Prepared, sample_weight: Array, earlier: Found | None) -> int:
    """Return how many entries seem to be nonzero before weights are sought."""
    if earlier is not None:
        return max(1, count_in(earlier))
    # The centre before any weights is read off a sample.
    n_effective = min(float(sample_weight.sum()), float(ROWS_FOR_ORIGIN))
    rough = prepared.centre / prepared.standardizer.scale
    return max(1, min(count_significant(rough, n_effective), rough.size // 4))


def count_in(found: Found) -> int:
    """Return how many entries of a weighted mean are significant."""
    mean = found.centre / found.prepared.standardizer.scale
    return count_significant(mean, found.n_effective)


def count_significant(z: Array, n_effective: float) -> int:
    """Return how many entries exceed the largest of as many Gaussians N(0, 1/n) at level 0.05."""
    if z.size == 0:
        return 0
    threshold = -float(ndtri(0.05 / (2.0 * z.size))) / np.sqrt(n_effective)
    return int(np.count_nonzero(np.abs(z) > threshold))
