"""The algorithms that experiments compare, by name: how each is built and how it is drawn.

Every algorithm is told the contamination and the number of nonzero entries if it has a use for
them, except those whose name ends in ``-auto``, which have to find the contamination themselves.
Only the oracles see which rows are genuine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from outweigh.baselines.filters import FilterMean, FilterSparseMean
from outweigh.baselines.means import (
    CoordinatewiseMedian,
    EmpiricalMean,
    GeometricMedian,
    OracleMean,
    TrimmedMean,
)
from outweigh.baselines.pruning import NaivePruning, RansacMean

# The palette of Okabe and Ito, which people with any colour vision can tell apart.
BLACK, GREY = "#000000", "#777777"
BLUE, SKY, GREEN = "#0072B2", "#56B4E9", "#009E73"
ORANGE, VERMILLION, PURPLE = "#E69F00", "#D55E00", "#CC79A7"

Build = Callable[[int | None, float, int], Any]
"""``build(n_nonzero, contamination, random_state)`` -> an unfitted estimator."""


@dataclass(frozen=True)
class Algorithm:
    """An algorithm as experiments know it.

    Attributes
    ----------
    name : str
        What TOML files and records call it.
    label : str
        What figures and tables call it.
    task : {"mean", "components"}
    build : callable
        ``build(n_nonzero, contamination, random_state)`` -> an unfitted estimator.
    colour, marker : str
        How it is drawn, everywhere.
    line : str
        Style of its line.
    needs_inliers : bool
        Whether ``fit`` takes the mask of genuine rows: the oracles only.
    ours : bool
        Whether it is this library's own method.
    max_features : int or None
        The largest number of features it can take.
    extra : str or None
        The optional extra that it needs.
    """

    name: str
    label: str
    task: str
    build: Build
    colour: str
    marker: str
    line: str = "-"
    needs_inliers: bool = False
    ours: bool = False
    max_features: int | None = None
    extra: str | None = None


def _uses(estimator: Callable[..., Any], *arguments: str, **fixed: Any) -> Build:
    """Build an estimator from those of the three arguments that it takes."""

    def build(n_nonzero: int | None, contamination: float, random_state: int) -> Any:
        given = {
            "n_nonzero": n_nonzero,
            "contamination": contamination,
            "random_state": random_state,
        }
        return estimator(**{name: given[name] for name in arguments}, **fixed)

    return build


_K, _EPS, _SEED = "n_nonzero", "contamination", "random_state"

_MEANS = (
    Algorithm(
        "oracle",
        "oracle (knows the inliers)",
        "mean",
        _uses(OracleMean, _K),
        BLACK,
        "None",
        line="--",
        needs_inliers=True,
    ),
    Algorithm("rme-sp", "RME_sp (sparse filter)", "mean", _uses(FilterSparseMean, _K, _EPS), ORANGE, "s"),
    Algorithm("filter", "dense filter", "mean", _uses(FilterMean, _K, _EPS), ORANGE, "D"),
    Algorithm("naive-pruning", "naive pruning", "mean", _uses(NaivePruning, _K), GREEN, "^"),
    Algorithm("ransac", "RANSAC", "mean", _uses(RansacMean, _K, _SEED), PURPLE, "v"),
    Algorithm("empirical", "empirical mean", "mean", _uses(EmpiricalMean, _K), GREY, "x"),
    Algorithm("median", "coordinatewise median", "mean", _uses(CoordinatewiseMedian, _K), SKY, "P"),
    Algorithm("trimmed", "trimmed mean", "mean", _uses(TrimmedMean, _K, _EPS), SKY, "d"),
    Algorithm("geometric-median", "geometric median", "mean", _uses(GeometricMedian, _K), SKY, "h"),
)
_COMPONENTS: tuple[Algorithm, ...] = ()

ALGORITHMS: Mapping[str, Algorithm] = MappingProxyType(
    {algorithm.name: algorithm for algorithm in (*_MEANS, *_COMPONENTS)}
)
