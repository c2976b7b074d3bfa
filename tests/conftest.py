"""What every test shares: a hypothesis profile, an order by chance, and the kinds of samples."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import chain, groupby

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from numpy.typing import NDArray
from scipy.sparse import csr_array

from outweigh.protocols import Samples
from outweigh.samples import ChunkedSamples, DenseSamples, SparseSamples
from outweigh.samples.chunks import SlicedChunks

settings.register_profile(
    "deterministic",
    deadline=None,
    derandomize=True,
    max_examples=30,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("deterministic")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seed", type=int, help="run the tests in the random order of this seed")


def pytest_report_header(config: pytest.Config) -> str | None:
    seed = config.option.seed
    return None if seed is None else f"random order; again with: make test ARGS=--seed={seed}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Shuffle the files, and the tests in each: what a file sets up, it sets up once."""
    if config.option.seed is None:
        return
    rng = random.Random(config.option.seed)
    files = [list(group) for _, group in groupby(items, lambda item: item.path)]
    for tests in (files, *files):
        rng.shuffle(tests)
    items[:] = chain.from_iterable(files)


def chunked(X: NDArray[np.float64]) -> Samples:
    """Three uneven chunks, the last of one row."""
    n = X.shape[0]
    sizes = (n - 1 - n // 3, n // 3, 1) if n >= 4 else (n,)
    return ChunkedSamples(SlicedChunks.of(X, sizes=sizes), X.shape[1])


def chunked_without_room(X: NDArray[np.float64]) -> Samples:
    """Two chunks, where neither columns nor a matrix over all pairs may be gathered."""
    n = X.shape[0]
    return ChunkedSamples(SlicedChunks.of(X, 64, (n // 2, n - n // 2)), X.shape[1])


def sparse(X: NDArray[np.float64]) -> Samples:
    """A sparse matrix and a shift of all rows that add up to X."""
    shift = np.where(np.arange(X.shape[1]) % 2 == 0, 0.0, 1.5)
    return SparseSamples(csr_array(X + shift), shift)


SAMPLE_KINDS: dict[str, Callable[[NDArray[np.float64]], Samples]] = {
    "dense": DenseSamples,
    # No moment matrix is ever held.
    "no memory": lambda X: DenseSamples(X, memory_budget=0),
    "chunked": chunked,
    "sparse": sparse,
}
# Of interest where samples themselves are tested, and slow where a descent runs on them.
SLOW_KINDS = {"chunked without room": chunked_without_room}


@pytest.fixture(scope="session", params=list(SAMPLE_KINDS))
def samples_of(request: pytest.FixtureRequest) -> Callable[[NDArray[np.float64]], Samples]:
    """The way from an array to samples, one kind after the other."""
    return SAMPLE_KINDS[request.param]


@pytest.fixture(scope="session", params=[*SAMPLE_KINDS, *SLOW_KINDS])
def any_kind(request: pytest.FixtureRequest) -> Callable[[NDArray[np.float64]], Samples]:
    """The same, slow kinds included."""
    return {**SAMPLE_KINDS, **SLOW_KINDS}[request.param]
