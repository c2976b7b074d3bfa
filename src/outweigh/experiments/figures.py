"""Figures of summaries, at the width of a journal's column; matplotlib is imported only here.

Every algorithm has one colour and one marker in all figures. Lines are medians over the trials,
bands run between the quartiles.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from outweigh.experiments.algorithms import ALGORITHMS, Algorithm
from outweigh.experiments.errors import ExperimentError
from outweigh.experiments.metrics import METRICS
from outweigh.experiments.summary import Summary

COLUMN = 3.5
"""Width in inches of one column of a two-column journal."""

_STYLE = {
    "font.size": 8.0,
    "font.family": "sans-serif",
    "mathtext.fontset": "dejavusans",
    "axes.titlesize": 8.5,
    "axes.labelsize": 8.0,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.labelsize": 7.0,
    "ytick.labelsize": 7.0,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.minor.width": 0.4,
    "ytick.minor.width": 0.4,
    "legend.fontsize": 6.8,
    "legend.frameon": False,
    "lines.linewidth": 1.1,
    "lines.markersize": 4.0,
    "svg.hashsalt": "outweigh",
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
}

_NAMES = {
    "n_samples": "Number of samples $n$",
    "n_features": "Number of features $d$",
    "n_nonzero": "Sparsity $k$",
    "contamination": r"Contamination $\epsilon$",
}
_SYMBOLS = {
    "n_samples": "n",
    "n_features": "d",
    "n_nonzero": "k",
    "contamination": r"\epsilon",
}


@dataclass(frozen=True)
class DemoRow:
    """One algorithm of the demonstration: who, how far off, and in what time."""

    algorithm: Algorithm
    error: float
    seconds: float
    n_flagged: int | None
    n_right: int | None


def panel(summary: Summary) -> dict[str, bytes]:
    """Draw the errors of an experiment against its parameter.

    Parameters
    ----------
    summary : Summary

    Returns
    -------
    dict
        The bytes of the figure under "png" and "svg".
    """
    plt = _matplotlib()
    experiment = summary.experiment
    with plt.rc_context(_STYLE):
        figure, axes = plt.subplots(figsize=(COLUMN, 3.0), layout="constrained")
        for name in experiment.algorithms:
            _draw_curve(axes, summary, ALGORITHMS[name])
        _scale(axes, summary)
        axes.set_xlabel(_NAMES.get(experiment.parameter, experiment.parameter.replace("_", " ")))
        axes.set_ylabel(METRICS[experiment.metric].label)
        axes.set_title(f"{experiment.title}\n{_setting(summary)}", loc="left", linespacing=1.5)
        figure.legend(loc="outside lower center", ncols=2, columnspacing=1.4, handlelength=2.4)
        return _save(plt, figure)


def demonstration(
    rows: Sequence[DemoRow],
    weights: npt.NDArray[np.float64],
    inliers: npt.NDArray[np.bool_],
    title: str,
) -> bytes:
    """Draw the errors of all algorithms beside the weights that ours gave to the rows; PNG."""
    plt = _matplotlib()
    with plt.rc_context(_STYLE):
        figure, (left, right) = plt.subplots(
            1, 2, figsize=(2 * COLUMN, 2.9), layout="constrained", width_ratios=(1.25, 1.0)
        )
        figure.suptitle(title, fontsize=9.0, x=0.01, ha="left")
        _draw_errors(left, rows)
        _draw_weights(right, weights, inliers)
        return _save(plt, figure)["png"]


def _draw_curve(axes: Any, summary: Summary, algorithm: Algorithm) -> None:
    cells = summary.curve(algorithm.name)
    if not cells:
        return
    x = [cell.x for cell in cells]
    front = 4 if algorithm.ours else 3
    axes.fill_between(
        x,
        [cell.lower for cell in cells],
        [cell.upper for cell in cells],
        color=algorithm.colour,
        alpha=0.15,
        linewidth=0,
        zorder=front - 2,
    )
    axes.plot(
        x,
        [cell.median for cell in cells],
        color=algorithm.colour,
        marker=algorithm.marker,
        linestyle=algorithm.line,
        linewidth=1.8 if algorithm.ours else 1.1,
        markeredgecolor=algorithm.colour if algorithm.marker == "x" else "white",
        markeredgewidth=1.0 if algorithm.marker == "x" else 0.5,
        markersize=5.0 if algorithm.ours else 4.2,
        label=algorithm.label,
        zorder=front,
    )


def _scale(axes: Any, summary: Summary) -> None:
    """Set the scales; ticks of a logarithmic axis stand at the values of the grid."""
    from matplotlib.ticker import LogLocator, NullFormatter, ScalarFormatter

    medians = [cell.median for cell in summary.cells if cell.n_done]
    if summary.experiment.log_y and medians and min(medians) > 0:
        axes.set_yscale("log")
        narrow = max(medians) < 12 * min(medians)
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if narrow else (1.0, 3.0)))
        axes.yaxis.set_major_formatter(ScalarFormatter())
        axes.yaxis.set_minor_formatter(NullFormatter())
    if summary.experiment.log_x and summary.xs:
        axes.set_xscale("log")
        axes.set_xticks(summary.xs, [f"{x:g}" for x in summary.xs])
        axes.minorticks_off() if not summary.experiment.log_y else axes.xaxis.set_minor_locator(
            plt_null_locator()
        )
    axes.grid(True, which="major", color="#dddddd", linewidth=0.5, zorder=0)
    axes.set_axisbelow(True)


def plt_null_locator() -> Any:
    """Return a locator without ticks."""
    from matplotlib.ticker import NullLocator

    return NullLocator()


def _setting(summary: Summary) -> str:
    """Say what the experiment holds fixed, and over how many trials the medians are."""
    experiment = summary.experiment
    parts = [f"${_SYMBOLS[name]}={value:g}$" for name, value in experiment.fixed.items()]
    done = sorted({cell.n_done for cell in summary.cells if cell.n_done})
    if done:
        parts.append(f"{done[0]} trials" if len(done) == 1 else f"{done[0]} to {done[-1]} trials")
    return ", ".join(parts)


def _draw_errors(axes: Any, rows: Sequence[DemoRow]) -> None:
    ordered = sorted(rows, key=lambda row: -row.error)
    for height, row in enumerate(ordered):
        axes.plot([0, row.error], [height, height], color=row.algorithm.colour, linewidth=1.0)
        axes.plot(
            row.error,
            height,
            color=row.algorithm.colour,
            marker="o" if row.algorithm.marker == "None" else row.algorithm.marker,
            markersize=6.5 if row.algorithm.ours else 5.0,
        )
        axes.annotate(
            f"{row.error:.3f}", (row.error, height), (5, 0), textcoords="offset points", va="center"
        )
    axes.set_yticks(range(len(ordered)), [row.algorithm.label for row in ordered])
    for label, row in zip(axes.get_yticklabels(), ordered, strict=True):
        label.set_fontweight("bold" if row.algorithm.ours else "normal")
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.set_xlim(0, 1.2 * max(row.error for row in rows))
    axes.set_xlabel("Error of the estimated mean (smaller is better)")


def _draw_weights(
    axes: Any, weights: npt.NDArray[np.float64], inliers: npt.NDArray[np.bool_]
) -> None:
    relative = weights * weights.size
    edges = np.linspace(0.0, max(1.25, float(relative.max())), 26)
    for mask, colour, name in (
        (inliers, ALGORITHMS["oracle"].colour, "genuine"),
        (~inliers, "#D55E00", "outliers"),
    ):
        axes.hist(
            relative[mask],
            bins=edges,
            histtype="stepfilled",
            alpha=0.55 if name == "outliers" else 0.25,
            color=colour,
            label=f"{name} ({np.count_nonzero(mask)} rows)",
        )
    axes.set_yscale("log")
    axes.set_xlabel("Weight given to a row (1 = average)")
    axes.set_ylabel("Rows")
    axes.legend(loc="upper center")


def _save(plt: Any, figure: Any) -> dict[str, bytes]:
    images = {}
    for kind, options in (
        ("png", {"dpi": 300, "metadata": {"Software": None}}),
        ("svg", {"metadata": {"Date": None, "Creator": None}}),
    ):
        buffer = io.BytesIO()
        figure.savefig(buffer, format=kind, **options)
        images[kind] = buffer.getvalue()
    plt.close(figure)
    return images


def _matplotlib() -> Any:
    """Import pyplot without a display, or say how to install it."""
    try:
        import matplotlib
    except ImportError as error:
        raise ExperimentError(
            "figures need matplotlib, which is not installed: pip install 'outweigh[plot]'"
        ) from error
    matplotlib.use("agg")
    from matplotlib import pyplot

    return pyplot
