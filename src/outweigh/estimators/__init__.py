"""The estimators, in scikit-learn's manner."""

from outweigh.estimators.contamination import ContaminationSearch
from outweigh.estimators.mean import RobustMean, RobustSparseMean

__all__ = ["ContaminationSearch", "RobustMean", "RobustSparseMean"]
