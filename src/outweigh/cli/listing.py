"""``outweigh list``: what can be named."""

from __future__ import annotations

import re

from outweigh.adversaries import ADVERSARIES, MEAN_ADVERSARIES, options_of
from outweigh.experiments.algorithms import ALGORITHMS
from outweigh.experiments.library import builtin_names, load_builtin


def show(what: str | None) -> int:
    """Print figures, algorithms and adversaries, or one of the three."""
    sections = {"figures": _figures, "algorithms": _algorithms, "adversaries": _adversaries}
    for name, lines in sections.items():
        if what in (None, name):
            print(f"{name}:")
            for line in lines():
                print(f"  {line}")
            if what is None:
                print()
    if what is None:
        print("Run one with `outweigh reproduce NAME`; `outweigh reproduce --help` says more.")
    return 0


def _figures() -> list[str]:
    lines = []
    for name in builtin_names():
        experiment = load_builtin(name)
        n_runs = sum(1 for _ in experiment.runs())
        lines.append(f"{name:<24} {experiment.title} ({n_runs} runs)")
    return lines


def _algorithms() -> list[str]:
    lines = []
    for algorithm in ALGORITHMS.values():
        notes = [algorithm.task]
        if algorithm.needs_inliers:
            notes.append("told the truth")
        if algorithm.max_features is not None:
            notes.append(f"up to {algorithm.max_features} features")
        if algorithm.extra is not None:
            notes.append(f"needs outweigh[{algorithm.extra}]")
        lines.append(f"{algorithm.name:<24} {algorithm.label} ({', '.join(notes)})")
    return lines


def _adversaries() -> list[str]:
    lines = []
    for name, adversary in ADVERSARIES.items():
        task = "mean" if name in MEAN_ADVERSARIES else "components"
        lines.append(f"{name:<24} {_first_line(adversary.__doc__ or '')}")
        lines.append(f"{'':<24}   {task}; options {', '.join(options_of(name))}")
    return lines


def _first_line(doc: str) -> str:
    r"""Return the first line of a docstring without its markup.

    Examples
    --------
    >>> _first_line("As :func:`make`, with ``x``.\n\nMore.")
    'As make, with x.'
    """
    return re.sub(r":\w+:|`", "", doc.strip().splitlines()[0])
