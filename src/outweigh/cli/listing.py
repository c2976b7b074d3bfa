"""``outweigh list``: what can be named."""

from __future__ import annotations

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
        lines.append(f"{name:<20} {experiment.title} ({n_runs} runs)")
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
        lines.append(f"{algorithm.name:<20} {algorithm.label} ({', '.join(notes)})")
    return lines


def _adversaries() -> list[str]:
    lines = []
    for name, adversary in ADVERSARIES.items():
        task = "mean" if name in MEAN_ADVERSARIES else "components"
        first = (adversary.__doc__ or "").strip().splitlines()[0]
        lines.append(f"{name:<20} {first}")
        lines.append(f"{'':<20}   {task}; options {', '.join(options_of(name))}")
    return lines
