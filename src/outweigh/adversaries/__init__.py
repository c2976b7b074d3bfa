"""Contaminated data with known truth: adversaries against means and principal components.

An adversary is a function ``name(n_samples, n_features, n_nonzero, contamination, random_state)``
with keyword options of its own; it returns a :class:`Sample`. ``ADVERSARIES`` lists them by
name and :func:`make` calls one by name.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from types import MappingProxyType, ModuleType
from typing import Any

from outweigh.adversaries import means, spikes
from outweigh.adversaries.means import (
    bounded_covariance,
    constant_bias,
    doubled_mean,
    duplicates,
    far_outliers,
    heavy_tailed,
    hidden_at_zero,
    linear_hiding,
    mimic,
    multi_direction,
    subtractive,
    tail_flipping,
    tight_cluster,
    wrong_support,
)
from outweigh.adversaries.sample import INLIERS, Adversary, RandomState, Sample
from outweigh.adversaries.spikes import (
    dense_spike,
    spike_and_cluster,
    spiked_mixture,
    two_outlier_spikes,
)


def _defined_in(module: ModuleType) -> Mapping[str, Adversary]:
    """Return what `adversary` decorates in a module, by name, in its order."""
    return {name: value for name, value in vars(module).items() if hasattr(value, "__wrapped__")}


MEAN_ADVERSARIES = MappingProxyType(_defined_in(means))
SPIKE_ADVERSARIES = MappingProxyType(_defined_in(spikes))
ADVERSARIES: Mapping[str, Adversary] = MappingProxyType({**MEAN_ADVERSARIES, **SPIKE_ADVERSARIES})


def make(
    name: str,
    n_samples: int,
    n_features: int,
    n_nonzero: int,
    contamination: float,
    random_state: RandomState = None,
    **options: Any,
) -> Sample:
    """Draw a sample from the adversary called ``name``.

    Parameters
    ----------
    name : str
        One of the keys of ``ADVERSARIES``.
    n_samples, n_features, n_nonzero : int
        Rows, columns, and the number of features the truth uses.
    contamination : float in [0, 0.5)
        Fraction of rows the adversary may touch.
    random_state : int, numpy.random.Generator or None
        The only source of randomness.
    **options
        Keyword options of that adversary.

    Examples
    --------
    >>> make("constant_bias", 100, 20, 5, 0.1, random_state=0, bias=2.0).n_outliers
    10
    >>> make("constant_bais", 100, 20, 5, 0.1)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    ValueError: name must be one of linear_hiding, tail_flipping, ...; got 'constant_bais'
    """
    if name not in ADVERSARIES:
        raise ValueError(f"name must be one of {', '.join(ADVERSARIES)}; got {name!r}")
    adversary, allowed = ADVERSARIES[name], options_of(name)
    for option in options:
        if option not in allowed:
            raise ValueError(
                f"{name} has no option {option!r}; its options are {', '.join(allowed)}"
            )
    return adversary(n_samples, n_features, n_nonzero, contamination, random_state, **options)


def options_of(name: str) -> tuple[str, ...]:
    """Return the names of the keyword options of the adversary called ``name``.

    Examples
    --------
    >>> options_of("constant_bias")
    ('bias', 'inliers')
    """
    parameters = inspect.signature(ADVERSARIES[name]).parameters.values()
    return tuple(p.name for p in parameters if p.kind is p.KEYWORD_ONLY)


__all__ = [
    "ADVERSARIES",
    "INLIERS",
    "MEAN_ADVERSARIES",
    "SPIKE_ADVERSARIES",
    "Adversary",
    "RandomState",
    "Sample",
    "bounded_covariance",
    "constant_bias",
    "dense_spike",
    "doubled_mean",
    "duplicates",
    "far_outliers",
    "heavy_tailed",
    "hidden_at_zero",
    "linear_hiding",
    "make",
    "mimic",
    "multi_direction",
    "options_of",
    "spike_and_cluster",
    "spiked_mixture",
    "subtractive",
    "tail_flipping",
    "tight_cluster",
    "two_outlier_spikes",
    "wrong_support",
]
