"""The stability of clean samples: what it must exceed, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from outweigh import stability

X = np.random.default_rng(0).standard_normal((200, 6))
SPIKE = {"component": np.eye(6)[0], "spike": 1.0}


def test_no_weights_found_by_chance_exceed_the_bound() -> None:
    found = stability(X, problem="mean", contamination=0.1, mean=np.zeros(6))
    rng = np.random.default_rng(1)
    for _ in range(200):
        kept = rng.choice(200, 160, replace=False)
        assert np.linalg.norm(X[kept].mean(axis=0)) <= found.delta_lower_bound


@pytest.mark.parametrize("spike", [np.nan, np.inf, -1.0, "1"])
def test_a_spike_that_is_no_strength_is_refused(spike: object) -> None:
    with pytest.raises(ValueError, match="spike must be a finite number of at least 0; got"):
        stability(X, problem="pca", contamination=0.1, component=np.eye(6)[0], spike=spike)


@pytest.mark.parametrize("n_nonzero", [2.5, 3.0, 0, 7, True, "3", None])
def test_a_sparsity_that_is_no_count_is_refused(n_nonzero: object) -> None:
    with pytest.raises(ValueError, match="n_nonzero must be a whole number from 1 to 6"):
        stability(X, problem="sparse pca", contamination=0.1, n_nonzero=n_nonzero, **SPIKE)


@pytest.mark.parametrize("contamination", [0.0, 0.5, np.nan, "auto"])
def test_a_contamination_outside_the_definition_is_refused(contamination: object) -> None:
    with pytest.raises(ValueError, match="contamination must lie in"):
        stability(X, problem="pca", contamination=contamination, **SPIKE)


def test_a_missing_spike_is_named() -> None:
    with pytest.raises(ValueError, match="spike, the nonnegative strength rho, is needed"):
        stability(X, problem="pca", contamination=0.1, component=np.eye(6)[0])
