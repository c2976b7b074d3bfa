"""Libraries that are loaded where they are first needed, and the versions of those installed."""

from __future__ import annotations

import functools
import platform
from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from types import MappingProxyType
from typing import Any

_EXTRAS = {
    "cvxpy": "sdp",
    "dask": "dask,io",
    "distributed": "dask,io",
    "fsspec": "dask,io",
    "h5py": "storage",
    "matplotlib": "plot",
    "pandas": "io",
    "pyarrow": "io",
    "zarr": "storage",
}
"""The extra of pyproject.toml that brings each optional library."""


class MissingLibrary(ImportError):  # noqa: N818
    """A library that is not installed; the message says what needs it and how to get it."""


def library(module: str, needed_by: str) -> Any:
    """Import a module when it is needed.

    Parameters
    ----------
    module : str
        Its full name.
    needed_by : str
        The beginning of a sentence that ends with the name of the library.

    Raises
    ------
    MissingLibrary
        If it cannot be imported.

    Examples
    --------
    >>> library("math", "roots need").sqrt(4.0)
    2.0
    >>> library("no_such_library.parts", "nothing needs")
    Traceback (most recent call last):
        ...
    outweigh.libraries.MissingLibrary: nothing needs no_such_library: pip install no_such_library
    """
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        wanted = f"'outweigh[{_EXTRAS[package]}]'" if package in _EXTRAS else package
        raise MissingLibrary(f"{needed_by} {package}: pip install {wanted}") from error


def version_of(package: str) -> str:
    """Return the version of a package; "0+unknown" for a source tree that was never installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "0+unknown"


@functools.cache
def versions() -> Mapping[str, str]:
    """Return the versions that a result may depend on.

    Examples
    --------
    >>> sorted(versions())
    ['numpy', 'outweigh', 'python', 'scikit-learn', 'scipy']
    """
    names = ("outweigh", "numpy", "scipy", "scikit-learn")
    found = {name: version_of(name) for name in names}
    return MappingProxyType({"python": platform.python_version(), **found})
