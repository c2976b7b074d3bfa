"""What clean data scores, by drawing it and scoring it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def clean_scores(
    score: Callable[[Array], float], n: int, d: int, repetitions: int, seed: int
) -> Array:
    """Return score(S - I) for the covariances S of standard normal samples."""
    rng = np.random.default_rng(seed)
    scores = np.empty(repetitions)
    for i in range(repetitions):
        X = rng.standard_normal((n, d))
        X -= X.mean(axis=0)
        scores[i] = score(X.T @ X / n - np.eye(d))
    return scores
