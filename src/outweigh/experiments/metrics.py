"""How far an estimate is from the truth."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from scipy.linalg import orth

from outweigh.protocols import Array


@dataclass(frozen=True)
class Metric:
    """An error: what it measures, how it is computed and how an axis calls it.

    Attributes
    ----------
    name : str
    task : {"mean", "components"}
    label : str
        Text for an axis.
    distance : callable
        ``distance(estimate, truth)`` -> float.
    """

    name: str
    task: str
    label: str
    distance: Callable[[Array, Array], float]


def l2(estimate: Array, truth: Array) -> float:
    """Euclidean distance of two vectors.

    Examples
    --------
    >>> l2(np.array([3.0, 0.0]), np.array([0.0, 4.0]))
    5.0
    """
    return float(np.linalg.norm(estimate - truth))


def largest_entry(estimate: Array, truth: Array) -> float:
    """Largest error of an entry.

    Examples
    --------
    >>> largest_entry(np.array([3.0, 0.0]), np.array([0.0, 4.0]))
    4.0
    """
    return float(np.max(np.abs(estimate - truth)))


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


METRICS: Mapping[str, Metric] = MappingProxyType(
    {
        metric.name: metric
        for metric in (
            Metric("l2", "mean", r"Error $\|\hat{\mu} - \mu\|_2$", l2),
            Metric("largest_entry", "mean", r"Error $\|\hat{\mu} - \mu\|_\infty$", largest_entry),
            Metric("projector", "components", r"Error $\|\hat{u}\hat{u}^T - vv^T\|_F$", projector),
        )
    }
)
DEFAULT_METRIC: Mapping[str, str] = MappingProxyType({"mean": "l2", "components": "projector"})
