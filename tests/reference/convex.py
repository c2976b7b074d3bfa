"""Minima of convex functions of the weights, each by a method of its own."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog, minimize_scalar

Array = NDArray[np.float64]


def cutting_plane_minimum(
    value_and_slope: Callable[[Array], tuple[float, Array]],
    caps: Array,
    *,
    gap: float,
    max_planes: int = 600,
) -> float:
    """Return the minimum of a convex function over the capped simplex to within `gap`.

    Kelley's method: the linear program over all planes bounds the minimum from below, the best
    value seen bounds it from above.
    """
    n = caps.size
    w = caps / caps.sum()
    slopes: list[Array] = []
    offsets: list[float] = []
    best = np.inf
    for _ in range(max_planes):
        value, slope = value_and_slope(w)
        best = min(best, value)
        slopes.append(slope)
        offsets.append(value - float(slope @ w))
        planes = np.hstack([np.array(slopes), -np.ones((len(slopes), 1))])
        found = linprog(
            np.append(np.zeros(n), 1.0),
            A_ub=planes,
            b_ub=-np.array(offsets),
            A_eq=np.append(np.ones(n), 0.0)[None, :],
            b_eq=[1.0],
            bounds=[*((0.0, c) for c in caps), (None, None)],
        )
        if best - found.fun <= gap:
            return float(best)
        w = found.x[:n]
    raise AssertionError(f"gap {best - found.fun:.2g} left after {max_planes} planes")


def minimum_on_triangle(function: Callable[[Array], float], caps: Array) -> Array:
    """Return the minimiser of a strictly convex function of three capped weights, by nesting."""

    def point(first: float, second: float) -> Array:
        return np.array([first, second, 1.0 - first - second])

    def best_second(first: float) -> float:
        low = max(0.0, 1.0 - first - caps[2])
        high = min(caps[1], 1.0 - first)
        if high <= low:
            return low
        found = minimize_scalar(
            lambda second: function(point(first, second)),
            bounds=(low, high),
            method="bounded",
            options={"xatol": 1e-11},
        )
        return float(found.x)

    low, high = max(0.0, 1.0 - caps[1] - caps[2]), min(caps[0], 1.0)
    outer = minimize_scalar(
        lambda first: function(point(first, best_second(first))),
        bounds=(low, high),
        method="bounded",
        options={"xatol": 1e-11},
    )
    return point(float(outer.x), best_second(float(outer.x)))
