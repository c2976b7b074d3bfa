"""Statistics on data you cannot trust: robust means and principal components by reweighting."""

from importlib.metadata import PackageNotFoundError, version

from outweigh.estimators import (
    ContaminationSearch,
    RobustMean,
    RobustPCA,
    RobustSparseMean,
    RobustSparsePCA,
)
from outweigh.stability import Stability, stability

try:
    __version__ = version("outweigh")
except PackageNotFoundError:  # a source tree that was never installed
    __version__ = "0+unknown"

__all__ = [
    "ContaminationSearch",
    "RobustMean",
    "RobustPCA",
    "RobustSparseMean",
    "RobustSparsePCA",
    "Stability",
    "__version__",
    "stability",
]
