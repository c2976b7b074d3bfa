"""One fit against the oracle: ratio of errors, verdict, cost."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np

from outweigh import RobustMean, RobustSparseMean
from outweigh.adversaries import Sample
from outweigh.norms.entrywise import hard_threshold

# What is declared of the rows: noise of deviation one, uncorrelated.
DECLARED = {"scale": None, "covariance": None}


def estimator(k: int | None, contamination: float | str, **options: Any) -> Any:
    """Return the mean of k nonzero entries, or the dense one for None."""
    if k is None:
        return RobustMean(contamination=contamination, **options)
    return RobustSparseMean(k, contamination=contamination, **options)


def oracle_error(sample: Sample, k: int | None) -> float:
    """Return the error of the mean of the clean rows, of its k largest entries where k is given."""
    mean = sample.X[sample.inliers].mean(axis=0)
    location = mean if k is None else hard_threshold(mean, k)
    return float(np.linalg.norm(location - sample.truth))


def measure(model: Any, sample: Sample, k: int | None) -> dict[str, Any]:
    """Fit a mean and return its error over the oracle's, its verdict, and what it cost."""
    facts = fitted(model, sample.X)
    error = float(np.linalg.norm(model.location_ - sample.truth))
    return {"ratio": error / oracle_error(sample, k), "error": error, **facts}


def fitted(model: Any, X: np.ndarray) -> dict[str, Any]:
    """Fit and return the verdict of the fit, the share it removed, and what it cost.

    Its warnings are kept silent: what they say is in the verdict.
    """
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X)
    return {
        "clean": bool(model.certificate_.clean),
        "verdict": model.certificate_.verdict,
        "removed": float(model.contamination_),
        "seconds": time.process_time() - start,
        "evaluations": int(model.n_iter_),
    }
