"""What users would use instead, and every system the paper compares with.

Each is a scikit-learn estimator whose ``fit(X)`` sets ``location_`` or ``components_``; the two
oracles ask for the mask of the genuine rows, ``fit(X, inliers=mask)``. Each says what it assumes,
what its parameters mean and what it costs. ``MEAN_BASELINES`` and ``PCA_BASELINES`` list
them by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from outweigh.baselines.base import ComponentsBaseline, MeanBaseline
from outweigh.baselines.filters import FilterMean, FilterPCA, FilterSparseMean, FilterSparsePCA
from outweigh.baselines.means import (
    AgnosticMean,
    CoordinatewiseMedian,
    EmpiricalMean,
    GeometricMedian,
    IterativeTrimmedHardThresholding,
    MinCovDetMean,
    NaivePruning,
    OracleMean,
    RansacMean,
    TrimmedMean,
)
from outweigh.baselines.pca import (
    EmpiricalPCA,
    EmpiricalSparsePCA,
    OraclePCA,
    SphericalPCA,
    TylerPCA,
)
from outweigh.baselines.weights import (
    GradientDescentMean,
    MultiplicativeWeightsMean,
    QuantumEntropyMean,
    SdpMean,
)

MEAN_BASELINES: Mapping[str, type[MeanBaseline]] = MappingProxyType(MeanBaseline.named)
PCA_BASELINES: Mapping[str, type[ComponentsBaseline]] = MappingProxyType(ComponentsBaseline.named)

__all__ = [
    "MEAN_BASELINES",
    "PCA_BASELINES",
    "AgnosticMean",
    "CoordinatewiseMedian",
    "EmpiricalMean",
    "EmpiricalPCA",
    "EmpiricalSparsePCA",
    "FilterMean",
    "FilterPCA",
    "FilterSparseMean",
    "FilterSparsePCA",
    "GeometricMedian",
    "GradientDescentMean",
    "IterativeTrimmedHardThresholding",
    "MinCovDetMean",
    "MultiplicativeWeightsMean",
    "NaivePruning",
    "OracleMean",
    "OraclePCA",
    "QuantumEntropyMean",
    "RansacMean",
    "SdpMean",
    "SphericalPCA",
    "TrimmedMean",
    "TylerPCA",
]
