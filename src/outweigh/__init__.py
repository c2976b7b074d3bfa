"""Statistics on data you cannot trust: robust means and principal components by reweighting."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from outweigh.libraries import version_of

if TYPE_CHECKING:
    from outweigh.estimators import (
        ContaminationSearch,
        RobustMean,
        RobustPCA,
        RobustSparseMean,
        RobustSparsePCA,
    )
    from outweigh.files.model import load_model, save_model
    from outweigh.research.stability import Stability, stability

__version__ = version_of("outweigh")

__all__ = [
    "ContaminationSearch",
    "RobustMean",
    "RobustPCA",
    "RobustSparseMean",
    "RobustSparsePCA",
    "Stability",
    "__version__",
    "load_model",
    "save_model",
    "stability",
]


def __getattr__(name: str) -> Any:
    """Load the estimators and their files, and scikit-learn, when the first is asked for.

    The command line answers with help or an error at once because of it.
    """
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = "estimators"
    if name.endswith("_model"):
        home = "files.model"
    elif name.lower() == "stability":
        home = "research.stability"
    return getattr(import_module(f"outweigh.{home}"), name)


def __dir__() -> list[str]:
    """Return the names above, loaded or not, and the rest."""
    return sorted({*globals(), *__all__})
