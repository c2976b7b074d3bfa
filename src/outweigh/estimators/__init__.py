"""The estimators, in scikit-learn's manner."""

from outweigh.estimators.contamination import ContaminationSearch
from outweigh.estimators.mean import RobustMean, RobustSparseMean
from outweigh.estimators.pca import RobustPCA, RobustSparsePCA

__all__ = [
    "ContaminationSearch",
    "RobustMean",
    "RobustPCA",
    "RobustSparseMean",
    "RobustSparsePCA",
]
