"""The projection on the capped simplex by bisection on its one multiplier."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def project(v: Array, caps: Array) -> Array:
    """Return the nearest w with 0 <= w <= caps and sum 1."""
    low, high = float(np.min(v - caps)) - 1.0, float(np.max(v)) + 1.0
    for _ in range(200):
        middle = (low + high) / 2.0
        if np.clip(v - middle, 0.0, caps).sum() > 1.0:
            low = middle
        else:
            high = middle
    return np.clip(v - (low + high) / 2.0, 0.0, caps)
