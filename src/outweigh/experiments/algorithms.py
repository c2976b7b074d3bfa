"""The algorithms that experiments compare, by name: how each is built and how it is drawn.

Every algorithm is told the contamination and the number of nonzero entries if it has a use for
them, except those whose name ends in ``_auto``, which have to find the contamination themselves.
Only the oracles see which rows are genuine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from outweigh.baselines import (
    CoordinatewiseMedian,
    EmpiricalMean,
    EmpiricalPCA,
    EmpiricalSparsePCA,
    FilterMean,
    FilterPCA,
    FilterSparseMean,
    FilterSparsePCA,
    GeometricMedian,
    GradientDescentMean,
    IterativeTrimmedHardThresholding,
    MinCovDetMean,
    MultiplicativeWeightsMean,
    NaivePruning,
    OracleMean,
    OraclePCA,
    RansacMean,
    SdpMean,
    TrimmedMean,
)
from outweigh.baselines.plain import SparseGradientDescent
from outweigh.estimators.mean import RobustMean, RobustSparseMean
from outweigh.estimators.pca import RobustPCA, RobustSparsePCA

# The palette of Okabe and Ito, which people with any colour vision can tell apart.
BLACK, GREY = "#000000", "#777777"
BLUE, SKY, GREEN = "#0072B2", "#56B4E9", "#009E73"
ORANGE, VERMILLION, PURPLE = "#E69F00", "#D55E00", "#CC79A7"
YELLOW = "#F0E442"

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


def _our_mean(**options: Any) -> Build:
    """Build our estimator of a mean: the sparse one if there is a sparsity, else the dense one."""

    def build(n_nonzero: int | None, contamination: float, random_state: int) -> Any:
        settings = {"contamination": contamination, "random_state": random_state, **options}
        if n_nonzero is None:
            return RobustMean(**settings)
        return RobustSparseMean(n_nonzero=n_nonzero, **settings)

    return build


def _our_pca(**options: Any) -> Build:
    """Build our estimator of a component: sparse if there is a sparsity, else dense."""

    def build(n_nonzero: int | None, contamination: float, random_state: int) -> Any:
        settings = {"contamination": contamination, "random_state": random_state, **options}
        if n_nonzero is None:
            return RobustPCA(assume_centered=True, **settings)
        return RobustSparsePCA(n_nonzero=n_nonzero, assume_centered=True, **settings)

    return build


_K, _EPS, _SEED = "n_nonzero", "contamination", "random_state"


def _mean(name: str, label: str, build: Build, colour: str, marker: str, **more: Any) -> Algorithm:
    return Algorithm(name, label, "mean", build, colour, marker, **more)


def _components(
    name: str, label: str, build: Build, colour: str, marker: str, **more: Any
) -> Algorithm:
    return Algorithm(name, label, "components", build, colour, marker, **more)


_REGISTERED = (
    _mean("oracle", "oracle", _uses(OracleMean, _K), BLACK, "None", line="--", needs_inliers=True),
    _mean("outweigh", "outweigh", _our_mean(), BLUE, "o", ours=True),
    _mean(
        "outweigh_auto",
        "outweigh, ε unknown",
        _our_mean(contamination="auto"),
        SKY,
        ".",
        line=":",
        ours=True,
    ),
    _mean(
        "outweigh_paper",
        "plain algorithm of the paper",
        _uses(SparseGradientDescent, _K, _EPS),
        SKY,
        "d",
        line="-.",
        ours=True,
    ),
    _mean(
        "filter_sparse", "sparse filter (RME_sp)", _uses(FilterSparseMean, _K, _EPS), ORANGE, "s"
    ),
    _mean("filter", "dense filter", _uses(FilterMean, _K, _EPS), ORANGE, "D"),
    _mean(
        "trimmed_thresholding",
        "trimmed thresholding",
        _uses(IterativeTrimmedHardThresholding, _K, _EPS),
        VERMILLION,
        "P",
    ),
    _mean("naive_pruning", "naive pruning", _uses(NaivePruning, _K), GREEN, "^"),
    _mean("ransac", "RANSAC", _uses(RansacMean, _K, _SEED), PURPLE, "v"),
    _mean(
        "gradient_descent",
        "dense gradient descent",
        _uses(GradientDescentMean, _K, _EPS),
        VERMILLION,
        "X",
    ),
    _mean(
        "multiplicative_weights",
        "multiplicative weights",
        _uses(MultiplicativeWeightsMean, _K, _EPS),
        GREEN,
        "*",
    ),
    _mean(
        "sdp",
        "semidefinite program",
        _uses(SdpMean, _K, _EPS),
        VERMILLION,
        "h",
        max_features=60,
        extra="sdp",
    ),
    _mean("min_cov_det", "MinCovDet", _uses(MinCovDetMean, _K, _SEED), PURPLE, "p"),
    _mean("geometric_median", "geometric median", _uses(GeometricMedian, _K), PURPLE, "<"),
    _mean("median", "coordinatewise median", _uses(CoordinatewiseMedian, _K), YELLOW, ">"),
    _mean("trimmed", "trimmed mean", _uses(TrimmedMean, _K, _EPS), PURPLE, "d"),
    _mean("empirical", "empirical mean", _uses(EmpiricalMean, _K), GREY, "x"),
    _components(
        "pca_oracle",
        "oracle",
        _uses(OraclePCA, _K, assume_centered=True),
        BLACK,
        "None",
        line="--",
        needs_inliers=True,
    ),
    _components("outweigh_pca", "outweigh", _our_pca(), BLUE, "o", ours=True),
    _components(
        "outweigh_pca_auto",
        "outweigh, ε unknown",
        _our_pca(contamination="auto"),
        SKY,
        ".",
        line=":",
        ours=True,
    ),
    _components(
        "pca_filter_sparse",
        "sparse PCA filter (RSPCA)",
        _uses(FilterSparsePCA, _K, _EPS, assume_centered=True),
        ORANGE,
        "s",
    ),
    _components(
        "pca_filter", "dense PCA filter", _uses(FilterPCA, _K, assume_centered=True), GREEN, "D"
    ),
    _components(
        "pca_empirical_sparse",
        "SparsePCA (scikit-learn)",
        _uses(EmpiricalSparsePCA, _K, _SEED),
        PURPLE,
        "v",
    ),
    _components("pca_empirical", "PCA", _uses(EmpiricalPCA, _K), GREY, "x"),
)

ALGORITHMS: Mapping[str, Algorithm] = MappingProxyType(
    {algorithm.name: algorithm for algorithm in _REGISTERED}
)
