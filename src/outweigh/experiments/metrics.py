"""How far an estimate is from the truth."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
from scipy.linalg import orth

from outweigh.protocols import Array


def l2(estimate: Array, truth: Array) -> float:
    """Euclidean distance of two vectors.

    Examples
    --------
    >>> l2(np.array([3.0, 0.0]), np.array([0.0, 4.0]))
    5.0
    """
    return float(np.linalg.norm(estimate - truth))


def projector(estimate: Array, truth: Array) -> float:
    """Frobenius distance of the projections onto the spans of the rows, ||UU' - VV'||_F.

    For unit vectors u and v it is sqrt(2 (1 - (u'v)^2)): 0 when they agree up to sign, sqrt(2)
    when they are orthogonal.

    Examples
    --------
    >>> projector(np.array([[1.0, 0.0]]), np.array([[-1.0, 0.0]]))
    0.0
    >>> round(projector(np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])), 4)
    1.4142
    """
    found, true = orth(np.atleast_2d(estimate).T), orth(np.atleast_2d(truth).T)
    overlap = float(np.sum((found.T @ true) ** 2))
    return float(np.sqrt(max(0.0, found.shape[1] + true.shape[1] - 2.0 * overlap)))


ERRORS: Mapping[str, tuple[str, Callable[[Array, Array], float]]] = MappingProxyType(
    {
        "mean": (r"Error $\|\hat{\mu} - \mu\|_2$", l2),
        "components": (r"Error $\|\hat{u}\hat{u}^T - vv^T\|_F$", projector),
    }
)
"""For each task what an axis calls the error, and ``distance(estimate, truth)``."""
