"""``outweigh reproduce`` and ``outweigh plot``: records, tables, figures and the report."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path

import joblib
from joblib.externals.loky.process_executor import TerminatedWorkerError

from outweigh.cli.exit_codes import INTERRUPTED, OK, SOME_RUNS_FAILED
from outweigh.cli.files import write_whole
from outweigh.cli.progress import Progress
from outweigh.experiments import figures as drawing
from outweigh.experiments.algorithms import ALGORITHMS
from outweigh.experiments.errors import ExperimentError
from outweigh.experiments.library import builtin_names, load
from outweigh.experiments.measure import versions
from outweigh.experiments.runner import do_runs, missing_runs
from outweigh.experiments.spec import Experiment, enumerate_runs
from outweigh.experiments.store import Store
from outweigh.experiments.summary import Cell, Summary, defeats, summarise
from outweigh.report import build_report

_RECORDS = "records.jsonl"


def reproduce(
    names: Sequence[str],
    *,
    quick: bool,
    out: str,
    report: bool,
    jobs: int | None,
    retry_failed: bool,
) -> int:
    """Do the missing runs of some experiments, then draw and tabulate all of them."""
    experiments = _load(names or builtin_names(), quick)
    store = Store(Path(out) / _RECORDS, versions()["outweigh"])
    runs = enumerate_runs(experiments)
    with store:
        waiting = missing_runs(runs, store, retry_failed)
        n_before = len(runs) - len(waiting)
        _say(
            f"{len(experiments)} experiments, {len(runs)} runs, {n_before} of them already in "
            f"{store.path}"
        )
        progress = Progress(waiting, n_before, sys.stderr)
        try:
            for record in do_runs(waiting, store, jobs or joblib.cpu_count()):
                progress.update(record)
        except KeyboardInterrupt:
            progress.close()
            done = len(runs) - len(missing_runs(runs, store))
            _say(
                f"interrupted: {done} of {len(runs)} runs are safe in {store.path}; "
                f"the same command goes on from there"
            )
            return INTERRUPTED
        except TerminatedWorkerError as error:
            raise ExperimentError(
                "a worker process died, perhaps for want of memory; the same command with fewer "
                "--jobs goes on from what is stored"
            ) from error
        progress.close()
    return _publish([summarise(experiment, store) for experiment in experiments], out, report)


def plot(names: Sequence[str], quick: bool, out: str, report: bool) -> int:
    """Draw and tabulate experiments from what is stored."""
    path = Path(out) / _RECORDS
    if not path.exists():
        raise ExperimentError(f"{path}: does not exist; `outweigh reproduce --out {out}` makes it")
    store = Store(path, versions()["outweigh"])
    summaries = [summarise(e, store) for e in _load(names or builtin_names(), quick)]
    known = [summary for summary in summaries if summary.xs]
    for summary in summaries:
        if names and not summary.xs:
            raise ExperimentError(f"{path}: has no records of {summary.experiment.name}")
    if not known:
        raise ExperimentError(f"{path}: has no records of the figures; name a TOML file to plot")
    return _publish(known, out, report)


def _load(names: Sequence[str], quick: bool) -> list[Experiment]:
    """Load all experiments before anything is done, and refuse two of one name."""
    experiments: dict[str, Experiment] = {}
    for name in dict.fromkeys(names):
        experiment = load(name)
        if experiment.name in experiments:
            raise ExperimentError(
                f"{name}: name: another experiment is called {experiment.name!r} too; rename one"
            )
        experiments[experiment.name] = experiment.quickly() if quick else experiment
    return list(experiments.values())


def _publish(summaries: Sequence[Summary], out: str, report: bool) -> int:
    folder = Path(out)
    written = [write_whole(folder / "summary.csv", _as_csv(summaries))]
    images: dict[str, bytes] = {}
    try:
        for summary in summaries:
            name = summary.experiment.name
            drawn = drawing.panel(summary)
            images[name] = drawn["png"]
            written += [
                write_whole(folder / f"{name}.{kind}", data) for kind, data in drawn.items()
            ]
    except drawing.NoMatplotlib as error:
        _say(f"no figures: {error}")
    if report:
        page = build_report(summaries, images).encode("utf-8")
        written.append(write_whole(folder / "report.html", page))
    for summary in summaries:
        print(_verdict(summary))
    print(f"\nwritten: {', '.join(str(path) for path in written)}")
    failed = [record for summary in summaries for record in summary.failures]
    for record in failed[:5]:
        _say(
            f"failed: {record['experiment']} at {record['x']:g}, {record['algorithm']}, "
            f"trial {record['trial']}: {record['failure']}"
        )
    if len(failed) > 5:
        _say(f"and {len(failed) - 5} more failures; --report shows all of them")
    return SOME_RUNS_FAILED if failed else OK


def _verdict(summary: Summary) -> str:
    """Say in a few lines how our algorithm did in an experiment, and who beat it where."""
    experiment = summary.experiment
    lines = [f"{experiment.name}: {experiment.title}"]
    ours = next((name for name in experiment.algorithms if ALGORITHMS[name].ours), None)
    if ours is None:
        return lines[0]
    lost = list(defeats(summary))
    for x in summary.xs:
        mine = summary.cell(x, ours)
        rivals = [
            cell
            for cell in summary.cells
            if cell.x == x
            and cell.n_done
            and not ALGORITHMS[cell.algorithm].ours
            and not ALGORITHMS[cell.algorithm].needs_inliers
        ]
        best = min(rivals, key=lambda cell: cell.median, default=None)
        text = f"  {experiment.parameter} = {x:<8g} {ours} {mine.median:.3f}"
        if best is not None:
            text += f"   best rival {best.algorithm} {best.median:.3f}"
        beaten = [defeat for defeat in lost if defeat.x == x]
        if beaten:
            outside = any(defeat.outside for defeat in beaten)
            text += (
                "   (better, beyond our quartiles)"
                if outside
                else "   (better, within our quartiles)"
            )
        lines.append(text)
    if summary.n_missing:
        lines.append(f"  {summary.n_missing} runs are missing")
    return "\n".join(lines)


def _as_csv(summaries: Sequence[Summary]) -> bytes:
    buffer = io.StringIO(newline="")
    names = ["experiment", "parameter", *(field.name for field in fields(Cell))]
    writer = csv.DictWriter(buffer, names, lineterminator="\n")
    writer.writeheader()
    for summary in summaries:
        about = {
            "experiment": summary.experiment.name,
            "parameter": summary.experiment.parameter,
        }
        for cell in summary.cells:
            writer.writerow({**about, **asdict(cell)})
    return buffer.getvalue().encode("utf-8")


def _say(text: str) -> None:
    print(f"outweigh: {text}", file=sys.stderr)
