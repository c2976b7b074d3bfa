"""Statistics on data you cannot trust: robust means and principal components by reweighting."""

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from outweigh.research.stability import Stability, stability

if TYPE_CHECKING:
    from outweigh.estimators import (
        ContaminationSearch,
        RobustMean,
        RobustPCA,
        RobustSparseMean,
        RobustSparsePCA,
    )

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


def __getattr__(name: str) -> Any:
    """Load the estimators, and scikit-learn with them, when the first is asked for.

    The command line answers with help or an error at once because of it.
    """
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("outweigh.estimators"), name)


def __dir__() -> list[str]:
    """Return the names above, loaded or not, and the rest."""
    return sorted({*globals(), *__all__})
