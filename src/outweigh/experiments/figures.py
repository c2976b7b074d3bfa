"""Figures of summaries, at the width of a journal's column.

Every algorithm has one colour and one marker in all figures. Lines are medians over the trials,
bands run between the quartiles.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from outweigh.displays.canvas import NEEDED_BY, image, styled
from outweigh.experiments.algorithms import ALGORITHMS, BLACK, YELLOW, Algorithm
from outweigh.experiments.runs import ERRORS
from outweigh.experiments.spec import GUIDES
from outweigh.experiments.summary import Summary
from outweigh.libraries import library

COLUMN = 3.5
"""Width in inches of one column of a two-column journal."""

_PRINT = 300
"""Dots in an inch."""

# What differs from other pictures: all is smaller.
_SMALL = {
    "font.size": 8.0,
    "axes.titlesize": 8.5,
    "xtick.labelsize": 7.0,
    "ytick.labelsize": 7.0,
    "legend.fontsize": 6.8,
    "lines.linewidth": 1.1,
    "lines.markersize": 4.0,
}

_DIMENSIONS = {
    "n_samples": ("Number of samples", "n"),
    "n_features": ("Number of features", "d"),
    "n_nonzero": ("Sparsity", "k"),
    "contamination": ("Contamination", r"\epsilon"),
}
"""What figures call a dimension, and its symbol."""


# For errors that span less than so much, the leading digits of the ticks.
_LOG_TICKS = {4.0: (1.0, 1.2, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0), 60.0: (1.0, 2.0, 5.0), np.inf: (1.0,)}


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
    figures = library("matplotlib.figure", NEEDED_BY)
    experiment = summary.experiment
    with styled(**_SMALL):
        figure = figures.Figure(figsize=(COLUMN, 3.0), layout="constrained")
        axes = figure.subplots()
        for algorithm in experiment.algorithms:
            _draw_curve(axes, summary, ALGORITHMS[algorithm])
        _draw_guide(axes, summary)
        _scale(axes, summary)
        plain = experiment.parameter.replace("_", " ").capitalize()
        name, symbol = _DIMENSIONS.get(experiment.parameter, (plain, ""))
        usual = f"{name} ${symbol}$" if symbol else name
        axes.set_xlabel(experiment.axes.get("label") or usual)
        axes.set_ylabel(ERRORS[experiment.task][0])
        axes.set_title(f"{experiment.title}\n{_setting(summary)}", loc="left", linespacing=1.5)
        if axes.get_legend_handles_labels()[0]:
            figure.legend(loc="outside lower center", ncols=2, columnspacing=1.4, handlelength=2.4)
        return {kind: image(figure, kind, _PRINT) for kind in ("png", "svg")}


def _draw_curve(axes: Any, summary: Summary, algorithm: Algorithm) -> None:
    cells = summary.curve(algorithm.name)
    if not cells:
        return
    x, lower, median, upper = zip(*((c.x, c.lower, c.median, c.upper) for c in cells), strict=True)
    # The oracle is a thin line above all: whoever is level with it hides beneath it.
    edges = {"x": algorithm.colour, YELLOW: BLACK}
    front = 5 if algorithm.needs_inliers else 4 if algorithm.ours else 3
    axes.fill_between(x, lower, upper, color=algorithm.colour, alpha=0.15, linewidth=0, zorder=2)
    axes.plot(
        x,
        median,
        color=algorithm.colour,
        marker=algorithm.marker,
        linestyle=algorithm.line,
        linewidth=1.8 if algorithm.ours else 1.0,
        # A light marker needs an edge, a cross is nothing else.
        markeredgecolor=edges.get(algorithm.marker, edges.get(algorithm.colour, "white")),
        markeredgewidth=1.0 if algorithm.marker == "x" else 0.5,
        markersize=5.0 if algorithm.ours else 4.2,
        label=algorithm.label,
        zorder=front,
    )


def _draw_guide(axes: Any, summary: Summary) -> None:
    """Draw a rate of the paper, with constant one: its slope counts, not its height."""
    known = [point for point in summary.experiment.points() if point.x in summary.xs]
    guide = summary.experiment.axes.get("guide")
    if not guide or not known:
        return
    label, rate = GUIDES[guide]
    heights = [rate(point) for point in known]
    axes.plot(
        [point.x for point in known], heights, color=BLACK, lw=0.7, ls=(0, (1, 2)), label=label
    )


def _scale(axes: Any, summary: Summary) -> None:
    """Set the scales; the ticks of the x axis stand at the values of the grid."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter

    plain = FuncFormatter(lambda value, _: f"{value:g}")
    known = [cell for cell in summary.cells if cell.n_done]
    smallest = min((cell.lower for cell in known), default=0.0)
    if smallest > 0:
        axes.set_yscale("log")
        span = max(cell.upper for cell in known) / smallest
        subs = next(subs for limit, subs in _LOG_TICKS.items() if span < limit)
        axes.yaxis.set_major_locator(LogLocator(subs=subs))
        axes.yaxis.set_minor_formatter(NullFormatter())
    if summary.experiment.axes.get("log_x"):
        axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator(summary.xs))
    axes.xaxis.set_minor_locator(FixedLocator([]))
    axes.xaxis.set_major_formatter(plain)
    axes.yaxis.set_major_formatter(plain)
    axes.grid(True, which="major", color="#dddddd", linewidth=0.5)
    axes.set_axisbelow(True)


def _setting(summary: Summary) -> str:
    """Say what the experiment holds fixed, and over how many trials the medians are."""
    experiment = summary.experiment
    fixed = [(symbol, experiment.fixed.get(name)) for name, (_, symbol) in _DIMENSIONS.items()]
    parts = [f"${symbol}={value:g}$" for symbol, value in fixed if value is not None]
    done = sorted({cell.n_done for cell in summary.cells if cell.n_done})
    if done:
        parts.append(f"{done[0]} trials" if len(done) == 1 else f"{done[0]} to {done[-1]} trials")
    return ", ".join(parts)
