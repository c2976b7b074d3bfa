"""Draw docs/figures/readme.png: an attack that no single row gives away, and what it costs.

python examples/readme_figure.py
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from outweigh import RobustSparseMean
from outweigh.adversaries import make
from outweigh.baselines import MEAN_BASELINES

N_SAMPLES, N_FEATURES, N_NONZERO, CONTAMINATION, SEED = 2000, 300, 10, 0.1, 2000
FIGURE = Path(__file__).parents[1] / "docs" / "figures" / "readme.png"
CLEAN, WRONG, OURS = "#9aa5b1", "#d1495b", "#00798c"
RIVALS = {
    "plain mean": "empirical",
    "geometric median": "geometric_median",
    "coordinatewise median": "median",
    "iterative filter": "filter_sparse",
}
STYLE = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "savefig.dpi": 130,
}


def main() -> None:
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else FIGURE
    sample = make("hidden_at_zero", N_SAMPLES, N_FEATURES, N_NONZERO, CONTAMINATION, SEED)
    X, clean = sample.X, sample.inliers
    est = RobustSparseMean(n_nonzero=N_NONZERO).fit(X)
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(
            1, 3, figsize=(10, 3), width_ratios=(1, 1, 1.15), layout="constrained"
        )
        draw_distances(axes[0], X, clean)
        draw_weights(axes[1], est.weights_ * N_SAMPLES, clean)
        draw_errors(axes[2], sample, est.location_)
        target.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(target, metadata={"Software": None})
    plt.close(figure)


def draw_distances(ax: plt.Axes, X: np.ndarray, clean: np.ndarray) -> None:
    distances = np.linalg.norm(X - np.median(X, axis=0), axis=1)
    bins = np.linspace(distances.min(), distances.max(), 32)
    ax.hist(distances[clean], bins, color=CLEAN, label="clean rows")
    ax.hist(distances[~clean], bins, color=WRONG, label="wrong rows")
    ax.set(title="Distances do not tell them apart", xlabel="distance from the median")
    ax.set_ylabel("rows")
    ax.margins(y=0.25)
    ax.legend(loc="upper right", handlelength=1, fontsize=8, borderaxespad=0)


def draw_weights(ax: plt.Axes, weights: np.ndarray, clean: np.ndarray) -> None:
    bins = np.linspace(0.0, weights.max() * 1.0001, 12)
    ax.hist([weights[clean], weights[~clean]], bins, color=[CLEAN, WRONG], rwidth=0.95)
    ax.set(title="The weights found do", xlabel="weight times n", ylabel="rows", yscale="log")


def draw_errors(ax: plt.Axes, sample, ours: np.ndarray) -> None:
    oracle = MEAN_BASELINES["oracle"](N_NONZERO).fit(sample.X, inliers=sample.inliers)
    locations = {
        name: MEAN_BASELINES[key](N_NONZERO).fit(sample.X).location_ for name, key in RIVALS.items()
    } | {"outweigh": ours, "oracle: wrong rows known": oracle.location_}
    errors = [float(np.linalg.norm(location - sample.truth)) for location in locations.values()]
    colours = [*[CLEAN] * len(RIVALS), OURS, "#3d3d3d"]
    bars = ax.barh(range(len(errors)), errors, color=colours, height=0.7)
    ax.bar_label(bars, fmt="%.3f", padding=3, fontsize=8)
    ax.set_yticks(range(len(errors)), list(locations))
    ax.invert_yaxis()
    ax.set(title="Error of the mean", xlabel="distance from the true mean")
    ax.set_xlim(0, 1.18 * max(errors))
    ax.tick_params(axis="y", length=0)


if __name__ == "__main__":
    main()
