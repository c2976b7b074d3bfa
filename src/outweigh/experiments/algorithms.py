"""The algorithms that experiments compare, by name: how each is built and how it is drawn.

Every algorithm is told the contamination and the number of nonzero entries if it has a use for
them, except those whose name ends in ``_auto``, which have to find the contamination themselves.
Only the oracles see which rows are genuine.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from outweigh.baselines import MEAN_BASELINES, PCA_BASELINES
from outweigh.baselines.plain import PLAIN
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


def _build(
    sparse: Callable[..., Any], dense: Callable[..., Any] | None = None, **options: Any
) -> Build:
    """Tell an estimator what it has a use for; the dense one, if any, where no sparsity is known.

    The samples with components have mean zero, which whoever can make use of it is told as well.
    """

    def build(n_nonzero: int | None, contamination: float, random_state: int) -> Any:
        estimator = dense if dense is not None and n_nonzero is None else sparse
        known = {
            "n_nonzero": n_nonzero,
            "contamination": contamination,
            "random_state": random_state,
            "assume_centered": True,
            **options,
        }
        takes = inspect.signature(estimator).parameters
        return estimator(**{name: value for name, value in known.items() if name in takes})

    return build


def _task(name: str) -> str:
    """Tell what an algorithm is for: those for components have pca in their names."""
    return "components" if "pca" in name.split("_") else "mean"


def _rival(name: str, label: str, colour: str, marker: str, **more: Any) -> Algorithm:
    """Return a baseline as an algorithm."""
    baselines = {**MEAN_BASELINES, **{f"pca_{key}": kind for key, kind in PCA_BASELINES.items()}}
    return Algorithm(name, label, _task(name), _build(baselines[name]), colour, marker, **more)


def _ours(
    name: str, label: str, colour: str, marker: str, line: str = "-", **options: Any
) -> Algorithm:
    """Return our estimator for a task, with some of its options, as an algorithm."""
    kinds = (
        (RobustSparseMean, RobustMean) if _task(name) == "mean" else (RobustSparsePCA, RobustPCA)
    )
    build = _build(*kinds, **options)
    return Algorithm(name, label, _task(name), build, colour, marker, line, ours=True)


_REGISTERED = (
    _rival("oracle", "oracle", BLACK, "None", line="--", needs_inliers=True),
    _ours("outweigh", "outweigh", BLUE, "o"),
    _ours("outweigh_auto", "outweigh, ε unknown", SKY, ".", ":", contamination="auto"),
    _ours("outweigh_paper", "plain algorithm of the paper", SKY, "d", "-.", **PLAIN),
    _rival("filter_sparse", "sparse filter (RME_sp)", ORANGE, "s"),
    _rival("filter", "dense filter", ORANGE, "D"),
    _rival("trimmed_thresholding", "trimmed thresholding", VERMILLION, "P"),
    _rival("naive_pruning", "naive pruning", GREEN, "^"),
    _rival("ransac", "RANSAC", PURPLE, "v"),
    _rival("gradient_descent", "dense gradient descent", VERMILLION, "X"),
    _rival("multiplicative_weights", "multiplicative weights", GREEN, "*"),
    _rival("sdp", "semidefinite program", VERMILLION, "h", max_features=60, extra="sdp"),
    _rival("min_cov_det", "MinCovDet", PURPLE, "p"),
    _rival("geometric_median", "geometric median", PURPLE, "<"),
    _rival("median", "coordinatewise median", YELLOW, ">"),
    _rival("trimmed", "trimmed mean", PURPLE, "d"),
    _rival("empirical", "empirical mean", GREY, "x"),
    _rival("pca_oracle", "oracle", BLACK, "None", line="--", needs_inliers=True),
    _ours("outweigh_pca", "outweigh", BLUE, "o"),
    _ours("outweigh_pca_auto", "outweigh, ε unknown", SKY, ".", ":", contamination="auto"),
    _rival("pca_filter_sparse", "sparse PCA filter (RSPCA)", ORANGE, "s"),
    _rival("pca_filter", "dense PCA filter", GREEN, "D"),
    _rival("pca_empirical_sparse", "SparsePCA (scikit-learn)", PURPLE, "v"),
    _rival("pca_empirical", "PCA", GREY, "x"),
)

ALGORITHMS: Mapping[str, Algorithm] = MappingProxyType(
    {algorithm.name: algorithm for algorithm in _REGISTERED}
)
