"""The authors' public Sparse GD, where a checkout of it is at hand; nothing of it is kept here."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np


def load_authors(path: str) -> Callable[[np.ndarray, int, float], Any]:
    """Return a function that runs the authors' Sparse GD on rows, sparsity and contamination."""
    folder = Path(path)
    if not folder.is_dir():
        raise SystemExit(f"--authors: {path} is not a folder")
    sys.path.insert(0, str(folder))
    module = importlib.import_module("gradient_descent")
    return module.run
