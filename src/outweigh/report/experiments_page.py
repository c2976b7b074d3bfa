"""The page about experiments: panels, tables, where rivals win, failures, versions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from outweigh.experiments.algorithms import ALGORITHMS
from outweigh.experiments.summary import Summary, defeats
from outweigh.report.page import render


def build_report(summaries: Sequence[Summary], images: Mapping[str, bytes]) -> str:
    """Return the page.

    Parameters
    ----------
    summaries : sequence of Summary
    images : mapping
        The PNG of each experiment, under its name; one without an image is shown as tables only.

    Returns
    -------
    str
        An HTML document.
    """
    lost = [(s.experiment.name, *cells) for s in summaries for cells in defeats(s)]
    failed = [record for summary in summaries for record in summary.failures]
    n_done = sum(cell.n_done for summary in summaries for cell in summary.cells)
    n_outside = len({(name, ours.x) for name, ours, rival in lost if rival.outside(ours)})
    n_points = sum(len(summary.xs) for summary in summaries)
    versions: list[dict[str, str]] = []
    for summary in summaries:
        versions += [found for found in summary.versions if found not in versions]
    return render(
        "experiments.html",
        summaries=summaries,
        images=images,
        algorithms=ALGORITHMS,
        versions=versions,
        numbers=[
            (len(summaries), "panels"),
            (n_done, "runs done"),
            (len(failed), "runs failed"),
            (sum(summary.n_missing for summary in summaries), "runs missing"),
            (f"{n_outside} of {n_points}", "points where a rival is better beyond the quartiles"),
        ],
        defeats=[
            (
                name,
                f"{ours.x:g}",
                ALGORITHMS[rival.algorithm].label,
                f"{rival.median:.3f}",
                f"{ours.median:.3f}",
                "no" if rival.outside(ours) else "yes",
            )
            for name, ours, rival in lost
        ],
        failures=[
            (
                record["experiment"],
                f"{record['x']:g}",
                *(record[key] for key in ("algorithm", "trial", "seed", "failure")),
            )
            for record in failed
        ],
    )
