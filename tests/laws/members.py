"""The members that the laws range over; a new one is tested the day it is listed here."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import outweigh
from outweigh import objectives
from outweigh.estimators.base import RobustEstimator
from outweigh.norms import KyFan, LargestEntries, RowwiseLargest
from outweigh.objectives import MomentObjective
from outweigh.protocols import Norm, Samples
from tests.reference import norms as brute

Array = NDArray[np.float64]


@dataclass(frozen=True)
class NormCase:
    """A norm beside an independent computation of its value."""

    norm: Norm
    brute: Callable[[Array], float]


NORMS: dict[str, NormCase] = {
    "F,1,1": NormCase(RowwiseLargest(1), lambda A: brute.rowwise_largest(A, 1)),
    "F,2,2": NormCase(RowwiseLargest(2), lambda A: brute.rowwise_largest(A, 2)),
    "F,9,9": NormCase(RowwiseLargest(9), lambda A: brute.rowwise_largest(A, 9)),
    "F,1": NormCase(LargestEntries(1), lambda A: brute.largest_entries(A, 1)),
    "F,3": NormCase(LargestEntries(3), lambda A: brute.largest_entries(A, 3)),
    "F,99": NormCase(LargestEntries(99), lambda A: brute.largest_entries(A, 99)),
    "spectral": NormCase(KyFan(1), lambda A: brute.ky_fan(A, 1)),
    "Ky Fan 2": NormCase(KyFan(2), lambda A: brute.ky_fan(A, 2)),
    "Ky Fan 9": NormCase(KyFan(9), lambda A: brute.ky_fan(A, 9)),
}

OBJECTIVES: dict[str, Callable[[Samples], MomentObjective]] = {
    "sparse_mean": lambda samples: objectives.sparse_mean(samples, 2),
    "mean": objectives.mean,
    "sparse_pca": lambda samples: objectives.sparse_pca(samples, 2),
    "pca": objectives.pca,
}

ESTIMATORS: dict[str, type[RobustEstimator]] = {
    name: member
    for name in outweigh.__all__
    if inspect.isclass(member := getattr(outweigh, name)) and issubclass(member, RobustEstimator)
}
MEANS = {name: cls for name, cls in ESTIMATORS.items() if hasattr(cls(), "_read_out")}
