"""The algorithms that experiments compare, by name: how each is built and how it is drawn.

Every algorithm is told the contamination and the number of nonzero entries if it has a use for
them, except those whose name ends in ``_auto``, which have to find the contamination themselves.
Only the oracles see which rows are genuine.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
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

_BASELINES = {**MEAN_BASELINES, **{f"pca_{name}": kind for name, kind in PCA_BASELINES.items()}}


@dataclass(frozen=True)
class Algorithm:
    """An algorithm as experiments know it.

    Attributes
    ----------
    name : str
        What TOML files and records call it.
    label : str
        What figures and tables call it.
    colour, marker : str
        How it is drawn, everywhere.
    line : str
        Style of its line.
    kinds : tuple of class
        Of the estimator: one, or one for a known number of nonzero entries and one for dense
        problems. By default the baseline of its name.
    options : mapping
        Parameters of the estimator. They are handed to it whether it has them or not, so that one
        that is misspelt, or gone, is an error.
    needs_inliers : bool
        Whether ``fit`` takes the mask of genuine rows: the oracles only.
    extra : str or None
        The optional extra that it needs.
    """

    name: str
    label: str
    colour: str
    marker: str
    line: str = "-"
    kinds: tuple[Callable[..., Any], ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    needs_inliers: bool = False
    extra: str | None = None

    @property
    def task(self) -> str:
        """What it is for, "mean" or "components": those have pca in their names."""
        return "components" if "pca" in self.name.split("_") else "mean"

    @property
    def ours(self) -> bool:
        """Whether it is this library's own method."""
        return self.name.startswith("outweigh")

    @property
    def max_features(self) -> int | None:
        """The largest number of features it can take."""
        return getattr(_BASELINES.get(self.name), "max_features", None)

    def build(self, n_nonzero: int | None, contamination: float, random_state: int) -> Any:
        """Return an unfitted estimator, told of what is known what its constructor asks for.

        The samples with components have mean zero, which counts as known.
        """
        kinds = self.kinds or (_BASELINES[self.name],)
        kind = kinds[-1] if n_nonzero is None else kinds[0]
        known = {
            "n_nonzero": n_nonzero,
            "contamination": contamination,
            "random_state": random_state,
            "assume_centered": True,
        }
        asked = inspect.signature(kind).parameters
        told = {name: value for name, value in known.items() if name in asked}
        return kind(**{**told, **self.options})


_PAPER = "the paper's algorithm"
_MEANS, _COMPONENTS = (RobustSparseMean, RobustMean), (RobustSparsePCA, RobustPCA)
# As the rivals are told: the samples are of unit, uncorrelated noise.
_WHITE = {"scale": None, "covariance": None}
_AUTO = {"contamination": "auto"}

_REGISTERED = (
    Algorithm("oracle", "oracle", BLACK, "None", "--", needs_inliers=True),
    Algorithm("outweigh", "outweigh", BLUE, "o", "-", _MEANS, _WHITE),
    Algorithm("outweigh_auto", "outweigh, ε unknown", SKY, ".", ":", _MEANS, {**_WHITE, **_AUTO}),
    Algorithm("outweigh_paper", _PAPER, NAVY, "d", "-.", (SparseGradientDescent,)),
    Algorithm("filter_sparse", "sparse filter (RME_sp)", ORANGE, "s"),
    Algorithm("filter", "dense filter", ORANGE, "D"),
    Algorithm("trimmed_thresholding", "trimmed thresholding", VERMILLION, "P"),
    Algorithm("naive_pruning", "naive pruning", GREEN, "^"),
    Algorithm("ransac", "RANSAC", PURPLE, "v"),
    Algorithm("gradient_descent", "dense gradient descent", VERMILLION, "X"),
    Algorithm("multiplicative_weights", "multiplicative weights", GREEN, "*"),
    Algorithm("sdp", "semidefinite program", VERMILLION, "h", extra="sdp"),
    Algorithm("min_cov_det", "MinCovDet", PURPLE, "p"),
    Algorithm("geometric_median", "geometric median", PURPLE, "<"),
    Algorithm("median", "coordinatewise median", YELLOW, ">"),
    Algorithm("trimmed", "trimmed mean", PURPLE, "d"),
    Algorithm("empirical", "empirical mean", GREY, "x"),
    Algorithm("pca_oracle", "oracle", BLACK, "None", "--", needs_inliers=True),
    Algorithm("outweigh_pca", "outweigh", BLUE, "o", "-", _COMPONENTS),
    Algorithm("outweigh_pca_auto", "outweigh, ε unknown", SKY, ".", ":", _COMPONENTS, _AUTO),
    Algorithm("outweigh_pca_paper", _PAPER, NAVY, "d", "-.", (SparseComponentsDescent,)),
    Algorithm("pca_filter_sparse", "sparse PCA filter (RSPCA)", ORANGE, "s"),
    Algorithm("pca_filter", "dense PCA filter", GREEN, "D"),
    Algorithm("pca_empirical_sparse", "SparsePCA (scikit-learn)", PURPLE, "v"),
    Algorithm("pca_empirical", "PCA", GREY, "x"),
)

ALGORITHMS: Mapping[str, Algorithm] = {algorithm.name: algorithm for algorithm in _REGISTERED}
