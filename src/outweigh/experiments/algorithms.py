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
from outweigh.baselines.plain import SparseComponentsDescent, SparseGradientDescent
from outweigh.estimators.mean import RobustMean, RobustSparseMean
from outweigh.estimators.pca import RobustPCA, RobustSparsePCA

# The palette of Okabe and Ito, which people with any colour vision can tell apart.
BLACK, GREY = "#000000", "#777777"
BLUE, SKY, GREEN = "#0072B2", "#56B4E9", "#009E73"
ORANGE, VERMILLION, PURPLE = "#E69F00", "#D55E00", "#CC79A7"
YELLOW, NAVY = "#F0E442", "#1B2A6B"

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
    """Return how to build an estimator: the dense one, if there is one, where k is not known.

    Of what is known it is told what its constructor asks for. The samples with components have
    mean zero, which counts as known. The options are handed to it whether it has them or not, so
    that one that is misspelt, or gone, is an error.
    """

    def build(n_nonzero: int | None, contamination: float, random_state: int) -> Any:
        estimator = dense if dense is not None and n_nonzero is None else sparse
        known = {
            "n_nonzero": n_nonzero,
            "contamination": contamination,
            "random_state": random_state,
            "assume_centered": True,
        }
        asked = inspect.signature(estimator).parameters
        return estimator(**{k: v for k, v in known.items() if k in asked} | options)

    return build


_BASELINES = {**MEAN_BASELINES, **{f"pca_{name}": kind for name, kind in PCA_BASELINES.items()}}


def _task(name: str) -> str:
    """Tell what an algorithm is for: those for components have pca in their names."""
    return "components" if "pca" in name.split("_") else "mean"


def _rival(name: str, label: str, colour: str, marker: str, **more: Any) -> Algorithm:
    """Return a baseline as an algorithm."""
    return Algorithm(name, label, _task(name), _build(_BASELINES[name]), colour, marker, **more)


def _ours(
    name: str, label: str, colour: str, marker: str, line: str = "-", **options: Any
) -> Algorithm:
    """Return our estimator for a task, with some of its options set, as an algorithm."""
    task = _task(name)
    if task == "mean":
        # As the rivals are told: the samples are of unit, uncorrelated noise.
        options = {"scale": None, "covariance": None, **options}
    kinds = (RobustSparseMean, RobustMean) if task == "mean" else (RobustSparsePCA, RobustPCA)
    build = _build(*kinds, **options)
    return Algorithm(name, label, task, build, colour, marker, line, ours=True)


def _paper(name: str, kind: Callable[..., Any]) -> Algorithm:
    """Return Algorithm 1 or 2 of the paper, and nothing else."""
    label = "the paper's algorithm"
    return Algorithm(name, label, _task(name), _build(kind), NAVY, "d", "-.", ours=True)


_REGISTERED = (
    _rival("oracle", "oracle", BLACK, "None", line="--", needs_inliers=True),
    _ours("outweigh", "outweigh", BLUE, "o"),
    _ours("outweigh_auto", "outweigh, ε unknown", SKY, ".", ":", contamination="auto"),
    _paper("outweigh_paper", SparseGradientDescent),
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
    _paper("outweigh_pca_paper", SparseComponentsDescent),
    _rival("pca_filter_sparse", "sparse PCA filter (RSPCA)", ORANGE, "s"),
    _rival("pca_filter", "dense PCA filter", GREEN, "D"),
    _rival("pca_empirical_sparse", "SparsePCA (scikit-learn)", PURPLE, "v"),
    _rival("pca_empirical", "PCA", GREY, "x"),
)

ALGORITHMS: Mapping[str, Algorithm] = MappingProxyType(
    {algorithm.name: algorithm for algorithm in _REGISTERED}
)
