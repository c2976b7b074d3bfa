"""What every test shares: a deterministic hypothesis profile and the kinds of samples."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from numpy.typing import NDArray

from outweigh.moments import DenseSamples
from outweigh.protocols import Samples

settings.register_profile(
    "deterministic",
    deadline=None,
    derandomize=True,
    max_examples=30,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("deterministic")

SAMPLE_KINDS: dict[str, Callable[[NDArray[np.float64]], Samples]] = {
    "dense": DenseSamples,
    # No moment matrix is ever held.
    "no memory": lambda X: DenseSamples(X, memory_budget=0),
}


@pytest.fixture(scope="session", params=list(SAMPLE_KINDS))
def samples_of(request: pytest.FixtureRequest) -> Callable[[NDArray[np.float64]], Samples]:
    """The way from an array to samples, one kind after the other."""
    return SAMPLE_KINDS[request.param]
